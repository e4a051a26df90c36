"""log |gamma| and its derivative. float32 is computed in float64 and rounded once.

Positive arguments are good to 2 ulp. Negative ones go through the reflection formula: in float64
the error there is about 2**-49 of the larger of 1 and the result, so relative accuracy is lost
beside the zeros on the negative axis.
"""

from __future__ import annotations

from weft.ops.math.logarithm import log, log_pair
from weft.ops.math.pair import Pair, exact_product, exact_sum, fast_sum, product
from weft.ops.scalar import INF, NAN, Scalar, const, copysign, fma, horner, isnan, rint, select
from weft.types.dtype import DType, float64

#: (lgamma(2 + t) / t - (1 - gamma)) / t on |t| <= 1/2: 2**-56.2
_NEAR = (
    2.919190561338295e-07, -5.819441441652654e-07, 9.065788181828698e-07, -1.9736626803899676e-06,
    4.390352254266684e-06, -9.45647336396529e-06, 2.0504341869663684e-05, -4.492370818123477e-05,
    9.945782954578884e-05, -0.00022315497683323855, 0.0005096695045008085, -0.0011927539012906564,
    0.0028905103314297333, -0.007385551028913995, 0.02058080842777427, -0.0673523010531962,
    0.32246703342411326,
)  # fmt: skip
_ONE_MINUS_EULER, _ONE_MINUS_EULER_LOW = 0.42278433509846713, 4.942915152430645e-18
#: x times what Stirling's formula leaves, in 1 / x**2 for x >= 8: 2**-67.6
_STIRLING = (
    0.004974044223059122, -0.00188576245176768, 0.000841380691459093, -0.0005952357542118813,
    0.0007936507860024712, -0.002777777777766726, 0.08333333333333333,
)  # fmt: skip
_HALF_LOG_TAU_LESS_HALF = 0.4189385332046727
#: (sin(pi r) / r - pi) / r**2 in r**2 on |r| <= 1/2: 2**-60.0
_SINPI = (
    7.669889007947083e-07, -2.19008159134435e-05, 0.0004662987795661941, -0.007370430299715207,
    0.08214588655080544, -0.599264529317679, 2.550164039877268, -5.167712780049969,
)  # fmt: skip
#: (log(x) - 1 / 2x - digamma(x)) x**2 in 1 / x**2 for x >= 8: 2**-65.6
_ASYMPTOTIC = (
    0.06153169502046536, -0.02058900095046479, 0.007569484723902251, -0.0041666231229451,
    0.003968253805742679, -0.008333333333045777, 0.08333333333333316,
)  # fmt: skip
#: digamma(z) / (z - root) without its constant, in z - 1.5 on 1..2, 2**-55.4, and in z - 3 on 2..4,
#: 2**-54.8
_LEFT = (
    -0.00017657621682588454, 0.00025985589446258855, -0.00014696140273129924,
    0.00022701975127859222, -0.00048473879513679226, 0.0007234397339798885, -0.001036839729172573,
    0.0015565985781521054, -0.0023454211870949492, 0.003519012275195884, -0.005279946216151425,
    0.007926944003357823, -0.01190821942165451, 0.01790725248224132, -0.026975796691209197,
    0.04076083381078912, -0.06192213327469479, 0.0949887244549727, -0.1484049230538901,
    0.24054248424077398, -0.4236274212814606,
)  # fmt: skip
_RIGHT = (
    -4.214383461695001e-11, 1.2404515750600426e-10, -1.4043451622270982e-10, 4.3435358368726013e-10,
    -1.8551878335409879e-09, 5.543103316995094e-09, -1.5914608204880413e-08, 4.787838700439915e-08,
    -1.4465014702282737e-07, 4.355405924138337e-07, -1.3128794441548113e-06, 3.965609002623321e-06,
    -1.2007979656698522e-05, 3.648531946324855e-05, -0.00011139565597156667, 0.0003424736941833878,
    -0.0010636279058304358, 0.0033543129644855265, -0.010837922383549527, 0.03649594512131967,
    -0.1332010919732337,
)  # fmt: skip
_LEFT_ONE, _LEFT_LOW = 0.951055876031833, -5.4307537401495285e-17
_RIGHT_ONE, _RIGHT_LOW = 0.5998463449949618, 1.8778631640108164e-17
_ROOT, _ROOT_LOW = 1.4616321449683622, 9.549995429965697e-17
_PI, _PI_LOW = 3.141592653589793, 1.2246467991473532e-16


def _sinpi(r: Scalar) -> Scalar:
    """sin(pi r) for |r| <= 1/2."""
    z = r * r
    return fma(r, _PI, r * fma(z, horner(z, _SINPI), _PI_LOW))


