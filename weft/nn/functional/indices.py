"""Indices that name classes or rows: no negative ones, and errors in the caller's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft.errors import IndexRangeError
from weft.ops.define import Value
from weft.ops.elementwise import less, where


def refuse_negative(index: Value, n: Any) -> Value:
    """The indices, those below 0 made ones that are out of range: here they don't count from the
    end.
    """
    return index if index.type.dtype.kind == "u" else where(less(index, 0), int(n), index)


@contextmanager
def indices_of(place: str, what: str, n: Any) -> Iterator[None]:
    """An index out of range is reported as what it is to the caller."""
    try:
        yield
    except IndexRangeError as e:
        got = f"one below 0 or {e.got}" if e.got == str(n) else e.got
        raise IndexRangeError(place, expected=f"{what} in [0, {n})", got=got) from None
