"""exp and what is made of it: e**x = 2**n * e**r with n = rint(x / ln 2) and a polynomial for |r|
<= ln 2 / 2.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.ops.math.form import bits, form
from weft.ops.math.logarithm import log1p_near
from weft.ops.math.pair import Pair, fast_sum
from weft.ops.scalar import Scalar, copysign, fma, horner, maximum, select
from weft.types.dtype import float32, float64

#: (e**r - 1 - r) / r**2 on |r| <= ln 2 / 2, error relative to r: 2**-26.1 and 2**-61.7
_EXPM1 = {
    float32: (0.00139381387, 0.00836698432, 0.0416664779, 0.16666539, 0.5),
    float64: (
        2.0922510309394203e-09, 2.5109144486782724e-08, 2.755725342242642e-07,
        2.7557243876330544e-06, 2.480158734217356e-05, 0.00019841269886499506,
        0.0013888888888879318, 0.008333333333321456, 0.04166666666666667, 0.16666666666666677, 0.5,
    ),
}  # fmt: skip
#: 2**r on |r| <= 1/2, error 2**-27.5 and 2**-55.5
_EXP2 = {
    float32: (
        0.000158211726, 0.00134181406, 0.00961706508, 0.0555027239, 0.240226552, 0.693147242, 1.0,
    ),
    float64: (
        4.0454983615054387e-10, 7.07293538357159e-09, 1.0180885981542117e-07,
        1.3215440889348735e-06, 1.525272675940414e-05, 0.0001540353044439165, 0.001333355815414469,
        0.009618129107605452, 0.055504108664787284, 0.240226506959101, 0.6931471805599457, 1.0,
    ),
}  # fmt: skip
#: (tanh(x) / x - 1) / x**2 in x**2 on |x| <= 0.55: 2**-29.8 and 2**-60.6
_TANH = {
    float32: (-0.00629511662, 0.0210880674, -0.0538568236, 0.133326367, -0.333333194),
    float64: (
        -1.9466559217094147e-05, 8.327314436753017e-05, -0.00023335307413625706,
        0.0005884340255274172, -0.001455540498201628, 0.003592091698821289, -0.008863232572170266,
        0.021869488384306884, -0.05396825396371562, 0.1333333333332656, -0.333333333333333,
    ),
}  # fmt: skip
#: e**r on |r| <= ln 2 / 2: 2**-32.6
_EXP_SHORT = (
    0.00019812921587938, 0.0013946033825147136, 0.008333679158810203, 0.04166628601120367,
    0.16666663794377556, 0.5000000067800364, 1.0, 1.0,
)  # fmt: skip
_LOG2E = 1.4426950408889634
#: below `zero` e**x rounds to 0, below `tiny` the scale 2**n is no normal number, above `huge` e**x
#: is infinite
_ZERO = {float32: -104.0, float64: -746.0}
_TINY = {float32: -86.0, float64: -700.0}
_HUGE = {float32: 89.0, float64: 710.0}


def at_least(x: Scalar, low: float) -> Scalar:
    """max(x, low), NaN staying NaN, in one instruction."""
    return select(x < low, low, x)


def at_most(x: Scalar, high: float) -> Scalar:
    return select(x > high, high, x)


def _reduce(x: Scalar, offset: int) -> tuple[Scalar, Scalar]:
    """r with x = n ln 2 + r, and the bits of 2**(n + offset)."""
    f = form(x)
    magic = f.magic + (f.bias + offset)
    z = fma(x, _LOG2E, magic)
    n = z - magic
    r = fma(n, -f.ln2_low, fma(n, -f.ln2_high, x))
    return r, bits(z) << f.mantissa


def _scale(p: Scalar, scale: Scalar, tiny: Scalar) -> Scalar:
    """p * 2**k, rounded once also where the result is denormal; `scale` holds the bits of 2**k,
    which wrap where `tiny`.
    """
    f = form(p)
    lift = select(tiny, scale.like(64 << f.mantissa), scale.like(0))
    lifted = p * (scale + lift).bitcast(p.dtype)
    return select(tiny, lifted * 2.0**-64, lifted)


def _exp_reduced(x: Scalar) -> Scalar:
    """exp of what is neither too big nor too small."""
    # half the scale, twice the polynomial: the scale of the biggest results would be infinite
    r, scale = _reduce(x, -1)
    p = horner(r, (*(2 * c for c in _EXPM1[x.dtype]), 2.0, 2.0))
    return _scale(p, scale, x < _TINY[x.dtype])


def exp(x: Scalar) -> Scalar:
    """e**x."""
    return _exp_reduced(at_most(at_least(x, _ZERO[x.dtype]), _HUGE[x.dtype]))


def exp_of_half(x: Scalar) -> Scalar:
    """e**x / 2 for x >= 0 or NaN, finite as far as that is."""
    r, scale = _reduce(at_most(x, _HUGE[x.dtype] + 1.0), -2)
    p = horner(r, (*(2 * c for c in _EXPM1[x.dtype]), 2.0, 2.0))
    return p * scale.bitcast(x.dtype)


def exp_short(x: Scalar) -> Scalar:
    """e**x to 2**-32 for a float64 in -600..600 or NaN: enough for results that become float32."""
    r, scale = _reduce(x, 0)
    return horner(r, _EXP_SHORT) * scale.bitcast(float64)


class Scaled(NamedTuple):
    """The number mantissa * 2**k, where `scale` holds the bits of 2**k (which wrap where the result
    is `tiny`).
    """

    mantissa: Pair
    scale: Scalar
    tiny: Scalar

    def round(self, mantissa: Scalar) -> Scalar:
        """`mantissa` in place of this one's, times the scale."""
        return _scale(mantissa, self.scale, self.tiny)


