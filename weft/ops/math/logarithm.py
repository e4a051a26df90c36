"""log and its relatives: x = 2**e * (1 + f) with 1 + f in sqrt(1/2)..sqrt(2), and log(1 + f) = f +
t, t of the order of f**2.
"""

from __future__ import annotations

from weft.ops.math.form import Form, bits, form
from weft.ops.math.pair import Pair, fast_sum, product, quotient
from weft.ops.scalar import INF, NAN, Scalar, copysign, fma, horner, select
from weft.types.dtype import float32, float64

#: (log(1 + f) - f + f**2 / 2) / f**3 for 1 + f in sqrt(1/2)..sqrt(2), error relative to f: 2**-27.3
_CUBIC = (
    -0.0786299407,
    0.128834337,
    -0.131281912,
    0.141808346,
    -0.166245744,
    0.20002307,
    -0.250008106,
    0.333333164,
)
#: (2 atanh(s) / s - 2) / s**2 in s**2 for the same range, s = f / (2 + f): 2**-59.5
_ATANH = (
    0.14797921754486282, 0.15313859801683727, 0.18183571530435946, 0.22222198439538907,
    0.2857142874363747, 0.3999999999940936, 0.6666666666666735,
)  # fmt: skip
#: (2 atanh(s) / s - 2 - 2/3 s**2) / s**4 in s**2: 2**-66.3
_ATANH_LONG = (
    0.13197878011684314, 0.13256655489983377, 0.15386764085174787, 0.18181784225488948,
    0.22222222521480156, 0.28571428570091223, 0.4000000000000227,
)  # fmt: skip
_ROOT_HALF = {float32: 0x3F3504F3, float64: 0x3FE6A09E667F3BCD}


def _tail(f: Scalar) -> Scalar:
    """log(1 + f) - f."""
    if f.dtype is float32:
        square = f * f
        return fma(square * f, horner(f, _CUBIC), square * -0.5)
    half = f * f * 0.5
    s = f / (f + 2.0)
    z = s * s
    return fma(s, fma(z, horner(z, _ATANH), half), -half)


def _exponent(x: Scalar, f: Form) -> Scalar:
    """The integer e with x / 2**e in sqrt(1/2)..sqrt(2)."""
    return (bits(x) - _ROOT_HALF[x.dtype]) >> f.mantissa


def log_parts(x: Scalar) -> tuple[Scalar, Scalar]:
    """f and e (a float) for a positive x."""
    f = form(x)
    tiny = x < 2.0 ** (1 - f.bias)
    v = select(tiny, x * 2.0**f.mantissa, x)
    e = _exponent(v, f)
    m = (bits(v) - (e << f.mantissa)).bitcast(x.dtype)
    return m - 1.0, e.cast(x.dtype) + select(tiny, x.like(-f.mantissa), x.like(0.0))


def _join(f: Scalar, e: Scalar) -> Scalar:
    """e ln 2 + log(1 + f)."""
    c = form(f)
    return fma(e, c.ln2_high, f + fma(e, c.ln2_low, _tail(f)))


def _edges(x: Scalar, y: Scalar) -> Scalar:
    """y, but -inf at 0, NaN below it and x where x is infinite or NaN."""
    return select(x <= 0.0, select(x < 0.0, x.like(NAN), x.like(-INF)), select(x < INF, y, x))


def log(x: Scalar) -> Scalar:
    """The natural logarithm."""
    return _edges(x, _join(*log_parts(x)))


def log_pair(x: Scalar) -> Pair:
    """log(x) of a positive finite float64, to about 2**-64 of its size."""
    f, e = log_parts(x)
    s = quotient(Pair(f, x.like(0.0)), fast_sum(x.like(2.0), f))
    z = product(s, s)
    t = fast_sum(x.like(0.6666666666666666), z.high * horner(z.high, _ATANH_LONG))
    u = product(z, Pair(t.high, t.low + 3.700743415417188e-17))
    v = fast_sum(x.like(2.0), u.high)
    m = product(s, Pair(v.high, v.low + u.low))
    c = form(x)
    whole = fast_sum(e * c.ln2_high, m.high)
    return fast_sum(whole.high, whole.low + fma(e, c.ln2_low, m.low))


def _based(x: Scalar, high: float, low: float, two_high: float, two_low: float) -> Scalar:
    """log(x) times high + low, where two_high + two_low is ln 2 times that."""
    f, e = log_parts(x)
    m = fma(f, high, fma(_tail(f), high, fma(f, low, e * two_low)))
    return _edges(x, fma(e, two_high, m))


def log2(x: Scalar) -> Scalar:
    if x.dtype is float32:
        return _based(x, 1.44269502, 1.92596299e-08, 1.0, 0.0)
    return _based(x, 1.4426950408889634, 2.0355273740931033e-17, 1.0, 0.0)


def log10(x: Scalar) -> Scalar:
    if x.dtype is float32:
        return _based(x, 0.434294492, -1.010305e-08, 0.301025391, 4.60503898e-06)
    return _based(
        x, 0.4342944819032518, 1.098319650216765e-17, 0.30102999566395283, 2.8363394551044964e-14
    )


def log1p_near(x: Scalar, low: Scalar | None = None, extra: Scalar | None = None) -> Scalar:
    """log(1 + x + low) + extra ln 2, for an x with 1 + x and its inverse normal numbers.

    With 2**e near 1 + x, f = x / 2**e + (1 / 2**e - 1) is rounded once.
    """
    c = form(x)
    e = _exponent(x + 1.0, c)
    shrink = (bits(x.like(1.0)) - (e << c.mantissa)).bitcast(x.dtype)
    f = fma(x, shrink, shrink - 1.0)
    n = e.cast(x.dtype)
    return _join(f if low is None else fma(low, shrink, f), n if extra is None else n + extra)


def log1p(x: Scalar) -> Scalar:
    """log(1 + x), exact to the last place near 0."""
    big = x > 2.0**60  # 1 + x = x there; scaled down, so that 2**-e stays a normal number
    y = log1p_near(select(big, x * 2.0**-8, x), extra=select(big, x.like(8.0), x.like(0.0)))
    y = select(x < INF, y, x)
    return copysign(select(x <= -1.0, select(x < -1.0, x.like(NAN), x.like(-INF)), y), x)
