"""The monoids that reductions fold by: all there are. Kernels and schedule read them here.

`argmax` and `argmin` go by `max` and `min` and keep, beside the value, where it was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from weft.ops.scalar import Number, Scalar, maximum, minimum
from weft.types.dtype import DType, bool_, uint8


class Monoid(NamedTuple):
    """How accumulators start and join, and of which dtype they are."""

    join: Callable[[Scalar, Scalar], Scalar]
    neutral: Callable[[DType], Number]  # of a dtype: what changes no accumulator
    held: Callable[[DType, DType], DType]  # of values of a dtype, for a result of another
    computes: bool = False  # a NaN may be made: it is given its one form at the end


def _least(d: DType) -> Number:
    if d.is_float:
        return -math.inf
    return d is not bool_ and -(2 ** (d.bits - 1)) * (d.kind == "i")


def _most(d: DType) -> Number:
    if d.is_float:
        return math.inf
    return d is bool_ or 2 ** (d.bits - (d.kind == "i")) - 1


MONOIDS = {
    "sum": Monoid(lambda a, b: a + b, lambda d: 0, lambda value, out: out.compute, True),
    "prod": Monoid(lambda a, b: a * b, lambda d: 1, lambda value, out: out.compute, True),
    "max": Monoid(maximum, _least, lambda value, out: value.compute),
    "min": Monoid(minimum, _most, lambda value, out: value.compute),
    "any": Monoid(lambda a, b: a | b, lambda d: 0, lambda value, out: bool_),
    "all": Monoid(lambda a, b: a & b, lambda d: 1, lambda value, out: bool_),
}
#: those whose result is where the value is
PLACES = {"argmax": "max", "argmin": "min"}


def accumulator(monoid: str, value: DType, out: DType) -> DType:
    """The dtype a reduction of `value`s accumulates in; half types in float32."""
    if monoid in PLACES and value is bool_:
        return uint8
    return MONOIDS[PLACES.get(monoid, monoid)].held(value, out)
