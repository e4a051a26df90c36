"""A function in every way there is to run it: plain, converted, captured and gone through node by
node, captured and native. All must give the same bits, gradients included.
"""

from __future__ import annotations

import contextlib
import io
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import weft as wf
from weft.capture.capture import capture
from weft.capture.evaluate import evaluate
from weft.capture.source import operators
from weft.capture.structure import flatten
from weft.compile import build_captured
from weft.deploy.lengths import Lengths
from weft.errors import WeftError
from weft.ops.define import Value

WEFT = str(Path(wf.__file__).parent)


def compiled(f: Callable[..., Any], *args: Any) -> Any:
    """The program of a call."""
    leaves, form = flatten((args, {}))
    captured = capture(f, leaves, form, operators.call)
    for _ in range(3 if captured.found else 0):
        lengths = Lengths(captured, build_captured)
        full = lengths.full(leaves)
        if captured.symbols.failure(full) is None:
            return lengths.at(full)
        captured = capture(f, leaves, form, operators.call, hints=lengths.sizes(full))
    return build_captured(captured)


def ran(program: Any, *args: Any, native: bool = True) -> Any:
    """What a program gives, natively or node by node."""
    leaves, _ = flatten((args, {}))
    if native:
        return program(leaves)
    return program(leaves, lambda xs: evaluate(program.captured.function, *xs))


def bits(x: Any, signed_zeros: bool = True) -> list[Any]:
    """What two runs must agree on. A Python number and a tensor of it are the same."""
    out = []
    for v in flatten(x)[0]:
        if isinstance(v, Value):
            a = np.array(v.numpy())
            if not signed_zeros and v.dtype.is_float:
                a = a + np.zeros((), a.dtype)
            out.append((v.dtype.name, v.shape, a.tobytes()))
        elif type(v) in (bool, int, float):
            a = np.asarray(v)
            out.append((a.dtype.name, (), a.tobytes()))
        else:
            out.append(repr(v))
    return out


def slopes(f: Callable[..., Any], places: list[int]) -> Callable[..., Any]:
    """A function that gives the gradient of a number made of all that `f` gives."""

    def gradient(*args: Any) -> Any:
        def total(*xs: Any) -> Any:
            given = list(args)
            for i, x in zip(places, xs, strict=True):
                given[i] = x
            found = [v for v in flatten(f(*given))[0] if isinstance(v, Value)]
            out = wf.tensor(0.0)
            for v in found:
                if v.dtype.is_float:
                    out = out + (v * v * 0.5 + v).sum().astype(wf.float32)
            return out

        y, pullback = wf.vjp(total, *[args[i] for i in places])
        return y, pullback(wf.tensor(1.0))

    return gradient


def second(f: Callable[..., Any]) -> Callable[..., Any]:
    """A gradient of a number made of gradients, by both arguments."""

    def number(x: Any, w: Any) -> Any:
        by_x, by_w = wf.grad(f, (0, 1))(x, w)
        return (by_x.sin() * by_x).sum() + (by_w * by_w * w).sum() + f(x, w)

    return wf.grad(number, (0, 1))


def third(f: Callable[..., Any]) -> Callable[..., Any]:
    return wf.grad(lambda x, w: sum((g.cos() * g).sum() for g in second(f)(x, w)), (0, 1))


def pulled_twice(f: Callable[..., Any]) -> Callable[..., Any]:
    """A number made of two pullbacks of one run."""

    def number(x: Any, w: Any) -> Any:
        y, pullback = wf.vjp(lambda x, w: (f(x, w), f(x, w) * 2), x, w)
        found = *pullback(y[0] * 0.1, y[1]), *pullback(y[1], y[0] * 0.3)
        return sum((g * g * g).sum() for g in found)

    return wf.grad(number, (0, 1))


def outcome(
    run: Callable[..., Any], *args: Any, signed_zeros: bool = True, operators: bool = True
) -> Any:
    """What a run gives, or the error that ends it; and what it prints. The line of the error is the
    last one, with `operators` False that of the code which called Weft's.
    """
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            found: Any = bits(run(*args), signed_zeros)
        except Exception as e:
            if isinstance(e, WeftError):
                raise
            frames = traceback.extract_tb(e.__traceback__)
            lines = [f.lineno for f in frames if operators or not f.filename.startswith(WEFT)]
            inside = [bits(v) for v in (*e.args, *vars(e).values())]
            found = (type(e), inside, type(e.__cause__), lines[-1])
    return found, out.getvalue()


def agree(f: Callable[..., Any], *args: Any, gradient: bool = True) -> None:
    """Raise unless all ways give the same results, errors and text."""
    want = outcome(f, *args)
    assert outcome(operators.call, f, *args, operators=False) == want, "converted"
    program = compiled(f, *args)
    got = outcome(lambda: ran(program, *args, native=False))
    assert _unlined(got) == _unlined(want), f"node by node\n{program.whole}"
    assert outcome(lambda: ran(program, *args)) == want, f"native\n{program.whole}"
    places = [i for i, a in enumerate(args) if isinstance(a, Value) and a.dtype.is_float]
    if gradient and places:
        again = slopes(f, places)
        # a gradient that eager code never touched is zero of the other sign
        want = _unnoted(outcome(again, *args, signed_zeros=False))
        program = compiled(again, *args)
        got = _unnoted(outcome(lambda: ran(program, *args, native=False), signed_zeros=False))
        assert _unlined(got) == _unlined(want), f"gradient, node by node\n{program.whole}"
        got = _unnoted(outcome(lambda: ran(program, *args), signed_zeros=False))
        assert got == want, f"gradient, native\n{program.whole}"


def _unlined(outcome: Any) -> Any:
    """Without the line of an error: gone through node by node, a program has none."""
    found, text = outcome
    return (found[:-1] if isinstance(found, tuple) else found), text


def _unnoted(outcome: Any) -> Any:
    """Without what text says of where a tensor comes from: a branch is one op of a program."""
    return outcome[0], re.sub(r", grad_fn=<\w+>", ", grad_fn", outcome[1])
