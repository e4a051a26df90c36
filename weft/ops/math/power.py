"""Powers and roots."""

from __future__ import annotations

from weft.ops.math.exponential import at_least, at_most, exp_pair, exp_short
from weft.ops.math.form import bits, form, power_of_two
from weft.ops.math.logarithm import log_parts, log_pair
from weft.ops.math.pair import Pair
from weft.ops.scalar import INF, NAN, Scalar, copysign, fma, horner, select, sqrt, trunc
from weft.types.dtype import float32, float64, int64

#: (2 atanh(s) / s - 2) / s**2 in s**2, as in the logarithm: 2**-37.6
_ATANH = (0.23583582451228993, 0.2853723786376433, 0.4000033622247197, 0.6666666564128895)

def _edges(size: Scalar, log: Scalar) -> Scalar:
    """`log`, but what it is at 0, infinity and NaN."""
    return select(size.eq(0.0), -INF, select(size < INF, log, size))


def _size32(size: Scalar, y: Scalar) -> Scalar:
    """size**y for float64s that were float32, to 2**-30."""
    f, e = log_parts(size)
    s = f / (f + 2.0)
    z = s * s
    log = _edges(size, fma(e, 0.6931471805599453, fma(s, z * horner(z, _ATANH), s + s)))
    w = at_most(at_least(_times(size, y, log), -200.0), 200.0)
    return exp_short(w)


def _times(size: Scalar, y: Scalar, log: Scalar) -> Scalar:
    """y log(size), 0 for 1**inf."""
    return select(size.eq(1.0) & abs(y).eq(INF), 0.0, y * log)


def _size64(size: Scalar, y: Scalar) -> Scalar:
    log = log_pair(size)
    w = _times(size, y, _edges(size, log.high))
    low = fma(y, log.high, -w) + y * log.low
    e = exp_pair(Pair(w, select((abs(w) < 800.0) & (abs(y) < INF), low, 0.0)))
    return e.round(e.mantissa.high)


def pow(x: Scalar, y: Scalar) -> Scalar:
    """x**y as C's pow: 1 for y = 0 and for x = 1, NaN for x < 0 unless y is a whole number."""
    wide, exponent = x.cast(float64), y.cast(float64)
    size = (_size32 if x.dtype is float32 else _size64)(abs(wide), exponent).cast(x.dtype)
    half = y * 0.5
    whole, odd = trunc(y).eq(y), trunc(half).ne(half)
    signed = select(whole & odd, copysign(size, x), size)
    defined = select((x < 0.0) & (x > -INF) & ~whole, NAN, signed)
    return select(y.eq(0.0) | x.eq(1.0), 1.0, defined)
