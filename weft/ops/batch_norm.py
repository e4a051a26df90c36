"""Normalisation per channel of x (N, C, …): over the batch, or over groups of channels.

Ioffe and Szegedy, https://arxiv.org/abs/1502.03167; Wu and He, https://arxiv.org/abs/1803.08494.
Half types compute in float32, and so are the statistics.

Both are two sums over the elements, a few numbers per channel, and one map over the elements; so
are their gradients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ops.define import Value
from weft.ops.elementwise import rsqrt
from weft.ops.makers import composite, like, require_float
from weft.ops.movement import broadcast_to, reshape
from weft.ops.reduction import narrowed, sum as total, widened
from weft.ops.samples import Sample, array
from weft.types.dtype import float32, float64
from weft.types.size import as_float

Axes = tuple[int, ...]


def _check(place: str, x: Value, params: tuple[Value, ...]) -> None:
    require_float(place, x, *params)
    if x.type.ndim < 2:
        raise ShapeError(place, expected="an operand (N, C, …)", got=str(x.type))
    for p in params:
        if p.type.shape != x.type.shape[1:2]:
            wanted = f"one number per channel, {x.type.shape[1:2]}"
            raise ShapeError(place, expected=wanted, got=str(p.type))


# the passes over the elements: statistics meet x by broadcasting


def _channel_samples(elements: int, statistics: int, **attrs: Any) -> Any:
    """Operands (2, 3, 4, 5), then numbers per channel."""

    def make() -> Iterator[Sample]:
        for d in (float32, float64):
            xs = (array((2, 3, 4, 5), d, seed=i) for i in range(elements))
            yield Sample((*xs, *(array((3, 1, 1), d, seed=i) for i in range(statistics))), attrs)

    return make


@composite("channel_mean", samples=_channel_samples(1, 0, axes=(0, 2, 3), count=40.0))
def channel_mean(x: Value, *, axes: Axes, count: float) -> Value:
    """The mean over `axes`, which stay with size 1."""
    return total(widened(x), axes=axes, keepdims=True) / count  # type: ignore[no-any-return]


@composite("channel_variance", samples=_channel_samples(1, 1, axes=(0, 2, 3), count=40.0))
def channel_variance(x: Value, mean: Value, *, axes: Axes, count: float) -> Value:
    """The mean squared distance from `mean` over `axes`, which stay with size 1."""
    d = widened(x) - mean
    return total(d * d, axes=axes, keepdims=True) / count  # type: ignore[no-any-return]


@composite("channel_moment", samples=_channel_samples(2, 1, axes=(0, 2, 3)))
def channel_moment(g: Value, x: Value, mean: Value, *, axes: Axes) -> Value:
    """The sum of g * (x - mean) over `axes`, which stay with size 1."""
    return total(widened(g) * (widened(x) - mean), axes=axes, keepdims=True)  # type: ignore[no-any-return]


@composite("channel_total", samples=_channel_samples(1, 0, axes=(2, 3)))
def channel_total(g: Value, *, axes: Axes) -> Value:
    """The sum over `axes`, which stay with size 1."""
    return total(widened(g), axes=axes, keepdims=True)  # type: ignore[no-any-return]


@composite("channel_scale", samples=_channel_samples(1, 3))
def channel_scale(x: Value, mean: Value, scale: Value, *shift: Value) -> Value:
    """(x - mean) * scale + shift."""
    out = (widened(x) - mean) * scale
    return narrowed(out + shift[0] if shift else out, x)


@composite("channel_spread", samples=_channel_samples(2, 4))
def channel_spread(
    g: Value, x: Value, mean: Value, by_g: Value, by_x: Value, shift: Value
) -> Value:
    """by_g * g + (by_x * (x - mean) + shift)."""
    return narrowed(by_g * widened(g) + (by_x * (widened(x) - mean) + shift), x)


def _beside(p: Value, x: Value) -> Value:
    """One number per channel, shaped to meet x."""
    return reshape(widened(p), shape=(p.type.shape[0], *(1,) * (x.type.ndim - 2)))  # type: ignore[no-any-return]


# over the batch


def _axes(x: Value) -> Axes:
    """All axes but the channels'."""
    return (0, *range(2, x.type.ndim))


def _count(x: Value) -> float:
    return as_float(math.prod(x.type.shape[a] for a in _axes(x)))


