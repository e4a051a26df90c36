"""Making tensors: of data, of a number, of a range."""

from __future__ import annotations

import math
import operator
from functools import lru_cache
from typing import Any

import numpy as np

from weft.buffer import Buffer, Layout
from weft.buffer.dlpack import from_dlpack as _share
from weft.buffer.interchange import allocate, copy_from_numpy, share_numpy
from weft.errors import DTypeError, NumericsError, ShapeError
from weft.ops import creation as ops, joining
from weft.ops.define import Value, installed
from weft.ops.elementwise import astype, copy as copied
from weft.ops.movement import broadcast_to, reshape
from weft.tensor.arguments import sizes, value
from weft.types import DType, TensorType, as_dtype
from weft.types.dtype import float32, int64

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "one_hot",
    "ones",
    "ones_like",
    "tensor",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Any:
    """A tensor with a copy of `data`: numbers, nested lists of them, NumPy arrays, tensors.

    Python floats give float32, ints int64, bools bool; arrays keep their dtype.

    >>> import weft as wf
    >>> wf.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    return _finish(_copied(data, dtype, "tensor"), requires_grad)


def asarray(obj: Any, *, dtype: Any = None, copy: bool | None = None) -> Any:
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
    if isinstance(obj, Value):
        if wanted is None or wanted is obj.type.dtype:
            return copied(obj) if copy else obj
        if copy is False:
            raise DTypeError(
                "asarray", expected=f"{obj.type.dtype.name} without a copy", got=wanted.name
            )
        return astype(obj, dtype=wanted)
    if copy is False:
        if isinstance(obj, np.ndarray) and (wanted is None or wanted.np == obj.dtype):
            return installed.tensor(share_numpy(obj))
        if hasattr(obj, "__dlpack__") and not isinstance(obj, np.ndarray):
            return from_dlpack(obj)
        raise DTypeError(
            "asarray",
            expected="a tensor or array of that dtype, to share its memory",
            got=type(obj).__name__,
        )
    return _copied(obj, wanted, "asarray")


def from_dlpack(x: Any, /) -> Any:
    """A tensor on the memory of `x`, which has `__dlpack__`: a NumPy array, a PyTorch tensor on the
    CPU. No element is copied.

    >>> import weft as wf, numpy as np
    >>> wf.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    return installed.tensor(_share(x))


_DEFAULTS = {"f": float32, "i": int64}
#: bytes of an array that is taken over as it is; larger ones are worth aligned memory
_SMALL = 1 << 12


def _finish(x: Any, requires_grad: bool) -> Any:
    if requires_grad:
        x.requires_grad = True
    return x


def _copied(data: Any, dtype: Any, place: str) -> Value:
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Value):
        if not isinstance(data.data, Buffer):
            return data if wanted is None else astype(data, dtype=wanted)
        same = installed.tensor(data.data)
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
    made = a is not data  # by now in memory of its own, if it was not an array before
    if wanted is not None and a.dtype != wanted.np:
        a, made = _converted(a, wanted, place), True
    if a.nbytes > _SMALL:
        return installed.tensor(copy_from_numpy(a))
    if not (made and a.flags.c_contiguous):
        a = np.array(a, a.dtype.newbyteorder("="), order="C")
    return installed.tensor(Buffer(_layout(a.shape, a.dtype), a.__array_interface__["data"][0], a))


@lru_cache(maxsize=256)
def _layout(shape: tuple[int, ...], dtype: Any) -> Layout:
    return Layout.dense(TensorType(shape, as_dtype(dtype)))


def _array(data: Any, place: str) -> np.ndarray[Any, Any]:
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
        if a.dtype.kind == "O" and _all_ints(a):
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
    if a.dtype.kind != "f":
        return a.astype(to.np)
    with np.errstate(over="ignore", invalid="ignore"):
        return a.astype(to.np)


# one number


def _shape(shape: tuple[Any, ...], place: str) -> tuple[int, ...]:
    """Sizes given one by one or as one sequence."""
    return sizes(shape[0] if len(shape) == 1 else shape, place)


def _constant(
    number: int, shape: tuple[Any, ...], dtype: Any, requires_grad: bool, place: str
) -> Value:
    try:
        plan = ops.full.plans[int, shape, dtype]
    except (KeyError, TypeError):
        meant, wanted = _shape(shape, place), _dtype(dtype)
        out: Value = ops.full(number, shape=meant, dtype=wanted)
        plan = ops.full.plans.get((int, meant, wanted))
        if plan is not None and all(type(n) in (int, tuple) for n in shape):
            ops.full.plans[int, shape, dtype] = plan
    else:
        out = installed.launch(plan, number)
    return _finish(out, requires_grad) if requires_grad else out


