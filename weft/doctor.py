"""`weft doctor`: what this machine is, what it can do, what is missing, whether all works."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

import numpy as np

import weft
from weft.capture.evaluate import evaluate
from weft.codegen import jit
from weft.ops.language import parse
from weft.runtime.cache import DiskCache


def examine() -> int:
    """Print the report; 0 if all works, else 2."""
    for name, said in (*_machine(), *_limits(), *_extras()):
        print(f"{name:12}{said}")
    failed = 0
    for name, check in _CHECKS.items():
        start = time.perf_counter()
        try:
            fine = bool(check())
        except Exception as e:  # the point is to say what does not work
            fine, name = False, f"{name}: {type(e).__name__}: {e}"
        failed += not fine
        spent = 1e3 * (time.perf_counter() - start)
        print(f"{'ok' if fine else 'FAILED':12}{name} ({spent:.0f} ms)")
    return 2 if failed else 0


def size(n: int) -> str:
    """Bytes as megabytes.

    >>> size(3 << 20)
    '3.0 MB'
    """
    return f"{n / 2**20:.1f} MB"


def best(f: Callable[[], object], seconds: float = 0.1) -> float:
    """The shortest time of a call, in seconds: of as many as fit, of five at least."""
    f()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return min(times)


def _machine() -> Iterator[tuple[str, str]]:
    target = jit.host()
    wide = [f for f in ("avx512f", "avx2", "fma", "neon") if f"+{f}" in target.features.split(",")]
    cache = DiskCache()
    yield "weft", weft.__version__
    yield "python", f"{platform.python_version()} on {platform.platform()}"
    for package in ("numpy", "llvmlite", "ml_dtypes", "safetensors"):
        yield package, _version(package)
    yield "cpu", f"{target.cpu}, {' '.join(wide)}"
    yield "threads", f"{weft.get_num_threads()} of {os.cpu_count()} cores"
    yield "cache", f"{cache.directory} ({size(cache.size())})" if cache.directory else "none"
    if trouble := cache.trouble():
        yield "", f"every process makes its kernels anew: {trouble}"


def _limits() -> Iterator[tuple[str, str]]:
    """What was measured just now, by Weft's own kernels."""
    n = 1 << 22
    a, b = weft.ones(n), weft.ones(n)
    yield "memory", f"{3 * 4 * n / best(lambda: a + b) / 1e9:.1f} GB/s (sum of two large tensors)"
    m = weft.ones((512, 512))
    yield "products", f"{2 * 512**3 / best(lambda: m @ m) / 1e9:.0f} GFLOP/s (512 x 512, float32)"
    x = weft.ones(8)
    yield "a call", f"{best(lambda: [x + x for _ in range(100)]) * 1e7:.0f} ns (x + x, 8 elements)"


def _extras() -> Iterator[tuple[str, str]]:
    """Optional packages that are not here, and how to add them."""
    try:
        said = requires("weft") or []
    except PackageNotFoundError:
        yield "extras", "unknown: Weft runs from its source; pip install . says more"
        return
    wanted: dict[str, list[str]] = {}
    for line in said:
        if found := re.match(r"([\w.-]+).*extra == ['\"](\w+)['\"]", line):
            wanted.setdefault(found[2], []).append(found[1])
    for extra, packages in wanted.items():
        missing = [p for p in packages if _version(p) == _NONE]
        here = (
            f"without {', '.join(missing)}: pip install 'weft[{extra}]'" if missing else "all here"
        )
        yield "extra", f"{extra}: {here}"


_NONE = "not installed"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return _NONE


def _operands() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 65, 65)).astype(np.float32)
    return a, b


def _arithmetic() -> bool:
    a, b = _operands()
    return np.array_equal((weft.asarray(a) * b + a).numpy(), a * b + a)


def _product() -> bool:
    a, b = _operands()
    return np.allclose((weft.asarray(a) @ b).numpy(), a @ b, atol=1e-4)


def _gradient() -> bool:
    a, _ = _operands()
    given = weft.grad(lambda x: (x * x).sum())(weft.asarray(a))
    return np.array_equal(given.numpy(), a + a)


def _program() -> bool:
    a, b = map(weft.asarray, _operands())

    def f(x: Any, y: Any) -> Any:
        return weft.tanh(x @ y).sum(axis=0)

    return np.array_equal(weft.compile(f, fallback=False)(a, b).numpy(), f(a, b).numpy())


def _text() -> bool:
    text = "fn f(%x: f32[n]) -> f32[n] {\n  %y = add %x, 1.0\n  return %y\n}\n"
    (y,) = evaluate(parse(text).entry, weft.zeros(3))
    return np.array_equal(y.numpy(), np.ones(3))


_CHECKS = {
    "elementwise kernels": _arithmetic,
    "matrix product": _product,
    "gradient": _gradient,
    "compiled program, bits of eager mode": _program,
    "program in text form": _text,
}