def _samples() -> Iterator[Sample]:
    for shape in [(4, 3), (2, 3, 5), (2, 3, 4, 5)]:
        for n in range(3):
            params = tuple(array((3,), float32, (0.5, 2.0), seed=i) for i in range(n))
            yield Sample((array(shape, float32), *params), {"eps": 1e-5})
    wide = array((3,), float64)
    yield Sample((array((4, 3), float64), wide, wide), {"eps": 1e-5})
    yield Sample((array((4,), float32),), {"eps": 1e-5}, ShapeError)
    yield Sample((array((4, 3), float32), array((4,), float32)), {"eps": 1e-5}, ShapeError)


def _scaled_reference(x: Any, mean: Any, var: Any, params: Any, eps: float) -> Any:
    rest = (-1, *(1,) * (x.ndim - 2))
    out = (x.astype(np.float64) - mean) / np.sqrt(var + eps)
    for p, join in zip(params, (np.multiply, np.add), strict=False):
        out = join(out, p.astype(np.float64).reshape(rest))
    return out.astype(x.dtype)


def _reference(x: Any, *params: Any, eps: float) -> tuple[Any, ...]:
    axes = (0, *range(2, x.ndim))
    w = x.astype(np.float64)
    mean, var = w.mean(axes, keepdims=True)[0], w.var(axes, keepdims=True)[0]
    stats = np.float64 if x.dtype == np.float64 else np.float32
    out = _scaled_reference(x, mean, var, params, eps)
    return out, mean.reshape(-1).astype(stats), var.reshape(-1).astype(stats)


def _vjp(g: Any, y: Any, x: Value, *params: Value, eps: float) -> tuple[Any, ...]:
    """Per channel the cotangent is linear in g and in x - mean; its factors come from two sums."""
    (g_out, g_mean, g_var), (_, mean, var), n = g, y, _count(x)
    axes, middle = _axes(x), _beside(mean, x)
    r = rsqrt(var + eps)
    scale = r * widened(params[0]) if params else r
    g_sum = reshape(channel_total(g_out, axes=axes), shape=mean.type.shape)
    moment = reshape(channel_moment(g_out, x, middle, axes=axes), shape=mean.type.shape)

    def of_x() -> Value:
        by_x = g_var * (2.0 / n) - scale * (r * r) * moment / n
        shift = g_mean / n - scale * g_sum / n
        factors = (_beside(v, x) for v in (scale, by_x, shift))
        return channel_spread(g_out, x, middle, *factors)  # type: ignore[no-any-return]

    return (
        of_x,
        *(lambda p=p: like(moment * r, p) for p in params[:1]),
        *(lambda p=p: like(g_sum, p) for p in params[1:]),
    )


@composite("batch_norm", vjp=_vjp, reference=_reference, samples=_samples)
def batch_norm(x: Value, *params: Value, eps: float) -> tuple[Value, Value, Value]:
    """The normalised batch times a weight plus a bias (both optional), and the mean and the
    variance of each channel.
    """
    _check("batch_norm", x, params)
    channels, n, axes = x.type.shape[1:2], _count(x), _axes(x)
    mean = channel_mean(x, axes=axes, count=n)
    var = reshape(channel_variance(x, mean, axes=axes, count=n), shape=channels)
    mean = reshape(mean, shape=channels)
    return batch_norm_apply(x, mean, var, *params, eps=eps), mean, var


def _apply_samples() -> Iterator[Sample]:
    stats = (array((3,), float32), array((3,), float32, (0.5, 2.0)))
    for n in range(3):
        params = tuple(array((3,), float32, (0.5, 2.0), seed=i) for i in range(n))
        yield Sample((array((2, 3, 4), float32), *stats, *params), {"eps": 1e-5})


def _apply_reference(x: Any, mean: Any, var: Any, *params: Any, eps: float) -> Any:
    rest = (-1, *(1,) * (x.ndim - 2))
    return _scaled_reference(x, mean.reshape(rest), var.reshape(rest), params, eps)


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
    _check("batch_norm", x, (mean, var, *params))
    scale = rsqrt(widened(var) + eps)
    if params:
        scale = scale * widened(params[0])
    shift = (_beside(p, x) for p in params[1:])
    return channel_scale(x, _beside(mean, x), _beside(scale, x), *shift)  # type: ignore[no-any-return]


# over groups of channels


