"""Rows put behind each other, and read from there: what a list that grows in a loop is made of.

`put_rows` writes from a place that a tensor says. In a loop whose state the rows are, it writes
where they lie: a step moves the rows it adds and no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ops.creation import zeros
from weft.ops.define import Op, Value, register
from weft.ops.samples import Sample, array
from weft.types import Shape, TensorType
from weft.types.dtype import DTYPES, float32, int64

PLACE = TensorType((), int64)


def _check(place: str, x: TensorType, at: Any) -> None:
    if at is not PLACE:
        raise DTypeError(place, expected=f"the number of a row, {PLACE}", got=str(at))
    if not x.ndim:
        raise ShapeError(place, expected="rows", got=str(x))


def many(x: TensorType, value: TensorType) -> Any:
    """How many rows of `x` a value is: one, or as many as its first axis says."""
    return 1 if value.ndim < x.ndim else value.shape[0]


def _put_type(x: TensorType, at: TensorType, *values: TensorType) -> TensorType:
    _check("put_rows", x, at)
    for v in values:
        row = v.shape if v.ndim < x.ndim else v.shape[1:]
        if row != x.shape[1:] or v.ndim > x.ndim or v.dtype is not x.dtype:
            raise ShapeError("put_rows", expected=f"rows of {x}", got=str(v))
    return x


def _put_vjp(g: Value, y: Value, x: Value, at: Value, *values: Value) -> tuple[Any, ...]:
    out: list[Any] = [lambda: put_rows(g, at, *[zeros(v.type) for v in values]), None]
    behind: Any = 0
    for v in values:
        rows = v.type.shape[: v.type.ndim + 1 - x.type.ndim]
        out.append(lambda b=behind, rows=rows: get_rows(g, at + b if b else at, sizes=rows))
        behind = behind + many(x.type, v.type)
    return tuple(out)


def _get_type(x: TensorType, at: TensorType, *, sizes: Shape) -> TensorType:
    _check("get_rows", x, at)
    if len(sizes) > 1:
        raise ShapeError("get_rows", expected="one row, or a number of them", got=str(sizes))
    return TensorType((*sizes, *x.shape[1:]), x.dtype)


def _put_reference(x: Any, at: Any, *values: Any) -> Any:
    out, place = np.array(x), int(at)
    for v in values:
        for row in v if v.ndim == x.ndim else v[None]:
            if 0 <= place < len(out):
                out[place] = row
            place += 1
    return out


def _get_reference(x: Any, at: Any, *, sizes: Any) -> Any:
    out = np.zeros((*(sizes or (1,)), *x.shape[1:]), x.dtype)
    for i in range(len(out)):
        if 0 <= int(at) + i < len(x):
            out[i] = x[int(at) + i]
    return out if sizes else out[0]


def _put_samples() -> Iterator[Sample]:
    x, row = array((5, 2, 3), float32), array((2, 3), float32, seed=1)
    block = array((3, 2, 3), float32, seed=2)
    for at in (0, 3, 4, -2, 7, -(2**63), 2**63 - 1):
        yield Sample((x, np.int64(at), row), {})
        yield Sample((x, np.int64(at), row, block, array((2, 3), float32, seed=3)), {})
    for d in DTYPES:
        yield Sample((array((4,), d), np.int64(2), array((), d, seed=1)), {})
    yield Sample((array((0, 3), float32), np.int64(0), array((3,), float32)), {})
    yield Sample((array((4, 40_000), float32), np.int64(1), array((40_000,), float32)), {})
    yield Sample((x, np.int64(0), array((3,), float32)), {}, ShapeError)
    yield Sample((x, np.int64(0), array((2, 3), DTYPES[0])), {}, ShapeError)
    yield Sample((x, np.int32(0), row), {}, DTypeError)
    yield Sample((array((), float32), np.int64(0)), {}, ShapeError)


def _get_samples() -> Iterator[Sample]:
    x = array((5, 2, 3), float32)
    for at in (0, 3, 4, -2, 7, -(2**63), 2**63 - 1):
        yield Sample((x, np.int64(at)), {"sizes": ()})
        yield Sample((x, np.int64(at)), {"sizes": (3,)})
    for d in DTYPES:
        yield Sample((array((4,), d), np.int64(2)), {"sizes": ()})
    yield Sample((array((0, 3), float32), np.int64(0)), {"sizes": ()})
    yield Sample((x, np.int64(0)), {"sizes": (1, 2)}, ShapeError)
    yield Sample((x, np.int32(0)), {"sizes": ()}, DTypeError)


put_rows: Op = register(
    Op(
        "put_rows",
        _put_type,
        extern="put_rows",
        dense=True,
        vjp=_put_vjp,
        reference=_put_reference,
        samples=_put_samples,
        doc="Rows with others in their place from one on; what would lie outside is dropped.",
    )
)
get_rows: Op = register(
    Op(
        "get_rows",
        _get_type,
        extern="get_rows",
        dense=True,
        vjp=lambda g, y, x, at, *, sizes: (lambda: put_rows(zeros(x.type), at, g), None),
        reference=_get_reference,
        samples=_get_samples,
        doc="One row from a place on, or several; zeros where there are none.",
    )
)
