"""Normalisation over the last axis, over channels, over groups: composites, one kernel each where a
row fits one.

Half types compute in float32 throughout and round once. Gradients read the operand again instead of
keeping statistics: a row that is being worked on is in the nearest cache anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ops.define import Value
from weft.ops.elementwise import equal, exp, isfinite, log, rsqrt, where
from weft.ops.makers import composite, like, require_float
from weft.ops.movement import reshape
from weft.ops.reduction import (
    folded_shape,
    max as largest,
    narrowed,
    restore,
    sum as total,
    widened,
)
from weft.ops.samples import Sample, array
from weft.types.dtype import DTYPES, float32, float64, int32
from weft.types.size import as_float

Axes = tuple[int, ...]


# softmax


def _axis_samples() -> Iterator[Sample]:
    for shape, axis in [
        ((3, 5), 1),
        ((3, 70), 1),
        ((4, 3, 5), 1),
        ((5, 3), 0),
        ((2, 1), 1),
        ((0, 3), 1),
    ]:
        yield Sample((array(shape, float32),), {"axis": axis})
    for d in DTYPES:
        if d.is_float:
            yield Sample((array((3, 17), d),), {"axis": 1})
    yield Sample((array((3, 5), int32),), {"axis": 1}, DTypeError)


def _softmax_reference(x: Any, *, axis: int) -> Any:
    w = x.astype(np.float64)
    e = np.exp(w - w.max(axis, keepdims=True, initial=-np.inf))
    return (e / e.sum(axis, keepdims=True)).astype(x.dtype)


def _grad_samples() -> Iterator[Sample]:
    for s in _axis_samples():
        if s.error is None:
            y = _softmax_reference(s.args[0], **s.attrs)
            yield Sample((array(y.shape, float64, seed=1).astype(y.dtype), y), s.attrs)


@composite("softmax_grad", samples=_grad_samples)
def softmax_grad(g: Value, y: Value, *, axis: int) -> Value:
    """The cotangent of softmax: y * (g - sum(g * y))."""
    v, w = widened(g), widened(y)
    return narrowed(w * (v - total(v * w, axes=(axis,), keepdims=True)), y)


@composite(
    "softmax",
    vjp=lambda g, y, x, *, axis: (lambda: softmax_grad(g, y, axis=axis),),
    onnx="Softmax",
    reference=_softmax_reference,
    samples=_axis_samples,
)
def softmax(x: Value, *, axis: int) -> Value:
    """exp(x - max) / sum(exp(x - max)) along an axis."""
    require_float("softmax", x)
    w = widened(x)
    e = exp(w - _top(w, axis))
    return narrowed(e / total(e, axes=(axis,), keepdims=True), x)


def _top(x: Value, axis: int) -> Value:
    """The largest element along an axis; of an axis without elements there is nothing to
    subtract.
    """
    if x.type.shape[axis] == 0:
        return total(x, axes=(axis,), keepdims=True)  # type: ignore[no-any-return]
    return largest(x, axes=(axis,), keepdims=True)  # type: ignore[no-any-return]


@composite("log_softmax_grad", samples=_grad_samples)
def log_softmax_grad(g: Value, y: Value, *, axis: int) -> Value:
    """The cotangent of log_softmax: g - exp(y) * sum(g)."""
    v, w = widened(g), widened(y)
    return narrowed(v - exp(w) * total(v, axes=(axis,), keepdims=True), y)


@composite(
    "log_softmax",
    vjp=lambda g, y, x, *, axis: (lambda: log_softmax_grad(g, y, axis=axis),),
    onnx="LogSoftmax",
    samples=_axis_samples,
    reference=lambda x, *, axis: np.log(_softmax_reference(x.astype("f8"), axis=axis)).astype(
        x.dtype
    ),
)
def log_softmax(x: Value, *, axis: int) -> Value:
    """The logarithm of softmax, exact where softmax is small."""
    require_float("log_softmax", x)
    w = widened(x)
    d = w - _top(w, axis)
    return narrowed(d - log(total(exp(d), axes=(axis,), keepdims=True)), x)


def _axes_samples() -> Iterator[Sample]:
    for axes in [(0,), (1,), (2,), (0, 2), (0, 1, 2)]:
        yield Sample((array((3, 4, 17), float32),), {"axes": axes, "keepdims": len(axes) == 1})
    for d in DTYPES:
        if d.is_float:
            yield Sample((array((3, 17), d),), {"axes": (1,), "keepdims": False})


def _logsumexp_reference(x: Any, *, axes: Axes, keepdims: bool) -> Any:
    w = x.astype(np.float64)
    return np.log(np.exp(w).sum(axes, keepdims=keepdims)).astype(x.dtype)


def _logsumexp_grad_samples() -> Iterator[Sample]:
    for axes, kept in [((1,), (3, 17)), ((2,), (3, 4)), ((0, 2), (4,))]:
        y = array(kept, float32, (3.0, 9.0))
        yield Sample((array(kept, float32, seed=1), y, array((3, 4, 17), float32)), {"axes": axes})
    y = array((3,), float32, (3.0, 9.0))
    yield Sample((array((3,), float32, seed=1), y, array((3, 5), float32)), {"axes": (1,)})


@composite("logsumexp_grad", samples=_logsumexp_grad_samples)
def logsumexp_grad(g: Value, y: Value, x: Value, *, axes: Axes) -> Value:
    """The cotangent of logsumexp: g * exp(x - y), with g and y spread over the axes again."""
    v, w = widened(restore(g, x, axes)), widened(restore(y, x, axes))
    share = where(equal(w, -math.inf), 0.0, w)  # of nothing but -inf, no element has a share
    return narrowed(v * exp(widened(x) - share), x)


@composite(
    "logsumexp",
    samples=_axes_samples,
    reference=_logsumexp_reference,
    onnx="ReduceLogSumExp",
    vjp=lambda g, y, x, *, axes, keepdims: (lambda: logsumexp_grad(g, y, x, axes=axes),),
)
def logsumexp(x: Value, *, axes: Axes, keepdims: bool) -> Value:
    """log(sum(exp(x))) without overflow on the way."""
    require_float("logsumexp", x)
    w = widened(x)
    if math.prod(x.type.shape[a] for a in axes) == 0:
        return narrowed(log(total(exp(w), axes=axes, keepdims=keepdims)), x)
    top = largest(w, axes=axes, keepdims=True)
    top = where(isfinite(top), top, 0.0)
    out = log(total(exp(w - top), axes=axes, keepdims=True)) + top
    return narrowed(reshape(out, shape=folded_shape(x.type.shape, axes, keepdims)), x)


# normalisation over the last axis


def _row_samples() -> Iterator[Sample]:
    for shape in [(3, 5), (3, 70), (2, 3, 33), (4, 1), (0, 3)]:
        n = shape[-1:]
        yield Sample((array(shape, float32),), {"eps": 1e-5})
        yield Sample((array(shape, float32), array(n, float32, seed=1)), {"eps": 1e-5})
        yield Sample(
            (array(shape, float32), array(n, float32, seed=1), array(n, float32, seed=2)),
            {"eps": 1e-3},
        )
    for d in DTYPES:
        if d.is_float:
            yield Sample(
                (array((3, 17), d), array((17,), d), array((17,), d, seed=1)), {"eps": 1e-5}
            )
    yield Sample((array((3, 5), float32), array((4,), float32)), {"eps": 1e-5}, ShapeError)
    yield Sample((array((3, 5), int32),), {"eps": 1e-5}, DTypeError)


def _layer_norm_reference(x: Any, *params: Any, eps: float) -> Any:
    w = x.astype(np.float64)
    d = w - w.mean(-1, keepdims=True)
    out = d / np.sqrt((d * d).mean(-1, keepdims=True) + eps)
    for p, join in zip(params, (np.multiply, np.add), strict=False):
        out = join(out, p.astype(np.float64))
    return out.astype(x.dtype)


def _check_row(place: str, x: Value, params: tuple[Value, ...]) -> None:
    require_float(place, x, *params)
    if not x.type.ndim:
        raise ShapeError(place, expected="at least one axis", got=str(x.type))
    for p in params:
        if p.type.shape != x.type.shape[-1:]:
            raise ShapeError(
                place, expected=f"parameters of shape {x.type.shape[-1:]}", got=str(p.type)
            )


def _count(x: Value) -> float:
    return as_float(x.type.shape[-1])


def _row_sum(x: Value) -> Value:
    return total(x, axes=(x.type.ndim - 1,), keepdims=True)  # type: ignore[no-any-return]


def _centred(x: Value, eps: float) -> tuple[Value, Value]:
    """A row's distance from its mean, and one over its standard deviation."""
    n = _count(x)
    d = x - _row_sum(x) / n
    return d, rsqrt(_row_sum(d * d) / n + eps)


