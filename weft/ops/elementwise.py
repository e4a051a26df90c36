"""Scalar functions lifted to tensors, a line or two each: name, rule in scalar verbs, cotangent
of each operand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ops import math as m, scalar as s
from weft.ops.define import Op, Type, Value, register
from weft.ops.makers import common_dtype, elementwise, like, shapes, wants_gradient
from weft.ops.samples import Sample, array, pointwise
from weft.ops.scalar import Scalar
from weft.types import DType, TensorType, broadcast_shapes
from weft.types.dtype import DTYPES, bool_, float32, float64

real = partial(elementwise, domain="float")
test = partial(elementwise, domain="any", gives=bool_)

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

# arithmetic

add = elementwise(
    "add", lambda a, b: a + b, lambda g, y, a, b: g, lambda g, y, a, b: g, bools=True, onnx="Add"
)
subtract = elementwise(
    "subtract", lambda a, b: a - b, lambda g, y, a, b: g, lambda g, y, a, b: -g, onnx="Sub"
)
multiply = elementwise(
    "multiply",
    lambda a, b: a * b,
    lambda g, y, a, b: g * b,
    lambda g, y, a, b: g * a,
    bools=True,
    onnx="Mul",
)
divide = real(
    "divide",
    lambda a, b: a / b,
    lambda g, y, a, b: g / b,
    lambda g, y, a, b: -(g * y) / b,
    onnx="Div",
    spans=((-3, 3), (0.5, 3)),
)
negative = elementwise("negative", lambda a: -a, lambda g, y, a: -g, onnx="Neg")
positive = elementwise("positive", lambda a: a, lambda g, y, a: g)
abs = elementwise(
    "abs", lambda a: s.Scalar("abs", (a,), a.dtype), lambda g, y, a: g * sign(a), onnx="Abs"
)
floor_divide = elementwise(
    "floor_divide",
    lambda a, b: m.floor_divide(a, b) if a.dtype.is_float else a // b,
    spans=((-9, 9), (1, 4)),
)
remainder = elementwise(
    "remainder",
    lambda a, b: m.remainder(a, b) if a.dtype.is_float else a % b,
    lambda g, y, a, b: g,
    lambda g, y, a, b: -g * floor_divide(a, b),
    spans=((-9, 9), (1, 4)),
)


def _zero_to_positive(a: Any, b: Any) -> Value:
    out: Value = logical_and(equal(a, 0.0), greater_equal(b, 0.0))
    return out


pow: Op = elementwise(
    "pow",
    lambda a, b: m.pow(a, b) if a.dtype.is_float else m.integer_pow(a, b),
    lambda g, y, a, b: g * where(equal(b, 0.0), 0.0, b * pow(a, b - 1.0)),
    lambda g, y, a, b: g * where(_zero_to_positive(a, b), 0.0, y * log(a)),
    onnx="Pow",
    spans=((0.5, 3), (0, 3)),
)
square = elementwise("square", lambda a: a * a, lambda g, y, a: g * (a + a))
reciprocal = real(
    "reciprocal",
    lambda a: 1.0 / a,
    lambda g, y, a: -(g * y) * y,
    onnx="Reciprocal",
    spans=((0.5, 3),),
)
sqrt = real("sqrt", s.sqrt, lambda g, y, a: g * 0.5 / y, onnx="Sqrt", spans=((0.1, 9),))
rsqrt = real(
    "rsqrt",
    m.rsqrt,
    lambda g, y, a: g * -0.5 * y / a,
    reference=lambda x: 1 / np.sqrt(x),
    spans=((0.1, 9),),
)
hypot = real("hypot", m.hypot, lambda g, y, a, b: g * a / y, lambda g, y, a, b: g * b / y)
fma = real(
    "fma",
    s.fma,
    lambda g, y, a, b, c: g * b,
    lambda g, y, a, b, c: g * a,
    lambda g, y, a, b, c: g,
    reference=lambda a, b, c: (a.astype("f8") * b.astype("f8") + c.astype("f8")).astype(a.dtype),
    doc="a * b + c, rounded once.",
)
lerp = real(
    "lerp",
    lambda a, b, t: s.fma(t, b - a, a),
    lambda g, y, a, b, t: g * (1.0 - t),
    lambda g, y, a, b, t: g * t,
    lambda g, y, a, b, t: g * (b - a),
    reference=lambda a, b, t: a + t * (b - a),
    doc="a + t * (b - a).",
)

# rounding and signs: piecewise constant, so their gradient is zero and is not noted

floor = elementwise("floor", lambda a: s.floor(a) if a.dtype.is_float else a, onnx="Floor")
ceil = elementwise("ceil", lambda a: s.ceil(a) if a.dtype.is_float else a, onnx="Ceil")
trunc = elementwise("trunc", lambda a: s.trunc(a) if a.dtype.is_float else a)
round = elementwise("round", lambda a: s.rint(a) if a.dtype.is_float else a, onnx="Round")
sign: Op = elementwise(
    "sign",
    lambda a: (
        s.select(s.isnan(a), a, (a > 0).cast(a.dtype) - (a < 0).cast(a.dtype))
        if a.dtype.is_float
        else (a > 0).cast(a.dtype) - (a < 0).cast(a.dtype)
    ),
    onnx="Sign",
)
signbit = real("signbit", m.signbit, gives=bool_)
copysign = real(
    "copysign", s.copysign, lambda g, y, a, b: g * sign(a) * sign(y), lambda g, y, a, b: 0.0 * g
)
nextafter = real("nextafter", m.nextafter, halves=True)

# exponentials and logarithms

exp = real("exp", m.exp, lambda g, y, a: g * y, onnx="Exp")
exp2 = real("exp2", m.exp2, lambda g, y, a: g * y * math.log(2))
expm1 = real("expm1", m.expm1, lambda g, y, a: g * (y + 1.0))
log: Op = real("log", m.log, lambda g, y, a: g / a, onnx="Log", spans=((0.1, 9),))
log2 = real("log2", m.log2, lambda g, y, a: g / (a * math.log(2)), spans=((0.1, 9),))
log10 = real("log10", m.log10, lambda g, y, a: g / (a * math.log(10)), spans=((0.1, 9),))
log1p = real("log1p", m.log1p, lambda g, y, a: g / (a + 1.0), spans=((-0.9, 9),))
logaddexp = real(
    "logaddexp", m.logaddexp, lambda g, y, a, b: g * exp(a - y), lambda g, y, a, b: g * exp(b - y)
)

# trigonometric and hyperbolic

sin = real("sin", m.sin, lambda g, y, a: g * cos(a), onnx="Sin")
cos: Op = real("cos", m.cos, lambda g, y, a: -(g * sin(a)), onnx="Cos")
tan = real("tan", m.tan, lambda g, y, a: g * (y * y + 1.0), onnx="Tan", spans=((-1.2, 1.2),))
asin = real(
    "asin", m.asin, lambda g, y, a: g * rsqrt(1.0 - a * a), onnx="Asin", spans=((-0.9, 0.9),)
)
acos = real(
    "acos", m.acos, lambda g, y, a: -(g * rsqrt(1.0 - a * a)), onnx="Acos", spans=((-0.9, 0.9),)
)
atan = real("atan", m.atan, lambda g, y, a: g / (a * a + 1.0), onnx="Atan")
atan2 = real(
    "atan2",
    m.atan2,
    lambda g, y, a, b: g * b / (a * a + b * b),
    lambda g, y, a, b: -(g * a) / (a * a + b * b),
    spans=((-3, 3), (0.5, 3)),
)
sinh = real("sinh", m.sinh, lambda g, y, a: g * cosh(a), onnx="Sinh")
cosh: Op = real("cosh", m.cosh, lambda g, y, a: g * sinh(a), onnx="Cosh")
tanh = real("tanh", m.tanh, lambda g, y, a: g * (1.0 - y * y), onnx="Tanh")
asinh = real("asinh", m.asinh, lambda g, y, a: g * rsqrt(a * a + 1.0), onnx="Asinh")
acosh = real(
    "acosh", m.acosh, lambda g, y, a: g * rsqrt(a * a - 1.0), onnx="Acosh", spans=((1.2, 9),)
)
atanh = real(
    "atanh", m.atanh, lambda g, y, a: g / (1.0 - a * a), onnx="Atanh", spans=((-0.9, 0.9),)
)

# special functions

erf = real(
    "erf",
    m.erf,
    lambda g, y, a: g * _TWO_OVER_ROOT_PI * exp(-(a * a)),
    onnx="Erf",
    reference=np.vectorize(math.erf, otypes="d"),
)
erfc = real(
    "erfc",
    m.erfc,
    lambda g, y, a: g * -_TWO_OVER_ROOT_PI * exp(-(a * a)),
    reference=np.vectorize(math.erfc, otypes="d"),
)
erfinv = real(
    "erfinv",
    m.erfinv,
    lambda g, y, a: g * (1 / _TWO_OVER_ROOT_PI) * exp(y * y),
    spans=((-0.9, 0.9),),
)
lgamma = real(
    "lgamma",
    m.lgamma,
    lambda g, y, a: g * digamma(a),
    reference=np.vectorize(math.lgamma, otypes="d"),
    spans=((0.3, 9),),
)
digamma: Op = real("digamma", m.digamma, lambda g, y, a: g * polygamma(a, n=1), spans=((0.3, 9),))


def _polygamma_samples() -> Iterator[Sample]:
    for n in (1, 2, 3):
        yield Sample((array((7,), float32, (0.3, 9)),), {"n": n})
        yield Sample((array((2, 3), float64, (0.3, 9)),), {"n": n})


def _polygamma_type(t: TensorType, *, n: int) -> TensorType:
    if not 1 <= n <= 20:
        raise ShapeError("polygamma", expected="a derivative from 1 to 20", got=str(n))
    return TensorType(t.shape, common_dtype("polygamma", (t,), "float"))


polygamma: Op = register(
    Op(
        "polygamma",
        _polygamma_type,
        scalar=lambda x, *, n: m.polygamma(
            x.cast(common_dtype("polygamma", (TensorType((), x.dtype),), "float")), n
        ),
        vjp=lambda g, y, x, *, n: (g * polygamma(x, n=n + 1),),
        samples=_polygamma_samples,
        doc="The n-th derivative of digamma.",
    )
)


# activations: one rounding at the end for the half types

relu = elementwise(
    "relu",
    lambda a: s.maximum(a, 0),
    lambda g, y, a: where(y > 0, g, 0.0),
    onnx="Relu",
    reference=lambda x: np.maximum(x, 0),
)
sigmoid = real(
    "sigmoid",
    m.sigmoid,
    lambda g, y, a: g * y * (1.0 - y),
    onnx="Sigmoid",
    reference=lambda x: 1 / (1 + np.exp(-x)),
)
softplus = real(
    "softplus",
    m.softplus,
    lambda g, y, a: g * sigmoid(a),
    onnx="Softplus",
    reference=lambda x: np.logaddexp(x, 0),
)
log_sigmoid = real(
    "log_sigmoid",
    m.log_sigmoid,
    lambda g, y, a: g * sigmoid(-a),
    reference=lambda x: -np.logaddexp(-x, 0),
)
silu = real(
    "silu",
    lambda a: a * m.sigmoid(a),
    lambda g, y, a: g * ((p := sigmoid(a)) + y * (1.0 - p)),
    reference=lambda x: x / (1 + np.exp(-x)),
)
gelu = real(
    "gelu",
    lambda a: (0.5 * a) * (m.erf(a * math.sqrt(0.5)) + 1.0),
    lambda g, y, a: (
        g
        * (
            0.5 * (erf(a * math.sqrt(0.5)) + 1.0)
            + a * exp(-0.5 * (a * a)) * (1 / math.sqrt(2 * math.pi))
        )
    ),
    reference=lambda x: x * 0.5 * (1 + np.vectorize(math.erf, otypes="d")(x / math.sqrt(2))),
    doc="x times the normal distribution function of x.",
)

# comparison and logic

equal: Op = test("equal", lambda a, b: a.eq(b), onnx="Equal")
not_equal = test("not_equal", lambda a, b: a.ne(b))
less = test("less", lambda a, b: a < b, onnx="Less")
less_equal = test("less_equal", lambda a, b: a <= b, onnx="LessOrEqual")
greater = test("greater", lambda a, b: a > b, onnx="Greater")
greater_equal = test("greater_equal", lambda a, b: a >= b, onnx="GreaterOrEqual")
logical_and = test("logical_and", lambda a, b: a.cast(bool_) & b.cast(bool_), onnx="And")
logical_or = test("logical_or", lambda a, b: a.cast(bool_) | b.cast(bool_), onnx="Or")
logical_xor = test("logical_xor", lambda a, b: a.cast(bool_) ^ b.cast(bool_), onnx="Xor")
logical_not = test("logical_not", lambda a: ~a.cast(bool_), onnx="Not")
isnan = test("isnan", lambda a: s.isnan(a), onnx="IsNaN")
isinf = real("isinf", m.isinf, gives=bool_, onnx="IsInf")
isfinite = real("isfinite", m.isfinite, gives=bool_)

# bits

bitwise_and = elementwise("bitwise_and", lambda a, b: a & b, domain="bits")
bitwise_or = elementwise("bitwise_or", lambda a, b: a | b, domain="bits")
bitwise_xor = elementwise("bitwise_xor", lambda a, b: a ^ b, domain="bits")
bitwise_invert = elementwise("bitwise_invert", lambda a: ~a, domain="bits")
bitwise_left_shift = elementwise(
    "bitwise_left_shift", lambda a, b: a << b, domain="integer", spans=((-9, 9), (0, 7))
)
bitwise_right_shift = elementwise(
    "bitwise_right_shift", lambda a, b: a >> b, domain="integer", spans=((-9, 9), (0, 7))
)

# choice

maximum = elementwise(
    "maximum",
    s.maximum,
    lambda g, y, a, b: _share(g, a, b, y),
    lambda g, y, a, b: _share(g, b, a, y),
    bools=True,
    onnx="Max",
)
minimum = elementwise(
    "minimum",
    s.minimum,
    lambda g, y, a, b: _share(g, a, b, y),
    lambda g, y, a, b: _share(g, b, a, y),
    bools=True,
    onnx="Min",
)


def _share(g: Value, mine: Value, other: Value, y: Value) -> Value:
    """The cotangent of whichever operand was picked; half each where they tie."""
    out: Value = where(equal(mine, other), g * 0.5, where(equal(mine, y), g, 0.0))
    return out


def _choice_types(name: str, c: Type, *rest: Type) -> DType:
    if isinstance(c, TensorType) and c.dtype is not bool_:
        raise DTypeError(
            name, expected="a bool condition", got=c.dtype.name, hint="compare first, e.g. x > 0"
        )
    return common_dtype(name, rest, "any")


def _where_vjp(g: Value, y: Value, c: Any, a: Any, b: Any) -> tuple[Any, ...]:
    return (
        None,
        (lambda: like(where(c, g, 0.0), a)) if wants_gradient(a) else None,
        (lambda: like(where(c, 0.0, g), b)) if wants_gradient(b) else None,
    )


def _where_scalar(c: Scalar, a: Scalar, b: Scalar) -> Scalar:
    dtype = common_dtype("where", (TensorType((), a.dtype), TensorType((), b.dtype)), "any")
    return s.select(c.cast(bool_), a.cast(dtype), b.cast(dtype))


def _where_samples() -> Iterator[Sample]:
    for arrays in pointwise(3, "fiub")():
        yield Sample((arrays.args[0] > 0, *arrays.args[1:]))


where: Op = register(
    Op(
        "where",
        lambda c, a, b: TensorType(
            broadcast_shapes(*shapes((c, a, b)), place="where"), _choice_types("where", c, a, b)
        ),
        scalar=_where_scalar,
        vjp=_where_vjp,
        onnx="Where",
        reference=np.where,
        samples=_where_samples,
        doc="a where c holds, else b.",
    )
)


def _clip_cotangents(g: Value, y: Value, x: Value, lo: Any, hi: Any) -> Value:
    out: Value = where(logical_and(greater_equal(x, lo), less_equal(x, hi)), g, 0.0)
    return out


clip = elementwise(
    "clip",
    lambda x, lo, hi: s.minimum(s.maximum(x, lo), hi),
    _clip_cotangents,
    lambda g, y, x, lo, hi: where(less(x, lo), g, 0.0),
    lambda g, y, x, lo, hi: where(greater(x, hi), g, 0.0),
    onnx="Clip",
    spans=((-3, 3), (-2, -1), (1, 2)),
    doc="x kept between lo and hi.",
)


def _cast_samples() -> Iterator[Sample]:
    for d in DTYPES:
        yield Sample((array((5,), float32, (0, 9)),), {"dtype": d})
        yield Sample((array((2, 3), d, (0, 9)),), {"dtype": float32})


astype = register(
    Op(
        "astype",
        lambda t, *, dtype: TensorType(t.shape, dtype),
        scalar=lambda x, *, dtype: x.cast(dtype),
        vjp=lambda g, y, x, *, dtype: (
            like(g, x) if dtype.is_float and wants_gradient(x) else None,
        ),
        onnx="Cast",
        reference=lambda x, *, dtype: x.astype(dtype.np),
        samples=_cast_samples,
        doc="The same values as another dtype.",
    )
)
copy = elementwise(
    "copy",
    lambda a: a,
    lambda g, y, a: g,
    domain="any",
    reference=np.array,
    doc="The same value in memory of its own.",
)
