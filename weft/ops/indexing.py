"""Reading and writing rows by integer tensors: take and its transposes.

Indices may be of any integer dtype; negative ones count from the end. One out of range is an error
that names it, raised by the kernel. Writes happen in index order: sums are reproducible, and of
several assignments to one place the last one stays.
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
from weft.ops.movement import reshape
from weft.ops.samples import Sample, array
from weft.ops.scalar import select
from weft.types import Shape, TensorType
from weft.types.dtype import DTYPES, float32, int64

#: what is taken from an index below 0 that must not count from the end: no axis is as long
BELOW = 1 << 40


def check_index(place: str, index: TensorType) -> None:
    if not index.dtype.is_int:
        raise DTypeError(place, expected="integer indices", got=index.dtype.name)


def _check_axis(place: str, t: TensorType, axis: int) -> None:
    if not 0 <= axis < t.ndim:
        raise ShapeError(place, expected=f"an axis of {t}", got=str(axis))


def not_empty(place: str, n: Any, index: TensorType, axis: int) -> None:
    if n == 0 and index.size:
        raise IndexRangeError(
            place, expected=f"no indices into axis {axis} of size 0", got=f"{index.size} of them"
        )


# rows: a 1-D index (any shape for take) along an axis


def _take_type(x: TensorType, index: TensorType, *, axis: int) -> TensorType:
    _check_axis("take", x, axis)
    check_index("take", index)
    not_empty("take", x.shape[axis], index, axis)
    return TensorType((*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]), x.dtype)


def _rows_type(place: str, shape: Shape, index: TensorType, source: TensorType, axis: int) -> None:
    check_index(place, index)
    if not 0 <= axis < len(shape):
        raise ShapeError(place, expected=f"an axis of {shape}", got=str(axis))
    wanted = (*shape[:axis], *index.shape, *shape[axis + 1 :])
    if index.ndim != 1 or source.shape != wanted:
        raise ShapeError(
            place,
            expected=f"a 1-D index and a source of shape {wanted}",
            got=f"{index} and {source}",
        )
    not_empty(place, shape[axis], index, axis)


def _row_sum_type(index: TensorType, source: TensorType, *, shape: Shape, axis: int) -> TensorType:
    _rows_type("row_sum", shape, index, source, axis)
    return TensorType(shape, source.dtype)


def _based_rows_type(
    place: str, x: TensorType, index: TensorType, source: TensorType, *, axis: int
) -> TensorType:
    _rows_type(place, x.shape, index, source, axis)
    same_dtype(place, x, source)
    return x


def same_dtype(place: str, x: TensorType, source: TensorType) -> None:
    if x.dtype is not source.dtype:
        raise DTypeError(
            place,
            expected=f"a source of {x.dtype.name}",
            got=source.dtype.name,
            hint="convert with .astype()",
        )


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


def _row_assign_vjp(
    g: Value, y: Value, x: Value, index: Value, source: Value, *, axis: int
) -> tuple[Any, ...]:
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


def assign(out: Any, place: Any, source: Any) -> None:
    out[place] = source


take: Op = register(
    Op(
        "take",
        _take_type,
        extern="take",
        dense=True,
        vjp=_take_vjp,
        onnx="Gather",
        samples=_take_samples,
        reference=lambda x, index, *, axis: np.take(x, index, axis=axis),
        doc="The rows along an axis that an integer tensor of any shape names.",
    )
)
row_sum: Op = register(
    Op(
        "row_sum",
        _row_sum_type,
        extern="scatter_sum",
        dense=True,
        samples=partial(_row_samples, False),
        vjp=lambda g, y, index, source, *, shape, axis: (None, lambda: take(g, index, axis=axis)),
        reference=lambda index, source, *, shape, axis: _written(
            np.add.at, np.zeros(shape, source.dtype), index, source, axis
        ),
        doc="Rows added up at the places an index names, on zeros: the transpose of take.",
    )
)
row_add: Op = register(
    Op(
        "row_add",
        partial(_based_rows_type, "row_add"),
        extern="scatter_add",
        dense=True,
        samples=partial(_row_samples, True),
        vjp=lambda g, y, x, index, source, *, axis: (g, None, lambda: take(g, index, axis=axis)),
        reference=lambda x, index, source, *, axis: _written(np.add.at, x, index, source, axis),
        doc="Rows added at the places an index names.",
    )
)
row_assign: Op = register(
    Op(
        "row_assign",
        partial(_based_rows_type, "row_assign"),
        extern="scatter_assign",
        dense=True,
        samples=partial(_row_samples, True),
        vjp=_row_assign_vjp,
        reference=lambda x, index, source, *, axis: _written(assign, x, index, source, axis),
        doc="Rows replaced at the places an index names.",
    )
)


# several indices into one


def _ravel_type(*ts: TensorType, sizes: tuple[int, ...]) -> TensorType:
    for t in ts:
        check_index("ravel_index", t)
    if len(ts) != len(sizes) or not ts or any(t.shape != ts[0].shape for t in ts):
        raise ShapeError(
            "ravel_index",
            expected=f"{len(sizes)} indices of one shape",
            got=", ".join(map(str, ts)),
        )
    return TensorType(ts[0].shape, int64)


def _ravel_at(i: Any, *xs: Any, sizes: tuple[int, ...]) -> Any:
    """An index out of range makes the whole one out of range."""
    whole, fine = None, None
    for x, n in zip(xs, sizes, strict=True):
        given = x(i).cast(int64)
        front = given if x.dtype.kind == "u" else select(given < 0, given + n, given)
        ok = (front >= 0) & (front < n)
        whole = front if whole is None else whole * n + front
        fine = ok if fine is None else fine & ok
    return select(fine, whole, -(2**63))  # type: ignore[arg-type]


def _ravel_samples() -> Iterator[Sample]:
    yield Sample((np.array([0, 1, -1]), np.array([3, -4, 0], np.int8)), {"sizes": (2, 4)})
    yield Sample((np.array([[5]]), np.array([[1]]), np.array([[0]])), {"sizes": (6, 2, 1)})
    yield Sample((np.array([0, 1]), np.array([0])), {"sizes": (2, 4)}, ShapeError)
    yield Sample((np.array([0.0]), np.array([0])), {"sizes": (2, 4)}, DTypeError)


ravel_index: Op = register(
    Op(
        "ravel_index",
        _ravel_type,
        at=_ravel_at,
        samples=_ravel_samples,
        reference=lambda *xs, sizes: np.ravel_multi_index(
            tuple(np.where(x < 0, x + n, x) for x, n in zip(xs, sizes, strict=True)), sizes
        ),
        doc="Indices into several axes as one index into those axes joined.",
    )
)
