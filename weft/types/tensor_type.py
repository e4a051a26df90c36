"""Shape and dtype together: the type of a tensor."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from weft.errors import ShapeError
from weft.types import interning
from weft.types.dim import Dim
from weft.types.dtype import DType
from weft.types.size import is_symbolic

Size = int | Dim
Shape = tuple[Size, ...]

MAX_RANK = 32
MAX_BYTES = 2**62


class TensorType:
    """`f32[B, 784]`. Interned: equal types are one object, so they hash and compare by identity.

    >>> from weft.types.dtype import float32
    >>> TensorType((2, 3), float32) is TensorType((2, 3), float32), str(TensorType((2, 3), float32))
    (True, 'f32[2, 3]')
    """

    __slots__ = ("__weakref__", "dtype", "shape")
    shape: Shape
    dtype: DType
    _known: ClassVar[WeakValueDictionary[tuple[Shape, DType], TensorType]] = WeakValueDictionary()

    def __new__(cls, shape: Sequence[Size], dtype: DType) -> TensorType:
        key = (tuple(shape), dtype)
        found = cls._known.get(key)
        if found is None:
            _check_sizes(key[0], dtype)
            found = super().__new__(cls)
            found.shape, found.dtype = key
            with interning.lock:
                found = cls._known.setdefault(key, found)
        return found

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape where every size is known: that of a tensor with data."""
        return self.shape  # type: ignore[return-value]

    @property
    def size(self) -> int:
        return math.prod(self.shape)  # type: ignore[arg-type]

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"{self.dtype.short}[{', '.join(map(shown, self.shape))}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorType, (self.shape, self.dtype)


def shown(n: Any) -> str:
    """A size as text, without asking what a symbol's value is."""
    return n.text if is_symbolic(n) else str(n)


def _check_sizes(shape: Shape, dtype: DType) -> None:
    sizes = [n for n in shape if isinstance(n, int)]
    if len(shape) > MAX_RANK:
        raise ShapeError("shape", expected=f"at most {MAX_RANK} axes", got=str(len(shape)))
    if any(n < 0 for n in sizes):
        raise ShapeError("shape", expected="sizes of 0 or more", got=str(shape))
    sizes = [n for n in sizes if not is_symbolic(n)]
    if math.prod(n for n in sizes if n) * dtype.itemsize > MAX_BYTES:
        raise ShapeError(
            "shape", expected="less than 2**62 bytes", got=f"{dtype.short}{list(shape)}"
        )


def broadcast_shapes(*shapes: Shape, place: str = "broadcast") -> Shape:
    """The common shape, by NumPy's rule.

    >>> broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    ndim = max(map(len, shapes), default=0)
    out: list[Size] = []
    for axis in range(-ndim, 0):
        size: Size = 1
        for s in shapes:
            n = s[axis] if -axis <= len(s) else 1
            if n is size or (type(n) is int and n == 1):
                continue
            if (type(size) is int and size == 1) or (n != size and size == 1):
                size = n
            elif n != size and n != 1:
                raise ShapeError(
                    place,
                    expected="shapes that broadcast together",
                    got=" and ".join(str(tuple(s)) for s in shapes),
                    hint=f"axis {axis} has sizes {size} and {n}; they must be equal or 1",
                )
        out.append(size)
    return tuple(out)


def normalize_axis(axis: Any, ndim: int, place: str) -> int:
    """`axis` as 0..ndim-1."""
    try:
        i = operator.index(axis)
    except TypeError:
        raise ShapeError(place, expected="an integer axis", got=repr(axis)) from None
    if not -ndim <= i < ndim:
        raise ShapeError(place, expected=f"an axis in [{-ndim}, {ndim})", got=str(i))
    return i % ndim


def normalize_axes(axis: Any, ndim: int, place: str) -> tuple[int, ...]:
    """None (all), an int or a sequence of ints as a sorted tuple of distinct axes."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, (tuple, list)):
        axis = (axis,)
    axes = sorted(normalize_axis(a, ndim, place) for a in axis)
    if len(set(axes)) < len(axes):
        raise ShapeError(place, expected="distinct axes", got=str(tuple(axis)))
    return tuple(axes)
