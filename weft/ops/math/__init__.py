"""Elementary functions over `Scalar`s of float32 or float64.

Every one is said in the scalar verbs alone, without a branch or a table, so the same bits come out
of every target and every kernel it is fused into. They are within 2 ulp of the true value over the
whole range, denormals, infinities, NaN and signed zeros included, except where a docstring says
less. The half types compute in float32 and never reach them.

The polynomials are minimax fits; the line above each says of what, where, and how good it is.
"""

from weft.ops.math.error import erf, erfc, erfinv
from weft.ops.math.exponential import (
    exp,
    exp2,
    expm1,
    log_sigmoid,
    logaddexp,
    sigmoid,
    softplus,
    tanh,
)
from weft.ops.math.gamma import digamma, lgamma
from weft.ops.math.hyperbolic import acosh, asinh, atanh, cosh, sinh
from weft.ops.math.integer import integer_pow
from weft.ops.math.inverse import acos, asin, atan, atan2
from weft.ops.math.logarithm import log, log1p, log2, log10
from weft.ops.math.polygamma import polygamma
from weft.ops.math.power import cbrt, hypot, pow, reciprocal, rsqrt
from weft.ops.math.rounding import (
    floor_divide,
    fmod,
    isfinite,
    isinf,
    nextafter,
    remainder,
    sign,
    signbit,
)
from weft.ops.math.trigonometric import cos, sin, tan

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor_divide",
    "fmod",
    "hypot",
    "integer_pow",
    "isfinite",
    "isinf",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_sigmoid",
    "logaddexp",
    "nextafter",
    "polygamma",
    "pow",
    "reciprocal",
    "remainder",
    "rsqrt",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "softplus",
    "tan",
    "tanh",
]  # fmt: skip
