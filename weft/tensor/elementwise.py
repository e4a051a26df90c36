"""Functions on each element, or on the elements side by side in several operands, which broadcast.

Dtypes meet as the array API standard says; Python numbers give way to tensors. Functions of real
numbers take integers as float32. Each rounds once; transcendental ones are within 2 ulp.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.errors import DTypeError, NumericsError
from weft.ops import elementwise as ew
from weft.ops.define import Op, Value, installed
from weft.tensor.arguments import integer, value
from weft.tensor.operators import beyond, refuse_zero
from weft.types.dtype import float64

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

#: name -> docstring: the examples of this file's functions, for doctest
__test__: dict[str, str] = {}


def _documented(f: Callable[..., Any], op: Op, says: str, example: str, shows: str) -> None:
    f.__name__ = f.__qualname__ = op.name
    f.__module__ = __name__
    call = f"wf.{op.name}({example})" if "wf." in example else f"wf.{op.name}(wf.tensor({example}))"
    f.__doc__ = __test__[op.name] = f"{says}\n\n>>> import weft as wf\n>>> {call}\n{shows}\n"


def _one(op: Op, says: str, example: str, shows: str) -> Callable[[Any], Tensor]:
    plans = op.plans

    def function(x: Any, /) -> Tensor:
        try:
            plan = plans[(x.data.layout,)]
        except (KeyError, AttributeError, ValueError):
            return op(x)
        return installed.launch(plan, x)

    _documented(function, op, says, example, shows)
    return function


def _two(
    op: Op, says: str, example: str, shows: str, divides: bool = False
) -> Callable[[Any, Any], Tensor]:
    plans = op.plans

    def function(a: Any, b: Any, /) -> Tensor:
        if divides:
            refuse_zero(op, a, b)
        try:
            kind = b.data.layout if isinstance(b, Value) else b.__class__
            plan = plans[a.data.layout, kind]
        except (KeyError, AttributeError, ValueError):
            return op(a, b)
        return installed.launch(plan, a, b)

    _documented(function, op, says, example, shows)
    return function


def _compared(op: Op, says: str, example: str, shows: str) -> Callable[[Any, Any], Tensor]:
    plain = _two(op, says, example, shows)

    def function(a: Any, b: Any, /) -> Tensor:
        try:
            return plain(a, b)
        except NumericsError:
            if isinstance(a, Value) and b.__class__ is int:
                return beyond(op, a, b)
            if isinstance(b, Value) and a.__class__ is int:
                return beyond(_FLIPPED[op], b, a)
            raise

    _documented(function, op, says, example, shows)
    return function


_FLIPPED = {
    ew.equal: ew.equal, ew.not_equal: ew.not_equal, ew.less: ew.greater, ew.greater: ew.less,
    ew.less_equal: ew.greater_equal, ew.greater_equal: ew.less_equal,
}  # fmt: skip


def _three(op: Op, says: str, example: str, shows: str) -> Callable[[Any, Any, Any], Tensor]:
    def function(a: Any, b: Any, c: Any, /) -> Tensor:
        return op(a, b, c)

    _documented(function, op, says, example, shows)
    return function


# arithmetic

add = _two(ew.add, "a + b.", "wf.tensor([1, 2]), 3", "tensor([4, 5])")
subtract = _two(ew.subtract, "a - b.", "wf.tensor([1, 2]), 3", "tensor([-2, -1])")
multiply = _two(ew.multiply, "a * b.", "wf.tensor([1, 2]), 3", "tensor([3, 6])")
divide = _two(
    ew.divide, "a / b, as real numbers.", "wf.tensor([1.0, 3.0]), 2", "tensor([0.5, 1.5])"
)
floor_divide = _two(
    ew.floor_divide, "a / b rounded down.", "wf.tensor([7, -7]), 2", "tensor([ 3, -4])", True
)
remainder = _two(
    ew.remainder,
    "What is left of a after floor division by b; it has the sign of b.",
    "wf.tensor([7, -7]), 2",
    "tensor([1, 1])",
    True,
)
pow = _two(ew.pow, "a to the power b.", "wf.tensor([2.0, 3.0]), 2", "tensor([4., 9.])")
negative = _one(ew.negative, "-x.", "[1, -2]", "tensor([-1,  2])")
positive = _one(ew.positive, "x.", "[1, -2]", "tensor([ 1, -2])")
abs = _one(ew.abs, "The distance from zero.", "[1, -2]", "tensor([1, 2])")
square = _one(ew.square, "x * x.", "[1, -2]", "tensor([1, 4])")
sqrt = _one(ew.sqrt, "The square root.", "[4.0, 9.0]", "tensor([2., 3.])")
rsqrt = _one(ew.rsqrt, "One over the square root.", "[4.0, 0.25]", "tensor([0.5, 2. ])")
reciprocal = _one(ew.reciprocal, "1 / x.", "[4.0, 0.25]", "tensor([0.25, 4.  ])")
hypot = _two(
    ew.hypot,
    "sqrt(a² + b²) without overflow on the way.",
    "wf.tensor([3.0]), wf.tensor([4.0])",
    "tensor([5.])",
)
fma = _three(
    ew.fma, "a * b + c, rounded once.", "wf.tensor([2.0]), wf.tensor([3.0]), 1.0", "tensor([7.])"
)
lerp = _three(
    ew.lerp, "a + t * (b - a).", "wf.tensor([0.0]), wf.tensor([8.0]), 0.25", "tensor([2.])"
)

# rounding and signs

floor = _one(ew.floor, "Rounded down.", "[1.5, -1.5]", "tensor([ 1., -2.])")
ceil = _one(ew.ceil, "Rounded up.", "[1.5, -1.5]", "tensor([ 2., -1.])")
trunc = _one(ew.trunc, "Rounded towards zero.", "[1.5, -1.5]", "tensor([ 1., -1.])")
round = _one(
    ew.round,
    "Rounded to the nearest whole number, halves to even.",
    "[1.5, 2.5]",
    "tensor([2., 2.])",
)
sign = _one(ew.sign, "-1, 0 or 1; NaN for NaN.", "[-3.0, 0.0, 2.0]", "tensor([-1.,  0.,  1.])")
signbit = _one(ew.signbit, "Whether the sign bit is set.", "[-1.0, 1.0]", "tensor([ True, False])")
copysign = _two(
    ew.copysign, "|a| with the sign of b.", "wf.tensor([1.0, -2.0]), -1.0", "tensor([-1., -2.])"
)
nextafter = _two(
    ew.nextafter,
    "The next number of the dtype after a, towards b.",
    "wf.tensor([1.0]), 2.0).item() - wf.tensor(1.0).item(",
    "1.1920928955078125e-07",
)

# exponentials and logarithms

exp = _one(ew.exp, "e to the power x.", "[0.0, 1.0]", "tensor([1.    , 2.7183])")
exp2 = _one(ew.exp2, "2 to the power x.", "[0.0, 3.0]", "tensor([1., 8.])")
expm1 = _one(ew.expm1, "exp(x) - 1, exact near zero.", "[0.0, 1.0]", "tensor([0.    , 1.7183])")
log = _one(ew.log, "The natural logarithm.", "[1.0, 2.0]", "tensor([0.    , 0.6931])")
log2 = _one(ew.log2, "The logarithm to base 2.", "[1.0, 8.0]", "tensor([0., 3.])")
log10 = _one(ew.log10, "The logarithm to base 10.", "[1.0, 100.0]", "tensor([0., 2.])")
log1p = _one(ew.log1p, "log(1 + x), exact near zero.", "[0.0, 1.0]", "tensor([0.    , 0.6931])")
logaddexp = _two(
    ew.logaddexp,
    "log(exp(a) + exp(b)) without overflow on the way.",
    "wf.tensor([0.0, 1000.0]), wf.tensor([0.0, 0.0])",
    "tensor([6.9315e-01, 1.0000e+03])",
)

# trigonometric and hyperbolic

sin = _one(ew.sin, "The sine.", "[0.0, 1.0]", "tensor([0.    , 0.8415])")
cos = _one(ew.cos, "The cosine.", "[0.0, 1.0]", "tensor([1.    , 0.5403])")
tan = _one(ew.tan, "The tangent.", "[0.0, 1.0]", "tensor([0.    , 1.5574])")
asin = _one(ew.asin, "The angle whose sine is x.", "[0.0, 1.0]", "tensor([0.    , 1.5708])")
acos = _one(ew.acos, "The angle whose cosine is x.", "[0.0, 1.0]", "tensor([1.5708, 0.    ])")
atan = _one(ew.atan, "The angle whose tangent is x.", "[0.0, 1.0]", "tensor([0.    , 0.7854])")
atan2 = _two(
    ew.atan2,
    "The angle of the point (b, a), in (-pi, pi].",
    "wf.tensor([1.0, 1.0]), wf.tensor([1.0, -1.0])",
    "tensor([0.7854, 2.3562])",
)
sinh = _one(ew.sinh, "The hyperbolic sine.", "[0.0, 1.0]", "tensor([0.    , 1.1752])")
cosh = _one(ew.cosh, "The hyperbolic cosine.", "[0.0, 1.0]", "tensor([1.    , 1.5431])")
tanh = _one(ew.tanh, "The hyperbolic tangent.", "[0.0, 1.0]", "tensor([0.    , 0.7616])")
asinh = _one(ew.asinh, "The inverse of sinh.", "[0.0, 1.0]", "tensor([0.    , 0.8814])")
acosh = _one(ew.acosh, "The inverse of cosh.", "[1.0, 2.0]", "tensor([0.   , 1.317])")
atanh = _one(ew.atanh, "The inverse of tanh.", "[0.0, 0.5]", "tensor([0.    , 0.5493])")

# special functions and activations

erf = _one(ew.erf, "The error function.", "[0.0, 1.0]", "tensor([0.    , 0.8427])")
erfc = _one(
    ew.erfc, "1 - erf(x), exact where that is small.", "[0.0, 1.0]", "tensor([1.    , 0.1573])"
)
erfinv = _one(ew.erfinv, "The inverse of erf.", "[0.0, 0.5]", "tensor([0.    , 0.4769])")
lgamma = _one(ew.lgamma, "log|gamma(x)|.", "[1.0, 5.0]", "tensor([0.    , 3.1781])")
digamma = _one(ew.digamma, "The derivative of lgamma.", "[1.0, 2.0]", "tensor([-0.5772,  0.4228])")
sigmoid = _one(ew.sigmoid, "1 / (1 + exp(-x)).", "[0.0, 1.0]", "tensor([0.5   , 0.7311])")
softplus = _one(ew.softplus, "log(1 + exp(x)).", "[0.0, 1.0]", "tensor([0.6931, 1.3133])")
relu = _one(ew.relu, "x where it is positive, else 0.", "[-1.0, 2.0]", "tensor([0., 2.])")

# comparison

equal = _compared(ew.equal, "a == b.", "wf.tensor([1, 2]), 2", "tensor([False,  True])")
not_equal = _compared(ew.not_equal, "a != b.", "wf.tensor([1, 2]), 2", "tensor([ True, False])")
less = _compared(ew.less, "a < b.", "wf.tensor([1, 2]), 2", "tensor([ True, False])")
less_equal = _compared(ew.less_equal, "a <= b.", "wf.tensor([1, 2]), 2", "tensor([ True,  True])")
greater = _compared(ew.greater, "a > b.", "wf.tensor([1, 2]), 1", "tensor([False,  True])")
greater_equal = _compared(
    ew.greater_equal, "a >= b.", "wf.tensor([1, 2]), 1", "tensor([ True,  True])"
)
isnan = _one(ew.isnan, "Whether x is NaN.", "[1.0, float('nan')]", "tensor([False,  True])")
isinf = _one(ew.isinf, "Whether x is infinite.", "[1.0, float('-inf')]", "tensor([False,  True])")
isfinite = _one(
    ew.isfinite,
    "Whether x is neither infinite nor NaN.",
    "[1.0, float('inf')]",
    "tensor([ True, False])",
)

# logic and bits

logical_and = _two(
    ew.logical_and,
    "Whether both are not zero.",
    "wf.tensor([True, False]), True",
    "tensor([ True, False])",
)
logical_or = _two(
    ew.logical_or,
    "Whether one is not zero.",
    "wf.tensor([True, False]), False",
    "tensor([ True, False])",
)
logical_xor = _two(
    ew.logical_xor,
    "Whether just one is not zero.",
    "wf.tensor([True, False]), True",
    "tensor([False,  True])",
)
logical_not = _one(ew.logical_not, "Whether x is zero.", "[True, False]", "tensor([False,  True])")
bitwise_and = _two(ew.bitwise_and, "Bits set in both.", "wf.tensor([6, 5]), 3", "tensor([2, 1])")
bitwise_or = _two(
    ew.bitwise_or, "Bits set in one or both.", "wf.tensor([6, 5]), 3", "tensor([7, 7])"
)
bitwise_xor = _two(ew.bitwise_xor, "Bits set in one.", "wf.tensor([6, 5]), 3", "tensor([5, 6])")
bitwise_invert = _one(ew.bitwise_invert, "Every bit flipped.", "[0, 5]", "tensor([-1, -6])")
bitwise_left_shift = _two(
    ew.bitwise_left_shift,
    "a with its bits moved up by b; 0 where b is as wide as the dtype.",
    "wf.tensor([1, 3]), 2",
    "tensor([ 4, 12])",
)
bitwise_right_shift = _two(
    ew.bitwise_right_shift,
    "a with its bits moved down by b, keeping the sign.",
    "wf.tensor([8, -8]), 2",
    "tensor([ 2, -2])",
)

# choice

maximum = _two(
    ew.maximum, "The larger; NaN if one is.", "wf.tensor([1.0, 3.0]), 2.0", "tensor([2., 3.])"
)
minimum = _two(
    ew.minimum, "The smaller; NaN if one is.", "wf.tensor([1.0, 3.0]), 2.0", "tensor([1., 2.])"
)
where = _three(
    ew.where,
    "b where the condition a holds, else c.",
    "wf.tensor([True, False]), wf.tensor([1.0, 2.0]), 0.0",
    "tensor([1., 0.])",
)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """x kept between min and max; None leaves a side open.

    >>> import weft as wf
    >>> wf.clip(wf.tensor([-2.0, 0.5, 2.0]), -1, 1)
    tensor([-1. ,  0.5,  1. ])
    """
    v = value(x)
    for side, bound in (("min", min), ("max", max)):
        if isinstance(bound, (str, bytes)):
            raise DTypeError("clip", expected=f"a number or a tensor as {side}", got=repr(bound))
    if min is None and max is None:
        return ew.positive(v)
    if (
        v.type.dtype.is_float
    ):  # the open side as infinity, so that bounds touch gradients the same way
        return ew.clip(v, -math.inf if min is None else min, math.inf if max is None else max)
    if min is None or max is None:
        return ew.minimum(v, max) if min is None else ew.maximum(v, min)
    return ew.clip(v, min, max)


def rounded(x: Value, digits: Any) -> Any:
    """To so many decimal digits, as NumPy does it; negative ones are those before the point."""
    n = integer(digits, "round")
    d = x.type.dtype
    if n > 300 or (n >= 0 and not d.is_float):
        return ew.copy(x)
    by = 10.0 ** min(max(n, -n), 300)  # `abs` is that of tensors here
    if not d.is_float:
        return ew.astype(round(ew.astype(x, dtype=float64) / by) * by, dtype=d)
    return round(x * by) / by if n >= 0 else round(x / by) * by
