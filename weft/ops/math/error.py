"""erf and its relatives."""

from __future__ import annotations

from weft.ops.math.exponential import at_most
from weft.ops.scalar import Scalar, copysign, fma, horner, select
from weft.types.dtype import float32, float64

#: erf(x) / x - 1 in x**2 on |x| <= 0.95 and 1: 2**-25.4 and 2**-55.7
_NEAR = {
    float32: (-0.000589771895, 0.00497580646, -0.0267557278, 0.112815589, -0.376124769, 0.128379151),
    float64: (
        -7.5797429334717e-10, 1.3601870477817898e-08, -1.6180637828469027e-07, 1.6443726747348928e-06,
        -1.4924432849702583e-05, 0.00012055278897601796, -0.000854832543622719, 0.005223977595843684,
        -0.026866170641869642, 0.1128379167093654, -0.3761263890318334, 0.12837916709551256,
    ),
}  # fmt: skip
#: erfc(x)**(1/4) on 0.95..3.95, error of the fourth power 2**-26.4
_FOURTH_ROOT = (
    -2.61451769e-05, 0.000239741028, 0.000355484895, -0.0111550717, 0.0401206426, -0.0121444082, -0.0980532393,
    -0.291254669, 1.00168717,
)  # fmt: skip


def _erf32(x: Scalar) -> Scalar:
    size = at_most(abs(x), 3.95)  # erf rounds to 1 beyond
    near = fma(size, horner(size * size, _NEAR[float32]), size)
    q = horner(size, _FOURTH_ROOT)
    q = q * q
    return copysign(select(size < 0.95, near, fma(-q, q, 1.0)), x)


def erf(x: Scalar) -> Scalar:
    """2 / sqrt(pi) times the integral of e**-t**2 from 0 to x."""
    return _erf32(x)
