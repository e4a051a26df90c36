"""Images and sequences of another size: between elements, or from channels to pixels."""

from __future__ import annotations

import math
from typing import Any

from weft.errors import DTypeError, ShapeError
from weft.ops.reduction import narrowed, widened
from weft.tensor.arguments import flag, floating, integer, number, word
from weft.tensor.creation import arange
from weft.tensor.dtypes import astype
from weft.tensor.elementwise import clip, floor, minimum
from weft.tensor.selection import take
from weft.tensor.tensor import Tensor
from weft.types.dtype import float32, int64

#: axes of (N, C, …) that a mode is for
_MODES = {"nearest": (1, 2), "linear": (1,), "bilinear": (2,)}


def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """x (N, C, L) or (N, C, H, W) at another size, or at its own times a factor.

    Modes are "nearest", and "linear" or "bilinear", which go evenly from element to element. New
    elements lie between the borders of x; with `align_corners`, from its first element to its last.

    >>> import weft as wf
    >>> x = wf.tensor([[[1.0, 3.0]]])
    >>> wf.nn.functional.interpolate(x, scale_factor=2)
    tensor([[[1., 1., 3., 3.]]])
    >>> wf.nn.functional.interpolate(x, size=3, mode="linear", align_corners=True)
    tensor([[[1., 2., 3.]]])
    """
    place = "interpolate"
    word(mode, place, tuple(_MODES))
    x: Any = floating(input, place)
    spatial = x.type.ndim - 2
    if spatial not in _MODES[mode]:
        expected = " or ".join(str(n + 2) for n in _MODES[mode]) + f" axes for mode {mode!r}"
        raise ShapeError(place, expected=expected, got=str(x.type))
    if mode == "nearest" and align_corners is not None:
        expected = "align_corners with a mode that is linear"
        raise ShapeError(place, expected=expected, got="mode 'nearest'")
    corners = align_corners is not None and flag(align_corners, f"{place} align_corners")
    sizes, ratios = _sizes(x.shape[2:], size, scale_factor)
    if mode != "nearest":
        out: Any = narrowed(_between(widened(x), sizes, ratios, corners), x)
        return out
    for axis, (new, ratio) in enumerate(zip(sizes, ratios, strict=True), 2):
        near = floor(astype(arange(new), float32) * ratio)
        x = take(x, minimum(astype(near, int64), x.shape[axis] - 1), axis=axis)
    return x


def _sizes(old: Any, size: Any, factor: Any) -> tuple[list[int], list[float]]:
    """The new sizes, and how many old elements go into a new one."""
    place = "interpolate"
    if (size is None) == (factor is None):
        got = "neither" if size is None else "both"
        raise ShapeError(place, expected="a size or a scale_factor", got=got)
    given = size if factor is None else factor
    each = list(given) if isinstance(given, tuple | list) else [given] * len(old)
    if len(each) != len(old):
        raise ShapeError(place, expected=f"{len(old)} numbers", got=str(given))
    if factor is None:
        new = [integer(n, f"{place} size") for n in each]
        ratios = [n / m for n, m in zip(old, new, strict=True) if m > 0]
    else:
        factors = [number(f, place, "a scale_factor", least=0) for f in each]
        # a whole multiple of a size that a program leaves open is as open
        whole = [int(f) if f == math.floor(f) else None for f in factors]
        new = [
            math.floor(n * f) if times is None else n * times
            for n, f, times in zip(old, factors, whole, strict=True)
        ]
        ratios = [1.0 / f for f in factors if f > 0]
    if min(new) < 1:
        raise ShapeError(place, expected="sizes of 1 or more", got=str(new))
    return new, ratios


def _between(x: Any, sizes: list[int], ratios: list[float], corners: bool) -> Any:
    """Weighted means of neighbours, along the last axis first."""
    for axis in reversed(range(2, x.ndim)):
        new, last = sizes[axis - 2], x.shape[axis] - 1
        at = astype(arange(new), x.dtype)
        if corners:
            at = at * (last / max(new - 1, 1))
        else:
            at = clip((at + 0.5) * ratios[axis - 2] - 0.5, 0.0, None)
        low = minimum(astype(floor(at), int64), last)
        part = (at - low).reshape(*(new if a == axis else 1 for a in range(x.ndim)))
        high = minimum(low + 1, last)
        x = take(x, low, axis=axis) * (1.0 - part) + take(x, high, axis=axis) * part
    return x


def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """x (…, C r², H, W) as (…, C, H r, W r): channels become pixels.

    >>> import weft as wf
    >>> wf.nn.functional.pixel_shuffle(wf.arange(4.0).reshape(1, 4, 1, 1), 2)
    tensor([[[[0., 1.],
              [2., 3.]]]])
    """
    x, r = _image(input, "pixel_shuffle"), _factor(upscale_factor, "pixel_shuffle")
    *lead, c, h, w = x.shape
    if c % (r * r):
        expected = f"a multiple of {r * r} channels"
        raise ShapeError("pixel_shuffle", expected=expected, got=str(x.type))
    n = len(lead)
    x = x.reshape(*lead, c // (r * r), r, r, h, w)
    x = x.permute_dims(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return x.reshape(*lead, c // (r * r), h * r, w * r)


def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    """x (…, C, H r, W r) as (…, C r², H, W): what `pixel_shuffle` undoes.

    >>> import weft as wf
    >>> wf.nn.functional.pixel_unshuffle(wf.ones((1, 3, 4, 6)), 2).shape
    (1, 12, 2, 3)
    """
    x, r = _image(input, "pixel_unshuffle"), _factor(downscale_factor, "pixel_unshuffle")
    *lead, c, h, w = x.shape
    if h % r or w % r:
        expected = f"a height and a width that {r} divides"
        raise ShapeError("pixel_unshuffle", expected=expected, got=str(x.type))
    n = len(lead)
    x = x.reshape(*lead, c, h // r, r, w // r, r)
    x = x.permute_dims(*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return x.reshape(*lead, c * r * r, h // r, w // r)


def _image(input: Any, place: str) -> Any:
    if not hasattr(input, "type"):
        raise DTypeError(place, expected="a tensor", got=type(input).__name__)
    if input.ndim < 3:
        raise ShapeError(place, expected="(…, C, H, W)", got=str(input.type))
    return input


def _factor(n: Any, place: str) -> int:
    out = integer(n, f"{place} factor")
    if out < 1:
        raise ShapeError(place, expected="a factor of 1 or more", got=str(out))
    return out
