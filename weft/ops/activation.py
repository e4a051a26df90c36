"""Activation functions beyond those that are plain mathematics.

Parameters (a slope, a bound) are operands, so a new value compiles nothing. Gradients of more than
a step or two are composites, so that they run as one kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.ops import math as m, scalar as s
from weft.ops.define import Value
from weft.ops.elementwise import abs as absolute, less, real, sigmoid, sign, softplus, tanh, where
from weft.ops.makers import composite
from weft.ops.reduction import narrowed, widened
from weft.ops.samples import Sample, array
from weft.ops.scalar import Scalar
from weft.types.dtype import DTYPES

_GAP = math.sqrt(2 / math.pi)
_CUBE = 0.044715
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


def _together(count: int, *numbers: float) -> Any:
    """Samples of `count` operands of one shape, and Python numbers behind them."""

    def make() -> Iterator[Sample]:
        for d in DTYPES:
            if d.is_float:
                yield Sample((*(array((3, 37), d, seed=i) for i in range(count)), *numbers))

    return make


_pair_samples = _together(2)


leaky_relu = real(
    "leaky_relu",
    lambda a, slope: s.select(a > 0, a, a * slope),
    lambda g, y, a, slope: where(a > 0.0, g, g * slope),
    lambda g, y, a, slope: where(a > 0.0, 0.0, g * a),
    reference=lambda a, slope: np.where(a > 0, a, a * slope),
    doc="x where it is positive, else slope * x.",
)


@composite("elu_grad", samples=_together(3, 0.75))
def elu_grad(g: Value, y: Value, a: Value, alpha: Any) -> Value:
    """The cotangent of elu: alpha * exp(a) is y + alpha where a is negative."""
    return where(a > 0.0, g, g * (y + alpha))  # type: ignore[no-any-return]


elu = real(
    "elu",
    lambda a, alpha: s.select(a > 0, a, alpha * m.expm1(a)),
    lambda g, y, a, alpha: elu_grad(g, y, a, alpha),
    lambda g, y, a, alpha: where(a > 0.0, 0.0, g * (y / alpha)),
    reference=lambda a, alpha: np.where(a > 0, a, alpha * np.expm1(a)),
    spans=((-3, 3), (0.5, 2)),
    doc="x where it is positive, else alpha * (exp(x) - 1).",
)


@composite("celu_grad", samples=_together(3, 0.75))
def celu_grad(g: Value, y: Value, a: Value, alpha: Any) -> Value:
    """The cotangent of celu: exp(a / alpha) is y / alpha + 1 where a is negative."""
    return where(a > 0.0, g, g * (y / alpha + 1.0))  # type: ignore[no-any-return]


celu = real(
    "celu",
    lambda a, alpha: s.select(a > 0, a, alpha * m.expm1(a / alpha)),
    lambda g, y, a, alpha: celu_grad(g, y, a, alpha),
    lambda g, y, a, alpha: where(a > 0.0, 0.0, g * (y / alpha - (y / alpha + 1.0) * (a / alpha))),
    reference=lambda a, alpha: np.where(a > 0, a, alpha * np.expm1(a / alpha)),
    spans=((-3, 3), (0.5, 2)),
    doc="x where it is positive, else alpha * (exp(x / alpha) - 1).",
)


@composite("selu_grad", samples=_together(3))
def selu_grad(g: Value, y: Value, a: Value) -> Value:
    """The cotangent of selu."""
    return where(a > 0.0, g * _SELU_SCALE, g * (y + _SELU_SCALE * _SELU_ALPHA))  # type: ignore[no-any-return]


selu = real(
    "selu",
    lambda a: _SELU_SCALE * s.select(a > 0, a, _SELU_ALPHA * m.expm1(a)),
    lambda g, y, a: selu_grad(g, y, a),
    onnx="Selu",
    reference=lambda a: _SELU_SCALE * np.where(a > 0, a, _SELU_ALPHA * np.expm1(a)),
    doc="elu, scaled so that activations keep mean 0 and variance 1.",
)


def _gelu_tanh(a: Scalar) -> Scalar:
    return (0.5 * a) * (m.tanh((a + (a * a * a) * _CUBE) * _GAP) + 1.0)


@composite("gelu_tanh_grad", samples=_pair_samples)
def gelu_tanh_grad(g: Value, a: Value) -> Value:
    """The cotangent of gelu_tanh."""
    v, w = widened(g), widened(a)
    t = tanh((w + w * w * w * _CUBE) * _GAP)
    slope = (1.0 - t * t) * (w * w * (3.0 * _CUBE) + 1.0) * _GAP
    return narrowed(v * (0.5 * (t + 1.0) + 0.5 * w * slope), a)


gelu_tanh = real(
    "gelu_tanh",
    _gelu_tanh,
    lambda g, y, a: gelu_tanh_grad(g, a),
    reference=lambda x: 0.5 * x * (1 + np.tanh(_GAP * (x + _CUBE * x**3))),
    doc="gelu with the normal distribution function approximated by tanh.",
)


@composite("mish_grad", samples=_pair_samples)
def mish_grad(g: Value, a: Value) -> Value:
    """The cotangent of mish."""
    v, w = widened(g), widened(a)
    t = tanh(softplus(w))
    return narrowed(v * (t + w * (1.0 - t * t) * sigmoid(w)), a)


mish = real(
    "mish",
    lambda a: a * m.tanh(m.softplus(a)),
    lambda g, y, a: mish_grad(g, a),
    reference=lambda x: x * np.tanh(np.logaddexp(x, 0)),
    doc="x * tanh(softplus(x)).",
)


@composite("hardswish_grad", samples=_pair_samples)
def hardswish_grad(g: Value, a: Value) -> Value:
    """The cotangent of hardswish."""
    return where(a <= -3.0, 0.0, where(a >= 3.0, g, g * (a / 3.0 + 0.5)))  # type: ignore[no-any-return]


hardswish = real(
    "hardswish",
    lambda a: a * s.minimum(s.maximum(a + 3.0, 0.0), 6.0) / 6.0,
    lambda g, y, a: hardswish_grad(g, a),
    onnx="HardSwish",
    reference=lambda x: x * np.clip(x + 3, 0, 6) / 6,
    spans=((-2.9, 2.9),),
    doc="x * clip(x + 3, 0, 6) / 6.",
)
hardsigmoid = real(
    "hardsigmoid",
    lambda a: s.minimum(s.maximum(a + 3.0, 0.0), 6.0) / 6.0,
    lambda g, y, a: where(less(absolute(a), 3.0), g / 6.0, 0.0),
    reference=lambda x: np.clip(x + 3, 0, 6) / 6,
    spans=((-2.9, 2.9),),
    doc="clip(x + 3, 0, 6) / 6.",
)


@composite("softsign_grad", samples=_pair_samples)
def softsign_grad(g: Value, a: Value) -> Value:
    """The cotangent of softsign."""
    d = absolute(a) + 1.0
    return g / (d * d)  # type: ignore[no-any-return]


softsign = real(
    "softsign",
    lambda a: a / (abs(a) + 1.0),
    lambda g, y, a: softsign_grad(g, a),
    onnx="Softsign",
    reference=lambda x: x / (1 + np.abs(x)),
    doc="x / (1 + |x|).",
)
tanhshrink = real(
    "tanhshrink",
    lambda a: a - m.tanh(a),
    lambda g, y, a: g * (p := tanh(a)) * p,
    reference=lambda x: x - np.tanh(x),
    doc="x - tanh(x).",
)
softshrink = real(
    "softshrink",
    lambda a, lambd: s.select(
        (a >= -lambd) & (a <= lambd), a.like(0.0), s.select(a > lambd, a - lambd, a + lambd)
    ),
    lambda g, y, a, lambd: where(less(absolute(a), lambd), 0.0, g),
    lambda g, y, a, lambd: g * -sign(y),
    reference=lambda a, lambd: np.sign(a) * np.maximum(np.abs(a) - lambd, 0),
    spans=((-3, 3), (0.2, 0.8)),
    doc="x moved towards zero by lambd.",
)
hardshrink = real(
    "hardshrink",
    lambda a, lambd: s.select((a >= -lambd) & (a <= lambd), a.like(0.0), a),
    lambda g, y, a, lambd: where(absolute(a) <= lambd, 0.0, g),
    None,
    reference=lambda a, lambd: np.where(np.abs(a) <= lambd, 0, a),
    spans=((-3, 3), (0.2, 0.8)),
    doc="x where it is further from zero than lambd, else 0.",
)
threshold = real(
    "threshold",
    lambda a, bound, other: s.select(a > bound, a, other),
    lambda g, y, a, bound, other: where(a > bound, g, 0.0),
    None,
    lambda g, y, a, bound, other: where(a > bound, 0.0, g),
    reference=lambda a, bound, other: np.where(a > bound, a, other),
    doc="x where it is above a bound, else another value.",
)
softplus_scaled = real(
    "softplus_scaled",
    lambda a, beta, bound: s.select(a * beta > bound, a, m.softplus(a * beta) / beta),
    lambda g, y, a, beta, bound: where(a * beta > bound, g, g * sigmoid(a * beta)),
    lambda g, y, a, beta, bound: where(
        a * beta > bound, 0.0, g * (a * sigmoid(a * beta) - y) / beta
    ),
    None,
    reference=lambda a, beta, bound: np.where(
        a * beta > bound, a, np.logaddexp(a * beta, 0) / beta
    ),
    spans=((-3, 3), (0.5, 2), (20, 30)),
    doc="softplus(beta * x) / beta, and x where beta * x is above a bound.",
)


@composite("gated_grad", samples=_together(3))
def gated_grad(g: Value, a: Value, b: Value) -> Value:
    """The cotangent of the gate: g * a * sigmoid(b) * (1 - sigmoid(b))."""
    p = sigmoid(widened(b))
    return narrowed(widened(g) * widened(a) * (p * (1.0 - p)), b)


gated = real(
    "gated",
    lambda a, b: a * m.sigmoid(b),
    lambda g, y, a, b: g * sigmoid(b),
    lambda g, y, a, b: gated_grad(g, a, b),
    reference=lambda a, b: a / (1 + np.exp(-b)),
    doc="a * sigmoid(b).",
)