def _group_samples() -> Iterator[Sample]:
    for groups in (1, 2, 6):
        yield Sample((array((2, 6, 3, 4), float32),), {"groups": groups, "eps": 1e-5})
    params = (array((6,), float32, seed=1), array((6,), float32, seed=2))
    yield Sample((array((2, 6, 5), float32), *params), {"groups": 3, "eps": 1e-5})
    yield Sample((array((2, 6), float32), *params), {"groups": 3, "eps": 1e-5})
    yield Sample((array((2, 6, 5), float32), *params), {"groups": 4, "eps": 1e-5}, ShapeError)


def _group_reference(x: Any, *params: Any, groups: int, eps: float) -> Any:
    rows = x.astype(np.float64).reshape(x.shape[0], groups, -1)
    mean, var = rows.mean(-1, keepdims=True), rows.var(-1, keepdims=True)
    lead = (*x.shape[:2], *(1,) * (x.ndim - 2))
    m, v = (np.repeat(s, x.shape[1] // groups, 1).reshape(lead) for s in (mean, var))
    return _scaled_reference(x, m, v, params, eps)


class _Groups:
    """x (N, C, …) as (N, groups, elements), and numbers per group as (N, C, 1, …)."""

    def __init__(self, x: Value, groups: int) -> None:
        n, channels = x.type.shape[:2]
        self.x, self.groups, self.each = x, groups, channels // groups
        self.rows = (n, groups, math.prod(x.type.shape[1:]) // groups)
        self.lead = (n, channels, *(1,) * (x.type.ndim - 2))
        self.spatial = tuple(range(2, x.type.ndim))

    def per_channel(self, v: Value) -> Value:
        """One number per group, repeated for its channels."""
        n, groups = self.rows[:2]
        wide = broadcast_to(reshape(v, shape=(n, groups, 1)), shape=(n, groups, self.each))
        return reshape(wide, shape=self.lead)  # type: ignore[no-any-return]

    def per_group(self, v: Value) -> Value:
        """The sum over the channels of a group."""
        split = reshape(v, shape=(*self.rows[:2], self.each))
        return total(split, axes=(2,), keepdims=True)  # type: ignore[no-any-return]

    def statistics(self, eps: float) -> tuple[Value, Value]:
        """The mean of each group and one over its deviation."""
        rows, n = reshape(self.x, shape=self.rows), as_float(self.rows[2])
        mean = channel_mean(rows, axes=(2,), count=n)
        return mean, rsqrt(channel_variance(rows, mean, axes=(2,), count=n) + eps)


def _group_vjp(
    g: Value, y: Value, x: Value, *params: Value, groups: int, eps: float
) -> tuple[Any, ...]:
    """As for the batch, with sums per channel first and then per group."""
    s = _Groups(x, groups)
    mean, r = s.statistics(eps)
    middle, n = s.per_channel(mean), as_float(s.rows[2])
    g_sum = channel_total(g, axes=s.spatial)
    moment = channel_moment(g, x, middle, axes=s.spatial)
    weight = _beside(params[0], x) if params else None

    def of_x() -> Value:
        a, b = (v if weight is None else v * weight for v in (g_sum, moment))
        by_x = -(r * r * r) * s.per_group(b) / n
        shift = -r * s.per_group(a) / n
        by_g = s.per_channel(r) if weight is None else s.per_channel(r) * weight
        return channel_spread(g, x, middle, by_g, s.per_channel(by_x), s.per_channel(shift))  # type: ignore[no-any-return]

    def per_parameter(v: Value, p: Value) -> Value:
        flat = reshape(v, shape=s.lead[:2])
        return like(total(flat, axes=(0,), keepdims=False), p)

    return (
        of_x,
        *(lambda p=p: per_parameter(moment * s.per_channel(r), p) for p in params[:1]),
        *(lambda p=p: per_parameter(g_sum, p) for p in params[1:]),
    )


@composite("group_norm", vjp=_group_vjp, reference=_group_reference, samples=_group_samples)
def group_norm(x: Value, *params: Value, groups: int, eps: float) -> Value:
    """Groups of channels of each example brought to mean 0 and variance 1, then scaled and shifted
    per channel.
    """
    _check("group_norm", x, params)
    channels = x.type.shape[1]
    if groups < 1 or channels % groups:
        wanted = f"a number of groups that divides {channels}"
        raise ShapeError("group_norm", expected=wanted, got=str(groups))
    s = _Groups(x, groups)
    mean, r = s.statistics(eps)
    scale = s.per_channel(r)
    if params:
        scale = scale * _beside(params[0], x)
    shift = (_beside(p, x) for p in params[1:])
    return channel_scale(x, s.per_channel(mean), scale, *shift)  # type: ignore[no-any-return]
