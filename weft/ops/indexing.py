"""Reading and writing by integer tensors: take, take_along_axis, and their transposes, the scatters.

Indices may be of any integer dtype; negative ones count from the end. One out of range is an error that names it, raised by
the kernel. Writes happen in index order: sums are reproducible, and of several assignments to one place the last one stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from weft.errors import DTypeError, IndexRangeError, ShapeError
from weft.ops.creation import arange, zeros
from weft.ops.define import Op, Value, register
from weft.ops.elementwise import equal, where
from weft.ops.movement import broadcast_to, reshape
from weft.ops.samples import Sample, array
from weft.types import Shape, TensorType
from weft.types.dtype import DTYPES, bool_, float32, int64


def _check_index(place: str, index: TensorType) -> None:
    if not index.dtype.is_int:
        raise DTypeError(place, expected="integer indices", got=index.dtype.name)


def _check_axis(place: str, t: TensorType, axis: int) -> None:
    if not 0 <= axis < t.ndim:
        raise ShapeError(place, expected=f"an axis of {t}", got=str(axis))


def _not_empty(place: str, n: Any, index: TensorType, axis: int) -> None:
    if n == 0 and index.size:
        raise IndexRangeError(place, expected=f"no indices into axis {axis} of size 0", got=f"{index.size} of them")


# rows: a 1-D index (any shape for take) along an axis


def _take_type(x: TensorType, index: TensorType, *, axis: int) -> TensorType:
    _check_axis("take", x, axis)
    _check_index("take", index)
    _not_empty("take", x.shape[axis], index, axis)
    return TensorType((*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]), x.dtype)


def _rows_type(place: str, shape: Shape, index: TensorType, source: TensorType, axis: int) -> None:
    _check_index(place, index)
    if not 0 <= axis < len(shape):
        raise ShapeError(place, expected=f"an axis of {shape}", got=str(axis))
    wanted = (*shape[:axis], *index.shape, *shape[axis + 1 :])
    if index.ndim != 1 or source.shape != wanted:
        raise ShapeError(place, expected=f"a 1-D index and a source of shape {wanted}", got=f"{index} and {source}")
    _not_empty(place, shape[axis], index, axis)


def _row_sum_type(index: TensorType, source: TensorType, *, shape: Shape, axis: int) -> TensorType:
    _rows_type("row_sum", shape, index, source, axis)
    return TensorType(shape, source.dtype)


def _based_rows_type(place: str, x: TensorType, index: TensorType, source: TensorType, *, axis: int) -> TensorType:
    _rows_type(place, x.shape, index, source, axis)
    _same_dtype(place, x, source)
    return x


def _same_dtype(place: str, x: TensorType, source: TensorType) -> None:
    if x.dtype is not source.dtype:
        raise DTypeError(place, expected=f"a source of {x.dtype.name}", got=source.dtype.name, hint="convert with .astype()")


def _take_vjp(g: Value, y: Value, x: Value, index: Value, *, axis: int) -> tuple[Any, ...]:
    def cotangent() -> Value:
        shape, k = x.type.shape, index.type.size
        rows = reshape(g, shape=(*shape[:axis], k, *shape[axis + 1 :]))
        return row_sum(reshape(index, shape=(k,)), rows, shape=shape, axis=axis)  # type: ignore[no-any-return]

    return cotangent, None


def _row_winners(index: Value, n: int) -> Value:
    """Which writes are the last ones to their place; `n` places."""
    (k,) = index.type.shape
    order = arange(0, 1, size=k, dtype=int64)
    last = row_assign(zeros(TensorType((n,), int64)), index, order, axis=0)
    return equal(take(last, index, axis=0), order)  # type: ignore[no-any-return]


def _row_assign_vjp(g: Value, y: Value, x: Value, index: Value, source: Value, *, axis: int) -> tuple[Any, ...]:
    def of_source() -> Value:
        lasts = _row_winners(index, x.type.shape[axis])  # type: ignore[arg-type]
        lasts = reshape(lasts, shape=(lasts.type.size, *[1] * (x.type.ndim - axis - 1)))
        return where(lasts, take(g, index, axis=axis), 0.0)  # type: ignore[no-any-return]

    return (lambda: row_assign(g, index, zeros(source.type), axis=axis)), None, of_source


def _take_samples() -> Iterator[Sample]:
    x = array((4, 5, 6), float32)
    for axis in range(3):
        yield Sample((x, np.array([3, 0, -1, 0])), {"axis": axis})
        yield Sample((x, np.array([[1, 0], [2, 2]], np.int32)), {"axis": axis})
    yield Sample((x, np.array(2, np.uint8)), {"axis": 1})
    yield Sample((x, np.zeros((0, 2), int)), {"axis": 1})
    for d in DTYPES:
        yield Sample((array((7, 3), d), np.array([6, -7, 1], np.int8)), {"axis": 0})
    yield Sample((x, np.array([4])), {"axis": 0}, IndexRangeError)
    yield Sample((x, np.array([-6])), {"axis": 1}, IndexRangeError)
    yield Sample((x, np.array([0.5])), {"axis": 0}, DTypeError)
    yield Sample((x, np.array([0])), {"axis": 3}, ShapeError)
    yield Sample((array((0, 2), float32), np.array([0])), {"axis": 0}, IndexRangeError)


def _row_samples(based: bool) -> Iterator[Sample]:
    index = np.array([3, 0, -1, 0, 3])
    for axis, shape in [(0, (4, 6)), (1, (3, 4)), (1, (2, 4, 3)), (0, (4,))]:
        source = array((*shape[:axis], 5, *shape[axis + 1 :]), float32, seed=1)
        given = (array(shape, float32), index, source) if based else (index, source)
        yield Sample(given, {"axis": axis} if based else {"shape": shape, "axis": axis})
    bad = (np.array([4]), array((1, 3), float32))
    short = (np.array([0, 1]), array((1, 3), float32))
    for pair, error in ((bad, IndexRangeError), (short, ShapeError)):
        given = (array((4, 3), float32), *pair) if based else pair
        yield Sample(given, {"axis": 0} if based else {"shape": (4, 3), "axis": 0}, error)


def _written(at: Any, out: Any, index: Any, source: Any, axis: int) -> Any:
    out = np.array(out)
    at(out, (slice(None),) * axis + (index,), source)
    return out


def _set(out: Any, place: Any, source: Any) -> None:
    out[place] = source


take = register(
    Op("take", _take_type, extern="take", dense=True, vjp=_take_vjp, onnx="Gather", samples=_take_samples,
       reference=lambda x, index, *, axis: np.take(x, index, axis=axis),
       doc="The rows along an axis that an integer tensor of any shape names.")
)  # fmt: skip
row_sum = register(
    Op("row_sum", _row_sum_type, extern="row_sum", dense=True, samples=partial(_row_samples, False),
       vjp=lambda g, y, index, source, *, shape, axis: (None, lambda: take(g, index, axis=axis)),
       reference=lambda index, source, *, shape, axis: _written(
           np.add.at, np.zeros(shape, source.dtype), index, source, axis),
       doc="Rows added up at the places an index names, on zeros: the transpose of take.")
)  # fmt: skip
row_add = register(
    Op("row_add", partial(_based_rows_type, "row_add"), extern="row_add", dense=True,
       samples=partial(_row_samples, True),
       vjp=lambda g, y, x, index, source, *, axis: (g, None, lambda: take(g, index, axis=axis)),
       reference=lambda x, index, source, *, axis: _written(np.add.at, x, index, source, axis),
       doc="Rows added at the places an index names.")
)  # fmt: skip
row_assign = register(
    Op("row_assign", partial(_based_rows_type, "row_assign"), extern="row_assign", dense=True,
       samples=partial(_row_samples, True), vjp=_row_assign_vjp,
       reference=lambda x, index, source, *, axis: _written(_set, x, index, source, axis),
       doc="Rows replaced at the places an index names.")
)  # fmt: skip


# elements: an index of the source's shape says where along the axis each one is


def _along_shape(place: str, shape: Shape, index: TensorType, axis: int) -> None:
    _check_index(place, index)
    if not 0 <= axis < len(shape):
        raise ShapeError(place, expected=f"an axis of {shape}", got=str(axis))
    rest = (*shape[:axis], *shape[axis + 1 :])
    if index.ndim != len(shape) or (*index.shape[:axis], *index.shape[axis + 1 :]) != rest:
        raise ShapeError(place, expected=f"indices of shape {shape} except along axis {axis}", got=str(index))
    _not_empty(place, shape[axis], index, axis)


def _along_type(x: TensorType, index: TensorType, *, axis: int) -> TensorType:
    _along_shape("take_along_axis", x.shape, index, axis)
    return TensorType(index.shape, x.dtype)


def _scatter_shapes(place: str, shape: Shape, index: TensorType, source: TensorType, axis: int) -> None:
    _along_shape(place, shape, index, axis)
    if source.shape != index.shape:
        raise ShapeError(place, expected=f"a source of the indices' shape {index.shape}", got=str(source))


def _scatter_sum_type(index: TensorType, source: TensorType, *, shape: Shape, axis: int) -> TensorType:
    _scatter_shapes("scatter_sum", shape, index, source, axis)
    return TensorType(shape, source.dtype)


def _scatter_type(place: str, x: TensorType, index: TensorType, source: TensorType, *, axis: int) -> TensorType:
    _scatter_shapes(place, x.shape, index, source, axis)
    _same_dtype(place, x, source)
    return x


def _scatter_vjp(g: Value, y: Value, x: Value, index: Value, source: Value, *, axis: int) -> tuple[Any, ...]:
    def of_source() -> Value:
        shape = index.type.shape
        order = arange(0, 1, size=shape[axis], dtype=int64)
        order = reshape(order, shape=(order.type.size, *[1] * (len(shape) - axis - 1)))
        order = broadcast_to(order, shape=shape)
        last = scatter(zeros(TensorType(x.type.shape, int64)), index, order, axis=axis)
        return where(equal(take_along_axis(last, index, axis=axis), order), take_along_axis(g, index, axis=axis), 0.0)  # type: ignore[no-any-return]

    return (lambda: scatter(g, index, zeros(source.type), axis=axis)), None, of_source


def _along_samples(based: bool | None) -> Iterator[Sample]:
    rng = np.random.default_rng(0)
    for shape, axis, k in [((4, 5), 0, 3), ((4, 5), 1, 7), ((2, 4, 3), 1, 2), ((6,), 0, 4), ((3, 0), 0, 2)]:
        index = rng.integers(-shape[axis], shape[axis], (*shape[:axis], k, *shape[axis + 1 :]))
        x, source = array(shape, float32), array(index.shape, float32, seed=1)
        given = {None: (x, index), True: (x, index, source), False: (index, source)}[based]
        yield Sample(given, {"axis": axis} if based is not False else {"shape": shape, "axis": axis})
    x, source = array((3, 2), float32), array((1, 2), float32)
    for index, error in ((np.array([[0, 3]]), IndexRangeError), (np.array([[0, 0, 0]]), ShapeError)):
        given = {None: (x, index), True: (x, index, source), False: (index, source)}[based]
        yield Sample(given, {"axis": 0} if based is not False else {"shape": (3, 2), "axis": 0}, error)


def _scattered(at: Any, out: Any, index: Any, source: Any, axis: int) -> Any:
    out = np.array(out)
    place = list(np.indices(index.shape, sparse=True))
    place[axis] = index
    at(out, tuple(place), source)
    return out


take_along_axis = register(
    Op("take_along_axis", _along_type, extern="take_along_axis", dense=True, onnx="GatherElements",
       samples=partial(_along_samples, None),
       vjp=lambda g, y, x, index, *, axis: (lambda: scatter_sum(index, g, shape=x.type.shape, axis=axis), None),
       reference=lambda x, index, *, axis: np.take_along_axis(x, index, axis),
       doc="One element for each index, along an axis.")
)  # fmt: skip
scatter_sum = register(
    Op("scatter_sum", _scatter_sum_type, extern="scatter_sum", dense=True, samples=partial(_along_samples, False),
       vjp=lambda g, y, index, source, *, shape, axis: (None, lambda: take_along_axis(g, index, axis=axis)),
       reference=lambda index, source, *, shape, axis: _scattered(
           np.add.at, np.zeros(shape, source.dtype), index, source, axis),
       doc="Elements added up at the places indices name, on zeros: the transpose of take_along_axis.")
)  # fmt: skip
scatter_add = register(
    Op("scatter_add", partial(_scatter_type, "scatter_add"), extern="scatter_add", dense=True,
       samples=partial(_along_samples, True),
       vjp=lambda g, y, x, index, source, *, axis: (g, None, lambda: take_along_axis(g, index, axis=axis)),
       reference=lambda x, index, source, *, axis: _scattered(np.add.at, x, index, source, axis),
       doc="Elements added at the places indices name along an axis.")
)  # fmt: skip
scatter = register(
    Op("scatter", partial(_scatter_type, "scatter"), extern="scatter", dense=True, onnx="ScatterElements",
       samples=partial(_along_samples, True), vjp=_scatter_vjp,
       reference=lambda x, index, source, *, axis: _scattered(_set, x, index, source, axis),
       doc="Elements replaced at the places indices name along an axis.")
)  # fmt: skip


# several indices into one


def _ravel_index_type(*ts: TensorType, sizes: tuple[int, ...]) -> TensorType:
    for t in ts:
        _check_index("ravel_index", t)
    shape = ts[0].shape
    if len(ts) != len(sizes) or any(t.shape != shape for t in ts):
        raise ShapeError("ravel_index", expected=f"{len(sizes)} indices of one shape", got=", ".join(map(str, ts)))
    return TensorType(shape, int64)


__all__ = ["bool_", "row_add", "row_assign", "row_sum", "scatter", "scatter_add", "scatter_sum", "take", "take_along_axis"]
