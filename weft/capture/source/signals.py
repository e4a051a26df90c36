"""How the body of a loop ends: None to go on, `BREAK`, `Return(value)`, or, where that depends on
tensors, a `Signal`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from weft.capture.join import blank
from weft.capture.refusal import Left as Left
from weft.capture.things import WHOLE


class _Mark:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


BREAK = _Mark("break")
CONTINUE = _Mark("continue")
NOTHING = _Mark("no result")


class Unknown(Left):
    """Ends a path that calls a function of which it is not known yet what it gives."""


class Return:
    """Leaving a loop's body for good, with the function's result."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Throw:
    """Leaving a block by an error that a handler of its statement takes."""

    __slots__ = ("error", "place")

    def __init__(self, error: BaseException, place: str) -> None:
        self.error, self.place = error, place


class Fault(NamedTuple):
    """An error that a block may have ended with: whether it did, and what it is made of."""

    flag: Any
    kind: type
    args: tuple[Any, ...]
    inside: dict[str, Any]


WHOLE.add(Fault)


class Signal(NamedTuple):
    """Whether the loop is broken off, whether the function returns, and what; whether the loop goes
    on with its next step; errors by their places.
    """

    broke: Any
    returns: Any
    value: Any
    skips: Any = False
    faults: Any = None


def is_signal(x: Any) -> bool:
    return x is BREAK or x is CONTINUE or type(x) in (Return, Signal, Throw)


def as_signal(x: Any) -> Signal:
    if type(x) is Signal:
        return x
    if type(x) is Return:
        return Signal(False, True, x.value)
    if type(x) is Throw:
        fault = Fault(True, type(x.error), x.error.args, dict(x.error.__dict__))
        return Signal(False, False, NOTHING, False, {x.place: fault})
    return Signal(x is BREAK, False, NOTHING, x is CONTINUE)


def is_left(x: Any) -> bool:
    """Whether the function returns for certain."""
    return type(x) is Return or (type(x) is Signal and x.returns is True)


def alike(a: Any, b: Any) -> tuple[Signal, Signal]:
    """Two signals, the one without a result with a stand-in for it."""
    one, two = as_signal(a), as_signal(b)
    if one.value is NOTHING and two.value is not NOTHING:
        one = one._replace(value=blank(two.value))
    elif two.value is NOTHING and one.value is not NOTHING:
        two = two._replace(value=blank(one.value))
    if one.faults or two.faults:
        one, two = _with_faults(one, two), _with_faults(two, one)
    return one, two


def _with_faults(one: Signal, other: Signal) -> Signal:
    """A signal with the faults of another one too, which did not happen."""
    own, theirs = one.faults or {}, other.faults or {}
    every = {**own, **{k: blank(f)._replace(flag=False) for k, f in theirs.items() if k not in own}}
    return one._replace(faults={k: every[k] for k in sorted(every)})
