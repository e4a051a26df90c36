"""Elementary functions over `Scalar`s of float32 or float64."""
from weft.ops.math.exponential import exp, exp2, expm1, log_sigmoid, sigmoid, softplus, tanh
from weft.ops.math.logarithm import log, log1p, log2, log10
from weft.ops.math.error import erf
from weft.ops.math.trigonometric import cos, sin, tan
from weft.ops.math.power import pow
