"""The thirteen element types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from weft.errors import DTypeError


class DType:
    """An element type. There is one object per dtype, so `is` compares them.

    >>> import weft as wf
    >>> wf.zeros(2).dtype is wf.float32, wf.bfloat16.itemsize
    (True, 2)
    """

    __slots__ = ("bits", "kind", "name", "np", "short")

    def __init__(self, name: str, short: str, kind: str, bits: int, np_type: Any) -> None:
        self.name, self.short, self.kind, self.bits = name, short, kind, bits
        self.np: np.dtype[Any] = np.dtype(np_type)

    @property
    def itemsize(self) -> int:
        return self.np.itemsize

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_int(self) -> bool:
        return self.kind in "iu"

    @property
    def compute(self) -> DType:
        """The dtype an op computes in: float32 for the half types, itself otherwise."""
        return float32 if self.kind == "f" and self.bits == 16 else self

    def __repr__(self) -> str:
        return f"weft.{self.name}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return as_dtype, (self.name,)


float64 = DType("float64", "f64", "f", 64, np.float64)
float32 = DType("float32", "f32", "f", 32, np.float32)
float16 = DType("float16", "f16", "f", 16, np.float16)
bfloat16 = DType("bfloat16", "bf16", "f", 16, ml_dtypes.bfloat16)
int64 = DType("int64", "i64", "i", 64, np.int64)
int32 = DType("int32", "i32", "i", 32, np.int32)
int16 = DType("int16", "i16", "i", 16, np.int16)
int8 = DType("int8", "i8", "i", 8, np.int8)
uint64 = DType("uint64", "u64", "u", 64, np.uint64)
uint32 = DType("uint32", "u32", "u", 32, np.uint32)
uint16 = DType("uint16", "u16", "u", 16, np.uint16)
uint8 = DType("uint8", "u8", "u", 8, np.uint8)
bool_ = DType("bool", "bool", "b", 8, np.bool_)

DTYPES: tuple[DType, ...] = (
    float64, float32, float16, bfloat16,
    int64, int32, int16, int8, uint64, uint32, uint16, uint8, bool_,
)  # fmt: skip
_BY_NUMPY = {d.np: d for d in DTYPES}
_BY_NAME = {d.name: d for d in DTYPES}
_BY_SHORT = {d.short: d for d in DTYPES}
_BY_PYTHON: dict[type, DType] = {float: float32, int: int64, bool: bool_}


def as_dtype(x: Any) -> DType:
    """The dtype that `x` names: a DType, a name, a NumPy dtype or scalar type, or Python's float,
    int, bool.

    >>> as_dtype("bfloat16"), as_dtype(np.int8), as_dtype(float)
    (weft.bfloat16, weft.int8, weft.float32)
    """
    if isinstance(x, DType):
        return x
    try:
        if isinstance(x, str) and x in _BY_NAME:
            return _BY_NAME[x]
        if isinstance(x, type) and x in _BY_PYTHON:
            return _BY_PYTHON[x]
        if x is not None:
            return _BY_NUMPY[np.dtype(x).newbyteorder("=")]
    except (TypeError, KeyError, ValueError):
        pass
    raise DTypeError("dtype", expected=f"one of {', '.join(d.name for d in DTYPES)}", got=repr(x))


def from_short(name: str) -> DType:
    """The dtype that a graph's text spells `name`. (NumPy gives some of these spellings other
    meanings, so they are no names for users.)

    >>> from_short("bf16")
    weft.bfloat16
    """
    return _BY_SHORT[name]
