"""Operators for reading and writing places: attributes, elements, containers.

Outside a capture they do what Python does. In one, what is read of objects that were there before
becomes a guard, and a write to them is refused: running the program would not repeat it.
"""

from __future__ import annotations

import operator
import types
from array import array
from collections import deque
from collections.abc import Callable
from typing import Any

from weft.capture.guards import is_library
from weft.capture.join import Unfit
from weft.capture.perhaps import Perhaps, depends, there
from weft.capture.runs import (
    element,
    is_grown,
    is_open,
    later as open_lists,
    spell_out,
    spelled_out,
)
from weft.errors import CaptureError
from weft.ir import user_location
from weft.ops.define import Value, capturing

slice = slice
CONTAINERS = (list, dict, set)
#: methods that change a container, by type
_CHANGING: dict[Any, frozenset[str]] = {
    list: frozenset(["append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse"]),
    dict: frozenset(["update", "pop", "popitem", "clear", "setdefault"]),
    set: frozenset(
        [
            "add",
            "discard",
            "remove",
            "pop",
            "clear",
            "update",
            "difference_update",
            "intersection_update",
            "symmetric_difference_update",
        ]
    ),
}
_MORE = frozenset(["appendleft", "extendleft", "popleft", "rotate", "move_to_end", "subtract"])
_IN_PLACE = frozenset(
    f"__{name}__" for name in ("setitem", "delitem", "iadd", "imul", "ior", "iand", "isub", "ixor")
)
_SEQUENCES = (list, deque, bytearray, array)


def changes(owner: Any, method: str) -> bool:
    """Whether a method of a container changes it."""
    for kinds, known in ((_SEQUENCES, list), (dict, dict), (set, set)):
        if isinstance(owner, kinds):
            return method in _CHANGING[known] or method in _MORE or method in _IN_PLACE
    return False


AUGMENTED: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv, "Mod": operator.imod, "Pow": operator.ipow,
    "MatMult": operator.imatmul, "BitAnd": operator.iand, "BitOr": operator.ior,
    "BitXor": operator.ixor, "LShift": operator.ilshift, "RShift": operator.irshift,
}  # fmt: skip


def where() -> str:
    """The user's line, for a message."""
    loc = user_location()
    return f'"{loc.file}", line {loc.line}' if loc is not None else "capture"


def refuse(got: str, hint: str = "") -> CaptureError:
    """An error at the user's line."""
    return CaptureError(where(), expected="what a program can repeat", got=got, hint=hint)


def guards() -> Any:
    """The guards of the capture under way, or None."""
    now = capturing.now
    return None if now is None else getattr(now, "guards", None)


# reading


def attr(owner: Any, name: str) -> Any:
    """`owner.name`"""
    if type(owner) is later.pick:
        plain = all(_is_plain(x, name) for x in owner.parts)
        return (owner.read if plain else owner.each)(lambda x: attr(x, name))
    g = guards()
    if g is None:
        return getattr(owner, name)
    if isinstance(owner, Value):
        g.tensor(owner)
        return getattr(owner, name)
    if isinstance(owner, types.ModuleType):
        value = getattr(owner, name)
        if not is_library(owner):
            g.item(vars(owner), name, value, f"{owner.__name__}.{name}")
        else:
            g.whole(value)
        return value
    inside = getattr(owner, "__dict__", None)
    if type(inside) is dict and type(inside.get(name)) is Perhaps:
        return _perhaps_attr(owner, name, inside[name])
    found = _on_class(type(owner), name)
    if isinstance(found, property) and isinstance(found.fget, types.FunctionType):
        return later.call(found.fget, owner)
    value = getattr(owner, name)
    if not isinstance(owner, _FIXED) and not _is_internal(type(owner)):
        number = g.number(getattr(owner, "__dict__", None), name, value)
        if number is not None:
            return number
        g.attribute(owner, name, value)
    return value


def _is_plain(x: Any, name: str) -> bool:
    """Whether an attribute, if it is there, is there for certain, and no code computes it."""
    kind = type(x)
    if isinstance(_on_class(kind, name), property) or hasattr(kind, "__getattr__"):
        return isinstance(x, Value)
    return type(getattr(x, "__dict__", {}).get(name)) is not Perhaps