def zeros(*shape: Any, dtype: Any = None, requires_grad: bool = False) -> Any:
    """All zeros, of a shape: `zeros((2, 3))` or `zeros(2, 3)`.

    >>> import weft as wf
    >>> wf.zeros((2, 3), dtype=wf.int32)
    tensor([[0, 0, 0],
            [0, 0, 0]], dtype=int32)
    """
    return _constant(0, shape, dtype, requires_grad, "zeros")


def ones(*shape: Any, dtype: Any = None, requires_grad: bool = False) -> Any:
    """All ones, of a shape: `ones((2, 3))` or `ones(2, 3)`.

    >>> import weft as wf
    >>> wf.ones(3)
    tensor([1., 1., 1.])
    """
    return _constant(1, shape, dtype, requires_grad, "ones")


def empty(*shape: Any, dtype: Any = None) -> Any:
    """A tensor whose elements are whatever was in memory.

    >>> import weft as wf
    >>> wf.empty((2, 3)).shape
    (2, 3)
    """
    return installed.tensor(allocate(TensorType(_shape(shape, "empty"), _dtype(dtype))))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False) -> Any:
    """Every element `fill_value`, a number or a tensor of one; its dtype is the result's unless
    another is said.

    >>> import weft as wf
    >>> wf.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    if not isinstance(fill_value, (Value, bool, int, float)):
        fill_value = value(fill_value)
    if isinstance(fill_value, Value):
        wanted = fill_value.type.dtype if dtype is None else as_dtype(dtype)
    else:
        wanted = as_dtype(type(fill_value)) if dtype is None else as_dtype(dtype)
        fill_value = _representable(fill_value, wanted, "full")
    return _finish(ops.full(fill_value, shape=sizes(shape, "full"), dtype=wanted), requires_grad)


def _representable(x: Any, dtype: DType, place: str) -> Any:
    if isinstance(x, int) and dtype.is_int:
        info = np.iinfo(dtype.np)
        if not info.min <= x <= info.max:
            raise NumericsError(place, expected=f"a number that {dtype.name} holds", got=str(x))
        return int(x) if x < 2**63 else int(x) - 2**64  # it travels as an int64
    if isinstance(x, int) and abs(x) >= 2**63:
        return float(x)
    return x


def _dtype(dtype: Any) -> DType:
    return float32 if dtype is None else as_dtype(dtype)


def zeros_like(x: Any, *, dtype: Any = None, requires_grad: bool = False) -> Any:
    """All zeros, of another tensor's shape and dtype.

    >>> import weft as wf
    >>> wf.zeros_like(wf.tensor([1, 2]))
    tensor([0, 0])
    """
    return full_like(x, 0, dtype=dtype, requires_grad=requires_grad)


def ones_like(x: Any, *, dtype: Any = None, requires_grad: bool = False) -> Any:
    """All ones, of another tensor's shape and dtype.

    >>> import weft as wf
    >>> wf.ones_like(wf.tensor([1.5, 2.5]))
    tensor([1., 1.])
    """
    return full_like(x, 1, dtype=dtype, requires_grad=requires_grad)


def full_like(x: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False) -> Any:
    """Every element `fill_value`, of another tensor's shape and dtype.

    >>> import weft as wf
    >>> wf.full_like(wf.tensor([1, 2]), 9)
    tensor([9, 9])
    """
    t = value(x).type
    return full(
        t.shape, fill_value, dtype=t.dtype if dtype is None else dtype, requires_grad=requires_grad
    )


def empty_like(x: Any, *, dtype: Any = None) -> Any:
    """A tensor of another one's shape and dtype whose elements are whatever was in memory.

    >>> import weft as wf
    >>> wf.empty_like(wf.zeros(3)).shape
    (3,)
    """
    t = value(x).type
    return empty(t.shape, dtype=t.dtype if dtype is None else dtype)


# ranges


def _number(x: Any, place: str) -> Any:
    if isinstance(x, (Value, np.ndarray, np.generic)):
        x = x.item()
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        raise DTypeError(place, expected="numbers", got=type(x).__name__)
    if isinstance(x, float) and not math.isfinite(x):
        raise NumericsError(place, expected="finite numbers", got=str(x))
    return x


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None) -> Any:
    """start, start + step, …, up to but without `stop`; with one argument, from 0 up to it.

    >>> import weft as wf
    >>> wf.arange(2, 8, 2)
    tensor([2, 4, 6])
    """
    if stop is None:
        start, stop = 0, start
    a, b, d = (_number(x, "arange") for x in (start, stop, step))
    if d == 0:
        raise ShapeError("arange", expected="a step other than 0", got=str(step))
    whole = all(isinstance(x, int) for x in (a, b, d))
    try:
        size = max(0, -((a - b) // d) if whole else math.ceil((b - a) / d))
    except OverflowError:
        raise ShapeError("arange", expected="fewer steps", got=f"{a} to {b} by {d}") from None
    wanted = as_dtype(dtype) if dtype is not None else int64 if whole else float32
    if wanted.is_int and whole and size:
        for x in (a, a + (size - 1) * d):
            _representable(x, wanted, "arange")
    wide = any(isinstance(x, int) and abs(x) >= 2**63 for x in (a, d))
    return ops.arange(float(a) if wide else a, float(d) if wide else d, size=size, dtype=wanted)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, endpoint: bool = True
) -> Any:
    """`num` numbers evenly spaced from `start` to `stop`, which is the last one unless `endpoint`
    is False.

    >>> import weft as wf
    >>> wf.linspace(0, 1, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    a, b = (float(_number(x, "linspace")) for x in (start, stop))
    (size,) = sizes(num, "linspace")
    return ops.linspace(a, b, size=size, endpoint=bool(endpoint), dtype=_dtype(dtype))


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None) -> Any:
    """Ones on the k-th diagonal, zeros elsewhere.

    >>> import weft as wf
    >>> wf.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    (rows,), (columns,) = sizes(n_rows, "eye"), sizes(n_rows if n_cols is None else n_cols, "eye")
    return ops.eye(shape=(rows, columns), offset=_offset(k, "eye"), dtype=_dtype(dtype))


def _offset(k: Any, place: str) -> int:
    try:
        return max(-(2**62), min(2**62, operator.index(k)))
    except TypeError:
        raise DTypeError(place, expected="an integer diagonal", got=repr(k)) from None


def tril(x: Any, /, *, k: int = 0) -> Any:
    """Zeros above the k-th diagonal of the last two axes.

    >>> import weft as wf
    >>> wf.tril(wf.ones((2, 2)))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return joining.tril(value(x), offset=_offset(k, "tril"))