def _row_grad_samples(operands: int) -> Any:
    """A cotangent in front of the first operands of a row's samples."""

    def make() -> Iterator[Sample]:
        for s in _row_samples():
            if s.error is None and len(s.args) <= operands:
                g = array(s.args[0].shape, float64, seed=7).astype(s.args[0].dtype)
                yield Sample((g, *s.args), s.attrs)

    return make


def _moment_samples(statistics: int) -> Any:
    def make() -> Iterator[Sample]:
        for shape in [(3, 5), (2, 3, 33), (70, 4)]:
            g, x = array(shape, float32), array(shape, float32, seed=1)
            rows = (array((*shape[:-1], 1), float32, seed=i) for i in range(statistics))
            yield Sample((g, x, *rows))

    return make


@composite("layer_norm_grad", samples=_row_grad_samples(2))
def layer_norm_grad(g: Value, x: Value, *weight: Value, eps: float) -> Value:
    """The cotangent of layer_norm's operand: r * (h - mean(h) - z * mean(h * z)), h = g * weight, z
    = the normalised row.
    """
    n, h = _count(x), widened(g)
    if weight:
        h = h * widened(weight[0])
    d, r = _centred(widened(x), eps)
    z = d * r
    return narrowed(r * (h - _row_sum(h) / n - z * (_row_sum(h * z) / n)), x)


