"""The chapters of `weft demo`. A claim that does not hold makes the command fail."""

from __future__ import annotations

import importlib.util
import inspect
import os
import shutil
import sys
import tempfile
import textwrap
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import weft as wf
from weft.demo.screen import Screen
from weft.runtime.cache import DiskCache


def tell(plain: bool = False, steps: int = 400, folder: str = "") -> int:
    """Tell the whole story; 0 if every claim held, else 1. `steps` of training are made."""
    start = time.perf_counter()
    screen = Screen(plain)
    place = Path(folder or tempfile.mkdtemp(prefix="weft-demo-")).absolute()
    place.mkdir(parents=True, exist_ok=True)
    programs = _programs(place)
    kept = DiskCache().directory
    screen.title(f"Weft {wf.__version__}: one program, both kinds of graph, the same bits")
    screen.say(f"The programs below are in {place / 'programs.py'}")
    screen.say(f"Machine code is kept in {kept}" if kept else "No machine code is kept on disk")
    screen.say(f"Threads: {wf.get_num_threads()} of {os.cpu_count()} cores")
    for chapter in (_training, _control, _lengths, _error):
        chapter(screen, programs, steps)
    made = len(screen.kept) + len(screen.failed)
    screen.title(f"{len(screen.kept)} of {made} claims held, in {_clock(start):.0f} s")
    for text in screen.failed:
        screen.say(f"FAILED: {text}")
    if not screen.failed:
        screen.say("Next: docs/tour.md walks through all of it; README.md says what is not there.")
    return 1 if screen.failed else 0


