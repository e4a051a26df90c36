"""Memory shared with, or copied from, NumPy and other frameworks."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from weft.buffer.buffer import Buffer, Foreign
from weft.buffer.layout import Layout
from weft.errors import AllocationError, DTypeError, ShapeError
from weft.types import DTYPES, DType, TensorType, as_dtype
from weft.types.dtype import bfloat16, bool_, float32, float64

ALIGNMENT = 64
#: bytes of an array that is taken over as NumPy laid it out; larger ones are worth aligned memory
SMALL = 1 << 12


class _Window:
    """What NumPy needs to see memory as an array, and a hold on its owner."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, buffer: Buffer, writable: bool) -> None:
        layout = buffer.layout
        d = layout.type.dtype
        self.owner = buffer.owner
        self.__array_interface__ = {
            "version": 3,
            "shape": layout.type.shape,
            "typestr": "<u2" if d is bfloat16 else d.np.str,
            "strides": tuple(s * d.itemsize for s in layout.strides),
            "data": (buffer.address, not writable),
        }


def to_numpy(buffer: Buffer, *, writable: bool = False) -> np.ndarray[Any, Any]:
    """The buffer as an ndarray on the same memory; read-only, since a tensor's value never
    changes.
    """
    if buffer.layout.type.size == 0:
        out = np.empty(buffer.layout.type.sizes, buffer.layout.type.dtype.np)
        out.flags.writeable = writable
        return out
    seen = np.asarray(_Window(buffer, writable))
    return seen.view(bfloat16.np) if buffer.layout.type.dtype is bfloat16 else seen


#: what C has a word for, by dtype
_C: dict[DType, Any] = {d: getattr(ctypes, f"c_{d.name}") for d in DTYPES if d.is_int}
_C |= {float64: ctypes.c_double, float32: ctypes.c_float, bool_: ctypes.c_bool}


def read_number(buffer: Buffer) -> float | int | bool:
    """The one element of a buffer as a Python number."""
    c = _C.get(buffer.layout.type.dtype)
    if c is None:
        return float(to_numpy(buffer).astype(np.float64).item())
    out: float | int | bool = c.from_address(buffer.address).value
    return out


def allocate(type_: TensorType) -> Buffer:
    """Aligned memory, not initialised."""
    try:
        raw = np.empty(type_.nbytes + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError):
        raise AllocationError(
            "allocation",
            expected="memory for the result",
            got=f"{type_}, {type_.nbytes:,} bytes",
            hint="the machine does not have that much to give",
        ) from None
    address = raw.ctypes.data
    return Buffer(Layout.dense(type_), address + -address % ALIGNMENT, raw)


def adopt(a: np.ndarray[Any, Any]) -> Buffer:
    """The memory of a C-contiguous array that nobody else writes to."""
    return Buffer(_dense(a.shape, a.dtype), a.__array_interface__["data"][0], a)


@lru_cache(maxsize=256)
def _dense(shape: tuple[int, ...], dtype: Any) -> Layout:
    return Layout.dense(TensorType(shape, as_dtype(dtype)))


def copy_from_numpy(x: Any) -> Buffer:
    """A dense copy of an array (of any strides and byte order) in memory of its own."""
    if x.nbytes <= SMALL:
        return adopt(np.array(x, x.dtype.newbyteorder("="), order="C"))
    out = allocate(TensorType(x.shape, as_dtype(x.dtype)))
    np.copyto(to_numpy(out, writable=True), x)
    return out


def share_numpy(x: np.ndarray[Any, Any]) -> Buffer:
    """The memory of an array, without a copy. Whoever writes to the array changes the value."""
    d = as_dtype(x.dtype)
    if x.dtype != d.np or any(s % d.itemsize for s in x.strides):
        raise DTypeError(
            "from_numpy", expected="native byte order and whole strides", got=str(x.dtype)
        )
    if x.ctypes.data % d.itemsize:
        raise ShapeError(
            "from_numpy", expected="aligned elements", got=f"address {x.ctypes.data:#x}"
        )
    strides = [s // d.itemsize for s in x.strides]
    return Buffer(Layout(TensorType(x.shape, d), strides), x.ctypes.data, Foreign(x))
