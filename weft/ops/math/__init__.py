"""Elementary functions over `Scalar`s of float32 or float64."""
from weft.ops.math.error import erf, erfc, erfinv
from weft.ops.math.exponential import exp, exp2, expm1, log_sigmoid, sigmoid, softplus, tanh
from weft.ops.math.hyperbolic import acosh, asinh, atanh, cosh, sinh
from weft.ops.math.inverse import acos, asin, atan, atan2
from weft.ops.math.logarithm import log, log1p, log2, log10
from weft.ops.math.power import pow
from weft.ops.math.trigonometric import cos, sin, tan
