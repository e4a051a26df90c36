"""Finding places: positions in a sorted tensor, positions of nonzero elements.

How many elements are not zero must be known before their places can be had, so that takes two ops:
`nonzero_starts` counts, `nonzero_places` writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ops.define import Op, register
from weft.ops.samples import Sample, array
from weft.types import TensorType
from weft.types.dtype import DTYPES, float32, int64

#: elements that are counted together
BLOCK = 1 << 14


def _searchsorted_type(ordered: TensorType, values: TensorType, *, right: bool) -> TensorType:
    if ordered.ndim != 1:
        raise ShapeError("searchsorted", expected="a sorted tensor of one axis", got=str(ordered))
    if ordered.dtype is not values.dtype:
        raise DTypeError("searchsorted", expected="one dtype", got=f"{ordered} and {values}")
    return TensorType(values.shape, int64)


def _searchsorted_samples() -> Iterator[Sample]:
    for right in (False, True):
        for n in (0, 1, 37):
            ordered = np.sort(array((n,), float32, (-9, 9)))
            yield Sample((ordered, array((3, 5), float32, (-10, 10))), {"right": right})
        for d in DTYPES:
            if d.bits != 16 or not d.is_float:
                ordered = np.sort(array((20,), d, (-9, 9)))
                yield Sample((ordered, array((7,), d, (-10, 10))), {"right": right})
    yield Sample((array((2, 2), float32), array((2,), float32)), {"right": False}, ShapeError)
    yield Sample((array((2,), float32), array((2,), DTYPES[0])), {"right": False}, DTypeError)


searchsorted = register(
    Op(
        "searchsorted",
        _searchsorted_type,
        extern="searchsorted",
        dense=True,
        samples=_searchsorted_samples,
        reference=lambda ordered, values, *, right: np.searchsorted(
            ordered, values, "right" if right else "left"
        ),
        doc="Where each value could be put into an ascending tensor: before or behind its equals.",
    )
)


def _starts(x: Any) -> Any:
    flat = x.reshape(-1) != 0
    counts = [np.count_nonzero(flat[i : i + BLOCK]) for i in range(0, flat.size, BLOCK)]
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _starts_type(x: TensorType) -> TensorType:
    return TensorType((-(-x.size // BLOCK) + 1,), int64)


def _starts_samples() -> Iterator[Sample]:
    for d in DTYPES:
        yield Sample((array((3, 7), d, (-1, 1)),))
    yield Sample((array((0,), float32),))
    yield Sample((np.arange(40000) % 3,))


def _places_samples() -> Iterator[Sample]:
    for s in _starts_samples():
        starts = _starts(s.args[0])
        yield Sample((s.args[0], starts), {"many": int(starts[-1])})


def _places_type(x: TensorType, starts: TensorType, *, many: int) -> TensorType:
    wanted = _starts_type(x)
    if starts is not wanted or not 0 <= many <= x.size:
        got = f"{starts} and many={many}"
        raise ShapeError("nonzero_places", expected=f"{wanted} and at most {x.size}", got=got)
    return TensorType((many,), int64)


nonzero_starts = register(
    Op(
        "nonzero_starts",
        _starts_type,
        extern="nonzero_starts",
        dense=True,
        reference=_starts,
        samples=_starts_samples,
        doc="How many elements are not zero before each block of them, and in all.",
    )
)
nonzero_places = register(
    Op(
        "nonzero_places",
        _places_type,
        extern="nonzero_places",
        dense=True,
        reference=lambda x, starts, *, many: np.flatnonzero(x),
        samples=_places_samples,
        doc="The row-major positions of the elements that are not zero, ascending.",
    )
)
