"""What a loop notes of every step, as a value: for gradients that are differentiated again.

`put(s, *xs)` is the store `s` and an entry behind it, of one value or several; a store that nothing
else is made of needs no copy. `get(s, i, otherwise)` is what was put as number `i`; where there is
no such entry, `otherwise`, a single number everywhere. Of entries of several values, whose types
are `entry`, it gives number `part`. A store without anything is all zeros. In a program the others
say where memory of the program's begins that holds them: words of no meaning outside, which
`weft.control.rules` keeps there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.autodiff.backward import constant
from weft.buffer.interchange import copy_from_numpy
from weft.control.nodes import is_node
from weft.errors import DTypeError
from weft.ops.define import Op, Value, capturing, record_call, register
from weft.types import TensorType
from weft.types.dtype import int64

STORE = TensorType((3,), int64)
COUNT = TensorType((), int64)


class Held(Value):
    """A store while a program is gone through op by op."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Any, ...]) -> None:
        super().__init__(copy_from_numpy(np.ones(3, np.int64)))
        self.items = items


class _OfStore(Op):
    """Called on real tensors it does so in Python, on symbols it becomes a node."""

    def __call__(self, *xs: Any, **attrs: Any) -> Any:
        if capturing.now is not None or any(isinstance(x, Value) and is_node(x) for x in xs):
            return record_call(self, xs, attrs)
        return _RUN[self.name](*xs, **attrs)


def _items(s: Any) -> tuple[Any, ...]:
    return s.items if isinstance(s, Held) else ()


def _put_type(s: Any, *xs: Any) -> Any:
    return _store("put", s)


def _get_type(s: Any, i: Any, otherwise: Any, entry: tuple[Any, ...] = (), part: int = 0) -> Any:
    _store("get", s)
    if i is not COUNT:
        raise DTypeError("get", expected=f"the number of an entry, {COUNT}", got=str(i))
    if not isinstance(otherwise, TensorType):
        raise DTypeError("get", expected="a tensor if there is no entry", got=str(otherwise))
    if entry and (not 0 <= part < len(entry) or entry[part] is not otherwise):
        raise DTypeError("get", expected=f"{otherwise} as part {part}", got=str(entry))
    return otherwise


def _store(place: str, s: Any) -> Any:
    if s is not STORE:
        raise DTypeError(place, expected=f"a store, {STORE}", got=str(s))
    return s


put = register(_OfStore("put", infer=_put_type, doc="A store and an entry behind it.", effect=True))
get = register(_OfStore("get", infer=_get_type, doc="A value out of a store.", effect=True))


def _run_get(s: Any, i: Any, otherwise: Any, part: int = 0, **how: Any) -> Any:
    items, number = _items(s), i.item()
    return items[number][part] if 0 <= number < len(items) else otherwise


_RUN: dict[str, Any] = {"put": lambda s, *xs: Held((*_items(s), xs)), "get": _run_get}


def neutral(type_: Any) -> Value:
    """What a sum of this type starts from: -0.0, of steps a store without anything."""
    return constant(-0.0 if type_.dtype.is_float else 0, type_)


def stores(count: int) -> Sequence[Value]:
    """So many without anything."""
    return [neutral(STORE) for _ in range(count)]