@composite(
    "row_statistics",
    samples=lambda: (s for s in _row_samples() if len(s.args) == 1 and not s.error),
)
def row_statistics(x: Value, *, eps: float) -> tuple[Value, Value]:
    """Of every row, its mean and one over its standard deviation."""
    w, n = widened(x), _count(x)
    mean = _row_sum(w) / n
    d = w - mean
    return mean, rsqrt(_row_sum(d * d) / n + eps)


@composite("scaled_moment", samples=_moment_samples(2))
def scaled_moment(g: Value, x: Value, mean: Value, scale: Value) -> Value:
    """The sum of g * ((x - mean) * scale) over all axes but the last."""
    terms = widened(g) * ((widened(x) - mean) * scale)
    return narrowed(total(terms, axes=tuple(range(x.type.ndim - 1)), keepdims=False), x)


@composite("layer_norm_weight_grad", samples=_row_grad_samples(1))
def layer_norm_weight_grad(g: Value, x: Value, *, eps: float) -> Value:
    """The cotangent of layer_norm's weight: g times the normalised row, summed over the rows."""
    return scaled_moment(g, x, *row_statistics(x, eps=eps))  # type: ignore[no-any-return]


def _layer_norm_vjp(g: Value, y: Value, x: Value, *params: Value, eps: float) -> tuple[Any, ...]:
    return (
        lambda: layer_norm_grad(g, x, *params[:1], eps=eps),
        *(lambda p=p: like(layer_norm_weight_grad(g, x, eps=eps), p) for p in params[:1]),
        *(lambda p=p: like(g, p) for p in params[1:]),
    )


@composite(
    "layer_norm",
    vjp=_layer_norm_vjp,
    reference=_layer_norm_reference,
    samples=_row_samples,
    onnx="LayerNormalization",
)
def layer_norm(x: Value, *params: Value, eps: float) -> Value:
    """Rows of mean 0 and variance 1, times a weight, plus a bias (both optional)."""
    _check_row("layer_norm", x, params)
    d, r = _centred(widened(x), eps)
    out = d * r
    if params:
        out = out * widened(params[0])
    if params[1:]:
        out = out + widened(params[1])
    return narrowed(out, x)


def _rms_samples() -> Iterator[Sample]:
    return (s for s in _row_samples() if len(s.args) < 3)


def _rms_reference(x: Any, *weight: Any, eps: float) -> Any:
    w = x.astype(np.float64)
    out = w / np.sqrt((w * w).mean(-1, keepdims=True) + eps)
    return (out * weight[0].astype(np.float64) if weight else out).astype(x.dtype)


def _root(x: Value, eps: float) -> Value:
    return rsqrt(_row_sum(x * x) / _count(x) + eps)  # type: ignore[no-any-return]


@composite("rms_norm_grad", samples=_row_grad_samples(2))
def rms_norm_grad(g: Value, x: Value, *weight: Value, eps: float) -> Value:
    """The cotangent of rms_norm's operand: r * (h - z * mean(h * z)), h = g * weight, z = the
    normalised row.
    """
    h, w = widened(g), widened(x)
    if weight:
        h = h * widened(weight[0])
    r = _root(w, eps)
    z = w * r
    return narrowed(r * (h - z * (_row_sum(h * z) / _count(x))), x)


@composite(
    "row_root", samples=lambda: (s for s in _row_samples() if len(s.args) == 1 and not s.error)
)
def row_root(x: Value, *, eps: float) -> Value:
    """Of every row, one over the root of its mean square."""
    return _root(widened(x), eps)


@composite("rescaled_sum", samples=_moment_samples(1))
def rescaled_sum(g: Value, x: Value, scale: Value) -> Value:
    """The sum of g * (x * scale) over all axes but the last."""
    terms = widened(g) * (widened(x) * scale)
    return narrowed(total(terms, axes=tuple(range(x.type.ndim - 1)), keepdims=False), x)


@composite("rms_norm_weight_grad", samples=_row_grad_samples(1))
def rms_norm_weight_grad(g: Value, x: Value, *, eps: float) -> Value:
    """The cotangent of rms_norm's weight: g times the normalised row, summed over the rows."""
    return rescaled_sum(g, x, row_root(x, eps=eps))  # type: ignore[no-any-return]


def _rms_norm_vjp(g: Value, y: Value, x: Value, *weight: Value, eps: float) -> tuple[Any, ...]:
    return (
        lambda: rms_norm_grad(g, x, *weight, eps=eps),
        *(lambda p=p: like(rms_norm_weight_grad(g, x, eps=eps), p) for p in weight),
    )


@composite("rms_norm", vjp=_rms_norm_vjp, reference=_rms_reference, samples=_rms_samples)
def rms_norm(x: Value, *weight: Value, eps: float) -> Value:
    """Rows divided by the root of their mean square, times a weight (optional)."""
    _check_row("rms_norm", x, weight)
    w = widened(x)
    out = w * _root(w, eps)
    return narrowed(out * widened(weight[0]) if weight else out, x)
