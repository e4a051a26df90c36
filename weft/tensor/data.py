"""Tensors of data: numbers, nested lists, NumPy arrays, memory of other frameworks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft.buffer.dlpack import from_dlpack as _share
from weft.buffer.interchange import SMALL, adopt, copy_from_numpy, share_numpy, to_numpy
from weft.errors import DTypeError, NumericsError, ShapeError, SharingError
from weft.ops.creation import full
from weft.ops.define import Value, data_of, fresh, installed, standard_mode
from weft.ops.elementwise import astype, copy as copied
from weft.ops.scalar import Scalar
from weft.tensor.arguments import flag, on_cpu
from weft.types import DType, as_dtype
from weft.types.dtype import float32, int64
from weft.types.size import is_symbolic

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

__all__ = ["asarray", "from_dlpack", "tensor"]


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor with a copy of `data`: numbers, nested lists of them, NumPy arrays, tensors.

    Python floats give float32, ints int64, bools bool; arrays keep their dtype.

    >>> import weft as wf
    >>> wf.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    return finished(_copied(data, dtype, "tensor"), requires_grad)


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor of `obj`. Tensors are given back as they are unless that needs another dtype; all
    else is copied.

    With `copy=True` the result has memory of its own; with `copy=False` it shares the memory of a
    tensor or array, and where it can't that is an error. Whoever writes to a shared array changes
    the tensor.

    >>> import weft as wf
    >>> x = wf.asarray([1, 2, 3])
    >>> wf.asarray(x) is x
    True
    """
    wanted = None if dtype is None else as_dtype(dtype)
    on_cpu(device, "asarray")
    if copy is not None:
        flag(copy, "asarray")
    if isinstance(obj, Value):
        same: Any = obj
        if wanted is None or wanted is obj.type.dtype:
            return copied(obj) if copy else same
        if copy is False:
            raise SharingError(
                "asarray", expected=f"{obj.type.dtype.name} without a copy", got=wanted.name
            )
        return astype(obj, dtype=wanted)
    if copy is False:
        if isinstance(obj, np.ndarray) and (wanted is None or wanted.np == obj.dtype):
            return fresh(share_numpy(obj))
        if hasattr(obj, "__dlpack__") and not isinstance(obj, np.ndarray):
            return from_dlpack(obj)
        raise SharingError(
            "asarray",
            expected="a tensor or array of that dtype, to share its memory",
            got=type(obj).__name__,
        )
    return _copied(obj, wanted, "asarray")


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of `x`, which has `__dlpack__`: a NumPy array, a PyTorch tensor on the
    CPU. No element is copied unless `copy` is True.

    >>> import weft as wf, numpy as np
    >>> wf.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    on_cpu(device, "from_dlpack")
    shared = _share(x)
    if copy is not None and flag(copy, "from_dlpack"):
        shared = copy_from_numpy(to_numpy(shared))
    return fresh(shared)


_DEFAULTS = {"f": float32, "i": int64}


def finished(x: Any, requires_grad: bool) -> Any:
    """A new tensor, made one that gradients are wanted for if that was asked."""
    if flag(requires_grad, "requires_grad"):
        x.requires_grad = True
    return x


def _copied(data: Any, dtype: Any, place: str) -> Tensor:
    wanted = None if dtype is None else as_dtype(dtype)
    if is_symbolic(data) and (wanted is None or wanted.is_float):
        return full(data, shape=(), dtype=wanted or as_dtype(data.__class__))
    if isinstance(data, Value):
        same = installed.tensor(data_of(data))
        return (
            copied(same)
            if wanted is None or wanted is data.type.dtype
            else astype(same, dtype=wanted)
        )
    a = _array(data, place)
    if wanted is None:
        wanted = (
            as_dtype(a.dtype)
            if _has_dtype(data) or a.dtype == np.uint64
            else _DEFAULTS.get(a.dtype.kind)
        )
    made = type(data) in (list, tuple, float, int, bool)  # then the array is nobody else's
    if wanted is not None and a.dtype != wanted.np:
        a, made = _converted(a, wanted, place), True
    if made and a.nbytes <= SMALL and a.flags.c_contiguous:
        return fresh(adopt(a))
    return fresh(copy_from_numpy(a))


def _array(data: Any, place: str) -> np.ndarray[Any, Any]:
    if hasattr(data, "__dlpack__") and not isinstance(data, np.ndarray):
        return to_numpy(_share(data))  # another framework's: NumPy has no bfloat16 of theirs
    try:
        a = np.asarray(data)
    except ValueError as e:
        if "inhomogeneous" in str(e) or "sequence" in str(e):
            raise ShapeError(
                place, expected="lists of equal lengths", got="ragged nested lists"
            ) from None
        raise
    except TypeError:
        raise DTypeError(
            place, expected="numbers, or nested lists of them", got=type(data).__name__
        ) from None
    if a.dtype.kind not in "biuf" and a.dtype.name != "bfloat16":
        if a.dtype.kind == "O" and not _has_dtype(data) and _all_ints(a):
            raise NumericsError(place, expected="integers of at most 64 bits", got="larger ones")
        got = (
            f"an array of {a.dtype}"
            if isinstance(data, (np.ndarray, np.generic))
            else f"{type(data).__name__} ({a.dtype})"
        )
        raise DTypeError(place, expected="numbers, or nested lists of them", got=got)
    return a


def _all_ints(a: np.ndarray[Any, Any]) -> bool:
    return bool(a.size) and all(isinstance(x, int) for x in a.flat)


def _has_dtype(data: Any) -> bool:
    """Whether data says its dtype itself, or is made of things that do."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return hasattr(data, "dtype")


def _converted(a: np.ndarray[Any, Any], to: DType, place: str) -> np.ndarray[Any, Any]:
    if to.is_int and a.dtype.kind in "iu" and a.size:
        info = np.iinfo(to.np)
        low, high = int(a.min()), int(a.max())
        if low < info.min or high > info.max:
            raise NumericsError(
                place,
                expected=f"numbers that {to.name} holds",
                got=str(low if low < info.min else high),
            )
    if a.dtype.kind != "f" and not to.is_float:
        return a.astype(to.np)
    with np.errstate(over="ignore", invalid="ignore"), standard_mode():
        return a.astype(to.np)


def lift(x: Any) -> Any:
    """What an operand that is no tensor means: NumPy arrays and scalars are copied in."""
    if isinstance(x, (np.ndarray, np.generic)):
        return fresh(copy_from_numpy(np.asarray(x)))
    if is_symbolic(x):
        return full(x, shape=(), dtype=as_dtype(x.__class__))
    if type(x) in (float, int, bool):
        dtype = as_dtype(type(x))
        if type(x) is int and not -(2**63) <= x < 2**63:
            raise NumericsError("operand", expected="a number that int64 holds", got=str(x))
        with np.errstate(over="ignore"), standard_mode():
            return fresh(copy_from_numpy(np.asarray(x, dtype.np)))
    hint = "make a tensor with wf.tensor(...)"
    if isinstance(x, Scalar):
        hint = "a rule for one element is said in verbs: weft.ops.scalar, weft.ops.math"
    raise DTypeError(
        "operand",
        expected="a tensor, a NumPy array or a number",
        got=_class_of(x),
        hint=hint,
    )


def _class_of(x: Any) -> str:
    """What an object is; of what module, if it isn't Python's."""
    kind = type(x)
    module = kind.__module__.split(".")[0]
    return kind.__name__ if module in ("builtins", "__main__") else f"{module}.{kind.__name__}"


installed.lift = lift
