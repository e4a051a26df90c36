"""`weft bench`: the benchmark suite where its repository is, else a small comparison here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft.doctor import best
from weft.tensor.tensor import Tensor

SUITES = ("eager", "compiled", "control_flow", "examples")


def bench(suite: str, arguments: Sequence[str]) -> int:
    """Run a suite of `benchmarks/` with these arguments; its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{suite}", *arguments], cwd=_home(), check=False
    )
    return done.returncode


def suite_is_here() -> bool:
    """Whether this Weft is that of a repository with its benchmarks."""
    return (_home() / "benchmarks" / "compare.py").is_file()


def _home() -> Path:
    return Path(__file__).parents[1]


def compare(seconds: float = 0.2, path: str = "") -> int:
    """Print a table of times; written to `path` as JSON, if it is given. 0 if results agree."""
    print(f"microseconds, best of {seconds:g} s, {wf.get_num_threads()} threads")
    print(f"{'':34}{'NumPy':>10}{'eager':>10}{'compiled':>10}")
    figures, wrong = [], []
    for name, (f, g, args) in _rows().items():
        tensors = [wf.tensor(a) for a in args]
        compiled = wf.compile(f, fallback=False)
        if not np.array_equal(f(*tensors).numpy(), compiled(*tensors).numpy()):
            wrong.append(name)
        sides: dict[str, tuple[Callable[..., Any], Sequence[Any]] | None] = {
            "numpy": (g, args) if g else None,
            "eager": (f, tensors),
            "compiled": (compiled, tensors),
        }
        times = {k: best(lambda s=s: s[0](*s[1]), seconds) for k, s in sides.items() if s}  # type: ignore[misc]
        figures.append({"name": name, **times})
        shown = (f"{times[k] * 1e6:10.1f}" if k in times else f"{'-':>10}" for k in sides)
        print(f"{name:34}{''.join(shown)}", flush=True)
    for name in wrong:
        print(f"{name}: compiled and eager differ", file=sys.stderr)
    if path:
        Path(path).write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 1 if wrong else 0


def _rows() -> dict[str, tuple[Callable[..., Tensor], Callable[..., Any] | None, list[Any]]]:
    """What is timed: in Weft, in NumPy where it can be said there, on these arrays."""
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    wide, row, square = draw(1024, 1024), draw(1024), draw(512, 512)
    sizes = ((8, 64), (64,), (64, 64), (64,), (64, 2), (2,))
    small = [draw(32, 8), *(0.3 * draw(*s) for s in sizes)]
    return {
        "tanh(x * a + b), 1024 x 1024": (_map, _numpy_map, [wide, row, row]),
        "softmax of rows, 1024 x 1024": (_softmax, _numpy_softmax, [wide]),
        "product, 512 x 512": (lambda x: x @ x, lambda x: x @ x, [square]),
        "network 8-64-64-2, gradients": (_network, None, small),
    }


def _map(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return wf.tanh(x * a + b)


def _numpy_map(x: Any, a: Any, b: Any) -> Any:
    return np.tanh(x * a + b)


def _softmax(x: Tensor) -> Tensor:
    return F.softmax(x, dim=-1)


def _numpy_softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _network(x: Tensor, *weights: Tensor) -> Tensor:
    """The gradient of the first weights."""

    def loss(first: Tensor) -> Tensor:
        h, ws = x, (first, *weights[1:])
        for i in (0, 2, 4):
            h = wf.tanh(h @ ws[i] + ws[i + 1])
        return (h * h).mean()

    return wf.grad(loss)(weights[0])
