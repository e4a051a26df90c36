"""PyTorch's words for ops that find or put elements by their place: indices, orders, windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

T = torch.Tensor
Counterpart = Callable[..., Any]


def dtype_of(d: Any) -> torch.dtype:
    return getattr(torch, d.name)  # type: ignore[no-any-return]


# indexing


def take(x: T, index: T, *, axis: int) -> T:
    return x[(*[slice(None)] * axis, index.long())]


def take_along(x: T, index: T, *, axis: int) -> T:
    return torch.take_along_dim(x, index % max(x.shape[axis], 1), axis)


def rows(f: str, last: bool = False) -> Counterpart:
    """A method with (axis, index, source). `last`: of elements for one place the last one stays,
    and PyTorch gives the others a gradient that they don't have.
    """

    def run(x: T, index: T, source: T, *, axis: int) -> T:
        index = index % max(x.shape[axis], 1)
        if last:
            source = torch.where(_stays(index, source, axis), source, source.detach())
        return getattr(x, f)(axis, index, source)  # type: ignore[no-any-return]

    return run


def _stays(index: T, source: T, axis: int) -> T:
    """Which elements no later one replaces."""
    full = index
    if index.ndim < source.ndim:
        full = index.reshape([-1 if a == axis else 1 for a in range(source.ndim)])
    lines = torch.broadcast_to(full, source.shape).movedim(axis, -1)
    later = (lines[..., :, None] == lines[..., None, :]).triu(1).any(-1)
    return ~later.movedim(-1, axis)


def on_zeros(f: Counterpart) -> Counterpart:
    def run(index: T, source: T, *, shape: tuple[int, ...], axis: int) -> T:
        return f(torch.zeros(shape, dtype=source.dtype), index, source, axis=axis)  # type: ignore[no-any-return]

    return run


def topk(x: T, *, k: int, largest: bool) -> tuple[T, T]:
    values, places = torch.sort(x, dim=-1, descending=largest, stable=True)
    return values[..., :k], places[..., :k]


def ordered(which: int) -> Counterpart:
    return lambda x, *, descending: torch.sort(x, dim=-1, descending=descending, stable=True)[which]


def running_sum(x: T, *, axis: int, dtype: Any, reverse: bool) -> T:
    if reverse:
        return torch.cumsum(x.flip(axis), axis, dtype=dtype_of(dtype)).flip(axis)
    return torch.cumsum(x, axis, dtype=dtype_of(dtype))


def places(x: T, starts: T, *, many: int) -> T:
    return torch.nonzero(x.reshape(-1))[:, 0]


def one_hot(x: T, *, size: int, dtype: Any) -> T:
    within = (x >= 0) & (x < size)
    ones = F.one_hot(torch.where(within, x.long(), 0), size)
    return torch.where(within[..., None], ones, 0).to(dtype_of(dtype))


# windows


def _framed(
    x: T, kernel: Any, stride: Any, offset: Any, sizes: Any, dilation: Any, fill: float
) -> T:
    """The tensor with as much around it as the windows reach, as (batch, channel, …)."""
    rank = len(kernel)
    pads: list[int] = []
    for n, k, s, o, m, d in zip(
        x.shape[x.ndim - rank :], kernel, stride, offset, sizes, dilation, strict=True
    ):
        pads = [o, (m - 1) * s + (k - 1) * d + 1 - n - o, *pads]
    lead = x.shape[: x.ndim - rank]
    return F.pad(x.reshape(math.prod(lead), 1, *x.shape[x.ndim - rank :]), pads, value=fill)


def window_sum(x: T, *, kernel: Any, stride: Any, offset: Any, sizes: Any) -> T:
    rank = len(kernel)
    padded = _framed(x, kernel, stride, offset, sizes, (1,) * rank, 0.0)
    pool = (F.avg_pool1d, F.avg_pool2d)[rank - 1]
    y = pool(padded, kernel, stride) * math.prod(kernel)
    return y.reshape(*x.shape[: x.ndim - rank], *sizes)


def window_spread(g: T, *, kernel: Any, stride: Any, offset: Any, sizes: Any) -> T:
    rank = len(kernel)
    x = torch.zeros(*g.shape[: g.ndim - rank], *sizes, dtype=g.dtype, requires_grad=True)
    y = window_sum(
        x, kernel=kernel, stride=stride, offset=offset, sizes=tuple(g.shape[g.ndim - rank :])
    )
    return torch.autograd.grad(y, x, g, create_graph=True)[0]


def pooled(x: T, kernel: Any, stride: Any, offset: Any, sizes: Any, dilation: Any) -> tuple[T, T]:
    rank = len(kernel)
    wide = x if x.dtype.is_floating_point else x.double()
    padded = _framed(wide, kernel, stride, offset, sizes, dilation, -math.inf)
    pool = (F.max_pool1d, F.max_pool2d)[rank - 1]
    y, found = pool(padded, kernel, stride, 0, dilation, return_indices=True)
    flat = torch.zeros_like(found)
    for axis in range(rank):
        inner = math.prod(padded.shape[axis + 3 :])
        at = found // inner % padded.shape[axis + 2] - offset[axis]
        flat = flat * x.shape[x.ndim - rank + axis] + at
    shape = (*x.shape[: x.ndim - rank], *sizes)
    return y.reshape(shape).to(x.dtype), flat.reshape(shape)
