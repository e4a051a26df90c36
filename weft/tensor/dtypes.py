"""Questions about dtypes, and conversion between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from weft.errors import DTypeError
from weft.ops import elementwise as ew
from weft.ops.define import Value, installed
from weft.tensor.arguments import flag, on_cpu, value
from weft.types import DType, as_dtype, result_dtype
from weft.types.promotion import promote
from weft.types.record import dataclass

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "",
    "numeric": "iuf",
}


def astype(x: Any, dtype: Any, *, copy: bool = True, device: Any = None) -> Tensor:
    """The same values as another dtype. A tensor that already has it may be given back as it is if
    `copy` is False.

    Floats become integers by dropping the fraction, numbers become bools by comparing with zero.

    >>> import weft as wf
    >>> wf.astype(wf.tensor([1.7, -1.7]), wf.int32)
    tensor([ 1, -1], dtype=int32)
    """
    if device is not None:
        on_cpu(device, "astype")
    try:
        plan = ew.astype.plans[x.data.layout, dtype] if copy is True else None
    except (KeyError, AttributeError, TypeError, ValueError):
        plan = None
    if plan is not None:
        return installed.launch(plan, x)
    v, d = value(x), as_dtype(dtype)
    if v.type.dtype is d:
        return ew.copy(v) if flag(copy, "astype") else v
    return ew.astype(v, dtype=d)


def can_cast(from_: Any, to: Any) -> bool:
    """Whether promotion leads from the first dtype (or a tensor's) to the second.

    >>> import weft as wf
    >>> wf.can_cast(wf.int8, wf.int32), wf.can_cast(wf.float32, wf.int32)
    (True, False)
    """
    a, b = from_.type.dtype if isinstance(from_, Value) else as_dtype(from_), as_dtype(to)
    try:
        return promote(a, b) is b
    except DTypeError:
        return False


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a floating dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntegerInfo:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(x: Any) -> DType:
    return x.type.dtype if isinstance(x, Value) else as_dtype(x)


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating dtype, or of a tensor's.

    >>> import weft as wf
    >>> wf.finfo(wf.float32).eps
    1.1920928955078125e-07
    """
    d = _dtype_of(type)
    if not d.is_float:
        raise DTypeError("finfo", expected="a floating dtype", got=d.name, hint="use iinfo")
    info = ml_dtypes.finfo(d.np)
    eps, top, low, small = map(float, (info.eps, info.max, info.min, info.smallest_normal))
    return FloatInfo(d.bits, eps, top, low, small, d)


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype, or of a tensor's.

    >>> import weft as wf
    >>> wf.iinfo(wf.int8).min, wf.iinfo(wf.int8).max
    (-128, 127)
    """
    d = _dtype_of(type)
    if not d.is_int:
        raise DTypeError("iinfo", expected="an integer dtype", got=d.name, hint="use finfo")
    info = np.iinfo(d.np)
    return IntegerInfo(d.bits, int(info.max), int(info.min), d)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: a dtype, a word of the array API standard, or a tuple of these.

    >>> import weft as wf
    >>> wf.isdtype(wf.int8, "integral"), wf.isdtype(wf.int8, ("bool", wf.float32))
    (True, False)
    """
    d = as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(d, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise DTypeError("isdtype", expected=f"one of {', '.join(_KINDS)}", got=repr(kind))
        return d.kind in _KINDS[kind]
    return d is as_dtype(kind)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that operands of these dtypes meet in; Python numbers give way.

    >>> import weft as wf
    >>> wf.result_type(wf.int8, wf.uint8), wf.result_type(wf.float16, 1.0)
    (weft.int16, weft.float16)
    """
    return result_dtype(
        *(type(x) if type(x) in (float, int, bool) else _dtype_of(x) for x in arrays_and_dtypes)
    )
