"""How the body of a loop ends: None to go on, `BREAK`, `Return(value)`, or, where that depends on
tensors, a `Signal`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from weft.autodiff.backward import constant
from weft.capture.structure import flatten
from weft.ops.define import Value


class _Mark:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


BREAK = _Mark("break")
NOTHING = _Mark("no result")


class Return:
    """Leaving a loop's body for good, with the function's result."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Signal(NamedTuple):
    """Whether the loop is broken off, whether the function returns, and what."""

    broke: Any
    returns: Any
    value: Any


def is_signal(x: Any) -> bool:
    return x is BREAK or type(x) in (Return, Signal)


def as_signal(x: Any) -> Signal:
    if type(x) is Signal:
        return x
    if type(x) is Return:
        return Signal(False, True, x.value)
    return Signal(x is BREAK, False, NOTHING)


def alike(a: Any, b: Any) -> tuple[Signal, Signal]:
    """Two signals, the one without a result with a stand-in for it."""
    one, two = as_signal(a), as_signal(b)
    if one.value is NOTHING and two.value is not NOTHING:
        one = one._replace(value=blank(two.value))
    elif two.value is NOTHING and one.value is not NOTHING:
        two = two._replace(value=blank(one.value))
    return one, two


def blank(x: Any) -> Any:
    """The same structure with zeros for tensors: what nobody will read."""
    leaves, form = flatten(x)
    return form.build([constant(0, v.type) if isinstance(v, Value) else v for v in leaves])
