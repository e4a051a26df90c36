"""Dtypes by their short names, which tests use to name cases."""

from __future__ import annotations

from typing import Any

from weft.types.dtype import DTYPES, DType, as_dtype, from_short

SHORT = {d.short for d in DTYPES}


def dtype_of(x: Any) -> DType:
    """`"f32"`, or anything that `as_dtype` takes."""
    return from_short(x) if x in SHORT else as_dtype(x)
