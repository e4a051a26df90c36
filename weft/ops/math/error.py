"""erf, erfc and erfinv.

float64 has erfc(x) = e**-x**2 h(t) / (1 + 2x) with one polynomial h in t = (x - 4) / (x + 4) for
all x >= 1/2, after M. M. Shepherd and J. G. Laframboise, Chebyshev approximation of (1 + 2x)
exp(x**2) erfc x in 0 <= x < oo, 1981.
"""

from __future__ import annotations

from weft.ops.math.exponential import Scaled, at_least, at_most, exp_pair, exp_short
from weft.ops.math.logarithm import log
from weft.ops.math.pair import Pair, exact_product, fast_sum, product, quotient
from weft.ops.scalar import INF, NAN, Scalar, copysign, fma, horner, select, sqrt
from weft.types.dtype import float32, float64

#: erf(x) / x - 1 in x**2 on |x| <= 0.95 and 1: 2**-25.4 and 2**-55.7
_NEAR = {
    float32: (
        -0.000589771895, 0.00497580646, -0.0267557278, 0.112815589, -0.376124769, 0.128379151,
    ),
    float64: (
        -7.5797429334717e-10, 1.3601870477817898e-08, -1.6180637828469027e-07,
        1.6443726747348928e-06, -1.4924432849702583e-05, 0.00012055278897601796,
        -0.000854832543622719, 0.005223977595843684, -0.026866170641869642, 0.1128379167093654,
        -0.3761263890318334, 0.12837916709551256,
    ),
}  # fmt: skip
#: the same on |x| <= 1/2: 2**-36.2
_NEARER = (
    -0.0007695245782261294, 0.0052004603205920465, -0.026863153703591613, 0.11283774112958093,
    -0.3761263852892497, 0.12837916708258196,
)  # fmt: skip
#: erfc(x)**(1/4) on 0.95..3.95, error of the fourth power 2**-26.4
_FOURTH_ROOT = (
    -2.61451769e-05, 0.000239741028, 0.000355484895, -0.0111550717, 0.0401206426, -0.0121444082,
    -0.0980532393, -0.291254669, 1.00168717,
)  # fmt: skip
#: (1 + 2x) e**x**2 erfc(x) in (x - 3) / (x + 3) on 0.48..11: 2**-30.3
_FAR32 = (
    -0.00017764172441720035, -0.0006809236242706537, 0.0019527914359612152, 0.0024989194741942993,
    -0.02378994802761494, 0.06831232276866753, -0.11927127012215014, 0.12964489543727906,
    -0.04756239690909111, -0.13562110117664447, 1.253008058963605,
)  # fmt: skip
#: the same in (x - 4) / (x + 4) on 0.48..28, without and with its constant: 2**-56.6
_FAR64 = (
    -1.0173066228702199e-08, -1.211842630538482e-08, 1.0474924950854788e-07, 6.673315238793515e-08,
    -8.213332253901152e-07, 2.998981867753749e-07, 5.707736524210196e-06, -1.1224951240339135e-05,
    -2.439857218961921e-05, 0.00015062257982297207, -0.00019925683177395034, -0.0007577734688178987,
    0.005031969996980334, -0.016197734035373425, 0.03716751553586482, -0.06633036581384337,
    0.09373283499842672, -0.10103906603624407, 0.06809705425469097, 0.015379652102618874,
    -0.1396211168405625,
)  # fmt: skip
_FAR64_ONE, _FAR64_LOW = 1.2329951186255526, -4.347436529999068e-17
#: erfinv(x) / x in w - 3.125, w = -log(1 - x**2) <= 6.25: 2**-30.8
_INVERSE_NEAR = (
    -1.3092943215413872e-11, 5.298921736027263e-12, 1.051712511288295e-09, -4.742273919415802e-09,
    -2.9127686601620672e-08, 4.268826780339488e-07, -1.364965048665298e-06, -1.389170246030929e-05,
    0.00018673269275097385, -0.0007406918000291277, -0.006033669376963836, 0.24015817882434637,
    1.6536545624573074,
)  # fmt: skip
#: the same in sqrt(w) - 3.25 up to 4.1, 2**-28.5, and in sqrt(w) - 4.25 up to 6.1, 2**-20.2
_INVERSE_FAR = {
    float32: (
        7.086735327503651e-05, -4.35050899410886e-05, -0.0003484999019105367, 0.0009892876218588755,
        -0.0016918522796791696, 0.0024834003602071174, -0.0037506645013974027, 0.005371553508566885,
        1.0052589489838946, 3.083885602281241,
    ),
    float64: (
        1.581976533719529e-05, -4.201073639728494e-05, -4.216050103672054e-06,
        1.408652582481924e-05, 0.0002452715541247306, -0.0006768341166942204, 0.0006956665087754823,
        1.0099942877154413, 4.092225017861416,
    ),
}  # fmt: skip
_HALF_ROOT_PI = 0.886226925452758


