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
from weft.types.dtype import int64


def refuse_negative(index: Value, n: Any) -> Value:
    """The indices, those below 0 made ones that are out of range: here they don't count from the
    end.
    """
    d = index.type.dtype
    if d.kind == "u":
        return index
    if n > np.iinfo(d.np).max:
        index = astype(index, dtype=int64)
    return where(less(index, 0), n, index)


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
