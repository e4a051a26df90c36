"""Functions that pick elements, write them, and put them in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from weft.buffer import Buffer
from weft.buffer.interchange import to_numpy
from weft.errors import CaptureError, DTypeError, IndexRangeError, ShapeError
from weft.ops import cumulative, searching
from weft.ops import indexing as rows
from weft.ops import scatter as along
from weft.ops import sorting as order
from weft.ops.basic_index import basic_assign
from weft.ops.creation import full, zeros
from weft.ops.define import Op, Value
from weft.ops.elementwise import astype, floor_divide, not_equal, remainder
from weft.ops.joining import concat
from weft.ops.movement import broadcast_to, permute_dims, reshape, slice_
from weft.ops.reduction import accumulated
from weft.ops.reduction import sum as total
from weft.tensor.arguments import flag, sizes, value
from weft.tensor.manipulation import swapped
from weft.types import TensorType, as_dtype, broadcast_shapes, normalize_axes, normalize_axis, result_dtype
from weft.types.dtype import bool_, int64

__all__ = [
    "argsort", "count_nonzero", "cumulative_max", "cumulative_min", "cumulative_prod", "cumulative_sum", "index_add", "nonzero",
    "scatter", "scatter_add", "searchsorted", "sort", "take", "take_along_axis", "topk", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
]  # fmt: skip


def _axis(axis: Any, v: Value, place: str) -> int:
    """An axis; None where there is only one."""
    if axis is None:
        if v.type.ndim != 1:
            raise ShapeError(place, expected="an axis, of a tensor with several", got="None")
        return 0
    return normalize_axis(axis, v.type.ndim, place)


def _indices(x: Any, place: str) -> Value:
    v = value(np.asarray(x) if isinstance(x, (list, tuple)) else x)
    if not v.type.dtype.is_int:
        if v.type.size or isinstance(x, Value):
            raise DTypeError(place, expected="integer indices", got=v.type.dtype.name)
        v = astype(v, dtype=int64)
    return v


def _named(run: Callable[[], Any], place: str, index: Value, axis: int, n: Any) -> Any:
    """Run an op by index; an index out of range is named with its axis."""
    try:
        return run()
    except IndexRangeError:
        given = to_numpy(index.data) if isinstance(index.data, Buffer) else np.zeros(0)
        bad = given[(given < -n) | (given >= n)]
        raise IndexRangeError(
            place, expected=f"indices in [{-n}, {n}) for axis {axis} of size {n}", got=str(bad[0]) if bad.size else "another"
        ) from None


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """The rows along an axis that integers name.

    >>> import weft as wf
    >>> wf.take(wf.tensor([10, 20, 30]), wf.tensor([2, 0]))
    tensor([30, 10])
    """
    v, index = value(x), _indices(indices, "take")
    a = _axis(axis, v, "take")
    return _named(lambda: rows.take(v, index, axis=a), "take", index, a, v.type.shape[a])


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """One element for each index, along an axis; the other axes are broadcast.

    >>> import weft as wf
    >>> wf.take_along_axis(wf.tensor([[10, 20], [30, 40]]), wf.tensor([[1], [0]]))
    tensor([[20],
            [30]])
    """
    v, index = value(x), _indices(indices, "take_along_axis")
    a = _axis(axis, v, "take_along_axis")
    if index.type.ndim != v.type.ndim:
        raise ShapeError("take_along_axis", expected=f"indices of {v.type.ndim} axes", got=str(index.type))
    n, k = v.type.shape[a], index.type.shape[a]
    one = [tuple(1 if i == a else m for i, m in enumerate(t.type.shape)) for t in (v, index)]
    shape = broadcast_shapes(*one, place="take_along_axis")
    v, index = _spread(v, shape, a, n), _spread(index, shape, a, k)
    return _named(lambda: along.take_along_axis(v, index, axis=a), "take_along_axis", index, a, n)


def _spread(v: Value, shape: Any, axis: int, n: Any) -> Value:
    whole = (*shape[:axis], n, *shape[axis + 1 :])
    return v if v.type.shape == whole else broadcast_to(v, shape=whole)  # type: ignore[no-any-return]


def scatter_add(x: Any, axis: int, index: Any, src: Any) -> Any:
    """x with the elements of `src` added at the places that `index` names along an axis, in order.

    >>> import weft as wf
    >>> wf.scatter_add(wf.zeros(3), 0, wf.tensor([0, 2, 0]), wf.tensor([1.0, 2.0, 3.0]))
    tensor([4., 0., 2.])
    """
    return _scatter(along.scatter_add, x, axis, index, src)


def scatter(x: Any, axis: int, index: Any, src: Any) -> Any:
    """x with the elements at the places that `index` names along an axis replaced by those of `src`, or by a number.

    >>> import weft as wf
    >>> wf.scatter(wf.zeros(3), 0, wf.tensor([0, 2]), 5.0)
    tensor([5., 0., 5.])
    """
    return _scatter(along.scatter, x, axis, index, src)


def _scatter(op: Op, x: Any, axis: Any, index: Any, src: Any) -> Value:
    place = op.name
    v, i, s = value(x), _indices(index, place), value(src)
    a = _axis(axis, v, place)
    if s.type.dtype is not v.type.dtype:
        s = astype(s, dtype=v.type.dtype)
    if s.type.ndim == 0:
        s = broadcast_to(s, shape=i.type.shape)
    shapes = i.type.shape, v.type.shape, s.type.shape
    if not len(shapes[0]) == len(shapes[1]) == len(shapes[2]):
        raise ShapeError(place, expected="as many axes of index, source and tensor", got=f"{i.type}, {s.type}, {v.type}")
    for k, (m, n, r) in enumerate(zip(*shapes, strict=True)):
        if m > r or (m > n and k != a):  # type: ignore[operator]
            raise ShapeError(place, expected=f"an index no larger than {s.type} and, but for axis {a}, {v.type}", got=str(i.type))
    s = _corner(s, i.type.shape)
    region = tuple(n if k == a else m for k, (m, n) in enumerate(zip(i.type.shape, v.type.shape, strict=True)))
    part = _corner(v, region)
    out = _named(lambda: op(part, i, s, axis=a), place, i, a, v.type.shape[a])
    if region == v.type.shape:
        return out  # type: ignore[no-any-return]
    every = tuple(range(v.type.ndim))
    return basic_assign(v, out, starts=(0,) * len(every), sizes=region, steps=(1,) * len(every), axes=every)  # type: ignore[no-any-return]


def _corner(v: Value, shape: Any) -> Value:
    if v.type.shape == shape:
        return v
    return slice_(v, starts=(0,) * len(shape), sizes=shape, steps=(1,) * len(shape))  # type: ignore[no-any-return]


def index_add(x: Any, axis: int, index: Any, source: Any) -> Any:
    """x with the rows of `source` added to those that a 1-D `index` names along an axis, in order.

    >>> import weft as wf
    >>> wf.index_add(wf.zeros((2, 2)), 0, wf.tensor([1, 1]), wf.ones((2, 2)))
    tensor([[0., 0.],
            [2., 2.]])
    """
    v, i, s = value(x), _indices(index, "index_add"), value(source)
    a = _axis(axis, v, "index_add")
    if s.type.dtype is not v.type.dtype:
        s = astype(s, dtype=v.type.dtype)
    return _named(lambda: rows.row_add(v, i, s, axis=a), "index_add", i, a, v.type.shape[a])


# order


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The elements along an axis in order; NaNs are larger than all others.

    >>> import weft as wf
    >>> wf.sort(wf.tensor([3, 1, 2]), descending=True)
    tensor([3, 2, 1])
    """
    return _ordered(order.sort, x, axis, descending)


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Where the elements along an axis are, in order. Equal ones keep theirs.

    >>> import weft as wf
    >>> wf.argsort(wf.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return _ordered(order.argsort, x, axis, descending)


def _ordered(op: Op, x: Any, axis: Any, descending: bool) -> Value:
    v = value(x)
    if not v.type.ndim:
        raise ShapeError(op.name, expected="at least one axis", got=str(v.type))
    v, back = swapped(v, _axis(axis, v, op.name))
    out = op(v, descending=flag(descending, op.name))
    return out if back is None else permute_dims(out, axes=back)  # type: ignore[no-any-return]


class TopK(NamedTuple):
    """What `topk` gives."""

    values: Any
    indices: Any


def topk(x: Any, k: int, axis: int = -1, largest: bool = True) -> TopK:
    """The k largest (or smallest) elements along an axis, the most extreme first, and where they are.

    >>> import weft as wf
    >>> wf.topk(wf.tensor([3, 1, 2]), 2).values
    tensor([3, 2])
    """
    v = value(x)
    if not v.type.ndim:
        raise ShapeError("topk", expected="at least one axis", got=str(v.type))
    v, back = swapped(v, _axis(axis, v, "topk"))
    (many,) = sizes(k, "topk")
    values, places = order.topk(v, k=many, largest=flag(largest, "topk"))
    if back is not None:
        values, places = permute_dims(values, axes=back), permute_dims(places, axes=back)
    return TopK(values, places)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Where each element of x2 could be put into the ascending x1: before its equals ("left") or behind ("right").

    >>> import weft as wf
    >>> wf.searchsorted(wf.tensor([1, 3, 5]), wf.tensor([3, 4]))
    tensor([1, 2])
    """
    if side not in ("left", "right"):
        raise ShapeError("searchsorted", expected='"left" or "right"', got=repr(side))
    a, b = value(x1), value(x2)
    if sorter is not None:
        a = take(a, sorter, axis=0)
    dtype = result_dtype(a.type.dtype, b.type.dtype)
    a, b = (v if v.type.dtype is dtype else astype(v, dtype=dtype) for v in (a, b))
    return searching.searchsorted(a, b, right=side == "right")


# places of nonzero elements


def flat_nonzero(v: Value, place: str) -> Value:
    """Row-major positions of the elements that are not zero."""
    if not isinstance(v.data, Buffer):
        raise CaptureError(
            place, expected="values that are known", got=f"a symbolic {v.type}", hint="the result's size depends on them"
        )
    starts = searching.nonzero_starts(v)
    return searching.nonzero_places(v, starts, many=int(to_numpy(starts.data)[-1]))  # type: ignore[no-any-return]


def nonzero(x: Any, /) -> tuple[Any, ...]:
    """Where the elements are that are not zero: one tensor of indices for each axis.

    >>> import weft as wf
    >>> wf.nonzero(wf.tensor([[0, 1], [1, 0]]))
    (tensor([0, 1]), tensor([1, 0]))
    """
    v = value(x)
    if not v.type.ndim:
        raise ShapeError("nonzero", expected="at least one axis", got=str(v.type))
    rest, out = flat_nonzero(v, "nonzero"), []
    for n in reversed(v.type.shape[1:]):
        out.append(remainder(rest, max(n, 1)))  # type: ignore[type-var]
        rest = floor_divide(rest, max(n, 1))  # type: ignore[type-var]
    return tuple([rest, *reversed(out)])


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """How many elements are not zero.

    >>> import weft as wf
    >>> wf.count_nonzero(wf.tensor([0, 3, 4]))
    tensor(2)
    """
    v = value(x)
    holds = v if v.type.dtype is bool_ else not_equal(v, 0)
    return total(holds, axes=normalize_axes(axis, v.type.ndim, "count_nonzero"), keepdims=flag(keepdims, "count_nonzero"))


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Any
    inverse_indices: Any


def unique_all(x: Any, /) -> UniqueAll:
    """The distinct elements in order, where each is first, which of them each element is, and how often each occurs.

    NaNs are distinct. The size of the result depends on values, so this can't be captured.

    >>> import weft as wf
    >>> wf.unique_all(wf.tensor([3, 1, 3])).counts
    tensor([1, 2])
    """
    v = value(x)
    flat = reshape(v, shape=(v.type.size,))
    n = flat.type.size
    places = order.argsort(flat, descending=False)
    ordered = rows.take(flat, places, axis=0)
    first = full(True, shape=(min(n, 1),), dtype=bool_)
    differs = not_equal(
        slice_(ordered, starts=(min(n, 1),) if n > 1 else (0,), sizes=(max(n - 1, 0),), steps=(1,)),
        slice_(ordered, starts=(0,), sizes=(max(n - 1, 0),), steps=(1,)),
    )
    begins = concat(first, differs, axis=0)
    starts = flat_nonzero(begins, "unique")
    ends = concat(slice_(starts, starts=(1,) if starts.type.size > 1 else (0,), sizes=(max(starts.type.size - 1, 0),), steps=(1,)),
                  full(n, shape=(min(n, 1),), dtype=int64), axis=0)  # fmt: skip
    ranks = cumulative.cumulative_sum(begins, axis=0, dtype=int64, reverse=False) - 1
    inverse = rows.row_assign(zeros(TensorType((n,), int64)), places, ranks, axis=0)
    return UniqueAll(
        rows.take(ordered, starts, axis=0), rows.take(places, starts, axis=0), reshape(inverse, shape=v.type.shape), ends - starts
    )


def unique_values(x: Any, /) -> Any:
    """The distinct elements, in order.

    >>> import weft as wf
    >>> wf.unique_values(wf.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    return unique_all(x).values


def unique_counts(x: Any, /) -> UniqueCounts:
    """The distinct elements, in order, and how often each occurs.

    >>> import weft as wf
    >>> wf.unique_counts(wf.tensor([3, 1, 3])).counts
    tensor([1, 2])
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The distinct elements, in order, and which of them each element is.

    >>> import weft as wf
    >>> wf.unique_inverse(wf.tensor([3, 1, 3])).inverse_indices
    tensor([1, 0, 1])
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


# running folds


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """The sums of the elements up to each one along an axis; with `include_initial` a zero comes first.

    >>> import weft as wf
    >>> wf.cumulative_sum(wf.tensor([1, 2, 3]))
    tensor([1, 3, 6])
    """
    return _running(cumulative.cumulative_sum, x, axis, dtype, include_initial, 0, reverse=False)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """The products of the elements up to each one along an axis; with `include_initial` a one comes first.

    >>> import weft as wf
    >>> wf.cumulative_prod(wf.tensor([1, 2, 3]))
    tensor([1, 2, 6])
    """
    return _running(cumulative.cumulative_prod, x, axis, dtype, include_initial, 1)


def _running(op: Op, x: Any, axis: Any, dtype: Any, include_initial: bool, initial: int, **attrs: Any) -> Value:
    v = value(x)
    a = _axis(axis, v, op.name)
    d = accumulated(v.type.dtype) if dtype is None else as_dtype(dtype)
    out: Value = op(v, axis=a, dtype=d, **attrs)
    if not flag(include_initial, op.name):
        return out
    shape = tuple(1 if k == a else n for k, n in enumerate(v.type.shape))
    return concat(full(initial, shape=shape, dtype=d), out, axis=a)  # type: ignore[no-any-return]


def cumulative_max(x: Any, /, *, axis: int | None = None) -> Any:
    """The largest element up to each one along an axis; the first NaN stays.

    >>> import weft as wf
    >>> wf.cumulative_max(wf.tensor([1, 3, 2]))
    tensor([1, 3, 3])
    """
    v = value(x)
    return cumulative.cumulative_max(v, axis=_axis(axis, v, "cumulative_max"))[0]


def cumulative_min(x: Any, /, *, axis: int | None = None) -> Any:
    """The smallest element up to each one along an axis; the first NaN stays.

    >>> import weft as wf
    >>> wf.cumulative_min(wf.tensor([3, 1, 2]))
    tensor([3, 1, 1])
    """
    v = value(x)
    return cumulative.cumulative_min(v, axis=_axis(axis, v, "cumulative_min"))[0]
