"""What is undefined in C and defined here: division by zero, the least number divided by -1, shifts
as wide as the number, casts of what the dtype cannot hold, overflow.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import weft as wf
from tests.laws.lab import Array
from weft.types.dtype import DTYPES, DType, uint32

INTEGERS = [d for d in DTYPES if d.is_int]
FLOATS = [d for d in DTYPES if d.is_float]
BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "floor_divide": (wf.floor_divide, np.floor_divide),
    "remainder": (wf.remainder, np.remainder),
    "bitwise_left_shift": (wf.bitwise_left_shift, np.left_shift),
    "bitwise_right_shift": (wf.bitwise_right_shift, np.right_shift),
    "add": (wf.add, np.add),
    "subtract": (wf.subtract, np.subtract),
    "multiply": (wf.multiply, np.multiply),
    "maximum": (wf.maximum, np.maximum),
}
UNARY = {
    "abs": (wf.abs, np.abs),
    "negative": (wf.negative, np.negative),
    "square": (wf.square, np.square),
}
OPERATORS = {
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
FOLDS = {"sum": (wf.sum, np.sum), "prod": (wf.prod, np.prod)}


def corners(d: DType) -> Array:
    """The ends of a dtype, zero and its neighbours, and distances that a shift must not meet."""
    low, high = int(np.iinfo(d.np).min), int(np.iinfo(d.np).max)
    near = {low, low + 1, low // 2, -3, -2, -1, 0, 1, 2, 3, 7, high // 2, high - 1, high}
    near |= {d.bits - 1, d.bits, d.bits + 1, 2 * d.bits}
    return np.array(sorted(n for n in near if low <= n <= high), d.np)


def pairs(d: DType) -> tuple[Array, Array]:
    """Every two of them."""
    a, b = zip(*itertools.product(corners(d), repeat=2), strict=True)
    return np.array(a, d.np), np.array(b, d.np)


def outside(d: DType) -> Array:
    """Numbers of a floating dtype that some or all integer dtypes cannot hold."""
    edges = [2.0**n for n in (7, 8, 15, 16, 31, 32, 63, 64)]
    found = [0.0, -0.0, 0.5, -0.5, 1.9, -1.9, 1e10, -1e10, 1e20, -1e300, np.inf, -np.inf, np.nan]
    found += [s * (e + o) for e in edges for s in (1, -1) for o in (-1.5, -1.0, 0.0, 1.0)]
    with np.errstate(over="ignore"):
        return np.array(found).astype(d.np)


def cast(x: Array, to: DType) -> Array:
    """NumPy's cast; of float to uint32 it depends on the length of the array, and this is the one
    of short ones.
    """
    with np.errstate(invalid="ignore"):
        if to is uint32:
            return x.astype(np.float64).astype(np.int64).astype(np.uint32)
        return x.astype(to.np)


def results() -> Iterator[tuple[str, Array, Array]]:
    """(what was asked, Weft's answer, NumPy's)."""
    with np.errstate(all="ignore"):
        for d in INTEGERS:
            a, b = pairs(d)
            x, y = wf.asarray(a), wf.asarray(b)
            for name, (ours, theirs) in BINARY.items():
                yield f"{name} of {d.name}", ours(x, y).numpy(), theirs(a, b)
            for name, (ours, theirs) in UNARY.items():
                yield f"{name} of {d.name}", ours(x).numpy(), theirs(a)
            for name, (ours, theirs) in FOLDS.items():
                yield f"{name} of {d.name}", ours(x).numpy(), theirs(a, dtype=ours(x).numpy().dtype)
            for said, n in itertools.product(OPERATORS, (-1, 1, d.bits - 1, d.bits, 127)):
                if np.iinfo(d.np).min <= n <= np.iinfo(d.np).max:
                    f = OPERATORS[said]
                    yield f"{d.name} {said} {n}", f(x, n).numpy(), f(a, d.np.type(n))
            for to in INTEGERS:
                yield f"{d.name} as {to.name}", wf.astype(x, to).numpy(), a.astype(to.np)


def casts() -> Iterator[tuple[str, Array, Array]]:
    for d, to in itertools.product(FLOATS, INTEGERS):
        x = outside(d)
        yield f"{d.name} as {to.name}", wf.astype(wf.asarray(x), to).numpy(), cast(x, to)