def _perhaps_attr(owner: Any, name: str, x: Perhaps) -> Any:
    """An attribute that some paths have given an object; else it is the class's."""
    kind = type(owner)
    if hasattr(kind, "__getattr__"):
        return x.used()
    if hasattr(kind, name):
        return later.choose(x.flag, lambda: x.value, lambda: getattr(kind, name))
    says = f"{kind.__name__!r} object has no attribute {name!r}"
    return present(x, lambda: AttributeError(says))


def present(x: Perhaps, error: Callable[[], BaseException]) -> Any:
    """A value that some paths have given; an error of the program where there is none."""
    return there(x, lambda flag: later.unless(flag, error))


#: objects whose attributes stay what they are
_FIXED = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, *CONTAINERS, str, tuple, super
)  # fmt: skip


def _is_internal(kind: type) -> bool:
    """Whether objects of a class are the package's own: types, dtypes, ops."""
    module = kind.__module__
    return module.startswith("weft.") and not module.startswith(("weft.nn", "weft.optim"))


def _on_class(kind: type, name: str) -> Any:
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def item(owner: Any, key: Any) -> Any:
    """`owner[key]`"""
    g = guards()
    if g is not None and not is_grown(owner) and later.is_dynamic(owner, key):
        return later.get(owner, key)
    if g is None or type(owner) not in (list, dict):
        kind = type(owner)
        users = later.method(owner, "__getitem__")
        if users is not None:
            return later.call(users, owner, key)
        if kind.__module__.startswith("weft.nn") and hasattr(kind, "__getitem__"):
            return later.call(kind.__getitem__, owner, key)
        return owner[key]
    if is_grown(owner):
        return element(owner, key)
    value = owner[key]
    if type(value) is Perhaps:
        return present(value, lambda: KeyError(key))
    if isinstance(owner, dict):
        number = g.number(owner, key, value)
        if number is not None:
            return number
        g.item(owner, key, value)
    else:
        g.element(owner, operator.index(key), value)
    return value


def seen(x: Any) -> Any:
    """A container of which everything is about to be read."""
    if type(x) in CONTAINERS:
        g = guards()
        if g is not None:
            for v in x.values() if depends(x) else ():
                if type(v) is Perhaps:
                    v.used()
            g.content(x)
            return spelled_out(x, deep=False)
    return x


def known(x: Any) -> Any:
    """A value whose identity or class is asked for: of what paths left apart, nobody knows it."""
    return x.used() if isinstance(x, Unfit) else x


def used(x: Any) -> Any:
    """Something whose elements, but no more, Python is about to hand on."""
    return seen(x) if type(x) in CONTAINERS else read(x)


def read(x: Any) -> Any:
    """Something that code which can't be looked into may read all of."""
    g = guards()
    if g is None:
        return x
    x = spelled_out(x)
    g.state(x)
    return x


def made(x: Any) -> Any:
    """An object that is new."""
    now = capturing.now
    if now is not None:
        guards().make(x)
        objects = getattr(now, "objects", None)
        if objects is not None:
            objects[id(x)] = x
    return x


def union(a: Any, b: Any) -> Any:
    """`a | b`"""
    if type(a) not in (dict, set):
        return a | b
    return made(seen(a) | seen(b))


def new(x: Any) -> Any:
    """What a slice or an operator gave: a list is another one than those it was made of."""
    return made(x) if type(x) is list else x


# writing


def set_attr(owner: Any, name: str, value: Any) -> None:
    """`owner.name = value`"""
    if type(owner) is later.pick:
        owner.each(lambda x: set_attr(x, name, value))
        return
    if capturing.now is not None and not isinstance(owner, Value):
        changing(owner, f"an assignment to .{name} of a {type(owner).__name__}", name)
    setattr(owner, name, value)


def set_item(owner: Any, key: Any, value: Any) -> None:
    """`owner[key] = value`"""
    if type(owner) is later.pick:
        later.put(owner, key, value)
        return
    users = later.method(owner, "__setitem__")
    if users is not None:
        later.call(users, owner, key, value)
        return
    if is_grown(owner) and is_open(owner):
        open_lists.prepare(owner)
        changing(owner, "an assignment to an element of a list")
        open_lists.put(owner, key, value)
        return
    spell_out(owner)
    if capturing.now is not None and later.is_dynamic(owner, key):
        later.put(owner, key, value)
        return
    if capturing.now is not None and not isinstance(owner, Value):
        changing(owner, f"an assignment to an element of a {type(owner).__name__}")
        if type(owner) is dict and type(owner.get(key)) is Perhaps and [*owner][-1] != key:
            value = Perhaps(value, True)  # nobody knows its place among the others
    owner[key] = value