def triu(x: Any, /, *, k: int = 0) -> Any:
    """Zeros below the k-th diagonal of the last two axes.

    >>> import weft as wf
    >>> wf.triu(wf.ones((2, 2)))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return joining.triu(value(x), offset=_offset(k, "triu"))


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Any, ...]:
    """Coordinates of a grid, one tensor for each axis; with "xy" the first two axes are swapped.

    >>> import weft as wf
    >>> wf.meshgrid(wf.arange(2), wf.arange(3), indexing="ij")[1]
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
    if indexing not in ("xy", "ij"):
        raise ShapeError("meshgrid", expected='indexing "xy" or "ij"', got=repr(indexing))
    xs = [value(x) for x in arrays]
    if any(x.type.ndim > 1 for x in xs):
        raise ShapeError(
            "meshgrid", expected="tensors of one axis", got=", ".join(str(x.type) for x in xs)
        )
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        order[:2] = [1, 0]
    shape = tuple(xs[n].type.size for n in order)
    out = []
    for n, x in enumerate(xs):
        own = tuple(x.type.size if m == n else 1 for m in order)
        out.append(broadcast_to(reshape(x, shape=own), shape=shape))
    return tuple(out)


def one_hot(x: Any, num_classes: int = -1, *, dtype: Any = int64) -> Any:
    """A last axis of zeros with a one where the index says; -1 classes means one more than the
    largest index.

    >>> import weft as wf
    >>> wf.one_hot(wf.tensor([0, 2]), 3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    v = value(x)
    if num_classes == -1:
        a = v.numpy()
        num_classes = int(a.max()) + 1 if a.size else 0
    (size,) = sizes(num_classes, "one_hot")
    return ops.one_hot(v, size=size, dtype=as_dtype(dtype))