def _erf32(x: Scalar) -> Scalar:
    size = at_most(abs(x), 3.95)  # erf rounds to 1 beyond
    near = fma(size, horner(size * size, _NEAR[float32]), size)
    q = horner(size, _FOURTH_ROOT)
    q = q * q
    return copysign(select(size < 0.95, near, fma(-q, q, 1.0)), x)


def _h(x: Scalar) -> Pair:
    """(1 + 2x) e**x**2 erfc(x) for a float64 x >= 1/2."""
    t = (x - 4.0) / (x + 4.0)
    rest = fma(t, horner(t, _FAR64), _FAR64_LOW)
    return fast_sum(x.like(_FAR64_ONE), rest)


def _exp_of_square(x: Scalar, sign: float) -> Scaled:
    """e**(sign x**2)."""
    square = exact_product(x, x * sign)
    return exp_pair(square)


def erf(x: Scalar) -> Scalar:
    """2 / sqrt(pi) times the integral of e**-t**2 from 0 to x."""
    if x.dtype is float32:
        return _erf32(x)
    size = at_most(abs(x), 6.0)
    near = fma(size, horner(size * size, _NEAR[float64]), size)
    e = _exp_of_square(size, -1.0)
    far = 1.0 - e.round(e.mantissa.high) * _h(size).high / fma(size, 2.0, 1.0)
    return copysign(select(size < 1.0, near, far), x)


def _erfc32(x: Scalar) -> Scalar:
    """erfc in float64 of what was a float32."""
    size = at_most(abs(x), 10.5)
    near = fma(-x, horner(x * x, _NEARER), 1.0 - x)
    far = (
        exp_short(-(size * size))
        * horner((size - 3.0) / (size + 3.0), _FAR32)
        / fma(size, 2.0, 1.0)
    )
    return select(size < 0.5, near, select(x < 0.0, 2.0 - far, far))


def erfc(x: Scalar) -> Scalar:
    """1 - erf(x), exact to the last place also where erf rounds to 1."""
    if x.dtype is float32:
        return _erfc32(x.cast(float64)).cast(float32)
    size = at_most(abs(x), 28.0)
    near = 1.0 - fma(x, horner(x * x, _NEAR[float64]), x)
    e = _exp_of_square(size, -1.0)
    q = quotient(product(e.mantissa, _h(size)), fast_sum(size * 2.0, x.like(1.0)))
    far = e.round(q.high)
    return select(size < 0.5, near, select(x < 0.0, 2.0 - far, far))


def erfinv(x: Scalar) -> Scalar:
    """The y with erf(y) = x. A polynomial; in float64, followed by three terms of the inverse
    series there.
    """
    v = x.cast(float64)
    size = abs(v)
    w = -log((1.0 - size) * (1.0 + size))
    far = w > 6.25
    s = sqrt(at_least(w, 0.0))
    centre = {float32: 3.25, float64: 4.25}[x.dtype]
    y = size * select(
        far, horner(s - centre, _INVERSE_FAR[x.dtype]), horner(w - 3.125, _INVERSE_NEAR)
    )
    if x.dtype is float64:
        e = _exp_of_square(at_most(y, 7.0), 1.0)
        e_y = e.round(e.mantissa.high)
        inner = fma(y, horner(y * y, _NEAR[float64]), y - size) * e_y  # (erf(y) - x) e**y**2
        outer = fma(1.0 - size, e_y, -(_h(y).high / fma(y, 2.0, 1.0)))
        d = select(y < 0.9, inner, outer) * _HALF_ROOT_PI
        y = y - d * fma(d, fma(d, fma(y * y, 4 / 3, 1 / 3), -y), 1.0)
    y = select(size < 1.0, y, select(size.eq(1.0), INF, v.like(NAN)))
    return copysign(y, v).cast(x.dtype)
