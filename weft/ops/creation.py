"""Tensors out of nothing. What varies from call to call (values, starts, steps) is an operand, not
an attribute, so that one plan serves all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ops.define import Op, Type, Value, register
from weft.ops.makers import like, wants_gradient
from weft.ops.rules import Flat
from weft.ops.samples import Sample
from weft.ops.scalar import const, select
from weft.types import DType, Shape, TensorType
from weft.types.dtype import bool_, float32, float64, int32, int64


def _scalars(place: str, types: tuple[Type, ...]) -> None:
    for t in types:
        if isinstance(t, TensorType) and t.shape:
            raise ShapeError(place, expected="a number", got=str(t))


# full


def _full_type(value: Type, *, shape: Shape, dtype: DType) -> TensorType:
    _scalars("full", (value,))
    return TensorType(shape, dtype)


def _full_samples() -> Iterator[Sample]:
    yield Sample((2.5,), {"shape": (3, 37), "dtype": float32})
    yield Sample((-7,), {"shape": (70,), "dtype": int32})
    yield Sample((True,), {"shape": (), "dtype": bool_})
    yield Sample((0.1,), {"shape": (2, 0), "dtype": float64})
    yield Sample((0.1,), {"shape": (5,), "dtype": float64})
    yield Sample((np.array(1.5, np.float32),), {"shape": (4,), "dtype": float32})
    yield Sample((np.ones(3, np.float32),), {"shape": (4,), "dtype": float32}, ShapeError)
    yield Sample((1.0,), {"shape": (-4,), "dtype": float32}, ShapeError)


def _full_vjp(g: Value, y: Value, value: Any, *, shape: Shape, dtype: DType) -> tuple[Any, ...]:
    return ((lambda: like(g, value)) if wants_gradient(value) else None,)


full = register(
    Op(
        "full",
        _full_type,
        at=Flat(lambda n, value, *, dtype: value(()).cast(dtype)),
        onnx="ConstantOfShape",
        reference=lambda value, *, shape, dtype: np.full(shape, value, dtype.np),
        samples=_full_samples,
        vjp=_full_vjp,
        doc="Every element the same number.",
    )
)


def zeros(type_: TensorType) -> Value:
    """All zeros."""
    return full(0, shape=type_.shape, dtype=type_.dtype)  # type: ignore[no-any-return]


# ranges


def _range_type(place: str, types: tuple[Type, ...], size: int, dtype: DType) -> TensorType:
    _scalars(place, types)
    if dtype is bool_:
        raise DTypeError(place, expected="a numeric dtype", got=dtype.name)
    return TensorType((size,), dtype)


def _arange_rule(i: Any, start: Any, step: Any, *, size: int, dtype: DType) -> Any:
    """start + i * step, in float64 or int64."""
    (n,) = i
    a, d = start(()), step(())
    if a.dtype.is_float:
        return (n.cast(float64) * d.cast(float64) + a.cast(float64)).cast(dtype)
    return (n * d.cast(int64) + a.cast(int64)).cast(dtype)


def _arange_samples() -> Iterator[Sample]:
    yield Sample((0, 1), {"size": 70, "dtype": int64})
    yield Sample((5, -2), {"size": 37, "dtype": int32})
    yield Sample((0.5, 0.25), {"size": 33, "dtype": float32})
    yield Sample((3, 2), {"size": 5, "dtype": float32})
    yield Sample((0.1, 0.1), {"size": 7, "dtype": float64})
    yield Sample((0, 1), {"size": 0, "dtype": int64})
    yield Sample((0, 1), {"size": 3, "dtype": bool_}, DTypeError)
    yield Sample((0, 1), {"size": -3, "dtype": int64}, ShapeError)


def _exact_range(start: Any, step: Any, *, size: int, dtype: DType) -> Any:
    return (np.arange(size) * np.asarray(step) + np.asarray(start)).astype(dtype.np)


arange = register(
    Op(
        "arange",
        lambda start, step, *, size, dtype: _range_type("arange", (start, step), size, dtype),
        at=_arange_rule,
        reference=_exact_range,
        samples=_arange_samples,
        doc="start, start + step, start + 2 step, …, computed in 64 bits.",
    )
)


def _linspace_rule(
    i: Any, start: Any, stop: Any, *, size: int, endpoint: bool, dtype: DType
) -> Any:
    """From the nearer end, so that both ends are exact and the values symmetric."""
    (n,) = i
    a, b = start(()).cast(float64), stop(()).cast(float64)
    count = const(0, int64) + size
    parts = (count - 1 if endpoint else count).cast(float64)
    step = select(parts.eq(0.0), parts.like(0.0), (b - a) / parts)
    forward = n.cast(float64) * step + a
    if not endpoint:
        return forward.cast(dtype)
    backward = b - (count - 1 - n).cast(float64) * step
    return select((n + n < count) | count.eq(1), forward, backward).cast(dtype)


def _linspace_samples() -> Iterator[Sample]:
    for size in (0, 1, 2, 37):
        yield Sample((-1.0, 2.0), {"size": size, "endpoint": True, "dtype": float64})
        yield Sample((0, 3), {"size": size, "endpoint": False, "dtype": float32})
    yield Sample((0.0, 1.0), {"size": -1, "endpoint": True, "dtype": float32}, ShapeError)


linspace = register(
    Op(
        "linspace",
        lambda start, stop, *, size, endpoint, dtype: _range_type(
            "linspace", (start, stop), size, dtype
        ),
        at=_linspace_rule,
        samples=_linspace_samples,
        reference=lambda start, stop, *, size, endpoint, dtype: np.linspace(
            start, stop, size, endpoint=endpoint, dtype=dtype.np
        ),
        doc="Evenly spaced numbers; the ends are exact.",
    )
)


# eye, one_hot


def _eye_samples() -> Iterator[Sample]:
    for shape, offset in [((4, 4), 0), ((3, 70), 2), ((70, 3), -1), ((3, 3), 9), ((0, 2), 0)]:
        yield Sample((), {"shape": shape, "offset": offset, "dtype": float32})
    yield Sample((), {"shape": (3, 4), "offset": 1, "dtype": bool_})
    yield Sample((), {"shape": (3,), "offset": 0, "dtype": float32}, ShapeError)


def _eye_type(*, shape: Shape, offset: int, dtype: DType) -> TensorType:
    if len(shape) != 2 or not isinstance(offset, int):
        got = f"{shape} and {offset}"
        raise ShapeError("eye", expected="two sizes and the number of a diagonal", got=got)
    return TensorType(shape, dtype)


eye = register(
    Op(
        "eye",
        _eye_type,
        at=lambda i, *, shape, offset, dtype: (i[1] - i[0]).eq(offset).cast(dtype),
        reference=lambda *, shape, offset, dtype: np.eye(shape[0], shape[1], offset, dtype.np),
        samples=_eye_samples,
        doc="Ones on a diagonal, zeros elsewhere.",
    )
)


def _one_hot_type(index: TensorType, *, size: int, dtype: DType) -> TensorType:
    if not index.dtype.is_int:
        raise DTypeError("one_hot", expected="integers", got=index.dtype.name)
    return TensorType((*index.shape, size), dtype)


def _one_hot_samples() -> Iterator[Sample]:
    yield Sample((np.array([0, 3, 1]),), {"size": 4, "dtype": float32})
    yield Sample((np.array([[0, 9], [-1, 2]], np.int8),), {"size": 3, "dtype": int64})
    yield Sample((np.array(2, np.uint8),), {"size": 40, "dtype": bool_})
    yield Sample((np.array([0.0]),), {"size": 4, "dtype": float32}, DTypeError)


one_hot = register(
    Op(
        "one_hot",
        _one_hot_type,
        at=lambda i, x, *, size, dtype: x(i[:-1]).cast(int64).eq(i[-1]).cast(dtype),
        reference=lambda x, *, size, dtype: (x[..., None] == np.arange(size)).astype(dtype.np),
        samples=_one_hot_samples,
        onnx="OneHot",
        doc="A last axis of zeros with a one where the index says, if it is within.",
    )
)
