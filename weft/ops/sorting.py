"""Order along the last axis: sort, argsort, topk.

-0.0 equals 0.0 and NaNs are larger than everything else. Sorting is stable, in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ops.define import Op, Value, register
from weft.ops.samples import Sample, array
from weft.ops.scatter import scatter_sum
from weft.types import TensorType
from weft.types.dtype import DTYPES, float32, int64


def _check(place: str, t: TensorType) -> None:
    if not t.ndim:
        raise ShapeError(place, expected="at least one axis", got=str(t))


def _sort_type(t: TensorType, *, descending: bool) -> TensorType:
    _check("sort", t)
    return t


def _argsort_type(t: TensorType, *, descending: bool) -> TensorType:
    _check("argsort", t)
    return TensorType(t.shape, int64)


def _sort_vjp(g: Value, y: Value, x: Value, *, descending: bool) -> tuple[Any, ...]:
    def cotangent() -> Value:
        places = argsort(x, descending=descending)
        return scatter_sum(places, g, shape=x.type.shape, axis=x.type.ndim - 1)  # type: ignore[no-any-return]

    return (cotangent,)


def _order(x: Any, descending: bool) -> Any:
    """NumPy's stable order; for the other direction of the reversed row, so that equals keep
    theirs.
    """
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x
    if not descending:
        return np.argsort(wide, -1, kind="stable")
    return x.shape[-1] - 1 - np.flip(np.argsort(np.flip(wide, -1), -1, kind="stable"), -1)


def _sort_samples() -> Iterator[Sample]:
    for descending in (False, True):
        for shape in [(5,), (3, 37), (2, 3, 90), (3, 0), (0, 3), (1,)]:
            yield Sample((array(shape, float32, (-99, 99)),), {"descending": descending})
        for d in DTYPES:
            yield Sample((array((2, 50), d, (-9, 9)),), {"descending": descending}, smooth=False)
        odd = np.array([0.0, np.nan, -0.0, np.inf, -np.inf, np.nan, 1.0], np.float32)
        yield Sample((odd,), {"descending": descending}, smooth=False)
    yield Sample((array((), float32),), {"descending": False}, ShapeError)


sort = register(
    Op(
        "sort",
        _sort_type,
        extern="sort",
        dense=True,
        vjp=_sort_vjp,
        samples=_sort_samples,
        reference=lambda x, *, descending: np.take_along_axis(x, _order(x, descending), -1),
        doc="The elements of each row in order.",
    )
)
argsort = register(
    Op(
        "argsort",
        _argsort_type,
        extern="argsort",
        dense=True,
        samples=_sort_samples,
        reference=lambda x, *, descending: _order(x, descending),
        doc="Where the elements of each row in order are.",
    )
)


def _topk_type(t: TensorType, *, k: int, largest: bool) -> tuple[TensorType, TensorType]:
    _check("topk", t)
    if not 0 <= k <= t.shape[-1]:
        raise ShapeError("topk", expected=f"k from 0 to the axis's {t.shape[-1]}", got=str(k))
    shape = (*t.shape[:-1], k)
    return TensorType(shape, t.dtype), TensorType(shape, int64)


def _topk_vjp(g: Any, y: Any, x: Value, *, k: int, largest: bool) -> tuple[Any, ...]:
    return (lambda: scatter_sum(y[1], g[0], shape=x.type.shape, axis=x.type.ndim - 1),)


def _topk_samples() -> Iterator[Sample]:
    for largest in (False, True):
        for shape, k in [((5,), 2), ((3, 37), 37), ((2, 300), 3), ((3, 4), 0), ((0, 3), 1)]:
            yield Sample((array(shape, float32, (-99, 99)),), {"k": k, "largest": largest})
        for d in DTYPES:
            yield Sample((array((2, 50), d, (-9, 9)),), {"k": 7, "largest": largest}, smooth=False)
    yield Sample((array((3, 4), float32),), {"k": 5, "largest": True}, ShapeError)
    yield Sample((array((3, 4), float32),), {"k": -1, "largest": True}, ShapeError)


def _topk_reference(x: Any, *, k: int, largest: bool) -> tuple[Any, Any]:
    places = _order(x, largest)[..., :k]
    return np.take_along_axis(x, places, -1), places


topk = register(
    Op(
        "topk",
        _topk_type,
        extern="topk",
        dense=True,
        vjp=_topk_vjp,
        onnx="TopK",
        samples=_topk_samples,
        reference=_topk_reference,
        doc="The k largest (smallest) elements of each row, in order, and where they are.",
    )
)
