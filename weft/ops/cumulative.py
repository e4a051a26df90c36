"""Running sums, products, maxima and minima along an axis. Order: one chain, element by element;
see docs/numerics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ops.define import Op, Value, register
from weft.ops.elementwise import astype, divide, equal, logical_and, where
from weft.ops.samples import Sample, array
from weft.ops.scatter import scatter_sum
from weft.types import DType, TensorType
from weft.types.dtype import DTYPES, bool_, float32, int64


def _check_axis(place: str, t: TensorType, axis: int) -> None:
    if not 0 <= axis < t.ndim:
        raise ShapeError(place, expected=f"an axis of {t}", got=str(axis))


def _scan_type(
    place: str, t: TensorType, *, axis: int, dtype: DType, reverse: bool = False
) -> TensorType:
    _check_axis(place, t, axis)
    if dtype is bool_:
        raise DTypeError(place, expected="a numeric dtype", got=dtype.name)
    return TensorType(t.shape, dtype)


def _sum_vjp(
    g: Value, y: Value, x: Value, *, axis: int, dtype: DType, reverse: bool
) -> tuple[Any, ...]:
    return (lambda: cumulative_sum(g, axis=axis, dtype=x.type.dtype, reverse=not reverse),)


def _prod_vjp(g: Value, y: Value, x: Value, *, axis: int, dtype: DType) -> tuple[Any, ...]:
    """Exact with zeros among the factors: before the first zero sum(g y) / x, at it the sum of g
    times the products without it, behind it nothing. Its own derivative is right where no factor is
    zero.
    """

    def tail(h: Value) -> Value:
        return cumulative_sum(h, axis=axis, dtype=dtype, reverse=True)  # type: ignore[no-any-return]

    def cotangent() -> Value:
        factors = x if x.type.dtype is dtype else astype(x, dtype=dtype)
        zero = equal(factors, 0.0)
        seen = cumulative_sum(astype(zero, dtype=int64), axis=axis, dtype=int64, reverse=False)
        first = logical_and(zero, equal(seen, 1))
        others = cumulative_prod(where(first, 1.0, factors), axis=axis, dtype=dtype)
        before = where(equal(seen, 0), divide(tail(g * y), where(zero, 1.0, factors)), 0.0)
        out = where(first, tail(g * others), before)
        return out if x.type.dtype is dtype else astype(out, dtype=x.type.dtype)  # type: ignore[no-any-return]

    return (cotangent,)


def _samples(span: tuple[float, float], extra: dict[str, Any]) -> Iterator[Sample]:
    for axis, shape in [
        (0, (70,)),
        (1, (3, 37)),
        (0, (5, 33)),
        (1, (2, 4, 3)),
        (0, (0, 3)),
        (1, (2, 0)),
    ]:
        yield Sample((array(shape, float32, span),), {"axis": axis, "dtype": float32, **extra})
    for d in DTYPES:
        if d is not bool_:
            yield Sample((array((3, 5), d, span),), {"axis": 1, "dtype": d, **extra})
    yield Sample((array((7,), DTYPES[7], span),), {"axis": 0, "dtype": int64, **extra})
    yield Sample((array((3, 5), float32),), {"axis": 2, "dtype": float32, **extra}, ShapeError)
    yield Sample((array((3, 5), float32),), {"axis": 0, "dtype": bool_, **extra}, DTypeError)


def _sum_samples() -> Iterator[Sample]:
    for reverse in (False, True):
        yield from _samples((-3, 3), {"reverse": reverse})


def _prod_samples() -> Iterator[Sample]:
    yield from _samples((0.5, 1.5), {})
    zeros = np.array([[2.0, 0.0, 3.0, 0.5], [1.5, 2.0, 0.0, 0.0], [0.0, 2.0, 3.0, 4.0]])
    yield Sample((zeros,), {"axis": 1, "dtype": DTYPES[0]}, smooth=False)


def _wide(x: Any, dtype: DType) -> Any:
    return x.astype(dtype.np).astype(dtype.compute.np)


def _sum_reference(x: Any, *, axis: int, dtype: DType, reverse: bool) -> Any:
    w = _wide(x, dtype)
    out = (
        np.flip(np.cumsum(np.flip(w, axis), axis, dtype=w.dtype), axis)
        if reverse
        else np.cumsum(w, axis, dtype=w.dtype)
    )
    return out.astype(dtype.np)


cumulative_sum = register(
    Op(
        "cumulative_sum",
        partial(_scan_type, "cumulative_sum"),
        extern="cumulative_sum",
        dense=True,
        onnx="CumSum",
        vjp=_sum_vjp,
        reference=_sum_reference,
        samples=_sum_samples,
        doc="The sums of the elements up to each one (from each one on, with reverse).",
    )
)
cumulative_prod = register(
    Op(
        "cumulative_prod",
        partial(_scan_type, "cumulative_prod"),
        extern="cumulative_prod",
        dense=True,
        vjp=_prod_vjp,
        reference=lambda x, *, axis, dtype: np.cumprod(
            _wide(x, dtype), axis, dtype=dtype.compute.np
        ).astype(dtype.np),
        samples=_prod_samples,
        doc="The products of the elements up to each one.",
    )
)


def _extreme(name: str, better: Callable[[Any, Any], Any], doc: str) -> Op:
    def infer(t: TensorType, *, axis: int) -> tuple[TensorType, TensorType]:
        _check_axis(name, t, axis)
        return t, TensorType(t.shape, int64)

    def vjp(
        g: tuple[Value, Value], y: tuple[Value, Value], x: Value, *, axis: int
    ) -> tuple[Any, ...]:
        return (lambda: scatter_sum(y[1], g[0], shape=x.type.shape, axis=axis),)

    def reference(x: Any, *, axis: int) -> tuple[Any, Any]:
        moved = np.moveaxis(x, axis, -1)
        values, places = np.array(moved), np.zeros(moved.shape, np.int64)
        for i in range(1, moved.shape[-1]):
            now, old = moved[..., i], values[..., i - 1]
            takes = (better(now, old) | (now != now)) & ~(old != old)
            values[..., i] = np.where(takes, now, old)
            places[..., i] = np.where(takes, i, places[..., i - 1])
        return np.moveaxis(values, -1, axis), np.moveaxis(places, -1, axis)

    def samples() -> Iterator[Sample]:
        for axis, shape in [(0, (70,)), (1, (3, 37)), (0, (5, 33)), (1, (2, 4, 3)), (0, (0, 3))]:
            yield Sample((array(shape, float32),), {"axis": axis})
        for d in DTYPES:
            yield Sample((array((3, 7), d),), {"axis": 1}, smooth=False)
        yield Sample((np.array([1, np.nan, 3, np.nan], np.float32),), {"axis": 0}, smooth=False)
        yield Sample((array((3, 5), float32),), {"axis": 2}, ShapeError)

    return register(
        Op(
            name,
            infer,
            extern=name,
            dense=True,
            vjp=vjp,
            reference=reference,
            samples=samples,
            doc=doc,
        )
    )


cumulative_max = _extreme(
    "cumulative_max",
    lambda a, b: a > b,
    "The largest element up to each one, and where it is; the first NaN stays.",
)
cumulative_min = _extreme(
    "cumulative_min",
    lambda a, b: a < b,
    "The smallest element up to each one, and where it is; the first NaN stays.",
)
