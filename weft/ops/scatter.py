"""Reading and writing single elements along an axis: take_along_axis and its transposes.

An index of the source's shape says where along the axis each element is. See `weft.ops.indexing`
for the rules of indices.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from weft.errors import IndexRangeError, ShapeError
from weft.ops.creation import arange, zeros
from weft.ops.define import Op, Value, register
from weft.ops.elementwise import equal, where
from weft.ops.indexing import assign, check_index, not_empty, same_dtype
from weft.ops.movement import broadcast_to, reshape
from weft.ops.samples import Sample, array
from weft.types import Shape, TensorType
from weft.types.dtype import float32, int64


def _along_shape(place: str, shape: Shape, index: TensorType, axis: int) -> None:
    check_index(place, index)
    if not 0 <= axis < len(shape):
        raise ShapeError(place, expected=f"an axis of {shape}", got=str(axis))
    rest = (*shape[:axis], *shape[axis + 1 :])
    if index.ndim != len(shape) or (*index.shape[:axis], *index.shape[axis + 1 :]) != rest:
        raise ShapeError(
            place, expected=f"indices of shape {shape} except along axis {axis}", got=str(index)
        )
    not_empty(place, shape[axis], index, axis)


def _along_type(x: TensorType, index: TensorType, *, axis: int) -> TensorType:
    _along_shape("take_along_axis", x.shape, index, axis)
    return TensorType(index.shape, x.dtype)


def _scatter_shapes(
    place: str, shape: Shape, index: TensorType, source: TensorType, axis: int
) -> None:
    _along_shape(place, shape, index, axis)
    if source.shape != index.shape:
        raise ShapeError(
            place, expected=f"a source of the indices' shape {index.shape}", got=str(source)
        )


def _scatter_sum_type(
    index: TensorType, source: TensorType, *, shape: Shape, axis: int
) -> TensorType:
    _scatter_shapes("scatter_sum", shape, index, source, axis)
    return TensorType(shape, source.dtype)


def _scatter_type(
    place: str, x: TensorType, index: TensorType, source: TensorType, *, axis: int
) -> TensorType:
    _scatter_shapes(place, x.shape, index, source, axis)
    same_dtype(place, x, source)
    return x


def _scatter_vjp(
    g: Value, y: Value, x: Value, index: Value, source: Value, *, axis: int
) -> tuple[Any, ...]:
    def of_source() -> Value:
        shape = index.type.shape
        order = arange(0, 1, size=shape[axis], dtype=int64)
        order = reshape(order, shape=(order.type.size, *[1] * (len(shape) - axis - 1)))
        order = broadcast_to(order, shape=shape)
        last = scatter(zeros(TensorType(x.type.shape, int64)), index, order, axis=axis)
        wins = equal(take_along_axis(last, index, axis=axis), order)
        return where(wins, take_along_axis(g, index, axis=axis), 0.0)  # type: ignore[no-any-return]

    return (lambda: scatter(g, index, zeros(source.type), axis=axis)), None, of_source


def _along_samples(based: bool | None) -> Iterator[Sample]:
    rng = np.random.default_rng(0)
    for shape, axis, k in [
        ((4, 5), 0, 3),
        ((4, 5), 1, 7),
        ((2, 4, 3), 1, 2),
        ((6,), 0, 4),
        ((3, 0), 0, 2),
    ]:
        index = rng.integers(-shape[axis], shape[axis], (*shape[:axis], k, *shape[axis + 1 :]))
        x, source = array(shape, float32), array(index.shape, float32, seed=1)
        given = {None: (x, index), True: (x, index, source), False: (index, source)}[based]
        yield Sample(
            given, {"axis": axis} if based is not False else {"shape": shape, "axis": axis}
        )
    x, source = array((3, 2), float32), array((1, 2), float32)
    for index, error in (
        (np.array([[0, 3]]), IndexRangeError),
        (np.array([[0, 0, 0]]), ShapeError),
    ):
        given = {None: (x, index), True: (x, index, source), False: (index, source)}[based]
        yield Sample(
            given, {"axis": 0} if based is not False else {"shape": (3, 2), "axis": 0}, error
        )


def _scattered(at: Any, out: Any, index: Any, source: Any, axis: int) -> Any:
    out = np.array(out)
    place = list(np.indices(index.shape, sparse=True))
    place[axis] = index
    at(out, tuple(place), source)
    return out


take_along_axis: Op = register(
    Op(
        "take_along_axis",
        _along_type,
        extern="take_along_axis",
        dense=True,
        onnx="GatherElements",
        samples=partial(_along_samples, None),
        vjp=lambda g, y, x, index, *, axis: (
            lambda: scatter_sum(index, g, shape=x.type.shape, axis=axis),
            None,
        ),
        reference=lambda x, index, *, axis: np.take_along_axis(x, index, axis),
        doc="One element for each index, along an axis.",
    )
)
scatter_sum: Op = register(
    Op(
        "scatter_sum",
        _scatter_sum_type,
        extern="scatter_sum",
        dense=True,
        samples=partial(_along_samples, False),
        vjp=lambda g, y, index, source, *, shape, axis: (
            None,
            lambda: take_along_axis(g, index, axis=axis),
        ),
        reference=lambda index, source, *, shape, axis: _scattered(
            np.add.at, np.zeros(shape, source.dtype), index, source, axis
        ),
        doc="Elements added up where indices say, on zeros: the transpose of take_along_axis.",
    )
)
scatter_add: Op = register(
    Op(
        "scatter_add",
        partial(_scatter_type, "scatter_add"),
        extern="scatter_add",
        dense=True,
        samples=partial(_along_samples, True),
        vjp=lambda g, y, x, index, source, *, axis: (
            g,
            None,
            lambda: take_along_axis(g, index, axis=axis),
        ),
        reference=lambda x, index, source, *, axis: _scattered(np.add.at, x, index, source, axis),
        doc="Elements added at the places indices name along an axis.",
    )
)
scatter: Op = register(
    Op(
        "scatter",
        partial(_scatter_type, "scatter"),
        extern="scatter_assign",
        dense=True,
        onnx="ScatterElements",
        samples=partial(_along_samples, True),
        vjp=_scatter_vjp,
        reference=lambda x, index, source, *, axis: _scattered(assign, x, index, source, axis),
        doc="Elements replaced at the places indices name along an axis.",
    )
)
