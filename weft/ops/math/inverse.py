"""asin, acos, atan and atan2. float32 is computed in float64 and rounded once."""

from __future__ import annotations

from weft.ops.math.pair import Pair, exact_sum, quotient
from weft.ops.scalar import INF, Scalar, copysign, fma, horner, select, sqrt
from weft.types.dtype import DType, float32, float64, uint64

_PI, _PI_LOW = 3.141592653589793, 1.2246467991473532e-16

#: (asin(x) / x - 1) / x**2 in x**2 on |x| <= 1/2: 2**-31.7 and 2**-59.8
_ASIN = {
    float32: (
        0.03757812784756023, 0.014393822273791223, 0.03181981620680028, 0.04451547120135044,
        0.07500512133032343, 0.16666659852889,
    ),
    float64: (
        0.03270127065157531, -0.021115253666548806, 0.021789579312608446, 0.0036726390741169787,
        0.010789196315858531, 0.011397316304858898, 0.013981015545470264, 0.01735159576535963,
        0.0223722158899421, 0.030381942675907197, 0.04464285717527099, 0.07499999999970118,
        0.16666666666666763,
    ),
}  # fmt: skip
#: (atan(x) / x - 1) / x**2 in x**2 on |x| <= sqrt(2) - 1: 2**-35.4 and 2**-63.8
_ATAN = {
    float32: (
        0.04746115154843371, -0.08477409398170983, 0.11044924042472361, -0.14282029140372357,
        0.19999904762130788, -0.3333333251016932,
    ),
    float64: (
        0.014893372136575368, -0.03317459308378264, 0.04490551343849884, -0.05215178625706852,
        0.058765161489416795, -0.06666174659472306, 0.07692279199991542, -0.0909090798583244,
        0.11111111083745186, -0.14285714285316395, 0.19999999999997095, -0.33333333333333326,
    ),
}  # fmt: skip


def _half_angle(size: Scalar, dtype: DType) -> tuple[Scalar, Scalar, Scalar]:
    """asin(s) = s + t with s = |x|, or sqrt((1 - |x|) / 2) = s + low beyond 1/2: s, t + low, and
    whether it is beyond.
    """
    beyond = size > 0.5
    z = select(beyond, (1.0 - size) * 0.5, size * size)
    root = sqrt(z)
    s = select(beyond, root, size)
    t = s * (z * horner(z, _ASIN[dtype]))
    if dtype is float64:
        low = fma(-root, root, z) / (root + root)
        t = select(beyond & (z > 0.0), t + low, t)
    return s, t, beyond


def asin(x: Scalar) -> Scalar:
    wide = x.cast(float64)
    s, t, beyond = _half_angle(abs(wide), x.dtype)
    far = fma(s, -2.0, _PI / 2) - fma(t, 2.0, -_PI_LOW / 2)
    return copysign(select(beyond, far, s + t), wide).cast(x.dtype)


def acos(x: Scalar) -> Scalar:
    """pi/2 - asin(x), 2 asin(sqrt((1 - x) / 2)), or pi minus that of -x."""
    wide = x.cast(float64)
    s, t, beyond = _half_angle(abs(wide), x.dtype)
    s, t = select(wide < 0.0, -s, s), select(wide < 0.0, -t, t)
    near = _PI / 2 - (s + (t - _PI_LOW / 2))
    right = (s + t) * 2.0
    left = _PI + fma(t, 2.0, fma(s, 2.0, _PI_LOW))
    return select(beyond, select(wide < 0.0, left, right), near).cast(x.dtype)


def _direction(a: Scalar, b: Scalar, left: Scalar | None, dtype: DType) -> Scalar:
    """The angle of (b, a) for a, b >= 0 and not both 0, or pi minus it where `left`."""
    flat, steep = a <= b * 0.41421356237309503, a > b * 2.414213562373095
    base = select(flat, a.like(0.0), select(steep, a.like(2.0), a.like(1.0)))  # in units of pi/4
    if dtype is float64:
        difference, total = exact_sum(a, -b), exact_sum(a, b)
        zero = a.like(0.0)
        top = Pair(
            select(flat, a, select(steep, -b, difference.high)),
            select(flat | steep, zero, difference.low),
        )
        bottom = Pair(
            select(flat, b, select(steep, a, total.high)),
            select(flat | steep, zero, total.low),
        )
        t, low = quotient(top, bottom)
    else:
        t = select(flat, a, select(steep, -b, a - b)) / select(flat, b, select(steep, a, a + b))
        low = a.like(0.0)
    z = t * t
    tail = fma(t * z, horner(z, _ATAN[dtype]), low)
    if left is not None:
        base, t, tail = (
            select(left, 4.0 - base, base),
            select(left, -t, t),
            select(left, -tail, tail),
        )
    return fma(base, _PI / 4, t + fma(base, _PI_LOW / 4, tail))


def atan(x: Scalar) -> Scalar:
    wide = x.cast(float64)
    size = abs(wide)
    bounded = select(size > 2.0**100, 2.0**100, size)  # infinity has no quotients
    return copysign(_direction(bounded, wide.like(1.0), None, x.dtype), wide).cast(x.dtype)


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """The angle of the point (x, y), in -pi..pi."""
    b, a = x.cast(float64), y.cast(float64)
    left = (b.bitcast(uint64) >> 63).ne(0)
    sign = a
    a, b = abs(a), abs(b)
    if x.dtype is float64:  # away from the ends of the range, where quotients would lose digits
        biggest = select(a > b, a, b)
        scale = select(
            biggest > 2.0**900,
            a.like(2.0**-200),
            select(biggest < 2.0**-800, a.like(2.0**200), a.like(1.0)),
        )
        a, b = a * scale, b * scale
    a_end, b_end = a.eq(INF), b.eq(INF)
    a, b = (
        select(a_end, 1.0, select(b_end, a * 0.0, a)),
        select(b_end | (a.eq(0.0) & b.eq(0.0)), 1.0, select(a_end, b * 0.0, b)),
    )
    return copysign(_direction(a, b, left, x.dtype), sign).cast(x.dtype)
