"""Derivatives of digamma."""

from __future__ import annotations

import math

from weft.ops.math.trigonometric import sin
from weft.ops.scalar import Scalar, select
from weft.types.dtype import float64

#: Bernoulli numbers B2, B4, … as fractions
_BERNOULLI = (
    (1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510),
)  # fmt: skip


def polygamma(x: Scalar, n: int) -> Scalar:
    """The n-th derivative of digamma, n >= 1, computed in float64: psi_n(x) = psi_n(x + 1) -
    (-1)**n n! / x**(n + 1) until x is large, then the asymptotic series. Negative x by reflection
    for n = 1, NaN for the others.
    """
    w = x.cast(float64)
    y = _polygamma_of_positive(select(w < 0.5, 1.0 - w, w) if n == 1 else w, n)
    if n == 1:
        s = sin(w * math.pi)
        y = select(w < 0.5, math.pi**2 / (s * s) - y, y)
    else:
        y = select(w < 0.0, y.like(math.nan), y)
    return y.cast(x.dtype)


def _polygamma_of_positive(x: Scalar, n: int) -> Scalar:
    steps = 12 + n
    total = x.like(0.0)
    for _ in range(steps):
        total = total + 1.0 / _power(x, n + 1)
        x = x + 1.0
    series = x.like(math.factorial(n - 1)) / _power(x, n) + 0.5 * math.factorial(n) / _power(
        x, n + 1
    )
    for k, (p, q) in enumerate(_BERNOULLI, 1):
        c = p * math.factorial(2 * k + n - 1) / (q * math.factorial(2 * k))
        series = series + c / _power(x, 2 * k + n)
    sign = 1.0 if n % 2 else -1.0
    return (total * math.factorial(n) + series) * sign


def _power(x: Scalar, n: int) -> Scalar:
    out = x
    for _ in range(n - 1):
        out = out * x
    return out
