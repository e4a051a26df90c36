"""What an object consists of, as far as code that can't be looked into may read it."""

from __future__ import annotations

import array
import enum
import functools
import types
from collections import deque
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from weft.ops.define import Value

#: parts of an object that are compared; one that has more is not watched
MOST = 20_000
_DEPTH = 6
_LISTS = (list, tuple, set, frozenset, deque)
_BYTES = (bytearray, memoryview, array.array)
#: what is what it is: never another one under the same name
_SEEN = (list, dict, set, tuple)  # looked at element by element
_VIEWS = (types.MappingProxyType,)
_FIXED = (
    str, bytes, int, float, complex, bool, type(None), type, types.FunctionType, types.ModuleType,
    types.BuiltinFunctionType, types.MethodType, types.CodeType, types.GeneratorType, np.generic,
    np.dtype, np.ufunc, enum.Enum, range, slice, Value,
)  # fmt: skip


def is_fixed(x: Any) -> bool:
    """Whether an object has no parts that another moment might find changed."""
    kind = type(x)
    if isinstance(x, _FIXED):
        return True
    if isinstance(x, (dict, *_VIEWS, *_LISTS, *_BYTES, np.ndarray)):
        return False
    return kind.__module__ == "builtins" or _is_internal(kind)


def _is_internal(kind: type) -> bool:
    """Whether objects of a class are the package's own: types, ops, symbols."""
    module = kind.__module__
    return module.startswith("weft.") and not module.startswith(("weft.nn", "weft.optim"))


def _is_part(x: Any) -> bool:
    """Whether an object is looked at as itself wherever it is found: its state is its own."""
    return type(x).__module__.startswith(("weft.nn", "weft.optim"))


def parts(x: Any) -> tuple[Any, ...] | None:
    """All that an object holds, in an order that stays; None where it is too much."""
    out: list[Any] = []
    seen: set[int] = set()
    for part in _parts(x, 0, seen):
        out.append(part)
        if len(out) > MOST:
            return None
    return tuple(out)


def _parts(x: Any, depth: int, seen: set[int]) -> Iterator[Any]:
    if id(x) in seen or depth > _DEPTH or is_fixed(x) or (depth and _is_part(x)):
        yield x
        return
    seen.add(id(x))
    yield type(x)
    if isinstance(x, np.ndarray):
        yield x.shape
        yield x.dtype.str
        yield x.tobytes() if x.dtype != object else id(x)
    elif isinstance(x, _BYTES):
        yield bytes(x)
    elif isinstance(x, (dict, *_VIEWS)):
        yield len(x)
        for k, v in list(x.items()):
            yield k
            yield from _parts(v, depth + 1, seen)
    elif isinstance(x, _LISTS):
        yield len(x)
        for v in list(x):
            yield from _parts(v, depth + 1, seen)
    held = getattr(x, "__dict__", None)
    for k, v in list(held.items()) if isinstance(held, dict) else ():
        yield k
        yield from _parts(v, depth + 1, seen)
    for kind in type(x).__mro__:
        for name in _slots(kind):
            yield from _parts(getattr(x, name, None), depth + 1, seen)


def _slots(kind: type) -> tuple[str, ...]:
    found = kind.__dict__.get("__slots__", ())
    names = (found,) if isinstance(found, str) else tuple(found)
    return tuple(n for n in names if n not in ("__dict__", "__weakref__"))


@functools.lru_cache(4096)
def is_collection(kind: type) -> bool:
    """Whether objects of a class have elements that operators and loops read unseen: an array, a
    deque, a dict or list of another kind.
    """
    if kind in _SEEN or issubclass(kind, _FIXED):
        return False
    wanted = issubclass(kind, (np.ndarray, *_BYTES, Collection))
    return (wanted and kind.__module__ != "builtins") or kind in _BYTES or kind in _VIEWS