def _log_gamma(x: Scalar, dtype: DType) -> Scalar:
    """log |gamma(x)| for x > -1/2 (x != 0).

    From 8 on, Stirling's formula; below, log gamma(2 + t) with |t| <= 1/2 and the logarithm of the
    factors x - 1, x - 2, … (or 1/x, 1/(x (x + 1))) that lead there.
    """
    far = x > 8.0
    low = x < 1.5
    lower = x < 0.5
    factor, t = x.like(1.0), x - 2.0
    for k in range(1, 7):
        above = x > k + 1.5
        factor = select(above, factor * (x - k), factor)
        t = select(above, x - (k + 2.0), t)
    factor = select(low, select(lower, abs(fma(x, x, x)), x), factor)
    t = select(low, select(lower, x, x - 1.0), t)
    u = select(far, x, factor)
    logarithm = log_pair(u) if dtype is float64 else Pair(log(u), x.like(0.0))
    signed = Pair(
        select(low, -logarithm.high, logarithm.high), select(low, -logarithm.low, logarithm.low)
    )
    line = exact_product(t, x.like(_ONE_MINUS_EULER))
    bend = fma(t, _ONE_MINUS_EULER_LOW, line.low) + t * t * horner(t, _NEAR)
    first = exact_sum(signed.high, line.high)
    near = first.high + (first.low + (signed.low + bend))
    less = fast_sum(logarithm.high, x.like(-1.0))
    main = product(Pair(x - 0.5, x.like(0.0)), Pair(less.high, less.low + logarithm.low))
    inverse = 1.0 / x
    tail = fma(inverse, horner(inverse * inverse, _STIRLING), _HALF_LOG_TAU_LESS_HALF)
    return select(far, main.high + (main.low + tail), near)


def lgamma(x: Scalar) -> Scalar:
    """log |gamma(x)|, infinite at 0, -1, -2, …"""
    wide = x.cast(float64)
    reflected = wide < -0.5
    size = select(reflected, -wide, wide)
    y = _log_gamma(size, x.dtype)
    r = size - rint(size)
    mirror = log(_PI / (size * abs(_sinpi(r))))
    y = select(reflected, mirror - y, y)
    pole = (wide <= 0.0) & r.eq(0.0)
    y = select(pole | (abs(wide) > 2.6e305), INF, y)
    return select(isnan(wide), wide, y).cast(x.dtype)


def _positive_digamma(x: Scalar) -> Scalar:
    """digamma(x) for x > 0: asymptotic from 8 on; below, (z - root) times a polynomial for a z in
    1..4 and what leads there.
    """
    lower, four, six, far = x < 1.0, x > 4.0, x > 6.0, x > 8.0
    shift = select(
        lower, x.like(1.0), select(six, x.like(-4.0), select(four, x.like(-2.0), x.like(0.0)))
    )
    z = x + shift
    left = z < 2.0
    u = select(left, z - 1.5, z - 3.0)
    acc = select(left, x.like(_LEFT[0]), x.like(_RIGHT[0]))
    for a, b in zip((*_LEFT[1:], _LEFT_LOW), (*_RIGHT[1:], _RIGHT_LOW), strict=True):
        acc = fma(acc, u, select(left, x.like(a), x.like(b)))
    one = select(left, x.like(_LEFT_ONE), x.like(_RIGHT_ONE))
    d = exact_sum(x, shift - _ROOT)
    small = fma(d.low - _ROOT_LOW, one + acc, d.high * acc)
    main = exact_product(d.high, one)
    down = fma(x, 2.0, -3.0) / ((x - 1.0) * (x - 2.0)) + select(
        six, fma(x, 2.0, -7.0) / ((x - 3.0) * (x - 4.0)), 0.0
    )
    inverse = 1.0 / x
    inverse_low = select(x > 2.0**-1000, fma(-inverse, x, 1.0) * inverse, 0.0)
    extra = select(lower, -inverse, select(four, down, 0.0))
    extra_low = select(lower, -inverse_low, 0.0)
    total = exact_sum(extra, main.high)
    near = total.high + (total.low + (extra_low + (main.low + small)))
    near = select(x > 2.0**-1000, near, extra)
    square = inverse * inverse
    return select(far, log(x) - fma(inverse, 0.5, square * horner(square, _ASYMPTOTIC)), near)


def digamma(x: Scalar) -> Scalar:
    """The derivative of log gamma(x): -inf at 0.0, inf at -0.0, NaN at -1, -2, …"""
    wide = x.cast(float64)
    reflected = wide < 0.0
    y = _positive_digamma(select(reflected, 1.0 - wide, wide))
    r = wide - rint(wide)
    cotangent = copysign(_PI * _sinpi(0.5 - abs(r)) / _sinpi(abs(r)), r)
    y = select(reflected, y - cotangent, y)
    y = select(reflected & r.eq(0.0), NAN, y)
    y = select(wide.eq(0.0), copysign(const(-INF, float64), -wide), y)
    return select(abs(wide) < INF, y, select(wide < 0.0, NAN, wide)).cast(x.dtype)
