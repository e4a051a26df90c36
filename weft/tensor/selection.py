"""Functions that pick elements by index, and write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.buffer import Buffer
from weft.buffer.interchange import to_numpy
from weft.errors import DTypeError, IndexRangeError, ShapeError
from weft.ops import indexing as rows, scatter as along
from weft.ops.basic_index import basic_assign
from weft.ops.define import Op, Value, data_of
from weft.ops.elementwise import astype
from weft.ops.movement import broadcast_to, slice_
from weft.tensor.arguments import value
from weft.tensor.data import asarray
from weft.types import broadcast_shapes, normalize_axis
from weft.types.dtype import int64

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

__all__ = ["index_add", "scatter", "scatter_add", "take", "take_along_axis"]


def one_axis(axis: Any, v: Value, place: str) -> int:
    """An axis; None where there is only one."""
    if axis is None:
        if v.type.ndim != 1:
            raise ShapeError(place, expected="an axis, of a tensor with several", got="None")
        return 0
    return normalize_axis(axis, v.type.ndim, place)


def _indices(x: Any, place: str) -> Tensor:
    v = value(x) if not isinstance(x, (list, tuple)) else asarray(x)
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
        given = to_numpy(index.data) if isinstance(data_of(index), Buffer) else np.zeros(0)
        bad = given[(given < -n) | (given >= n)]
        raise IndexRangeError(
            place,
            expected=f"indices in [{-n}, {n}) for axis {axis} of size {n}",
            got=str(bad[0]) if bad.size else "another",
        ) from None


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """The rows along an axis that integers name.

    >>> import weft as wf
    >>> wf.take(wf.tensor([10, 20, 30]), wf.tensor([2, 0]))
    tensor([30, 10])
    """
    v, index = value(x), _indices(indices, "take")
    a = one_axis(axis, v, "take")
    return _named(lambda: rows.take(v, index, axis=a), "take", index, a, v.type.shape[a])


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Tensor:
    """One element for each index, along an axis; the other axes are broadcast.

    >>> import weft as wf
    >>> wf.take_along_axis(wf.tensor([[10, 20], [30, 40]]), wf.tensor([[1], [0]]))
    tensor([[20],
            [30]])
    """
    v, index = value(x), _indices(indices, "take_along_axis")
    a = one_axis(axis, v, "take_along_axis")
    if index.type.ndim != v.type.ndim:
        raise ShapeError(
            "take_along_axis", expected=f"indices of {v.type.ndim} axes", got=str(index.type)
        )
    n, k = v.type.shape[a], index.type.shape[a]
    one = [tuple(1 if i == a else m for i, m in enumerate(t.type.shape)) for t in (v, index)]
    shape = broadcast_shapes(*one, place="take_along_axis")
    v, index = _spread(v, shape, a, n), _spread(index, shape, a, k)
    return _named(lambda: along.take_along_axis(v, index, axis=a), "take_along_axis", index, a, n)


def _spread(v: Tensor, shape: Any, axis: int, n: Any) -> Tensor:
    whole = (*shape[:axis], n, *shape[axis + 1 :])
    return v if v.type.shape == whole else broadcast_to(v, shape=whole)


def scatter_add(x: Any, axis: int, index: Any, src: Any) -> Tensor:
    """x with the elements of `src` added at the places that `index` names along an axis, in order.

    >>> import weft as wf
    >>> wf.scatter_add(wf.zeros(3), 0, wf.tensor([0, 2, 0]), wf.tensor([1.0, 2.0, 3.0]))
    tensor([4., 0., 2.])
    """
    return _scatter(along.scatter_add, x, axis, index, src)


def scatter(x: Any, axis: int, index: Any, src: Any) -> Tensor:
    """x with the elements at the places that `index` names along an axis replaced by those of
    `src`, or by a number.

    >>> import weft as wf
    >>> wf.scatter(wf.zeros(3), 0, wf.tensor([0, 2]), 5.0)
    tensor([5., 0., 5.])
    """
    return _scatter(along.scatter, x, axis, index, src)


def _scatter(op: Op, x: Any, axis: Any, index: Any, src: Any) -> Tensor:
    place = op.name
    v, i, s = value(x), _indices(index, place), value(src)
    a = one_axis(axis, v, place)
    if s.type.dtype is not v.type.dtype:
        s = astype(s, dtype=v.type.dtype)
    if s.type.ndim == 0:
        s = broadcast_to(s, shape=i.type.shape)
    shapes = i.type.shape, v.type.shape, s.type.shape
    if not len(shapes[0]) == len(shapes[1]) == len(shapes[2]):
        raise ShapeError(
            place,
            expected="as many axes of index, source and tensor",
            got=f"{i.type}, {s.type}, {v.type}",
        )
    for k, (m, n, r) in enumerate(zip(*shapes, strict=True)):
        if m > r or (m > n and k != a):
            raise ShapeError(
                place,
                expected=f"an index no larger than {s.type} and, but for axis {a}, {v.type}",
                got=str(i.type),
            )
    s = _corner(s, i.type.shape)
    region = tuple(
        n if k == a else m for k, (m, n) in enumerate(zip(i.type.shape, v.type.shape, strict=True))
    )
    part = _corner(v, region)
    out = _named(lambda: op(part, i, s, axis=a), place, i, a, v.type.shape[a])
    if region == v.type.shape:
        return out
    every = tuple(range(v.type.ndim))
    return basic_assign(
        v, out, starts=(0,) * len(every), sizes=region, steps=(1,) * len(every), axes=every
    )


def _corner(v: Tensor, shape: Any) -> Tensor:
    if v.type.shape == shape:
        return v
    return slice_(v, starts=(0,) * len(shape), sizes=shape, steps=(1,) * len(shape))


def index_add(x: Any, axis: int, index: Any, source: Any) -> Tensor:
    """x with the rows of `source` added to those that a 1-D `index` names along an axis, in order.

    >>> import weft as wf
    >>> wf.index_add(wf.zeros((2, 2)), 0, wf.tensor([1, 1]), wf.ones((2, 2)))
    tensor([[0., 0.],
            [2., 2.]])
    """
    v, i, s = value(x), _indices(index, "index_add"), value(source)
    a = one_axis(axis, v, "index_add")
    if s.type.dtype is not v.type.dtype:
        s = astype(s, dtype=v.type.dtype)
    return _named(lambda: rows.row_add(v, i, s, axis=a), "index_add", i, a, v.type.shape[a])
