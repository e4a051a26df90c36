"""Functions about order and places: sorting, searching, what is distinct, what is not zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from weft.buffer import Buffer
from weft.buffer.interchange import to_numpy
from weft.errors import CaptureError, ShapeError
from weft.ops import cumulative, indexing as rows, searching, sorting as order
from weft.ops.creation import full, zeros
from weft.ops.define import Op, Value, data_of
from weft.ops.elementwise import astype, floor_divide, not_equal, remainder
from weft.ops.joining import concat
from weft.ops.movement import permute_dims, reshape, slice_
from weft.ops.reduction import sum as total
from weft.tensor.arguments import flag, integer, value, word
from weft.tensor.elsewhere import says_keywords
from weft.tensor.manipulation import swapped
from weft.tensor.selection import one_axis, take
from weft.types import TensorType, normalize_axes, result_dtype
from weft.types.dtype import bool_, int64

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

__all__ = [
    "argsort",
    "count_nonzero",
    "nonzero",
    "searchsorted",
    "sort",
    "topk",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


@says_keywords
def sort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements along an axis in order; NaNs are larger than all others.

    >>> import weft as wf
    >>> wf.sort(wf.tensor([3, 1, 2]), descending=True)
    tensor([3, 2, 1])
    """
    return _ordered(order.sort, x, axis, descending)


@says_keywords
def argsort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Where the elements along an axis are, in order. Equal ones keep theirs.

    >>> import weft as wf
    >>> wf.argsort(wf.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return _ordered(order.argsort, x, axis, descending)


def _ordered(op: Op, x: Any, axis: Any, descending: bool) -> Tensor:
    v = value(x)
    if not v.type.ndim:
        raise ShapeError(op.name, expected="at least one axis", got=str(v.type))
    v, back = swapped(v, one_axis(axis, v, op.name))
    out = op(v, descending=flag(descending, op.name))
    return out if back is None else permute_dims(out, axes=back)


class TopK(NamedTuple):
    """What `topk` gives."""

    values: Tensor
    indices: Tensor


@says_keywords
def topk(x: Any, k: int, axis: int = -1, largest: bool = True) -> TopK:
    """The k largest (or smallest) elements along an axis, the most extreme first, and where they
    are.

    >>> import weft as wf
    >>> wf.topk(wf.tensor([3, 1, 2]), 2).values
    tensor([3, 2])
    """
    v = value(x)
    if not v.type.ndim:
        raise ShapeError("topk", expected="at least one axis", got=str(v.type))
    v, back = swapped(v, one_axis(axis, v, "topk"))
    many = integer(k, "topk")
    values, places = order.topk(v, k=many, largest=flag(largest, "topk"))
    if back is not None:
        values, places = permute_dims(values, axes=back), permute_dims(places, axes=back)
    return TopK(values, places)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """Where each element of x2 could be put into the ascending x1: before its equals ("left") or
    behind ("right").

    >>> import weft as wf
    >>> wf.searchsorted(wf.tensor([1, 3, 5]), wf.tensor([3, 4]))
    tensor([1, 2])
    """
    word(side, "searchsorted", ("left", "right"))
    a, b = value(x1), value(x2)
    if sorter is not None:
        a = take(a, sorter, axis=0)
    dtype = result_dtype(a.type.dtype, b.type.dtype)
    a, b = (v if v.type.dtype is dtype else astype(v, dtype=dtype) for v in (a, b))
    return searching.searchsorted(a, b, right=side == "right")


# places of nonzero elements


def flat_nonzero(v: Value, place: str) -> Tensor:
    """Row-major positions of the elements that are not zero."""
    if not isinstance(data_of(v), Buffer):
        raise CaptureError(
            place,
            expected="values that are known",
            got=f"a symbolic {v.type}",
            hint="the result's size depends on them",
        )
    starts = searching.nonzero_starts(v)
    return searching.nonzero_places(v, starts, many=int(to_numpy(starts.data)[-1]))


def nonzero(x: Any, /) -> tuple[Tensor, ...]:
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
        out.append(remainder(rest, max(n, 1)))
        rest = floor_divide(rest, max(n, 1))
    return (rest, *reversed(out))


@says_keywords
def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """How many elements are not zero.

    >>> import weft as wf
    >>> wf.count_nonzero(wf.tensor([0, 3, 4]))
    tensor(2)
    """
    v = value(x)
    holds = v if v.type.dtype is bool_ else not_equal(v, 0)
    return total(
        holds,
        axes=normalize_axes(axis, v.type.ndim, "count_nonzero"),
        keepdims=flag(keepdims, "count_nonzero"),
    )


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Any, /) -> UniqueAll:
    """The distinct elements in order, where each is first, which of them each element is, and how
    often each occurs.

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
    ends = concat(
        slice_(
            starts,
            starts=(1,) if starts.type.size > 1 else (0,),
            sizes=(max(starts.type.size - 1, 0),),
            steps=(1,),
        ),
        full(n, shape=(min(n, 1),), dtype=int64),
        axis=0,
    )
    ranks = cumulative.cumulative_sum(begins, axis=0, dtype=int64, reverse=False) - 1
    inverse = rows.row_assign(zeros(TensorType((n,), int64)), places, ranks, axis=0)
    return UniqueAll(
        rows.take(ordered, starts, axis=0),
        rows.take(places, starts, axis=0),
        reshape(inverse, shape=v.type.shape),
        ends - starts,
    )


def unique_values(x: Any, /) -> Tensor:
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
