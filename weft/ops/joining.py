"""Joining and rearranging: concat, roll, triangles, diagonals."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from weft.buffer import Layout
from weft.errors import DTypeError, ShapeError
from weft.ops.basic_index import basic_index
from weft.ops.define import Op, Value, register
from weft.ops.movement import slice_
from weft.ops.samples import Sample, array
from weft.ops.scalar import select
from weft.types import Shape, TensorType
from weft.types.dtype import DTYPES, float32

# concat


def _concat_type(*ts: TensorType, axis: int) -> TensorType:
    if not ts:
        raise ShapeError("concat", expected="at least one tensor", got="none")
    first = ts[0]
    if not 0 <= axis < first.ndim:
        raise ShapeError("concat", expected=f"an axis of {first}", got=str(axis))
    total = 0
    for t in ts:
        if t.dtype is not first.dtype:
            raise DTypeError(
                "concat", expected=f"dtype {first.dtype.name} throughout", got=t.dtype.name
            )
        if t.ndim != first.ndim or any(
            m != n for a, (m, n) in enumerate(zip(t.shape, first.shape, strict=True)) if a != axis
        ):
            raise ShapeError(
                "concat", expected=f"shapes like {first} except along axis {axis}", got=str(t)
            )
        total += t.shape[axis]  # type: ignore[assignment]
    return TensorType((*first.shape[:axis], total, *first.shape[axis + 1 :]), first.dtype)


def _concat_vjp(g: Value, y: Value, *xs: Value, axis: int) -> tuple[Any, ...]:
    out, at = [], 0
    ones = (1,) * y.type.ndim
    for x in xs:
        starts = tuple(at if a == axis else 0 for a in range(y.type.ndim))
        out.append(
            lambda x=x, starts=starts: slice_(g, starts=starts, sizes=x.type.shape, steps=ones)
        )
        at += x.type.shape[axis]  # type: ignore[assignment]
    return tuple(out)


def _concat_samples() -> Iterator[Sample]:
    for axis in range(3):
        shapes = [
            tuple(n if a == axis else k for a, k in enumerate((2, 3, 4))) for n in (3, 1, 0, 20)
        ]
        yield Sample(tuple(array(s, float32, seed=i) for i, s in enumerate(shapes)), {"axis": axis})
    for d in DTYPES:
        yield Sample((array((3, 5), d), array((3, 7), d)), {"axis": 1})
    yield Sample((array((3, 5), float32),), {"axis": 0})
    yield Sample((array((3, 5), float32), array((3, 4), float32)), {"axis": 0}, ShapeError)
    yield Sample((array((3, 5), float32), array((3,), float32)), {"axis": 0}, ShapeError)
    yield Sample((array((3, 5), float32), array((3, 5), DTYPES[0])), {"axis": 0}, DTypeError)


concat: Op = register(
    Op(
        "concat",
        _concat_type,
        extern="concat",
        dense=True,
        vjp=_concat_vjp,
        onnx="Concat",
        reference=lambda *xs, axis: np.concatenate(xs, axis),
        samples=_concat_samples,
        doc="Tensors one behind the other along an axis.",
    )
)


def _stack_type(*ts: TensorType, axis: int) -> TensorType:
    if not ts:
        raise ShapeError("stack", expected="at least one tensor", got="none")
    first = ts[0]
    if not 0 <= axis <= first.ndim:
        raise ShapeError("stack", expected=f"an axis from 0 to {first.ndim}", got=str(axis))
    for t in ts:
        if t.dtype is not first.dtype:
            raise DTypeError(
                "stack", expected=f"dtype {first.dtype.name} throughout", got=t.dtype.name
            )
        if t.shape != first.shape:
            raise ShapeError("stack", expected=f"shapes {first.shape} throughout", got=str(t))
    return TensorType((*first.shape[:axis], len(ts), *first.shape[axis:]), first.dtype)


def _stack_vjp(g: Value, y: Value, *xs: Value, axis: int) -> tuple[Any, ...]:
    shape, ndim = y.type.shape, y.type.ndim
    index = {
        "sizes": tuple(1 if a == axis else n for a, n in enumerate(shape)),
        "steps": (1,) * ndim,
    }
    rest = tuple(a for a in range(ndim) if a != axis)
    starts = [tuple(k if a == axis else 0 for a in range(ndim)) for k in range(len(xs))]
    return tuple(
        lambda at=at: basic_index(
            g, starts=at, sizes=index["sizes"], steps=index["steps"], axes=rest
        )
        for at in starts
    )


def _stack_samples() -> Iterator[Sample]:
    for axis in range(3):
        yield Sample(tuple(array((3, 4), float32, seed=i) for i in range(3)), {"axis": axis})
    yield Sample((array((), float32), array((), float32, seed=1)), {"axis": 0})
    yield Sample((array((2, 0), float32), array((2, 0), float32)), {"axis": 1})
    yield Sample((array((3,), DTYPES[7]), array((3,), DTYPES[7], seed=1)), {"axis": 1})
    yield Sample((array((3,), float32), array((2,), float32)), {"axis": 0}, ShapeError)
    yield Sample((array((3,), float32), array((3,), DTYPES[0])), {"axis": 0}, DTypeError)
    yield Sample((array((3,), float32),), {"axis": 2}, ShapeError)


stack: Op = register(
    Op(
        "stack",
        _stack_type,
        extern="stack",
        dense=True,
        vjp=_stack_vjp,
        reference=lambda *xs, axis: np.stack(xs, axis),
        samples=_stack_samples,
        doc="Tensors of one shape along a new axis.",
    )
)


# roll


def _roll_type(x: TensorType, *, shifts: tuple[int, ...]) -> TensorType:
    shape: Any = x.shape
    if len(shifts) != len(shape) or any(
        not 0 <= s < max(n, 1) for s, n in zip(shifts, shape, strict=True)
    ):
        raise ShapeError("roll", expected=f"a shift within each axis of {x}", got=str(shifts))
    return x


def _roll_at(i: Any, x: Any, *, shifts: tuple[int, ...]) -> Any:
    place = []
    for j, n, s in zip(i, x.shape, shifts, strict=True):
        q = j - s
        place.append(select(q < 0, q + n, q) if s else j)
    return x(place)


def _roll_samples() -> Iterator[Sample]:
    for shifts in [(0, 0), (1, 3), (2, 0), (0, 4)]:
        yield Sample((array((3, 5), float32),), {"shifts": shifts})
    yield Sample((array((3, 70), DTYPES[7]),), {"shifts": (1, 33)})
    yield Sample((array((0, 5), float32),), {"shifts": (0, 4)})
    yield Sample((array((3, 5), float32),), {"shifts": (3, 0)}, ShapeError)


roll: Op = register(
    Op(
        "roll",
        _roll_type,
        at=_roll_at,
        samples=_roll_samples,
        vjp=lambda g, y, x, *, shifts: (
            lambda: roll(
                g, shifts=tuple(-s % max(n, 1) for s, n in zip(shifts, x.type.shape, strict=True))
            ),
        ),
        reference=lambda x, *, shifts: np.roll(x, shifts, tuple(range(x.ndim))),
        doc="Elements moved along each axis; those that leave it come back in at the other end.",
    )
)


# triangles and diagonals of the last two axes


def _matrix_type(place: str, x: TensorType, *, offset: int) -> TensorType:
    if x.ndim < 2 or not isinstance(offset, int):
        wanted = "at least two axes and the number of a diagonal"
        raise ShapeError(place, expected=wanted, got=f"{x} and {offset}")
    return x


def _matrix_samples() -> Iterator[Sample]:
    for shape in [(4, 4), (3, 70), (2, 5, 3), (0, 3)]:
        for offset in (0, 1, -2, 90):
            yield Sample((array(shape, float32),), {"offset": offset})
    yield Sample((array((3, 3), DTYPES[-1]),), {"offset": 0})
    yield Sample((array((3,), float32),), {"offset": 0}, ShapeError)


tril: Op = register(
    Op(
        "tril",
        partial(_matrix_type, "tril"),
        samples=_matrix_samples,
        onnx="Trilu",
        at=lambda i, x, *, offset: x(i, where=i[-1] - i[-2] <= offset, otherwise=0),
        vjp=lambda g, y, x, *, offset: (lambda: tril(g, offset=offset),),
        reference=lambda x, *, offset: np.tril(x, offset),
        doc="Zeros above a diagonal.",
    )
)
triu: Op = register(
    Op(
        "triu",
        partial(_matrix_type, "triu"),
        samples=_matrix_samples,
        onnx="Trilu",
        at=lambda i, x, *, offset: x(i, where=i[-1] - i[-2] >= offset, otherwise=0),
        vjp=lambda g, y, x, *, offset: (lambda: triu(g, offset=offset),),
        reference=lambda x, *, offset: np.triu(x, offset),
        doc="Zeros below a diagonal.",
    )
)


def _diagonal_start(shape: Any, offset: int) -> tuple[int, int, int]:
    """Row and column where the diagonal begins, and its length."""
    row, column = max(-offset, 0), max(offset, 0)
    return row, column, max(min(shape[-2] - row, shape[-1] - column), 0)


def _diagonal_type(x: TensorType, *, offset: int) -> TensorType:
    _matrix_type("diagonal", x, offset=offset)
    return TensorType((*x.shape[:-2], _diagonal_start(x.shape, offset)[2]), x.dtype)


def _diagonal_view(x: Layout, *, offset: int) -> tuple[Layout, int]:
    out = _diagonal_type(x.type, offset=offset)
    row, column, _ = _diagonal_start(x.type.shape, offset)
    a, b = x.strides[-2:]
    return Layout(out, (*x.strides[:-2], a + b)), row * a + column * b if out.size else 0


def _diagonal_at(i: Any, x: Any, *, offset: int) -> Any:
    row, column = (i[-1], i[-1] + offset) if offset >= 0 else (i[-1] - offset, i[-1])
    return x((*i[:-1], row, column))


def _undiagonal_at(i: Any, x: Any, *, shape: Shape, offset: int) -> Any:
    return x(
        (*i[:-2], i[-2] if offset >= 0 else i[-1]), where=(i[-1] - i[-2]).eq(offset), otherwise=0
    )


def _undiagonal_type(x: TensorType, *, shape: Shape, offset: int) -> TensorType:
    if len(shape) < 2 or x.shape != (*shape[:-2], _diagonal_start(shape, offset)[2]):
        raise ShapeError("undiagonal", expected=f"the diagonal {offset} of {shape}", got=str(x))
    return TensorType(shape, x.dtype)


def _undiagonal_reference(x: Any, *, shape: Any, offset: int) -> Any:
    out = np.zeros(shape, x.dtype)
    row, column, n = _diagonal_start(shape, offset)
    out[..., row + np.arange(n), column + np.arange(n)] = x
    return out


def _undiagonal_samples() -> Iterator[Sample]:
    for shape, offset in [((4, 4), 0), ((3, 7), 2), ((2, 5, 3), -1), ((3, 3), 5)]:
        n = _diagonal_start(shape, offset)[2]
        yield Sample((array((*shape[:-2], n), float32),), {"shape": shape, "offset": offset})
    yield Sample((array((3,), float32),), {"shape": (4, 4), "offset": 0}, ShapeError)


diagonal: Op = register(
    Op(
        "diagonal",
        _diagonal_type,
        at=_diagonal_at,
        view=_diagonal_view,
        samples=_matrix_samples,
        vjp=lambda g, y, x, *, offset: (lambda: undiagonal(g, shape=x.type.shape, offset=offset),),
        reference=lambda x, *, offset: np.diagonal(x, offset, -2, -1),
        doc="A diagonal of the last two axes.",
    )
)
undiagonal: Op = register(
    Op(
        "undiagonal",
        _undiagonal_type,
        at=_undiagonal_at,
        samples=_undiagonal_samples,
        vjp=lambda g, y, x, *, shape, offset: (lambda: diagonal(g, offset=offset),),
        reference=_undiagonal_reference,
        doc="Elements put on a diagonal among zeros.",
    )
)
