"""Powers and roots."""

from __future__ import annotations

from weft.ops.math.exponential import at_least, at_most, exp_pair, exp_short
from weft.ops.math.logarithm import log_pair, log_parts
from weft.ops.math.pair import Pair, exact_product, fast_sum
from weft.ops.scalar import INF, NAN, Scalar, copysign, fma, horner, mulhi, select, sqrt, trunc
from weft.types.dtype import float32, float64, uint64

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


def rsqrt(x: Scalar) -> Scalar:
    """1 / sqrt(x)."""
    return 1.0 / sqrt(x)


def reciprocal(x: Scalar) -> Scalar:
    """1 / x."""
    return 1.0 / x


def hypot(x: Scalar, y: Scalar) -> Scalar:
    """sqrt(x**2 + y**2) without overflow on the way; infinite if either is, even beside NaN."""
    a, b = abs(x.cast(float64)), abs(y.cast(float64))
    infinite = a.eq(INF) | b.eq(INF)
    if x.dtype is float32:
        return select(infinite, INF, sqrt(fma(a, a, b * b)).cast(float32))
    a, b = select(a < b, b, a), select(a < b, a, b)
    up = select(
        a > 2.0**500, a.like(2.0**-600), select(a < 2.0**-400, a.like(2.0**600), a.like(1.0))
    )
    down = select(
        a > 2.0**500, a.like(2.0**600), select(a < 2.0**-400, a.like(2.0**-600), a.like(1.0))
    )
    a, b = a * up, b * up
    p, q = exact_product(a, a), exact_product(b, b)
    total = fast_sum(p.high, q.high)
    root = sqrt(total.high)
    rest = fma(-root, root, total.high) + (total.low + (p.low + q.low))
    return select(
        infinite, INF, select(total.high.eq(0.0), 0.0, root + rest / (root + root)) * down
    )


def cbrt(x: Scalar) -> Scalar:
    """The real cube root: a guess from a third of the exponent, then Halley's method."""
    wide = x.cast(float64)
    size = abs(wide)
    tiny, huge = size < 2.0**-300, size > 2.0**300
    a = select(tiny, size * 2.0**600, select(huge, size * 2.0**-600, size))
    guess = mulhi(a.bitcast(uint64), 0x5555555555555556) + 0x2A9F7893782DA1CE
    y = guess.bitcast(float64)
    for _ in range(2):
        cube = y * y * y
        y = y * (cube + (a + a)) / ((cube + cube) + a)
    square = exact_product(y, y)
    third = exact_product(square.high, y)
    y = y - ((third.high - a) + fma(square.low, y, third.low)) / (square.high * 3.0)
    y = select(tiny, y * 2.0**-200, select(huge, y * 2.0**200, y))
    y = select((size > 0.0) & (size < INF), y, size)
    return copysign(y, wide).cast(x.dtype)
