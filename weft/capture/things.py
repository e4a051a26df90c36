"""Things, which stay what they are behind a branch, and values of the program."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from weft.capture.chosen import Chosen, Flag
from weft.capture.guards import same
from weft.capture.perhaps import Perhaps
from weft.capture.structure import LEAF, SPECIAL, Form, flatten
from weft.capture.text import Text
from weft.ops.define import Value, capturing
from weft.types.dtype import DType
from weft.types.size import Size


class Known:
    """A part that is a thing: equal to those that are the same to a program."""

    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return type(other) is Known and one(self.x, other.x)

    def __hash__(self) -> int:
        return hash(type(self.x))


def one(a: Any, b: Any) -> bool:
    """Whether two things are the same to a program: functions made twice alike are."""
    if a is b or same(a, b):
        return True
    if type(a) is not type(b):
        return False
    if type(a) is types.FunctionType:
        inside = [[*_held(f), *(f.__defaults__ or ()), *_named(f)] for f in (a, b)]
        return a.__code__ is b.__code__ and all(map(one, *inside))
    if type(a) is types.MethodType:
        return a.__self__ is b.__self__ and one(a.__func__, b.__func__)
    if type(a) is functools.partial:
        one_, two = ([f.func, *f.args, *f.keywords, *f.keywords.values()] for f in (a, b))
        return len(one_) == len(two) and all(map(one, one_, two))
    return type(a) is types.BuiltinFunctionType and bool(a == b)


def _held(f: types.FunctionType) -> list[Any]:
    """What the variables of a function from outside hold, or cells that hold nothing."""
    return [c.cell_contents if _is_full(c) else c for c in f.__closure__ or ()]


def _named(f: types.FunctionType) -> list[Any]:
    return [v for pair in (f.__kwdefaults__ or {}).items() for v in pair]


def _is_full(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


_THINGS = (
    type(None), str, bytes, complex, type(...), object, types.FunctionType, types.MethodType,
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
    functools.partial, DType,
)  # fmt: skip
_HEAP = 1 << 9  # classes that Python code has made


def is_thing(x: Any) -> bool:
    """Whether something stays what it is."""
    kind = type(x)
    if kind in _THINGS or isinstance(x, type | Enum):
        return True
    module = kind.__module__
    if not kind.__flags__ & _HEAP or _is_frozen(x) or isinstance(x, (Value, *_OTHERS)):
        return False
    own = module.startswith("weft.") and not module.startswith(("weft.nn", "weft.optim"))
    return not own and not hasattr(kind, "__next__")


def is_plain(x: Any) -> bool:
    """Whether operators of something are Python's own, and of no value of the program."""
    return type(x) in (*_THINGS, bool, int, float) or isinstance(x, Enum)


_OTHERS = (list, dict, set, frozenset, tuple, int, float, BaseException, np.generic, np.ndarray)


def _is_frozen(x: Any) -> bool:
    kind = type(x)
    return dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]


def is_value(x: Any) -> bool:
    """Whether something is a value of the program, or a tuple of such and of things."""
    if isinstance(x, Value) or type(x) in (bool, int, float, Size, Text):
        return True
    found = opened(x) if isinstance(x, tuple) or _is_frozen(x) else None
    return found is not None and all(_is_part(v) for v in found[1])


def _is_part(x: Any) -> bool:
    return is_value(x) or is_thing(x) or type(x) in CARRIED


#: classes of structures of the program's values that tuples may have in them
CARRIED: set[type] = {Text}


def is_fit(x: Any) -> bool:
    """Whether something can be one of several things."""
    return is_thing(x) or is_value(x) or is_own(x)


def is_own(x: Any) -> bool:
    """Whether something is a container that the function captured has made."""
    changing = isinstance(x, list | dict | set) or dataclasses.is_dataclass(type(x))
    known = getattr(capturing.now, "guards", None)
    return changing and known is not None and known.made.get(id(x)) is x


def kind_of(x: Any) -> Any:
    """What parts that can be one value have in common."""
    if isinstance(x, Chosen | Flag):
        return x.kind
    if isinstance(x, Value):
        return x.type
    if type(x) in (bool, int, float):
        return type(x)
    if not is_value(x):
        return Known(x)
    leaves, form = flatten(x)
    return form, tuple(map(kind_of, leaves))


# structures of them

#: classes of structures that are joined as wholes
WHOLE: set[type] = set()


def opened(x: Any) -> tuple[Form, list[Any]] | None:
    """The parts of a structure, and its form without theirs; None if it is none."""
    if type(x) is Perhaps:
        return Form(Perhaps, (LEAF,), (LEAF, LEAF)), [x.flag, x.value]
    _, form = flatten(x)
    if form.kind is None or form.kind in SPECIAL or form.kind in WHOLE:
        return None
    if isinstance(x, tuple | list | dict):
        parts = list(x.values() if isinstance(x, dict) else x)
    else:
        parts = [getattr(x, n) for n in form.names]
    return Form(form.kind, form.names, (LEAF,) * len(parts)), parts


def holds(x: Any, is_it: Callable[[Value], bool], own: Any) -> bool:
    """Whether a thing has a tensor in it that is such a one, as far as objects are its `own`."""
    seen: set[int] = set()
    stack = [x]
    while stack:
        v = stack.pop()
        if id(v) in seen:
            continue
        seen.add(id(v))
        if isinstance(v, Value):
            if is_it(v):
                return True
        elif type(v) is types.FunctionType:
            stack += [*_held(v), *(v.__defaults__ or ()), *_named(v)]
        elif type(v) is types.MethodType:
            stack += [v.__self__, v.__func__]
        elif type(v) is functools.partial:
            stack += [v.func, *v.args, *v.keywords.values()]
        elif type(v) is tuple:
            stack += v
        elif id(v) in own:
            stack += v.values() if isinstance(v, dict) else v if isinstance(v, list | set) else ()
            stack += getattr(v, "__dict__", {}).values()
    return False
