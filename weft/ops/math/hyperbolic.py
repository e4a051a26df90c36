"""sinh, cosh and the inverse hyperbolic functions. float32 computes in float64 and rounds once."""

from __future__ import annotations

from weft.ops.math.exponential import at_most, exp_of_half, exp_short
from weft.ops.math.logarithm import log1p_near
from weft.ops.math.pair import Pair, exact_sum, fast_sum, quotient
from weft.ops.scalar import INF, NAN, Scalar, copysign, fma, horner, select, sqrt
from weft.types.dtype import float32, float64

#: (sinh(x) / x - 1) / x**2 in x**2 on |x| <= 1: 2**-34.0 and 2**-61.8
_SINH = {
    float32: (
        2.8180628592776407e-06, 0.00019835961010731257, 0.008333351123379788, 0.16666666481468978,
    ),
    float64: (
        7.775648595180569e-13, 1.6056688150302313e-10, 2.5052130666465888e-08,
        2.755731910851805e-06, 0.00019841269841589204, 0.008333333333332915, 0.16666666666666669,
    ),
}  # fmt: skip


def _half_exp(x: Scalar) -> tuple[Scalar, Scalar]:
    """|x| and e**|x| / 2 in float64; half of it, because that reaches further than e**|x|."""
    size = abs(x.cast(float64))
    if x.dtype is float32:
        return size, exp_short(at_most(size, 200.0)) * 0.5
    return size, exp_of_half(size)


def sinh(x: Scalar) -> Scalar:
    size, half = _half_exp(x)
    z = size * size
    near = fma(size * z, horner(z, _SINH[x.dtype]), size)
    return copysign(select(size < 1.0, near, half - 0.25 / half).cast(x.dtype), x)


def cosh(x: Scalar) -> Scalar:
    _, half = _half_exp(x)
    return (half + 0.25 / half).cast(x.dtype)


def _log_of_sum(a: Scalar, root: Scalar, low: Scalar) -> Scalar:
    """log(1 + a + root + low) for a, root >= 0, or log(2a) where `a` is huge."""
    huge = a > 2.0**300
    total = exact_sum(a, root)
    zero = a.like(0.0)
    y = log1p_near(
        select(huge, a * 2.0**-99, total.high),
        select(huge, zero, total.low + low),
        select(huge, a.like(100.0), zero),
    )
    return select(a < INF, y, a)


def asinh(x: Scalar) -> Scalar:
    """log(1 + |x| + x**2 / (1 + sqrt(1 + x**2)))."""
    wide = x.cast(float64)
    size = abs(wide)
    z = at_most(size, 2.0**300)
    z = z * z
    y = _log_of_sum(size, z / (sqrt(z + 1.0) + 1.0), size.like(0.0))
    return copysign(y.cast(x.dtype), x)


def acosh(x: Scalar) -> Scalar:
    """log(1 + t + sqrt(2t + t**2)) with t = x - 1."""
    wide = x.cast(float64)
    t = wide - 1.0
    bounded = at_most(t, 2.0**300)
    square = fma(bounded, bounded, bounded * 2.0)
    square_low = fma(bounded, bounded, bounded * 2.0 - square)
    root = sqrt(square)
    low = (fma(-root, root, square) + square_low) / (root + root)
    y = _log_of_sum(t, root, select(root > 0.0, low, 0.0))
    return select(wide < 1.0, NAN, y).cast(x.dtype)


def atanh(x: Scalar) -> Scalar:
    """log(1 + 2|x| / (1 - |x|)) / 2."""
    wide = x.cast(float64)
    size = abs(wide)
    q = quotient(Pair(size * 2.0, size.like(0.0)), fast_sum(size.like(1.0), -size))
    y = log1p_near(q.high, q.low) * 0.5
    y = select(size < 1.0, y, select(size.eq(1.0), INF, size.like(NAN)))
    return copysign(y.cast(x.dtype), x)
