"""Unevaluated sums of two float64: about 106 bits for the few places where 53 don't suffice.

T. J. Dekker, A floating-point technique for extending the available precision, 1971.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.ops.scalar import Scalar, fma


class Pair(NamedTuple):
    high: Scalar
    low: Scalar


def fast_sum(a: Scalar, b: Scalar) -> Pair:
    """a + b exactly, for |a| >= |b| or a = 0."""
    s = a + b
    return Pair(s, b - (s - a))


def exact_sum(a: Scalar, b: Scalar) -> Pair:
    """a + b exactly."""
    s = a + b
    t = s - a
    return Pair(s, (a - (s - t)) + (b - t))


def exact_product(a: Scalar, b: Scalar) -> Pair:
    p = a * b
    return Pair(p, fma(a, b, -p))


def product(a: Pair, b: Pair) -> Pair:
    p, e = exact_product(a.high, b.high)
    return Pair(p, fma(a.high, b.low, fma(a.low, b.high, e)))


def quotient(a: Pair, b: Pair) -> Pair:
    inverse = 1.0 / b.high
    q = a.high * inverse
    rest = fma(-q, b.high, a.high) + fma(-q, b.low, a.low)
    return fast_sum(q, rest * inverse)
