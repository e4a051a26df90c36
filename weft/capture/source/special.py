"""Special methods of the user's classes: called like other functions, which converts them.

Python itself calls those of `+`, `<` and the like. Where one of them can't be captured as it is,
functions are converted once more, with operators in their place.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

from weft.capture.implicit import is_users
from weft.capture.source.calls import SPECIAL, call
from weft.capture.source.effects import mod
from weft.capture.source.reads import augment as plainly_augmented, later, seen, union
from weft.ops.define import Value, capturing

_BINARY: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "Add": ("add", operator.add), "Sub": ("sub", operator.sub), "Mult": ("mul", operator.mul),
    "Div": ("truediv", operator.truediv), "FloorDiv": ("floordiv", operator.floordiv),
    "Mod": ("mod", operator.mod), "Pow": ("pow", operator.pow),
    "MatMult": ("matmul", operator.matmul), "BitAnd": ("and", operator.and_),
    "BitOr": ("or", operator.or_), "BitXor": ("xor", operator.xor),
    "LShift": ("lshift", operator.lshift), "RShift": ("rshift", operator.rshift),
}  # fmt: skip
_PLAIN: dict[str, Callable[[Any, Any], Any]] = {"BitOr": union, "Mod": mod}
_UNARY: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "USub": ("neg", operator.neg), "UAdd": ("pos", operator.pos), "Invert": ("invert", operator.inv)
}  # fmt: skip
_COMPARED = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def method(x: Any, name: str) -> Any:
    """A special method of the user's, of an object's class, if a program is being captured."""
    if capturing.now is None or isinstance(x, Value):
        return None
    f = getattr(type(x), name, None)
    users = isinstance(f, types.FunctionType) and is_users(f.__code__.co_filename)
    return f if users else None


# operators between objects


def binary(a: Any, how: str, b: Any) -> Any:
    """`a + b` and the like"""
    name, plain = _BINARY[how]
    if how in _PLAIN:
        plain = _PLAIN[how]
    return _either(a, f"__{name}__", b, f"__r{name}__", lambda: plain(a, b))


def compared(a: Any, how: str, b: Any, plain: Callable[[Any, Any], Any]) -> Any:
    """`a < b` and the like"""
    name = _COMPARED[how]
    return _either(a, f"__{name}__", b, f"__{_TURNED[name]}__", lambda: plain(a, b))


def _either(a: Any, name: str, b: Any, turned: str, plain: Callable[[], Any]) -> Any:
    one, other = method(a, name), method(b, turned)
    if one is None and other is None:
        return plain()
    ways: list[Callable[[], Any]] = []
    if hasattr(type(a), name):
        ways.append(lambda: getattr(type(a), name)(a, b) if one is None else call(one, a, b))
    if hasattr(type(b), turned) and type(a) is not type(b):
        ways.append(lambda: getattr(type(b), turned)(b, a) if other is None else call(other, b, a))
        if type(b) is not type(a) and issubclass(type(b), type(a)):
            ways.reverse()
    for way in ways:
        found = way()
        if found is not NotImplemented:
            return found
    return plain()  # Python says what is wrong


def unary(how: str, x: Any) -> Any:
    """`-x` and the like"""
    name, plain = _UNARY[how]
    f = method(x, f"__{name}__")
    return plain(x) if f is None else call(f, x)


def augmented(x: Any, how: str, value: Any) -> Any:
    """What `x += value` and the like leave in a variable."""
    f = method(x, f"__i{_BINARY[how][0]}__")
    if f is not None:
        found = call(f, x, value)
        if found is not NotImplemented:
            return found
    if any(method(v, f"__{r}{_BINARY[how][0]}__") for v, r in ((x, ""), (value, "r"))):
        return binary(x, how, value)
    return plainly_augmented(x, how, value)


# what statements and functions call


class _Manager:
    """A context manager of the user's."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __enter__(self) -> Any:
        return call(type(self.x).__enter__, self.x)

    def __exit__(self, *error: Any) -> Any:
        return call(type(self.x).__exit__, self.x, *error)


def manager(x: Any) -> Any:
    """What `with` is given."""
    return _Manager(x) if method(x, "__enter__") and method(x, "__exit__") else x


def iterate(x: Any) -> Any:
    """What is gone through one by one."""
    f = method(x, "__iter__")
    if f is not None:
        x = call(f, x)
    f = method(x, "__next__")
    return seen(x) if f is None else _each(f, x)


def _each(f: Any, x: Any) -> Iterator[Any]:
    while True:
        try:
            value = call(f, x)
        except StopIteration:
            return
        yield value


def truth(x: Any) -> Any:
    """What decides on the truth of an object of the user's; else it itself."""
    f = method(x, "__bool__")
    if f is None and not hasattr(type(x), "__bool__"):
        f = method(x, "__len__")
        return x if f is None else call(f, x) > 0
    return x if f is None else call(f, x)


_plain_len = SPECIAL[len]


def _len(x: Any) -> Any:
    f = method(x, "__len__")
    return _plain_len(x) if f is None else call(f, x)


SPECIAL[len] = _len
later.method, later.augmented = method, augmented
