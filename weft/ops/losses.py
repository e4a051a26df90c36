"""Loss functions as composites: differences and their reduction in one node, in float32 for the
half types.

`reduction` is "none", "mean" or "sum".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import DTypeError, IndexRangeError, ShapeError
from weft.ops.creation import arange
from weft.ops.define import Value
from weft.ops.elementwise import (
    abs as absolute,
    astype,
    clip,
    equal,
    exp,
    log,
    log1p,
    maximum,
    softplus,
    where,
)
from weft.ops.makers import composite, like, require_float
from weft.ops.movement import reshape
from weft.ops.reduction import max as largest, narrowed, sum as total, widened
from weft.ops.samples import Sample, array
from weft.ops.scatter import take_along_axis
from weft.types.dtype import DTYPES, float32, int32
from weft.types.size import as_float

REDUCTIONS = ("none", "mean", "sum")


def _pair(place: str, x: Value, t: Value) -> tuple[Value, Value]:
    require_float(place, x, t)
    return widened(x), widened(t)


def reduced(loss: Value, x: Value, reduction: str) -> Value:
    """The loss of every element, their mean or their sum, in the dtype of x."""
    if reduction == "none":
        return narrowed(loss, x)
    out = total(loss, axes=tuple(range(loss.type.ndim)), keepdims=False)
    return narrowed(out / as_float(loss.type.size) if reduction == "mean" else out, x)


def _reduced_reference(loss: Any, x: Any, reduction: str) -> Any:
    with np.errstate(invalid="ignore"):
        out = (
            loss
            if reduction == "none"
            else loss.sum()
            if reduction == "sum"
            else loss.sum() / loss.size
        )
    return np.asarray(out).astype(x.dtype)


def _samples(span: tuple[float, float] = (-3.0, 3.0), **attrs: Any) -> Any:
    def make() -> Iterator[Sample]:
        for r in REDUCTIONS:
            for shape in [(3, 5), (37,), ()]:
                args = (array(shape, float32, span), array(shape, float32, span, seed=1))
                yield Sample(args, attrs | {"reduction": r})
            yield Sample(
                (array((3, 4), float32, span), array((4,), float32, span)), attrs | {"reduction": r}
            )
        for d in DTYPES:
            if d.is_float:
                yield Sample(
                    (array((3, 5), d, span), array((3, 5), d, span, seed=1)),
                    attrs | {"reduction": "mean"},
                )
        yield Sample(
            (array((3, 5), float32), array((3, 4), float32)),
            attrs | {"reduction": "mean"},
            ShapeError,
        )

    return make


@composite(
    "mse_loss",
    samples=_samples(),
    reference=lambda x, t, *, reduction: _reduced_reference(
        (x.astype("f8") - t) ** 2, x, reduction
    ),
)
def mse_loss(x: Value, t: Value, *, reduction: str) -> Value:
    """(x - t)²."""
    v, w = _pair("mse_loss", x, t)
    d = v - w
    return reduced(d * d, x, reduction)


@composite(
    "l1_loss",
    samples=_samples(),
    reference=lambda x, t, *, reduction: _reduced_reference(
        np.abs(x.astype("f8") - t), x, reduction
    ),
)
def l1_loss(x: Value, t: Value, *, reduction: str) -> Value:
    """|x - t|."""
    v, w = _pair("l1_loss", x, t)
    return reduced(absolute(v - w), x, reduction)


def _huber_reference(x: Any, t: Any, *, delta: float, reduction: str) -> Any:
    d = np.abs(x.astype("f8") - t)
    return _reduced_reference(
        np.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta)), x, reduction
    )


@composite("huber_loss", samples=_samples(delta=0.75), reference=_huber_reference)
def huber_loss(x: Value, t: Value, *, delta: float, reduction: str) -> Value:
    """Half the squared distance up to delta, linear beyond."""
    v, w = _pair("huber_loss", x, t)
    d = absolute(v - w)
    return reduced(where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta)), x, reduction)


def _smooth_reference(x: Any, t: Any, *, beta: float, reduction: str) -> Any:
    d = np.abs(x.astype("f8") - t)
    return _reduced_reference(np.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta), x, reduction)


@composite("smooth_l1_loss", samples=_samples(beta=0.75), reference=_smooth_reference)
def smooth_l1_loss(x: Value, t: Value, *, beta: float, reduction: str) -> Value:
    """The distance, rounded off below beta."""
    v, w = _pair("smooth_l1_loss", x, t)
    d = absolute(v - w)
    return reduced(where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta), x, reduction)


# two classes

#: what a logarithm counts at least, so that a wrong certainty costs a finite loss
_FLOOR = -100.0


def _certainty(x: Value, t: Value) -> Value:
    one, other = clip(log(x), _FLOOR, math.inf), clip(log1p(-x), _FLOOR, math.inf)
    return (t - 1.0) * other - t * one  # type: ignore[no-any-return]


def _bce_reference(x: Any, t: Any, *weight: Any, reduction: str) -> Any:
    p, q = x.astype("f8"), t.astype("f8")
    loss = -(q * np.maximum(np.log(p), _FLOOR) + (1 - q) * np.maximum(np.log1p(-p), _FLOOR))
    return _reduced_reference(loss * weight[0] if weight else loss, x, reduction)


def _probability_samples() -> Iterator[Sample]:
    for shape in [(3, 5), (37,)]:
        parts = (array(shape, float32, (0.05, 0.95), seed=i) for i in range(3))
        yield Sample(tuple(parts))


@composite("binary_cross_entropy_grad", samples=_probability_samples)
def binary_cross_entropy_grad(g: Value, x: Value, t: Value) -> Value:
    """The cotangent of the probability: g * (x - t) / (x * (1 - x)), the divisor kept from zero."""
    v, p, q = widened(g), widened(x), widened(t)
    return narrowed(v * (p - q) / maximum(p * (1.0 - p), 1e-12), x)


@composite("binary_cross_entropy_target_grad", samples=_probability_samples)
def binary_cross_entropy_target_grad(g: Value, x: Value, t: Value) -> Value:
    """The cotangent of the target: g * (log(1 - x) - log(x))."""
    p = widened(x)
    d = clip(log1p(-p), _FLOOR, math.inf) - clip(log(p), _FLOOR, math.inf)
    return narrowed(widened(g) * d, t)


@composite(
    "binary_cross_entropy",
    samples=lambda: (
        Sample(s.args, {}, s.error)
        for s in _samples((0.05, 0.95))()
        if s.attrs["reduction"] == "mean"
    ),
    reference=lambda x, t: _bce_reference(x, t, reduction="none"),
    vjp=lambda g, y, x, t: (
        lambda: like(binary_cross_entropy_grad(g, x, t), x),
        lambda: like(binary_cross_entropy_target_grad(g, x, t), t),
    ),
)
def binary_cross_entropy(x: Value, t: Value) -> Value:
    """-(t * log(x) + (1 - t) * log(1 - x)) of every element, logarithms kept above -100."""
    v, w = _pair("binary_cross_entropy", x, t)
    return narrowed(_certainty(v, w), x)


def _logits_reference(x: Any, t: Any, *positive: Any) -> Any:
    v, q = x.astype("f8"), t.astype("f8")
    p = positive[0].astype("f8") if positive else 1.0
    return ((1 - q) * v + (1 + (p - 1) * q) * np.logaddexp(-v, 0)).astype(x.dtype)


def _logits_samples() -> Iterator[Sample]:
    for s in _samples()():
        if s.attrs["reduction"] == "mean":
            yield Sample(s.args, {}, s.error)
    yield Sample(
        (array((3, 5), float32), array((3, 5), float32, (0, 1)), array((5,), float32, (0.5, 3.0)))
    )


@composite("binary_cross_entropy_with_logits", samples=_logits_samples, reference=_logits_reference)
def binary_cross_entropy_with_logits(x: Value, t: Value, *positive: Value) -> Value:
    """binary_cross_entropy of sigmoid(x) for every element, without overflow; `positive` weighs the
    class 1.
    """
    v, w = _pair("binary_cross_entropy_with_logits", x, t)
    tail = softplus(-v)
    if positive:
        tail = tail * (w * (widened(positive[0]) - 1.0) + 1.0)
    return narrowed((1.0 - w) * v + tail, x)


def _kl_reference(x: Any, t: Any, *, log_target: bool) -> Any:
    v, w = x.astype("f8"), t.astype("f8")
    return (np.exp(w) * (w - v) if log_target else w * (np.log(w) - v)).astype(x.dtype)


def _kl_samples() -> Iterator[Sample]:
    for s in _samples((0.1, 1.0))():
        if s.attrs["reduction"] == "mean":
            yield Sample(s.args, {"log_target": False}, s.error)
            yield Sample(s.args, {"log_target": True}, s.error)


@composite("kl_div", samples=_kl_samples, reference=_kl_reference)
def kl_div(x: Value, t: Value, *, log_target: bool) -> Value:
    """t * (log(t) - x) of every element, x being a logarithm; 0 where t is 0."""
    v, w = _pair("kl_div", x, t)
    if log_target:
        return narrowed(exp(w) * (w - v), x)
    some = w > 0.0
    return narrowed(where(some, w * (log(where(some, w, 1.0)) - v), 0.0), x)


# many classes: rows of logits


def _logit_samples() -> Iterator[Sample]:
    for n, c in [(3, 5), (4, 70), (1, 1), (0, 3)]:
        target = (np.arange(n) * 7 + 1) % c
        yield Sample((array((n, c), float32), target))
    for d in DTYPES:
        if d.is_float:
            yield Sample((array((3, 5), d), np.array([0, 4, 2])))
    yield Sample((array((3, 5), float32), np.array([0, 4])), error=ShapeError)
    yield Sample((array((3, 5), float32), np.array([0, 4, 5])), error=IndexRangeError)


def _cross_entropy_reference(x: Any, t: Any) -> Any:
    w = x.astype("f8")
    top = w.max(-1, keepdims=True, initial=-np.inf)
    rows = np.log(np.exp(w - top).sum(-1)) + top[..., 0]
    return (rows - np.take_along_axis(w, t[:, None], 1)[:, 0]).astype(x.dtype)


def _class_grad_samples() -> Iterator[Sample]:
    for s in _logit_samples():
        if s.error is None and s.args[0].size:
            x, t = s.args
            g = array(t.shape, float32, seed=5).astype(x.dtype)
            yield Sample((g, x, t, np.arange(x.shape[1], dtype=np.int32)))


@composite("cross_entropy_grad", samples=_class_grad_samples)
def cross_entropy_grad(g: Value, x: Value, t: Value, classes: Value) -> Value:
    """The cotangent of the logits: g * (softmax(x) - 1 at the target). `classes` counts 0 … C -
    1.
    """
    n = x.type.shape[0]
    v, w = reshape(widened(g), shape=(n, 1)), widened(x)
    e = exp(w - largest(w, axes=(1,), keepdims=True))
    y = e / total(e, axes=(1,), keepdims=True)
    hit = equal(classes, reshape(astype(t, dtype=int32), shape=(n, 1)))
    return narrowed(v * where(hit, y - 1.0, y), x)


@composite(
    "log_partition", samples=lambda: (Sample(s.args[:1]) for s in _logit_samples() if not s.error)
)
def log_partition(x: Value) -> tuple[Value, Value]:
    """Of every row, its largest element and the logarithm of the sum of exp(x - largest)."""
    w, n = widened(x), x.type.shape[0]
    top = largest(w, axes=(1,), keepdims=True)
    rest = log(total(exp(w - top), axes=(1,), keepdims=False))
    return reshape(top, shape=(n,)), rest


def _cross_entropy_vjp(g: Value, y: Value, x: Value, t: Value) -> tuple[Any, ...]:
    classes = arange(0, 1, size=x.type.shape[1], dtype=int32)
    return (lambda: cross_entropy_grad(g, x, t, classes)), None


@composite(
    "cross_entropy",
    samples=_logit_samples,
    reference=_cross_entropy_reference,
    vjp=_cross_entropy_vjp,
)
def cross_entropy(x: Value, t: Value) -> Value:
    """-log(softmax(x)) at the target, for every row of x (N, C)."""
    n = x.type.shape[0] if x.type.ndim else 0
    if x.type.ndim != 2 or t.type.shape != (n,):
        raise ShapeError(
            "cross_entropy", expected="logits (N, C) and targets (N,)", got=f"{x.type} and {t.type}"
        )
    if not x.type.dtype.is_float or not t.type.dtype.is_int:
        raise DTypeError(
            "cross_entropy",
            expected="floating logits and integer targets",
            got=f"{x.type} and {t.type}",
        )
    top, rest = log_partition(x)
    picked = reshape(take_along_axis(x, reshape(t, shape=(n, 1)), axis=1), shape=(n,))
    return narrowed(rest - (widened(picked) - top), x)