def exp_pair(x: Pair) -> Scaled:
    """e**(high + low) of a float64 pair to about 2**-60, not yet scaled."""
    high = at_most(at_least(x.high, _ZERO[float64]), _HUGE[float64])
    f = form(high)
    magic = f.magic + (f.bias - 1)
    z = fma(high, _LOG2E, magic)
    n = z - magic
    near = fma(n, -f.ln2_high, high)
    r = fma(n, -f.ln2_low, near)
    low = fma(n, -f.ln2_low, near - r) + x.low
    double = r * 2.0
    q = r * r * horner(r, (2 * c for c in _EXPM1[float64]))
    q = fma(low, (q + double) + 2.0, q)
    first = fast_sum(high.like(2.0), double)
    return Scaled(fast_sum(first.high, first.low + q), bits(z) << f.mantissa, high < _TINY[float64])


def exp_of_negative(x: Scalar) -> Scalar:
    """e**x for x <= 0 or NaN."""
    return _exp_reduced(at_least(x, _ZERO[x.dtype]))


def exp2(x: Scalar) -> Scalar:
    """2**x."""
    f = form(x)
    low, high = {float32: (-151.0, 129.0), float64: (-1076.0, 1025.0)}[x.dtype]
    v = at_most(at_least(x, low), high)
    magic = f.magic + (f.bias - 1)
    z = v + magic
    p = horner(v - (z - magic), (2 * c for c in _EXP2[x.dtype]))
    return _scale(p, bits(z) << f.mantissa, v < -(f.bias - 2.0))


def _expm1_poly(r: Scalar) -> Scalar:
    return fma(r * r, horner(r, _EXPM1[r.dtype]), r)


def expm1(x: Scalar) -> Scalar:
    """e**x - 1, exact to the last place near 0."""
    low = {float32: -18.0, float64: -38.0}[x.dtype]
    r, scale = _reduce(at_most(at_least(x, low), _HUGE[x.dtype]), -1)
    half = scale.bitcast(x.dtype)
    y = fma(_expm1_poly(r), half, half - 0.5)
    return select(abs(x) < 2.0 ** -(form(x).mantissa + 2), x, y + y)


def _one_plus_exp(x: Scalar) -> Scalar:
    """1 + e**x for x in -40..40 or NaN, rounded once: 1 + 2**n is exact where it matters."""
    r, scale = _reduce(x, 0)
    whole = scale.bitcast(x.dtype)
    return fma(_expm1_poly(r), whole, whole + 1.0)


def tanh(x: Scalar) -> Scalar:
    """1 - 2 / (1 + e**(2|x|)), or a polynomial where that cancels."""
    size = abs(x)
    far = 1.0 - 2.0 / _one_plus_exp(at_most(size, {float32: 9.5, float64: 19.5}[x.dtype]) * 2.0)
    z = x * x
    near = fma(z * size, horner(z, _TANH[x.dtype]), size)
    return copysign(select(size < 0.55, near, far), x)


def sigmoid(x: Scalar) -> Scalar:
    """1 / (1 + e**-x)."""
    f = form(x)
    v = at_most(at_least(-x, -40.0), -_ZERO[x.dtype])
    r, scale = _reduce(v, 0)
    big = v > 64.0  # 1 + e**v = e**v, and its inverse may be denormal
    whole = (scale - select(big, scale.like(64 << f.mantissa), scale.like(0))).bitcast(x.dtype)
    one = select(big, x.like(0.0), x.like(1.0))
    top = whole + one
    y = 1.0 / (fma(_expm1_poly(r), whole, one - (top - whole)) + top)
    return select(big, y * 2.0**-64, y)


def softplus(x: Scalar) -> Scalar:
    """log(1 + e**x)."""
    return select(x > 0.0, x, 0.0) + log1p_near(exp_of_negative(-abs(x)))


def log_sigmoid(x: Scalar) -> Scalar:
    """log(1 / (1 + e**-x))."""
    return -softplus(-x)


def logaddexp(x: Scalar, y: Scalar) -> Scalar:
    """log(e**x + e**y). Where the result is near 0 it is good to 2 ulp of the larger argument, not
    of itself.
    """
    a, b = x.cast(float64), y.cast(float64)
    difference = select((a < b) | (b < a), -abs(a - b), 0.0)
    if x.dtype is float32:
        e = exp_short(at_least(difference, -200.0))
    else:
        e = exp_of_negative(difference)
    return (maximum(a, b) + log1p_near(e)).cast(x.dtype)
