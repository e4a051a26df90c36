"""Batch normalisation: every channel of x (N, C, …) brought to mean 0 and variance 1 over the
batch.

Ioffe and Szegedy, https://arxiv.org/abs/1502.03167. Half types compute in float32; the statistics
are float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ops.define import Value
from weft.ops.elementwise import rsqrt
from weft.ops.makers import composite, like
from weft.ops.normalization import check_channels, per_channel
from weft.ops.reduction import narrowed, sum as total, widened
from weft.ops.samples import Sample, array
from weft.types.dtype import float32, float64


def _axes(x: Value) -> tuple[int, ...]:
    """All axes but the channels'."""
    return (0, *range(2, x.type.ndim))


def _count(x: Value) -> float:
    return float(math.prod(x.type.shape[a] for a in _axes(x)))  # type: ignore[misc]


def _samples() -> Iterator[Sample]:
    for shape in [(4, 3), (2, 3, 5), (2, 3, 4, 5)]:
        for n in range(3):
            params = tuple(array((3,), float32, (0.5, 2.0), seed=i) for i in range(n))
            yield Sample((array(shape, float32), *params), {"eps": 1e-5})
    yield Sample(
        (array((4, 3), float64), array((3,), float64), array((3,), float64)), {"eps": 1e-5}
    )
    yield Sample((array((4,), float32),), {"eps": 1e-5}, ShapeError)
    yield Sample((array((4, 3), float32), array((4,), float32)), {"eps": 1e-5}, ShapeError)


def _reference(x: Any, *params: Any, eps: float) -> tuple[Any, ...]:
    axes = (0, *range(2, x.ndim))
    w = x.astype(np.float64)
    mean, var = w.mean(axes), w.var(axes)
    rest = (-1, *(1,) * (x.ndim - 2))
    out = (w - mean.reshape(rest)) / np.sqrt(var.reshape(rest) + eps)
    for p, join in zip(params, (np.multiply, np.add), strict=False):
        out = join(out, p.astype(np.float64).reshape(rest))
    stats = np.float64 if x.dtype == np.float64 else np.float32
    return out.astype(x.dtype), mean.astype(stats), var.astype(stats)


@composite("batch_norm_moment")
def batch_norm_moment(g: Value, x: Value, mean: Value) -> Value:
    """Per channel, the sum of g * (x - mean)."""
    return total(widened(g) * (widened(x) - per_channel(mean, x)), axes=_axes(x), keepdims=False)  # type: ignore[no-any-return]


@composite("batch_norm_spread")
def batch_norm_spread(
    g: Value, x: Value, mean: Value, by_g: Value, by_x: Value, shift: Value
) -> Value:
    """by_g * g + by_x * (x - mean) + shift, the factors being one number per channel."""
    d = widened(x) - per_channel(mean, x)
    return narrowed(
        per_channel(by_g, x) * widened(g) + (per_channel(by_x, x) * d + per_channel(shift, x)), x
    )


def _vjp(g: Any, y: Any, x: Value, *params: Value, eps: float) -> tuple[Any, ...]:
    """Per channel the cotangent is linear in g and in x - mean; its factors come from two sums over
    the batch.
    """
    (g_out, g_mean, g_var), (_, mean, var), n = g, y, _count(x)
    r = rsqrt(var + eps)
    scale = r * widened(params[0]) if params else r
    g_sum = total(widened(g_out), axes=_axes(x), keepdims=False)
    moment = batch_norm_moment(g_out, x, mean)

    def of_x() -> Value:
        by_x = g_var * (2.0 / n) - scale * (r * r) * moment / n
        return batch_norm_spread(g_out, x, mean, scale, by_x, g_mean / n - scale * g_sum / n)  # type: ignore[no-any-return]

    return (
        of_x,
        *(lambda p=p: like(moment * r, p) for p in params[:1]),
        *(lambda p=p: like(g_sum, p) for p in params[1:]),
    )


@composite("batch_norm", vjp=_vjp, reference=_reference, samples=_samples)
def batch_norm(x: Value, *params: Value, eps: float) -> tuple[Value, Value, Value]:
    """The normalised batch times a weight plus a bias (both optional), the mean, and the variance
    of each channel.
    """
    check_channels("batch_norm", x, params)
    w, n = widened(x), _count(x)
    mean = total(w, axes=_axes(x), keepdims=False) / n
    d = w - per_channel(mean, x)
    var = total(d * d, axes=_axes(x), keepdims=False) / n
    return narrowed(_scaled(d, var, params, eps), x), mean, var


def _scaled(d: Value, var: Value, params: tuple[Value, ...], eps: float) -> Value:
    scale = rsqrt(var + eps)
    out = d * per_channel(scale * widened(params[0]) if params else scale, d)
    return out + per_channel(params[1], d) if params[1:] else out


def _apply_samples() -> Iterator[Sample]:
    stats = (array((3,), float32), array((3,), float32, (0.5, 2.0)))
    for n in range(3):
        params = tuple(array((3,), float32, (0.5, 2.0), seed=i) for i in range(n))
        yield Sample((array((2, 3, 4), float32), *stats, *params), {"eps": 1e-5})


def _apply_reference(x: Any, mean: Any, var: Any, *params: Any, eps: float) -> Any:
    rest = (-1, *(1,) * (x.ndim - 2))
    out = (x.astype(np.float64) - mean.reshape(rest)) / np.sqrt(var.reshape(rest) + eps)
    for p, join in zip(params, (np.multiply, np.add), strict=False):
        out = join(out, p.reshape(rest))
    return out.astype(x.dtype)


@composite(
    "batch_norm_apply",
    reference=_apply_reference,
    samples=_apply_samples,
    onnx="BatchNormalization",
)
def batch_norm_apply(x: Value, mean: Value, var: Value, *params: Value, eps: float) -> Value:
    """Channels moved by a given mean and scaled by a given variance, then by a weight and a bias
    (both optional).
    """
    check_channels("batch_norm", x, (mean, var, *params))
    d = widened(x) - per_channel(mean, x)
    return narrowed(_scaled(d, widened(var), params, eps), x)
