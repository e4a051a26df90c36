"""Convolutions: cross-correlation of x (N, C, …) with filters, as PyTorch names things."""

from __future__ import annotations

from typing import Any

from weft.errors import ShapeError, WeftError, called
from weft.ops.define import Value
from weft.ops.linalg import convolution, convolution_transpose
from weft.ops.movement import reshape
from weft.ops.padding import pad as pad_op
from weft.tensor.arguments import floating, sizes
from weft.tensor.tensor import Tensor

Ints = tuple[int, ...]


def conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """x (N, C, L) or (C, L) with filters (O, C / groups, K).

    `padding` is a number of zeros at both ends, "valid" (none) or "same" (as many as keep the
    length, stride 1 only).

    >>> import weft as wf
    >>> x = wf.tensor([[[1.0, 2.0, 3.0, 4.0]]])
    >>> wf.nn.functional.conv1d(x, wf.tensor([[[1.0, 1.0]]]))
    tensor([[[3., 5., 7.]]])
    """
    return _conv("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """x (N, C, H, W) or (C, H, W) with filters (O, C / groups, KH, KW).

    `padding` is a number of zeros at all edges, one per axis, "valid" (none) or "same" (as many as
    keep the size, stride 1 only).

    >>> import weft as wf
    >>> wf.nn.functional.conv2d(wf.ones((1, 1, 3, 3)), wf.ones((1, 1, 2, 2)), padding=1).shape
    (1, 1, 4, 4)
    """
    return _conv("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of conv1d: x (N, C, L) or (C, L) with filters (C, O / groups, K).

    >>> import weft as wf
    >>> x = wf.tensor([[[1.0, 2.0]]])
    >>> wf.nn.functional.conv_transpose1d(x, wf.tensor([[[1.0, 10.0]]]), stride=2)
    tensor([[[ 1., 10.,  2., 20.]]])
    """
    return _transposed(
        "conv_transpose1d",
        1,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of conv2d: x (N, C, H, W) or (C, H, W) with filters (C, O / groups, KH, KW).

    >>> import weft as wf
    >>> x, w = wf.ones((1, 1, 2, 2)), wf.ones((1, 3, 2, 2))
    >>> wf.nn.functional.conv_transpose2d(x, w, stride=2).shape
    (1, 3, 4, 4)
    """
    return _transposed(
        "conv_transpose2d",
        2,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


def per_axis(place: str, name: str, given: Any, axes: int, least: int) -> Ints:
    """An integer, or one per axis, as a tuple."""
    out = sizes(given, f"{place} {name}")
    if len(out) == 1:
        out *= axes
    if len(out) != axes or min(out) < least or max(out) > 2**61:
        raise ShapeError(
            place, expected=f"{name}: an integer or {axes}, of {least} or more", got=repr(given)
        )
    return out


def _batched(place: str, spatial: int, input: Any, weight: Any) -> tuple[Value, Value, bool]:
    x, w = floating(input, place), floating(weight, place)
    if x.type.ndim not in (spatial + 1, spatial + 2) or w.type.ndim != spatial + 2:
        raise ShapeError(
            place,
            expected=f"input of {spatial + 2} axes (or {spatial + 1}), weight of {spatial + 2}",
            got=f"{x.type} and {w.type}",
        )
    alone = x.type.ndim == spatial + 1
    return reshape(x, shape=(1, *x.type.shape)) if alone else x, w, alone


def _finished(place: str, out: Tensor, bias: Any, alone: bool) -> Tensor:
    if bias is not None:
        b = floating(bias, place)
        if b.type.shape != out.type.shape[1:2]:
            raise ShapeError(
                place, expected=f"a bias of shape {out.type.shape[1:2]}", got=str(b.type)
            )
        out = out + reshape(b, shape=(b.type.size, *(1,) * (out.type.ndim - 2)))
    return reshape(out, shape=out.type.shape[1:]) if alone else out


def _conv(
    place: str,
    spatial: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
) -> Tensor:
    x, w, alone = _batched(place, spatial, input, weight)
    steps, apart = (
        per_axis(place, "stride", stride, spatial, 1),
        per_axis(place, "dilation", dilation, spatial, 1),
    )
    (count,) = per_axis(place, "groups", groups, 1, 1)
    if isinstance(padding, str) and padding == "same":
        if any(s != 1 for s in steps):
            raise ShapeError(place, expected="stride 1 with padding 'same'", got=str(stride))
        whole = [d * (k - 1) for d, k in zip(apart, w.type.shape[2:], strict=True)]
        zeros = tuple(n // 2 for n in whole)
        if any(n % 2 for n in whole):  # the odd zero goes behind
            behind = tuple((0, n % 2) for n in whole)
            x = pad_op(x, 0, widths=((0, 0), (0, 0), *behind))
    elif isinstance(padding, str) and padding == "valid":
        zeros = (0,) * spatial
    elif isinstance(padding, str):
        raise ShapeError(place, expected="padding 'same', 'valid' or integers", got=repr(padding))
    else:
        zeros = per_axis(place, "padding", padding, spatial, 0)
    try:
        out = convolution(x, w, stride=steps, padding=zeros, dilation=apart, groups=count)
    except WeftError as e:
        raise called(e, place) from None
    return _finished(place, out, bias, alone)


def _transposed(
    place: str,
    spatial: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Any,
    dilation: Any,
) -> Tensor:
    x, w, alone = _batched(place, spatial, input, weight)
    steps, apart = (
        per_axis(place, "stride", stride, spatial, 1),
        per_axis(place, "dilation", dilation, spatial, 1),
    )
    zeros = per_axis(place, "padding", padding, spatial, 0)
    more = per_axis(place, "output_padding", output_padding, spatial, 0)
    (count,) = per_axis(place, "groups", groups, 1, 1)
    if any(m >= max(s, d) for m, s, d in zip(more, steps, apart, strict=True)):
        raise ShapeError(
            place, expected="output_padding below stride or dilation", got=repr(output_padding)
        )
    try:
        out = convolution_transpose(
            x, w, stride=steps, padding=zeros, output_padding=more, dilation=apart, groups=count
        )
    except WeftError as e:
        raise called(e, place) from None
    return _finished(place, out, bias, alone)
