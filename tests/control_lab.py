"""A function in every way there is to run it: plain, converted, captured and gone through node by
node, captured and native. All must give the same bits, gradients included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import weft as wf
from weft.capture.capture import capture
from weft.capture.evaluate import evaluate
from weft.capture.source import operators
from weft.capture.structure import flatten
from weft.compile import build_captured
from weft.ops.define import Value


def compiled(f: Callable[..., Any], *args: Any) -> Any:
    """The program of a call."""
    leaves, form = flatten((args, {}))
    return build_captured(capture(f, leaves, form, operators.call))


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
        elif type(v) in (bool, int):
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


def agree(f: Callable[..., Any], *args: Any, gradient: bool = True) -> None:
    """Raise unless all ways give the same."""
    want = bits(f(*args))
    assert bits(operators.call(f, *args)) == want, "converted"
    program = compiled(f, *args)
    assert bits(ran(program, *args, native=False)) == want, f"node by node\n{program.whole}"
    assert bits(ran(program, *args)) == want, f"native\n{program.whole}"
    places = [i for i, a in enumerate(args) if isinstance(a, Value) and a.dtype.is_float]
    if gradient and places:
        again = slopes(f, places)
        # a gradient that eager code never touched is zero of the other sign
        want = bits(again(*args), signed_zeros=False)
        program = compiled(again, *args)
        got = bits(ran(program, *args, native=False), signed_zeros=False)
        assert got == want, f"gradient, node by node\n{program.whole}"
        got = bits(ran(program, *args), signed_zeros=False)
        assert got == want, f"gradient, native\n{program.whole}"
