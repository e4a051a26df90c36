"""Making tensors: of a number, of a range; `weft.tensor.data` makes them of data."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.buffer.interchange import allocate
from weft.errors import DTypeError, NumericsError, ShapeError
from weft.ops import creation as ops, joining
from weft.ops.define import Value, fresh, installed, standard_mode
from weft.ops.movement import broadcast_to, reshape
from weft.tensor.arguments import all_integers, flag, integer, on_cpu, sizes, value, word
from weft.tensor.data import asarray, finished, from_dlpack, tensor
from weft.types import DType, TensorType, as_dtype
from weft.types.dtype import float32, int64

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

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


# one number


def _shape(shape: tuple[Any, ...], place: str) -> tuple[int, ...]:
    """Sizes given one by one or as one sequence."""
    return sizes(shape[0] if len(shape) == 1 else shape, place)


def _named(shape: Any, sizes: tuple[Any, ...], place: str) -> tuple[Any, ...]:
    """The shape given by its name, as if it were not."""
    if sizes:
        raise ShapeError(place, expected="a shape said once", got=f"{sizes} and shape={shape!r}")
    return (shape,)


def _constant(
    number: int, shape: tuple[Any, ...], dtype: Any, requires_grad: bool, place: str
) -> Tensor:
    try:
        plan = ops.full.plans[int, shape, dtype]
        all_integers(shape)
    except (KeyError, TypeError):
        meant, wanted = _shape(shape, place), _dtype(dtype)
        out: Tensor = ops.full(number, shape=meant, dtype=wanted)
        plan = ops.full.plans.get((int, meant, wanted))
        if plan is not None and all(type(n) in (int, tuple) for n in shape):
            ops.full.plans[int, shape, dtype] = plan
    else:
        out = installed.launch(plan, number)
    return out if requires_grad is False else finished(out, requires_grad)


def zeros(
    *sizes: Any,
    shape: Any = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """All zeros, of a shape: `zeros((2, 3))`, `zeros(2, 3)` or `zeros(shape=(2, 3))`.

    >>> import weft as wf
    >>> wf.zeros((2, 3), dtype=wf.int32)
    tensor([[0, 0, 0],
            [0, 0, 0]], dtype=int32)
    """
    if device is not None:
        on_cpu(device, "zeros")
    said = sizes if shape is None else _named(shape, sizes, "zeros")
    return _constant(0, said, dtype, requires_grad, "zeros")


def ones(
    *sizes: Any,
    shape: Any = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """All ones, of a shape: `ones((2, 3))`, `ones(2, 3)` or `ones(shape=(2, 3))`.

    >>> import weft as wf
    >>> wf.ones(3)
    tensor([1., 1., 1.])
    """
    if device is not None:
        on_cpu(device, "ones")
    said = sizes if shape is None else _named(shape, sizes, "ones")
    return _constant(1, said, dtype, requires_grad, "ones")


def empty(*sizes: Any, shape: Any = None, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor whose elements are whatever was in memory.

    >>> import weft as wf
    >>> wf.empty((2, 3)).shape
    (2, 3)
    """
    on_cpu(device, "empty")
    said = sizes if shape is None else _named(shape, sizes, "empty")
    return fresh(allocate(TensorType(_shape(said, "empty"), _dtype(dtype))))


