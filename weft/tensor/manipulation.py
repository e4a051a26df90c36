"""Functions that join, cut, repeat and rearrange tensors."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.buffer import Buffer
from weft.errors import AllocationError, DTypeError, ShapeError
from weft.ops import joining as ops, padding
from weft.ops.define import Op, Value, installed
from weft.ops.elementwise import astype, not_equal, subtract
from weft.ops.indexing import take
from weft.ops.movement import broadcast_to, permute_dims, reshape, slice_
from weft.tensor.arguments import integer, sizes, value
from weft.tensor.elsewhere import no_keyword, says_keywords
from weft.types import normalize_axes, normalize_axis, result_dtype
from weft.types.dtype import bool_

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

as_value = value  # where an argument has its name
__all__ = [
    "chunk",
    "concat",
    "diag",
    "diagonal",
    "diff",
    "flip",
    "repeat",
    "roll",
    "split",
    "stack",
    "tile",
]


def _values(arrays: Any, place: str) -> list[Tensor]:
    """Operands of one dtype."""
    if not isinstance(arrays, Iterable) or isinstance(arrays, (Value, np.ndarray, str)):
        raise DTypeError(place, expected="a sequence of tensors", got=type(arrays).__name__)
    xs = [value(x) for x in arrays]
    if not xs:
        raise ShapeError(place, expected="at least one tensor", got="none")
    dtype = xs[0].type.dtype
    if any(x.type.dtype is not dtype for x in xs):
        dtype = result_dtype(*(x.type.dtype for x in xs))
        xs = [x if x.type.dtype is dtype else astype(x, dtype=dtype) for x in xs]
    return xs


def concat(arrays: Any, /, axis: int | None = 0, dim: None = None) -> Tensor:
    """Tensors one behind the other along an axis; with axis None, flattened first.

    >>> import weft as wf
    >>> wf.concat([wf.tensor([1, 2]), wf.tensor([3])])
    tensor([1, 2, 3])
    """
    if dim is not None:
        raise no_keyword("concat", dim=dim)
    plan = _found(ops.concat, arrays, axis)
    if plan is not None:
        return installed.launch(plan, *arrays)
    xs = _values(arrays, "concat")
    if axis is None:
        xs, meant = [reshape(x, shape=(x.type.size,)) for x in xs], 0
    else:
        meant = normalize_axis(axis, xs[0].type.ndim, "concat")
    out = ops.concat(*xs, axis=meant)
    _remember(ops.concat, arrays, xs, axis, meant)
    return out


def _found(op: Op, arrays: Any, axis: Any) -> Any:
    """The plan of a call on a list or tuple of tensors, if one was made for these arguments."""
    if arrays.__class__ is not list and arrays.__class__ is not tuple:
        return None
    try:
        return op.plans.get((*[x.data.layout for x in arrays], axis, axis.__class__))
    except (AttributeError, TypeError):
        return None


def _remember(op: Op, arrays: Any, xs: Sequence[Value], axis: Any, meant: int) -> None:
    if axis.__class__ is int and all(map(operator.is_, arrays, xs)):
        layouts = [x.data.layout if isinstance(x.data, Buffer) else None for x in xs]
        plan = op.plans.get((*layouts, meant))
        if plan is not None:
            op.plans[*layouts, axis, int] = plan


def stack(arrays: Any, /, axis: int = 0, dim: None = None) -> Tensor:
    """Tensors of one shape along a new axis.

    >>> import weft as wf
    >>> wf.stack([wf.tensor([1, 2]), wf.tensor([3, 4])], axis=1)
    tensor([[1, 3],
            [2, 4]])
    """
    if dim is not None:
        raise no_keyword("stack", dim=dim)
    plan = _found(ops.stack, arrays, axis)
    if plan is not None:
        return installed.launch(plan, *arrays)
    xs = _values(arrays, "stack")
    meant = normalize_axis(axis, xs[0].type.ndim + 1, "stack")
    out = ops.stack(*xs, axis=meant)
    _remember(ops.stack, arrays, xs, axis, meant)
    return out


@says_keywords
def split(x: Any, split_size_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Pieces along an axis: each of one size (the last may be smaller), or of the sizes given. No
    element is copied.

    >>> import weft as wf
    >>> wf.split(wf.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    v = value(x)
    shape: Any = v.type.shape
    a = normalize_axis(axis, len(shape), "split")
    n = shape[a]
    if hasattr(split_size_or_sections, "__index__"):
        size = integer(split_size_or_sections, "split")
        if size < 1:
            raise ShapeError("split", expected="pieces of at least 1", got=str(size))
        parts = [min(size, n - i) for i in range(0, n, size)] or [0]
    else:
        parts = list(sizes(split_size_or_sections, "split"))
        if sum(parts) != n or any(p < 0 for p in parts):
            raise ShapeError(
                "split", expected=f"sizes that add up to {n}, axis {a}'s", got=str(tuple(parts))
            )
    out, at, steps = [], 0, (1,) * len(shape)
    for p in parts:
        starts = tuple(at if k == a else 0 for k in range(len(shape)))
        out.append(slice_(v, starts=starts, sizes=(*shape[:a], p, *shape[a + 1 :]), steps=steps))
        at += p
    return tuple(out)


@says_keywords
def chunk(x: Any, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` pieces of equal size (the last may be smaller) along an axis.

    >>> import weft as wf
    >>> wf.chunk(wf.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    v = value(x)
    count = integer(chunks, "chunk")
    if count < 1:
        raise ShapeError("chunk", expected="at least 1 piece", got=str(count))
    n: Any = v.type.shape[normalize_axis(axis, v.type.ndim, "chunk")]
    return split(v, max(1, -(-n // count)), axis)


@says_keywords
def flip(x: Any, /, axis: Any = None) -> Tensor:
    """The elements in reverse order along some axes, or all. No element is copied.

    >>> import weft as wf
    >>> wf.flip(wf.tensor([1, 2, 3]))
    tensor([3, 2, 1])
    """
    v = value(x)
    shape: Any = v.type.shape
    axes = normalize_axes(axis, len(shape), "flip")
    starts = tuple(max(n - 1, 0) if a in axes else 0 for a, n in enumerate(shape))
    return slice_(
        v,
        starts=starts,
        sizes=shape,
        steps=tuple(-1 if a in axes else 1 for a in range(len(shape))),
    )


@says_keywords
def roll(x: Any, /, shift: Any, axis: Any = None) -> Tensor:
    """Elements moved along axes, those that leave coming in at the other end; with axis None along
    the flattened tensor.

    >>> import weft as wf
    >>> wf.roll(wf.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    v = value(x)
    shape: Any = v.type.shape
    if axis is None:
        by = integer(shift, "roll")
        flat = reshape(v, shape=(v.type.size,))
        return reshape(ops.roll(flat, shifts=(by % max(v.type.size, 1),)), shape=shape)
    shifts, axes = sizes(shift, "roll"), sizes(axis, "roll")
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(shifts) != len(axes):
        raise ShapeError("roll", expected="as many shifts as axes", got=f"{shift} and {axis}")
    total = [0] * len(shape)
    for by, a in zip(shifts, axes, strict=True):
        total[normalize_axis(a, len(shape), "roll")] += by
    return ops.roll(v, shifts=tuple(by % max(n, 1) for by, n in zip(total, shape, strict=True)))


def tile(x: Any, repetitions: Any, /) -> Tensor:
    """The whole tensor repeated along each axis.

    >>> import weft as wf
    >>> wf.tile(wf.tensor([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    v, times = value(x), sizes(repetitions, "tile")
    if any(t < 0 for t in times):
        raise ShapeError("tile", expected="repetitions of 0 or more", got=str(times))
    ndim = max(v.type.ndim, len(times))
    shape: Any = (1,) * (ndim - v.type.ndim) + v.type.shape
    times = (1,) * (ndim - len(times)) + times
    apart = tuple(n for pair in zip((1,) * ndim, shape, strict=True) for n in pair)
    spread = tuple(n for pair in zip(times, shape, strict=True) for n in pair)
    out = broadcast_to(reshape(v, shape=apart), shape=spread)
    return reshape(out, shape=tuple(t * n for t, n in zip(times, shape, strict=True)))


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element repeated: all as often, or each as often as a sequence says. With axis None of
    the flattened tensor.

    >>> import weft as wf
    >>> wf.repeat(wf.tensor([1, 2]), 2), wf.repeat(wf.tensor([1, 2]), [1, 3])
    (tensor([1, 1, 2, 2]), tensor([1, 2, 2, 2]))
    """
    v = value(x)
    if axis is None:
        v, axis = reshape(v, shape=(v.type.size,)), 0
    a = normalize_axis(axis, v.type.ndim, "repeat")
    shape: Any = v.type.shape
    counts = sizes(
        repeats.tolist() if isinstance(repeats, (Value, np.ndarray)) else repeats, "repeat"
    )
    if len(counts) not in (1, shape[a]) or any(c < 0 for c in counts):
        raise ShapeError(
            "repeat", expected=f"one count of 0 or more, or {shape[a]} of them", got=str(repeats)
        )
    if len(counts) != 1:
        return take(v, value(_repeated(shape[a], counts)), axis=a)
    out = reshape(v, shape=(*shape[: a + 1], 1, *shape[a + 1 :]))
    out = broadcast_to(out, shape=(*shape[: a + 1], counts[0], *shape[a + 1 :]))
    return reshape(out, shape=(*shape[:a], shape[a] * counts[0], *shape[a + 1 :]))


def _repeated(n: int, counts: tuple[int, ...]) -> np.ndarray[Any, Any]:
    try:
        return np.repeat(np.arange(n), np.array(counts, np.int64))
    except (MemoryError, ValueError, OverflowError):
        got = f"{sum(counts):,} of them"
        raise AllocationError("repeat", expected="fewer elements", got=got) from None


def diff(
    x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> Tensor:
    """Differences of neighbours along an axis, n times over; of bools, whether they differ.

    >>> import weft as wf
    >>> wf.diff(wf.tensor([1, 4, 9, 16]))
    tensor([3, 5, 7])
    """
    v = value(x)
    a = normalize_axis(axis, v.type.ndim, "diff")
    times = integer(n, "diff")
    if times < 0:
        raise ShapeError("diff", expected="n of 0 or more", got=str(n))
    if times == 0:
        return v
    parts = [value(p) for p in (prepend, v, append) if p is not None]
    v = concat(parts, axis=a) if len(parts) > 1 else v
    for _ in range(min(times, v.type.sizes[a])):  # by then nothing is left
        shape: Any = v.type.shape
        less = (*shape[:a], max(shape[a] - 1, 0), *shape[a + 1 :])
        ones, zeros = (1,) * len(shape), (0,) * len(shape)
        right = slice_(
            v, starts=tuple(int(k == a) for k in range(len(shape))), sizes=less, steps=ones
        )
        left = slice_(v, starts=zeros, sizes=less, steps=ones)
        v = not_equal(right, left) if v.type.dtype is bool_ else subtract(right, left)
    return v


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """A diagonal of the last two axes. No element is copied.

    >>> import weft as wf
    >>> wf.diagonal(wf.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    k = integer(offset, "diagonal")
    return ops.diagonal(value(x), offset=max(-(2**62), min(2**62, k)))


def diag(x: Any, /, *, offset: int = 0) -> Tensor:
    """A square matrix with the elements of a 1-D tensor on its diagonal; of a matrix, its diagonal.

    >>> import weft as wf
    >>> wf.diag(wf.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    v = value(x)
    k = integer(offset, "diag")
    if v.type.ndim == 1:
        n = v.type.size + abs(k)
        return ops.undiagonal(v, shape=(n, n), offset=k)
    if v.type.ndim != 2:
        raise ShapeError("diag", expected="one or two axes", got=str(v.type))
    return diagonal(v, offset=k)


def pad(x: Any, pad: Any, mode: str = "constant", value: Any = 0) -> Any:
    """A border: `pad` has pairs of widths (before, after), for the last axis first; negative ones
    cut off.

    Modes: "constant" (of `value`), "reflect" (mirrored, without the edge), "replicate" (the edge),
    "circular".
    """
    v = as_value(x)
    widths = sizes(pad, "pad")
    if len(widths) % 2 or len(widths) > 2 * v.type.ndim:
        raise ShapeError(
            "pad", expected=f"at most {v.type.ndim} pairs of widths", got=str(tuple(widths))
        )
    pairs = [(0, 0)] * (v.type.ndim - len(widths) // 2)
    pairs += [(widths[i], widths[i + 1]) for i in range(len(widths) - 2, -1, -2)]
    if any(w < 0 for w in widths):
        v, pairs = _cropped(v, pairs)
    if mode == "constant":
        return padding.pad(v, value, widths=tuple(pairs))
    return padding.extend(v, widths=tuple(pairs), mode=mode)


def _cropped(v: Tensor, pairs: list[tuple[int, int]]) -> tuple[Tensor, list[tuple[int, int]]]:
    starts = tuple(max(-a, 0) for a, _ in pairs)
    left: Any = [n - max(-a, 0) - max(-b, 0) for n, (a, b) in zip(v.type.shape, pairs, strict=True)]
    if min(left) < 0:
        raise ShapeError("pad", expected=f"to cut off at most {v.type.shape}", got=str(pairs))
    v = slice_(
        v,
        starts=tuple(s if n else 0 for s, n in zip(starts, left, strict=True)),
        sizes=tuple(left),
        steps=(1,) * len(left),
    )
    return v, [(max(a, 0), max(b, 0)) for a, b in pairs]


def swapped(x: Tensor, axis: int) -> tuple[Tensor, tuple[int, ...] | None]:
    """`axis` brought to the end, and how to bring it back (None where it was there)."""
    if axis == x.type.ndim - 1:
        return x, None
    order = [*range(x.type.ndim)]
    order[axis], order[-1] = order[-1], order[axis]
    return permute_dims(x, axes=tuple(order)), tuple(order)