def _programs(place: Path) -> ModuleType:
    """A copy of the programs, as a module of its own with source that can be read."""
    path = place / "programs.py"
    shutil.copyfile(Path(__file__).with_name("programs.py"), path)
    spec = importlib.util.spec_from_file_location("weft_demo_programs", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # classes are looked up where they were made
    spec.loader.exec_module(module)
    return module


def _training(screen: Screen, p: ModuleType, steps: int) -> None:
    screen.title("1  The dynamic graph: a network reads digits, op by op")
    model, step = p.trainer()
    screen.code(_source(step))
    losses = []
    for x, y in screen.progress(p.batches(steps), steps):
        losses.append(step(x, y).item())
        if len(losses) == steps // 2:
            hidden = wf.relu(model.first(x))
    screen.say(f"loss {losses[0]:.3f} -> {losses[-1]:.3f} in {steps} steps")
    active = (hidden > 0).astype(wf.float32).mean(axis=1)
    screen.say("An intermediate value, held and looked at like any other: at half time, the share")
    screen.say(f"of hidden units that are active, for three digits: {active[:3]!r}")
    pixels, labels = p.digits(500, seed=4)
    with wf.no_grad():
        found = model(wf.tensor(pixels)).argmax(axis=1).numpy()
    right = float((found == labels).mean())
    screen.say(f"{right:.1%} of 500 digits it has not seen are read right")
    if steps >= 300:
        screen.claim("it learned: more than 80% right", right > 0.8)

    screen.title("2  The static graph: the same step, compiled")
    screen.code("compiled = wf.compile(step)")
    model2, step2 = p.trainer()
    compiled = wf.compile(step2, fallback=False)
    first = time.perf_counter()
    same = []
    for i, (x, y) in enumerate(screen.progress(p.batches(steps), steps)):
        same.append(compiled(x, y).item() == losses[i])
        if i == 0:
            first = _clock(first)
    report = compiled.explain(x, y)
    capture, make = compiled.seconds
    screen.say(f"The first call took {first * 1e3:.0f} ms: {capture * 1e3:.0f} ms of capture,")
    screen.say(
        f"{_nodes(report)} ops (loss, gradients, AdamW); {make * 1e3:.0f} ms of compiling, with"
    )
    screen.say(f"{len(report.kernels)} kernel launches left; and the step itself. It was captured")
    screen.say(f"{_times(compiled.captures)}.")
    weights = zip(model.parameters(), model2.parameters(), strict=True)
    screen.claim(f"all {steps} losses are equal, bit for bit", all(same))
    screen.claim("all weights are equal, bit for bit", all(_equal(a, b) for a, b in weights))
    _compare(screen, step, compiled, list(p.batches(8)), max(4, steps // 4))


def _compare(
    screen: Screen, eager: Any, compiled: Any, batches: Sequence[Any], rounds: int
) -> None:
    """Both steps in turn. Their best tenth is compared: what else runs here disturbs the rest."""
    spent: tuple[list[float], list[float]] = [], []
    for i in range(rounds):
        x, y = batches[i % len(batches)]
        for f, times in zip((eager, compiled), spent, strict=True):
            start = time.perf_counter()
            f(x, y)
            times.append(_clock(start))
    slow, fast = (float(np.quantile(times, 0.1)) for times in spent)
    screen.say(f"eager {slow * 1e6:.0f} us a step, compiled {fast * 1e6:.0f} us")
    said = f"the compiled step is faster: {slow / fast:.1f} times"
    screen.claim(said, slow > fast) if rounds >= 50 else screen.say(said)


def _control(screen: Screen, p: ModuleType, steps: int) -> None:
    screen.title("3  Python's control flow on tensors, in the graph")
    screen.code(_source(p.settle))
    compiled = wf.compile(p.settle, fallback=False)
    rng = np.random.default_rng(3)
    w = wf.tensor((0.3 * rng.standard_normal((6, 6))).astype(np.float32))
    same, rounds = [], []
    for shift in (1.0, -1.0, 0.1, -3.0):
        at = (shift + rng.standard_normal((2, 6))).astype(np.float32)
        results = [_with_gradient(f, wf.tensor(at), w) for f in (p.settle, compiled)]
        same.append(all(_equal(a, b) for a, b in zip(*results, strict=True)))
        rounds.append(int(results[0][1].item()))
    graph = compiled.graph(wf.tensor(at, requires_grad=True), w)
    screen.say("Loop and both branches are regions of one graph; each op knows its line:")
    screen.code(_narrow(str(graph).replace(str(Path(p.__file__ or "").parent) + os.sep, "")))
    screen.say("The way back: the graph as Python, which can be read, edited and captured again.")
    screen.code(graph.to_python())
    loops = ", ".join(map(str, rounds))
    screen.claim(f"values and gradients equal those of eager mode ({loops} rounds)", all(same))
    screen.claim(f"one graph for all: captured {_times(compiled.captures)}", compiled.captures == 1)


def _with_gradient(f: Callable[..., Any], x: Any, w: Any) -> tuple[Any, ...]:
    """Results and the gradient of the first."""
    x.requires_grad = True
    y, n = f(x, w)
    y.backward()
    return y, n, x.grad


def _lengths(screen: Screen, p: ModuleType, steps: int) -> None:
    n = min(36, max(4, steps // 10))
    screen.title("4  Sizes that change: sentences of another length in every batch")
    eager, compiled = p.listener(), wf.compile(p.listener(), fallback=False)
    same, lengths = [], []
    for words, more in screen.progress(p.sentences(n), n):
        lengths.append(words.shape[1])
        same.append(_equal(eager(words, more), compiled(words, more)))
    screen.say(f"{n} training steps of a transformer layer, lengths {str(lengths[:6])[:-1]}, ...")
    captures = compiled.captures
    screen.claim(f"{n} lengths, captured {_times(captures)}", captures <= 2)
    screen.claim("all losses are equal to those of eager mode, bit for bit", all(same))


def _error(screen: Screen, p: ModuleType, steps: int) -> None:
    screen.title("5  An error inside a compiled program")
    compiled = wf.compile(p.look_up, fallback=False)
    table = wf.ones((5, 3))
    compiled(table, wf.tensor([1, 2]))
    screen.code("look_up = wf.compile(look_up)\nlook_up(wf.ones((5, 3)), wf.tensor([1, 7]))")
    lines, first = inspect.getsourcelines(p.look_up)
    wanted = first + next(i for i, s in enumerate(lines) if "scaled[words]" in s)
    try:
        compiled(table, wf.tensor([1, 7]))
    except IndexError as e:
        last = traceback.extract_tb(e.__traceback__)[-1]
        name = Path(last.filename).name
        screen.code(f'File "{name}", line {last.lineno}\n  {last.line}\n{type(e).__name__}: {e}')
        eagerly = _raised(lambda: p.look_up(table, wf.tensor([1, 7])))
        fine = (last.filename, last.lineno) == (p.__file__, wanted) and type(e) is type(eagerly)
        screen.claim("the same exception as in eager mode, on your line", fine)
    else:
        screen.claim("an index out of range is an error", False)
    again = _equal(compiled(table, wf.tensor([0, 4])), p.look_up(table, wf.tensor([0, 4])))
    screen.claim("the program goes on as if nothing had happened", again)


def _raised(f: Callable[[], Any]) -> Exception | None:
    try:
        f()
    except Exception as e:
        return e
    return None


def _equal(a: Any, b: Any) -> bool:
    """The same bits."""
    x, y = a.numpy(), b.numpy()
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def _nodes(report: Any) -> int:
    return len(report.executable.captured.function.order)


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")


def _clock(start: float) -> float:
    return time.perf_counter() - start


def _source(f: Callable[..., Any]) -> str:
    return textwrap.dedent(inspect.getsource(f))


def _narrow(text: str, width: int = 110) -> str:
    lines = text.rstrip().split("\n")
    return "\n".join(s if len(s) <= width else s[: width - 3] + "..." for s in lines)
