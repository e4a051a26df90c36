"""Operators for control flow: Python's own unless a condition is symbolic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.capture.source.reads import refuse, seen
from weft.ir import Node
from weft.ops.define import Value, data_of

Thunk = Callable[[], Any]


class _Undefined:
    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = _Undefined()


class _Break:
    def __repr__(self) -> str:
        return "break"


BREAK = _Break()


class Return:
    """Leaving a loop's body for good, with the function's result."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def load(read: Thunk) -> Any:
    """A variable's value, or UNDEFINED."""
    try:
        return read()
    except NameError:
        return UNDEFINED


def is_symbolic(x: Any) -> bool:
    return isinstance(x, Value) and isinstance(data_of(x), Node)


def test(x: Any) -> bool:
    """The truth of a value that has to be known now."""
    if is_symbolic(x):
        raise refuse(
            "a condition on a tensor inside with, try or a comprehension",
            "move the branch out of it",
        )
    return bool(seen(x))


def if_(
    condition: Any, then: Thunk, otherwise: Thunk, get: Thunk, put: Any, names: tuple[str, ...]
) -> Any:
    if not is_symbolic(condition):
        return then() if seen(condition) else otherwise()
    raise refuse("a branch on a tensor")


def while_(
    check: Thunk, body: Thunk, get: Thunk, put: Any, names: tuple[str, ...], live: tuple[str, ...]
) -> Any:
    while True:
        more = check()
        if is_symbolic(more):
            raise refuse("a loop on a tensor")
        if not seen(more):
            return None
        signal = body()
        if signal is not None:
            return signal


def for_(
    items: Any, body: Any, get: Thunk, put: Any, names: tuple[str, ...], live: tuple[str, ...]
) -> Any:
    for x in iterate(items):
        signal = body(x)
        if signal is not None:
            return signal
    return None


def iterate(items: Any) -> Any:
    return seen(items)


def returned(signal: Any) -> Any:
    return type(signal) is Return


def returned_value(signal: Any) -> Any:
    return signal.value


def completed(signal: Any) -> Any:
    return signal is None


def and_(*parts: Thunk) -> Any:
    value = True
    for part in parts:
        value = part()
        if not seen(value):
            return value
    return value


def or_(*parts: Thunk) -> Any:
    value = False
    for part in parts:
        value = part()
        if seen(value):
            return value
    return value


def not_(x: Any) -> Any:
    return not seen(x)


def choose(condition: Any, then: Thunk, otherwise: Thunk) -> Any:
    return then() if seen(condition) else otherwise()


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "is": lambda a, b: a is b,
    "is not": lambda a, b: a is not b,
    "in": lambda a, b: a in seen(b),
    "not in": lambda a, b: a not in seen(b),
}


def compare(left: Any, symbols: tuple[str, ...], *rights: Thunk) -> Any:
    value: Any = True
    for symbol, right in zip(symbols, rights, strict=True):
        now = right()
        value = _COMPARE[symbol](left, now)
        left = now
        if not value:
            return value
    return value