def full(
    shape: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """Every element `fill_value`, a number or a tensor of one; its dtype is the result's unless
    another is said.

    >>> import weft as wf
    >>> wf.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    on_cpu(device, "full")
    if not isinstance(fill_value, (Value, bool, int, float)):
        fill_value = value(fill_value)
    if isinstance(fill_value, Value):
        wanted = fill_value.type.dtype if dtype is None else as_dtype(dtype)
    else:
        wanted = as_dtype(fill_value.__class__) if dtype is None else as_dtype(dtype)
        fill_value = _representable(fill_value, wanted, "full")
    return finished(ops.full(fill_value, shape=sizes(shape, "full"), dtype=wanted), requires_grad)


def _representable(x: Any, dtype: DType, place: str) -> Any:
    if isinstance(x, int) and dtype.is_int:
        info = np.iinfo(dtype.np)
        if not info.min <= x <= info.max:
            raise NumericsError(place, expected=f"a number that {dtype.name} holds", got=str(x))
        return +x if x < 2**63 else x - 2**64  # it travels as an int64
    if isinstance(x, int) and abs(x) >= 2**63:
        return float(x)
    return x


def _dtype(dtype: Any) -> DType:
    return float32 if dtype is None else as_dtype(dtype)


def zeros_like(
    x: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """All zeros, of another tensor's shape and dtype.

    >>> import weft as wf
    >>> wf.zeros_like(wf.tensor([1, 2]))
    tensor([0, 0])
    """
    on_cpu(device, "zeros_like")
    return _constant_like(0, x, dtype, requires_grad)


def ones_like(
    x: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """All ones, of another tensor's shape and dtype.

    >>> import weft as wf
    >>> wf.ones_like(wf.tensor([1.5, 2.5]))
    tensor([1., 1.])
    """
    on_cpu(device, "ones_like")
    return _constant_like(1, x, dtype, requires_grad)


def _constant_like(number: int, x: Any, dtype: Any, requires_grad: bool) -> Tensor:
    t = value(x).type
    wanted = t.dtype if dtype is None else as_dtype(dtype)
    return finished(ops.full(number, shape=t.shape, dtype=wanted), requires_grad)


def full_like(
    x: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """Every element `fill_value`, of another tensor's shape and dtype.

    >>> import weft as wf
    >>> wf.full_like(wf.tensor([1, 2]), 9)
    tensor([9, 9])
    """
    t = value(x).type
    on_cpu(device, "full_like")
    wanted = t.dtype if dtype is None else dtype
    return full(t.shape, fill_value, dtype=wanted, requires_grad=requires_grad)


def empty_like(x: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of another one's shape and dtype whose elements are whatever was in memory.

    >>> import weft as wf
    >>> wf.empty_like(wf.zeros(3)).shape
    (3,)
    """
    t = value(x).type
    on_cpu(device, "empty_like")
    return empty(t.shape, dtype=t.dtype if dtype is None else dtype)


# ranges


def _number(x: Any, place: str) -> Any:
    if isinstance(x, (Value, np.ndarray, np.generic)) and x.size == 1:
        x = x.item()
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        raise DTypeError(place, expected="numbers", got=type(x).__name__)
    if isinstance(x, float) and not math.isfinite(x):
        raise NumericsError(place, expected="finite numbers", got=str(x))
    return x


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """start, start + step, …, up to but without `stop`; with one argument, from 0 up to it.

    >>> import weft as wf
    >>> wf.arange(2, 8, 2)
    tensor([2, 4, 6])
    """
    if device is not None:
        on_cpu(device, "arange")
    key = start, stop, step, dtype, start.__class__, stop.__class__, step.__class__
    try:
        plan, a, d = _ranges[key]
    except (KeyError, TypeError):
        return _arange(key, start, stop, step, dtype)
    return installed.launch(plan, a, d)


#: plans of ranges by their arguments as they were said
_ranges: dict[Any, Any] = {}


def _arange(key: Any, start: Any, stop: Any, step: Any, dtype: Any) -> Tensor:
    if stop is None:
        start, stop = 0, start
    a, b, d = (_number(x, "arange") for x in (start, stop, step))
    if d == 0:
        raise ShapeError("arange", expected="a step other than 0", got=str(step))
    whole = all(isinstance(x, int) for x in (a, b, d))
    try:
        with standard_mode():
            size = max(0, -((a - b) // d) if whole else math.ceil((b - a) / d))
    except OverflowError:
        raise ShapeError("arange", expected="fewer steps", got=f"{a} to {b} by {d}") from None
    wanted = as_dtype(dtype) if dtype is not None else int64 if whole else float32
    if wanted.is_int and whole and size:
        for x in (a, a + (size - 1) * d):
            _representable(x, wanted, "arange")
    if any(isinstance(x, int) and abs(x) >= 2**63 for x in (a, d)):
        a, d = float(a), float(d)
    out: Tensor = ops.arange(a, d, size=size, dtype=wanted)
    plan = ops.arange.plans.get((type(a), type(d), size, wanted))
    if plan is not None and all(type(x) in (int, float, type(None)) for x in key[:3]):
        if len(_ranges) >= 1024:
            _ranges.clear()
        _ranges[key] = plan, a, d
    return out


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` numbers evenly spaced from `start` to `stop`, which is the last one unless `endpoint`
    is False.

    >>> import weft as wf
    >>> wf.linspace(0, 1, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    on_cpu(device, "linspace")
    a, b = (float(_number(x, "linspace")) for x in (start, stop))
    size = integer(num, "linspace")
    return ops.linspace(a, b, size=size, endpoint=flag(endpoint, "linspace"), dtype=_dtype(dtype))


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """Ones on the k-th diagonal, zeros elsewhere.

    >>> import weft as wf
    >>> wf.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    on_cpu(device, "eye")
    rows = integer(n_rows, "eye")
    columns = rows if n_cols is None else integer(n_cols, "eye")
    return ops.eye(shape=(rows, columns), offset=_offset(k, "eye"), dtype=_dtype(dtype))


def _offset(k: Any, place: str) -> int:
    try:
        return max(-(2**62), min(2**62, operator.index(k)))
    except TypeError:
        raise DTypeError(place, expected="an integer diagonal", got=repr(k)) from None


def tril(x: Any, /, *, k: int = 0) -> Tensor:
    """Zeros above the k-th diagonal of the last two axes.

    >>> import weft as wf
    >>> wf.tril(wf.ones((2, 2)))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return joining.tril(value(x), offset=_offset(k, "tril"))


def triu(x: Any, /, *, k: int = 0) -> Tensor:
    """Zeros below the k-th diagonal of the last two axes.

    >>> import weft as wf
    >>> wf.triu(wf.ones((2, 2)))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return joining.triu(value(x), offset=_offset(k, "triu"))


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid, one tensor for each axis; with "xy" the first two axes are swapped.

    >>> import weft as wf
    >>> wf.meshgrid(wf.arange(2), wf.arange(3), indexing="ij")[1]
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
    word(indexing, "meshgrid", ("xy", "ij"))
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


def one_hot(x: Any, num_classes: int = -1, *, dtype: Any = int64) -> Tensor:
    """A last axis of zeros with a one where the index says; -1 classes means one more than the
    largest index.

    >>> import weft as wf
    >>> wf.one_hot(wf.tensor([0, 2]), 3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    v, size = value(x), integer(num_classes, "one_hot")
    if not v.type.dtype.is_int:
        raise DTypeError("one_hot", expected="integers", got=v.type.dtype.name)
    if size == -1:
        a = v.numpy()
        size = max(int(a.max()) + 1, 0) if a.size else 0
    return ops.one_hot(v, size=size, dtype=as_dtype(dtype))
