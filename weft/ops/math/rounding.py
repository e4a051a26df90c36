"""Exact float functions: classification, neighbours, remainders."""

from __future__ import annotations

from weft.ops.math.form import bits, power_of_two
from weft.ops.scalar import INF, NAN, Scalar, copysign, floor, fma, isnan, rint, select
from weft.types.dtype import float32, float64, int16, int32, int64

_INTEGERS = {d.bits: d for d in (int16, int32, int64)}


def signbit(x: Scalar) -> Scalar:
    """Whether the sign bit is set, of -0.0 and NaN too."""
    return bits(x) < 0


def isinf(x: Scalar) -> Scalar:
    return abs(x).eq(INF)


def isfinite(x: Scalar) -> Scalar:
    return abs(x) < INF


def sign(x: Scalar) -> Scalar:
    """-1, 0 or 1, NaN for NaN."""
    return select(abs(x) > 0.0, copysign(x.like(1.0), x), x)


def nextafter(x: Scalar, y: Scalar) -> Scalar:
    """The float of x's dtype, which may be a half one, next to it on the way to y."""
    integer = _INTEGERS[x.dtype.bits]
    raw, to = x.bitcast(integer), y.bitcast(integer)
    a, b = x.cast(x.dtype.compute), y.cast(x.dtype.compute)
    step = select((b > a).eq(a > 0.0), raw + 1, raw - 1)
    smallest = (to & -(2 ** (integer.bits - 1))) | 1
    moved = select(a.eq(0.0), smallest, step).bitcast(x.dtype)
    return select(a.eq(b), y, select((a < b) | (b < a), moved, (a + b).cast(x.dtype)))


def _fmod32(a: Scalar, b: Scalar) -> Scalar:
    """a mod b for positive float64s that were float32: long division, 48 bits of quotient a step,
    each remainder exact.
    """
    inverse = 1.0 / b
    for k in range(288, -1, -48):
        q = rint(a * (inverse * 2.0**-k))
        a = fma(-q, b * 2.0**k, a)
    return select(a < 0.0, a + b, a)


def _whole(a: Scalar) -> tuple[Scalar, Scalar]:
    """m and e with a = m * 2**e, 2**52 <= m < 2**53, for a positive float64."""
    tiny = a < 2.0**-900
    raw = select(tiny, a * 2.0**200, a).bitcast(int64)
    m = ((raw & (2**52 - 1)) | (1075 << 52)).bitcast(float64)
    return m, (raw >> 52) - select(tiny, raw.like(1275), raw.like(1075))


def _fmod64(a: Scalar, b: Scalar) -> Scalar:
    """a mod b for positive float64s: the significand of a times 2**d modulo that of b, 2**d by
    repeated squaring.
    """
    (m, e), (n, unit) = _whole(a), _whole(b)
    inverse = 1.0 / n
    d = e - unit

    def reduce(x: Scalar) -> Scalar:
        return fma(-rint(x * inverse), n, x)

    def times(x: Scalar, y: Scalar) -> Scalar:
        product = x * y
        return reduce(reduce(reduce(product)) + fma(x, y, -product))

    power = reduce(power_of_two(d >> 5, float64))
    for bit in range(4, -1, -1):
        power = times(power, select(((d >> bit) & 1).ne(0), power + power, power))
    r = times(reduce(m), power)
    r = select(r < 0.0, r + n, r)
    half = unit >> 1
    return select(d < 0, a, r * power_of_two(half, float64) * power_of_two(unit - half, float64))


def fmod(x: Scalar, y: Scalar) -> Scalar:
    """What is left of x after whole multiples of y, with the sign of x: exact."""
    a, b = abs(x.cast(float64)), abs(y.cast(float64))
    r = (_fmod32 if x.dtype is float32 else _fmod64)(a, b)
    r = select(b.eq(INF), a, r)
    r = select((a < INF) & (b > 0.0), r, NAN)
    return copysign(select(isnan(b), b, r).cast(x.dtype), x)


def _adjust(r: Scalar, y: Scalar) -> Scalar:
    """Whether a remainder has the wrong sign for `y`."""
    return r.ne(0.0) & (y < 0.0).ne(r < 0.0)


def remainder(x: Scalar, y: Scalar) -> Scalar:
    """x - floor(x / y) * y with the sign of y, as Python's % and NumPy's remainder."""
    r = fmod(x, y)
    return select(r.eq(0.0), copysign(r, y), select(_adjust(r, y), r + y, r))


def floor_divide(x: Scalar, y: Scalar) -> Scalar:
    """floor(x / y) as NumPy has it: from the exact remainder, so 1 // 0.1 is 9."""
    r = fmod(x, y)
    q = (x - r) / y
    q = select(_adjust(r, y), q - 1.0, q)
    whole = floor(q)
    whole = select(q - whole > 0.5, whole + 1.0, whole)
    plain = x / y
    return select(y.eq(0.0), plain, select(q.eq(0.0), copysign(x.like(0.0), plain), whole))
