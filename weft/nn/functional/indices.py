"""Indices that name classes or rows: no negative ones, and errors in the caller's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from weft.buffer import Buffer
from weft.errors import IndexRangeError
from weft.ops.define import Value
from weft.ops.elementwise import astype, less, where
from weft.ops.indexing import BELOW
from weft.types.dtype import int64


def refuse_negative(index: Value) -> Value:
    """The indices, those below 0 made ones that are out of range: here they don't count from the
    end.
    """
    if index.type.dtype.kind == "u":
        return index
    wide = astype(index, dtype=int64)
    return where(less(wide, 0), wide - BELOW, wide)


@contextmanager
def indices_of(place: str, what: str, n: Any, index: Value) -> Iterator[None]:
    """An index out of range is reported as what it is to the caller, who gave it in `index`."""
    try:
        yield
    except IndexRangeError as e:
        got = _first_outside(index, int(n))
        raise IndexRangeError(place, expected=f"{what} in [0, {n})", got=got or e.got) from None


def _first_outside(index: Value, n: int) -> str:
    if not isinstance(index.data, Buffer):
        return ""
    given = index.numpy().reshape(-1)
    outside = (
        given[(given < 0) | (given >= n)] if n <= np.iinfo(given.dtype).max else given[given < 0]
    )
    return str(outside[0]) if outside.size else ""
