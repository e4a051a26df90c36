"""DLPack without a copy: memory of other frameworks as a Buffer, and a Buffer as memory of theirs.

https://dmlc.github.io/dlpack/latest/c_api.html. The producer's memory lives until the last Buffer
on it is gone.

A value must not change, so what is lent out says that it is read-only: NumPy gives a read-only
array. PyTorch (2.13) has no such tensors and doesn't look; who writes there changes the value. A
consumer from before DLPack 1.0, which cannot be told, gets a copy.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from weft.buffer.buffer import Buffer, Foreign
from weft.buffer.interchange import copy_from_numpy, to_numpy
from weft.buffer.layout import Layout, dense_strides
from weft.errors import DeviceError, DTypeError, ShapeError, SharingError
from weft.types import DTYPES, TensorType
from weft.types.dtype import bfloat16, bool_

_CPU = 1
_NEWEST = (1, 0)
_BY_CODE = {
    (2 if d.is_float else 6 if d is bool_ else 0 if d.kind == "i" else 1, d.bits): d
    for d in DTYPES
    if d is not bfloat16
}
_BFLOAT = 4
_BY_CODE[_BFLOAT, 16] = bfloat16


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_KINDS = (
    (b"dltensor_versioned", b"used_dltensor_versioned", _Versioned),
    (b"dltensor", b"used_dltensor", _Managed),
)
_DELETER = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_api = ctypes.pythonapi
_api.PyCapsule_IsValid.argtypes = (ctypes.py_object, ctypes.c_char_p)
_api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)


class _Owner(Foreign):
    """Gives the memory back to its producer when it is dropped."""

    __slots__ = ("address", "deleter")

    def __init__(self, address: int, deleter: int | None) -> None:
        super().__init__(None)
        self.address, self.deleter = address, deleter

    def __del__(self) -> None:
        if self.deleter:
            _DELETER(self.deleter)(self.address)


def from_dlpack(x: Any) -> Buffer:
    """The memory of anything that has `__dlpack__`."""
    if not hasattr(x, "__dlpack__"):
        raise DTypeError("from_dlpack", expected="an object with __dlpack__", got=type(x).__name__)
    device = tuple(x.__dlpack_device__())
    if device[0] != _CPU:
        raise DeviceError(
            "from_dlpack",
            expected="memory of the CPU",
            got=f"DLPack device {device}",
            hint="copy it there first",
        )
    try:
        capsule = x.__dlpack__(max_version=_NEWEST)
    except TypeError:  # a producer from before versions
        capsule = x.__dlpack__()
    except BufferError as e:
        raise DTypeError("from_dlpack", expected="memory that can be shared", got=str(e)) from None
    for name, used, kind in _KINDS:
        if _api.PyCapsule_IsValid(capsule, name):
            address = _api.PyCapsule_GetPointer(capsule, name)
            managed = kind.from_address(address)
            buffer = _buffer(managed.tensor)
            _api.PyCapsule_SetName(capsule, used)  # from here on it is ours to give back
            buffer.owner = _Owner(address, managed.deleter)
            return buffer
    raise DTypeError("from_dlpack", expected="a DLPack capsule", got=repr(capsule))


def to_dlpack(
    buffer: Buffer,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A capsule on the memory of a buffer, or where that can't be on a copy of it. NumPy makes it;
    bfloat16, which it doesn't know, as the bits and renamed.
    """
    if stream is not None or dl_device not in (None, (_CPU, 0)):
        got = f"device {dl_device}, stream {stream}"
        raise SharingError("__dlpack__", expected="the CPU, which has no streams", got=got)
    problem = _obstacle(buffer, max_version)
    if problem and copy is False:
        raise SharingError("__dlpack__", expected="memory to share without a copy", got=problem)
    if copy or problem:
        buffer = copy_from_numpy(to_numpy(buffer))
    elif not buffer.shared:
        buffer.owner = Foreign(buffer.owner)
    seen = to_numpy(buffer, writable=bool(copy or problem))
    half = buffer.layout.type.dtype is bfloat16
    version: dict[str, Any] = (
        {} if max_version is None or max_version[0] < 1 else {"max_version": max_version}
    )
    capsule = (seen.view(np.uint16) if half else seen).__dlpack__(**version)
    for name, _, kind in _KINDS if half else ():
        if _api.PyCapsule_IsValid(capsule, name):
            kind.from_address(_api.PyCapsule_GetPointer(capsule, name)).tensor.dtype.code = _BFLOAT
    return capsule


def _obstacle(buffer: Buffer, version: tuple[int, int] | None) -> str:
    """Why a consumer cannot have this memory itself; empty if it can."""
    if version is None or version[0] < 1:
        return "a consumer that cannot be told that it is read-only (DLPack before 1.0)"
    axes = zip(buffer.layout.type.sizes, buffer.layout.strides, strict=True)
    if any(n > 1 and s <= 0 for n, s in axes):
        return "an axis that is repeated or runs backwards"  # which some end the process over
    return ""


def _buffer(t: _Tensor) -> Buffer:
    dtype = _BY_CODE.get((t.dtype.code, t.dtype.bits)) if t.dtype.lanes == 1 else None
    if dtype is None:
        got = f"code {t.dtype.code}, {t.dtype.bits} bits, {t.dtype.lanes} lanes"
        raise DTypeError("from_dlpack", expected="a dtype of Weft's", got=got)
    shape = tuple(t.shape[i] for i in range(t.ndim))
    strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else dense_strides(shape)
    address = (t.data or 0) + t.byte_offset
    type_ = TensorType(shape, dtype)
    if type_.size and address % dtype.itemsize:
        raise ShapeError("from_dlpack", expected="aligned elements", got=f"address {address:#x}")
    return Buffer(Layout(type_, strides), address, None)
