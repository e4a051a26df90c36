"""Pooling: windows over the last axes of x (N, C, …) or (C, …), as PyTorch names things."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from weft.errors import AllocationError, ShapeError
from weft.nn.functional.convolution import per_axis
from weft.ops import pooling as ops
from weft.ops.define import Value, installed, standard_mode
from weft.ops.indexing import take
from weft.ops.movement import reshape
from weft.ops.reduction import mean, narrowed, sum as total_of, widened
from weft.ops.scatter import take_along_axis
from weft.tensor.arguments import flag, floating, number, value
from weft.tensor.statistics import argmax
from weft.tensor.tensor import Tensor

Ints = tuple[int, ...]


def max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window along the last axis; with `return_indices` also where it
    is.

    >>> import weft as wf
    >>> wf.nn.functional.max_pool1d(wf.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    tensor([[3., 4.]])
    """
    return _max_pool(
        "max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window over the last two axes; with `return_indices` also where
    it is.

    >>> import weft as wf
    >>> wf.nn.functional.max_pool2d(wf.tensor([[[1.0, 3.0], [2.0, 4.0]]]), 2)
    tensor([[[4.]]])
    """
    return _max_pool(
        "max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def avg_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window along the last axis. Zeros beyond the edges count unless
    `count_include_pad` is False.

    >>> import weft as wf
    >>> wf.nn.functional.avg_pool1d(wf.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    tensor([[2., 3.]])
    """
    return _avg_pool(
        "avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None
    )


def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window over the last two axes. Zeros beyond the edges count unless
    `count_include_pad` is False.

    >>> import weft as wf
    >>> wf.nn.functional.avg_pool2d(wf.tensor([[[1.0, 3.0], [2.0, 4.0]]]), 2)
    tensor([[[2.5]]])
    """
    return _avg_pool(
        "avg_pool2d",
        2,
        input,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
    )


def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """The means of `output_size` windows of nearly equal length.

    >>> import weft as wf
    >>> wf.nn.functional.adaptive_avg_pool1d(wf.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    tensor([[2., 3.]])
    """
    return _adaptive("adaptive_avg_pool1d", 1, input, output_size)


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """The means of windows of nearly equal size, `output_size` of them; None leaves an axis as it
    is.

    >>> import weft as wf
    >>> wf.nn.functional.adaptive_avg_pool2d(wf.tensor([[[1.0, 3.0], [2.0, 4.0]]]), (1, 2))
    tensor([[[1.5, 3.5]]])
    """
    return _adaptive("adaptive_avg_pool2d", 2, input, output_size)


def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of `output_size` windows of nearly equal length.

    >>> import weft as wf
    >>> wf.nn.functional.adaptive_max_pool1d(wf.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    tensor([[3., 4.]])
    """
    return _adaptive_max("adaptive_max_pool1d", 1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of windows of nearly equal size, `output_size` of them.

    >>> import weft as wf
    >>> wf.nn.functional.adaptive_max_pool2d(wf.tensor([[[1.0, 3.0], [2.0, 4.0]]]), 1)
    tensor([[[4.]]])
    """
    return _adaptive_max("adaptive_max_pool2d", 2, input, output_size, return_indices)


class _Windows:
    """What the arguments of a pooling function say, checked."""

    def __init__(
        self,
        place: str,
        spatial: int,
        input: Any,
        kernel: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        ceil: Any,
    ) -> None:
        self.place, self.x = place, value(input)
        if self.x.type.ndim not in (spatial + 1, spatial + 2):
            raise ShapeError(
                place,
                expected=f"{spatial + 2} axes ({spatial + 1} without a batch)",
                got=str(self.x.type),
            )
        self.shape: Ints = self.x.type.shape[-spatial:]  # type: ignore[assignment]
        self.kernel = per_axis(place, "kernel_size", kernel, spatial, 1)
        empty = stride is None or (isinstance(stride, (tuple, list)) and not stride)
        self.stride = self.kernel if empty else per_axis(place, "stride", stride, spatial, 1)
        self.padding = per_axis(place, "padding", padding, spatial, 0)
        self.dilation = per_axis(place, "dilation", dilation, spatial, 1)
        if any(2 * p > k for p, k in zip(self.padding, self.kernel, strict=True)):
            raise ShapeError(
                place, expected="padding of at most half the kernel size", got=str(padding)
            )
        up = flag(ceil, f"{place} ceil_mode")
        axes = zip(self.shape, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        self.sizes = tuple(_places(*axis, up) for axis in axes)
        if min(self.sizes) < 1:
            raise ShapeError(
                place, expected="windows no larger than the padded input", got=str(self.x.type)
            )
        said = (self.shape, self.kernel, self.stride, self.padding, self.dilation, self.sizes)
        inside = [_inside(*axis) for axis in zip(*said, strict=True)]
        self.taps, self.offset = zip(*inside, strict=True)

    @property
    def attrs(self) -> dict[str, Any]:
        return {
            "kernel": self.taps,
            "stride": self.stride,
            "offset": self.offset,
            "sizes": self.sizes,
        }

    @property
    def small(self) -> bool:
        return math.prod(self.taps) <= ops.TAPS

    def counts(self, include: bool) -> Any:
        """How many elements each window has: a number where all have as many, else an array."""
        each = []
        for n, k, s, p, m in zip(
            self.shape, self.kernel, self.stride, self.padding, self.sizes, strict=True
        ):
            first = np.arange(m) * s - p
            last = np.minimum(first + k, n + p)
            each.append(last - first if include else np.minimum(last, n) - np.maximum(first, 0))
        whole = reduce(np.multiply.outer, each)
        return float(whole.flat[0]) if np.all(whole == whole.flat[0]) else whole.astype(np.float32)


def _places(n: int, k: int, stride: int, pad: int, dilation: int, up: bool) -> int:
    """How many windows fit, none if it is less than 1: with `up` the last may stick out, be it the
    first, but must begin inside.
    """
    room = n + 2 * pad - dilation * (k - 1) - 1
    count = -(-room // stride) + 1 if up else room // stride + 1
    return count - 1 if up and (count - 1) * stride >= n + pad else count


def _inside(n: int, k: int, stride: int, pad: int, dilation: int, m: int) -> tuple[int, int]:
    """The window without taps that lie beyond the edges wherever it is: its size and its offset.
    Padding by any number of zeros costs nothing that way.
    """
    first = max(0, -((m - 1) * stride - pad) // dilation)
    last = min(k - 1, (n + pad - 1) // dilation)
    return max(last - first + 1, 1), pad - first * dilation


def _max_pool(
    place: str,
    spatial: int,
    input: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: Any,
    indices: Any,
) -> Any:
    w = _Windows(place, spatial, input, kernel, stride, padding, dilation, ceil)
    attrs = w.attrs | {"dilation": w.dilation}
    out = (ops.window_max if w.small else ops.large_window_max)(w.x, **attrs)
    if not flag(indices, f"{place} return_indices"):
        return out
    return out, ops.window_argmax(w.x, **attrs) if w.small else ops.large_window_argmax(
        w.x, **attrs
    )[1]


def _avg_pool(
    place: str,
    spatial: int,
    input: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil: Any,
    include: Any,
    divisor: Any,
) -> Tensor:
    w = _Windows(place, spatial, floating(input, place), kernel, stride, padding, 1, ceil)
    by = (
        w.counts(flag(include, f"{place} count_include_pad"))
        if divisor is None
        else number(divisor, place, "divisor_override")
    )
    if isinstance(by, float) and by == 0:
        raise ShapeError(place, expected="a divisor other than 0", got=str(divisor))
    x = widened(w.x)
    total = (ops.window_sum if w.small else ops.large_window_sum)(x, **w.attrs)
    out: Any = narrowed(total / (by if isinstance(by, float) else installed.lift(by)), w.x)
    return out


def _targets(place: str, spatial: int, input: Any, output_size: Any) -> tuple[Value, Ints, Ints]:
    x = value(input)
    if x.type.ndim not in (spatial + 1, spatial + 2):
        raise ShapeError(
            place, expected=f"{spatial + 2} axes ({spatial + 1} without a batch)", got=str(x.type)
        )
    shape: Ints = x.type.shape[-spatial:]  # type: ignore[assignment]
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * spatial
    if len(given) != spatial:
        raise ShapeError(
            place, expected=f"output_size: an integer or {spatial}", got=repr(output_size)
        )
    if 0 in shape:
        raise ShapeError(place, expected="at least one element to pool", got=str(x.type))
    filled = tuple(n if m is None else m for n, m in zip(shape, given, strict=True))
    return x, shape, per_axis(place, "output_size", filled, spatial, 1)


def _adaptive(place: str, spatial: int, input: Any, output_size: Any) -> Tensor:
    x, shape, want = _targets(place, spatial, floating(input, place), output_size)
    lead = x.type.ndim - spatial
    if all(m == 1 for m in want):
        return mean(x, axes=tuple(range(lead, x.type.ndim)), keepdims=True)
    if all(n % m == 0 for n, m in zip(shape, want, strict=True)):
        kernel = tuple(n // m for n, m in zip(shape, want, strict=True))
        return _avg_pool(place, spatial, x, kernel, None, 0, False, True, None)
    means = widened(x)
    for axis, (n, m) in enumerate(zip(shape, want, strict=True)):
        means = _uneven_means(means, lead + axis, n, m) if n != m else means
    out: Any = narrowed(means, x)
    return out


def _uneven(n: int, m: int) -> tuple[Any, Any]:
    """Window i of m over n elements is [i n / m, (i + 1) n / m), its ends rounded outwards: places,
    and which are in it.
    """
    try:
        first = np.arange(m) * n // m
        last = -(-(np.arange(m) + 1) * n // m)
        places = first[:, None] + np.arange((last - first).max())
        return np.minimum(places, n - 1), places < last[:, None]
    except (MemoryError, ValueError):
        raise AllocationError(
            "adaptive pooling", expected="fewer windows", got=f"{m:,} of them"
        ) from None


def _uneven_means(x: Value, axis: int, n: int, m: int) -> Tensor:
    places, inside = _uneven(n, m)
    with standard_mode():
        weights = (inside / inside.sum(1, keepdims=True)).astype(x.type.dtype.np)
    rest = (1,) * (x.type.ndim - axis - 1)
    each = take(x, installed.lift(places), axis=axis)
    factors = installed.lift(weights.reshape(*weights.shape, *rest))
    return total_of(each * factors, axes=(axis + 1,), keepdims=False)


def _adaptive_max(place: str, spatial: int, input: Any, output_size: Any, indices: Any) -> Any:
    x, shape, want = _targets(place, spatial, input, output_size)
    if (
        all(n % m == 0 for n, m in zip(shape, want, strict=True))
        and math.prod(shape) // math.prod(want) <= ops.TAPS
    ):
        kernel = tuple(n // m for n, m in zip(shape, want, strict=True))
        return _max_pool(place, spatial, x, kernel, None, 0, 1, False, indices)
    lead = x.type.shape[: x.type.ndim - spatial]
    planes = reshape(x, shape=(*lead, math.prod(shape)))
    where_, inside = np.zeros((1, 1), np.int64), np.ones((1, 1), bool)
    for n, m in zip(shape, want, strict=True):
        places, ok = _uneven(n, m)
        where_ = (where_[:, None, :, None] * n + places[None, :, None, :]).reshape(
            len(where_) * m, -1
        )
        inside = (inside[:, None, :, None] & ok[None, :, None, :]).reshape(len(where_), -1)
    first = where_[np.arange(len(where_)), inside.argmax(1)]
    where_ = np.where(
        inside, where_, first[:, None]
    )  # places outside repeat one inside: they change nothing
    each = take(planes, installed.lift(where_), axis=len(lead))
    local = argmax(each.detach(), axis=-1, keepdims=True)
    found = installed.lift(np.broadcast_to(where_, each.type.shape))
    found = reshape(take_along_axis(found, local, axis=len(lead) + 1), shape=(*lead, len(where_)))
    out = reshape(take_along_axis(planes, found, axis=len(lead)), shape=(*lead, *want))
    return (out, reshape(found, shape=(*lead, *want))) if flag(indices, place) else out
