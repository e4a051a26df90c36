"""How the elements of a tensor lie in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from weakref import WeakValueDictionary

from weft.types import TensorType, interning

Strides = tuple[int, ...]
Key = tuple[TensorType, Strides]


class Layout:
    """A tensor type and the strides, in elements, of its axes. Interned, so layouts compare and
    hash by identity.

    >>> from weft.types.dtype import float32
    >>> Layout.dense(TensorType((2, 3), float32)).strides
    (3, 1)
    """

    __slots__ = ("__weakref__", "is_dense", "strides", "type")
    type: TensorType
    strides: Strides
    is_dense: bool
    _known: ClassVar[WeakValueDictionary[Key, Layout]] = WeakValueDictionary()

    def __new__(cls, type_: TensorType, strides: Sequence[int]) -> Layout:
        dense = dense_strides(type_.shape)  # type: ignore[arg-type]
        wanted = (
            dense
            if type_.size == 0
            else tuple(
                d if n == 1 else s for n, s, d in zip(type_.shape, strides, dense, strict=True)
            )
        )  # the stride of an axis of one element says nothing: one spelling for all
        key = (type_, wanted)
        found = cls._known.get(key)
        if found is None:
            found = super().__new__(cls)
            found.type, found.strides = key
            found.is_dense = wanted == dense
            with interning.lock:
                found = cls._known.setdefault(key, found)
        return found

    @staticmethod
    def dense(type_: TensorType) -> Layout:
        """Row-major without gaps."""
        return Layout(type_, dense_strides(type_.shape))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"{self.type}" if self.is_dense else f"{self.type} strides {self.strides}"


def dense_strides(shape: Sequence[int]) -> Strides:
    """Row-major strides in elements.

    >>> dense_strides((2, 3, 4))
    (12, 4, 1)
    """
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= max(n, 1)
    return tuple(reversed(out))