def del_attr(owner: Any, name: str) -> None:
    """`del owner.name`"""
    if type(getattr(owner, "__dict__", {}).get(name)) is Perhaps:
        attr(owner, name)
    changing(owner, f"del of .{name} of a {type(owner).__name__}", name)
    delattr(owner, name)


def del_item(owner: Any, key: Any) -> None:
    """`del owner[key]`"""
    if type(owner) is dict and type(owner.get(key)) is Perhaps:
        item(owner, key)
    changing(owner, f"del of an element of a {type(owner).__name__}")
    spell_out(owner)
    del owner[key]


def augment(x: Any, how: str, value: Any) -> Any:
    """What `x += value` and the like leave in a variable."""
    if type(value) is later.pick and isinstance(x, Value):
        return value.each(lambda v: augment(x, how, v))
    if type(x) not in CONTAINERS or capturing.now is None:
        return AUGMENTED[how](x, value)
    if type(x) is list and how == "Add":
        later.call(x.extend, value)
        return x
    if type(x) is dict and how == "BitOr":
        later.call(x.update, value)
        return x
    changing(x, f"a change of a {type(x).__name__} in place")
    spell_out(x)
    return AUGMENTED[how](x, used(value))


def augment_attr(owner: Any, name: str, how: str, value: Any) -> None:
    """`owner.name += value` and the like"""
    old = attr(owner, name)
    new = augment(old, how, value)
    if new is old and (isinstance(new, Value) or type(new) in CONTAINERS):
        return  # it was given its value in place
    set_attr(owner, name, new)


def augment_item(owner: Any, key: Any, how: str, value: Any) -> None:
    """`owner[key] += value` and the like"""
    if capturing.now is not None and later.is_dynamic(owner, key):
        later.augment(owner, key, how, value)
        return
    old = item(owner, key)
    new = augment(old, how, value)
    if not (new is old and type(new) in CONTAINERS):
        set_item(owner, key, new)


def outside(names: tuple[str, ...]) -> None:
    """Told by a function that assigns to variables outside of it."""
    if capturing.now is not None:
        raise refuse(
            f"an assignment to {', '.join(names)}, outside of the function",
            "return the value, or keep it in a tensor and use .assign()",
        )


def owns(names: Callable[[], Any]) -> None:
    """Told by a function whose variables functions inside of it assign to."""
    objects = getattr(capturing.now, "objects", None)
    if objects is not None:
        objects.update({id(cell): cell for cell in names.__closure__ or ()})


def rebinds(names: Callable[[], Any]) -> None:
    """Told by a function that assigns to variables of those around it."""
    change = getattr(capturing.now, "change", None)
    if change is not None:
        for cell in names.__closure__ or ():
            change(cell, None)


def changing(owner: Any, what: str, name: str | None = None) -> None:
    """Told before an object is changed, by Python."""
    now = capturing.now
    if now is None:
        return
    g = guards()
    if id(owner) not in g.made:
        raise refuse(
            what,
            "objects from outside can't be changed by a program; return the value, or keep it in "
            "a tensor and use .assign()",
        )
    change = getattr(now, "change", None)
    if change is not None:
        change(owner, name)


class _Later:
    """What a later module gives."""

    call: Callable[..., Any]
    method: Callable[[Any, str], Any]
    augmented: Callable[[Any, str, Any], Any]
    unless: Callable[[Any, Callable[[], BaseException]], None]
    error: Callable[[BaseException], Any]
    choose: Callable[[Any, Callable[[], Any], Callable[[], Any]], Any]
    pick: Any
    is_dynamic: Callable[[Any, Any], bool]
    get: Callable[[Any, Any], Any]
    get_or: Callable[..., Any]
    put: Callable[[Any, Any, Any], None]
    augment: Callable[..., None]
    pick_among: Callable[..., Any]
    instead: Callable[[Any, Any, Any], Any]
    contains: Callable[[Any, Any], Any]
    identical: Callable[[Any, Any], Any]


later = _Later()
