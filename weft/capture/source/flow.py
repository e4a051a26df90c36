"""Operators for control flow: Python's own unless a condition is symbolic."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from weft.capture.chosen import TYPES, Chosen, Flag
from weft.capture.effects import faults, happened
from weft.capture.join import UNDEFINED, Unjoined
from weft.capture.pythonic import rounded, whole
from weft.capture.refusal import refused
from weft.capture.runs import GROWN, element, is_grown, is_unclear, length, spelled_out
from weft.capture.source.calls import SPECIAL
from weft.capture.source.loops import loop
from weft.capture.source.ranges import Range, counted, is_long, is_symbolic
from weft.capture.source.reads import guards, known, later, refuse, seen
from weft.capture.source.sequences import sequence
from weft.capture.source.signals import BREAK, CONTINUE, Return, Signal
from weft.capture.source.special import (
    compared,
    iterate as iterate,
    method,
    truth as truth_of,
)
from weft.capture.source.symbolic import branch
from weft.capture.structure import flatten
from weft.control.build import truth
from weft.control.nodes import BOOL
from weft.errors import CaptureError, ShapeError
from weft.ops.creation import full
from weft.ops.define import Value, capturing, installed
from weft.ops.elementwise import astype, logical_not, logical_or
from weft.ops.movement import reshape
from weft.tensor.tensor import Tensor
from weft.types.dtype import bool_, float64, int64

Thunk = Callable[[], Any]
Put = Callable[..., None]
Names = tuple[str, ...]
_ENDLESS = (4, 32, 256)  # steps of a loop without an end after which it may be the program's
_UNROLLED = 8  # steps of a range after which a break on tensors makes it a loop of the program


def load(read: Thunk) -> Any:
    """A variable's value, or UNDEFINED."""
    try:
        return read()
    except NameError:
        return UNDEFINED


def given(x: Any) -> Any:
    """What a function returns: it may hold nothing that two paths left in different ways."""
    if capturing.now is not None:
        for v in flatten(x)[0]:
            if isinstance(v, Unjoined):
                v.used()
    return x


def test(x: Any) -> bool:
    """The truth of a value that has to be known now."""
    if is_symbolic(x):
        raise refuse(
            "a condition on a tensor inside with, try or a comprehension",
            "move the branch out of it",
        )
    return bool(seen(truth_of(x)))


def filled(x: Any) -> Any:
    """A condition; of a list that grew in a loop, whether it has elements."""
    if type(x) is later.pick:
        users = any(method(v, n) for v in x.parts for n in ("__bool__", "__len__"))
        return (x.each if users else x.read)(_truth)
    return length(x) > 0 if is_grown(x) else truth_of(x)


def _truth(x: Any) -> Any:
    """The truth of one of several things."""
    x = filled(x)
    return Flag.of(truth(x, "a condition")) if is_symbolic(x) else bool(seen(x))


# statements


def if_(condition: Any, then: Thunk, otherwise: Thunk, get: Thunk, put: Put, names: Names) -> Any:
    condition = filled(condition)
    if is_symbolic(condition):
        return branch(condition, then, otherwise, get, put, names)
    return then() if seen(condition) else otherwise()


def while_(test: Thunk, body: Thunk, get: Thunk, put: Put, names: Names, live: Names) -> Any:
    check: Thunk = lambda: filled(test())
    told = happened(), len(faults())
    steps = 0
    while True:
        done = happened()
        if steps in _ENDLESS and (done, len(faults())) != told and seen(test()) is True:
            try:  # an error may end it
                return loop(True, False, check, body, get, put, names)
            except CaptureError:
                if steps == _ENDLESS[-1]:
                    raise
        steps += 1
        more = check()
        if is_symbolic(more):
            return loop(more, done != happened(), check, body, get, put, names)
        if not seen(more):
            return None
        signal = body()
        if type(signal) is Signal:
            return loop(None, False, check, body, get, put, names, signal)
        if signal is not None:
            return signal


def for_(items: Any, body: Any, get: Thunk, put: Put, names: Names, live: Names) -> Any:
    if isinstance(items, Range):
        return counted(items, body, get, put, names, None)
    items = items.one(iter) if type(items) is later.pick else items
    items = iterate(items) if method(items, "__iter__") else items
    if is_long(items):
        try:
            plain = Range(items.start, items.stop, items.step)
            return counted(plain, body, get, put, names, None, known=True)
        except CaptureError:  # step by step, then
            pass
    found = sequence(items)
    if found is not None:
        before = list(items) if type(items) is list else []
        try:
            whole, fixed = Range(0, found.length), type(found.length) is int
            step = lambda i: body(found.at(i))
            signal = counted(whole, step, get, put, names, None, known=fixed)
        except CaptureError:  # step by step, then
            pass
        else:
            if type(items) is list and not _are_same(before, items):
                raise refused(
                    "a loop",
                    "a list that keeps its elements while a loop goes through it",
                    "one whose length depends on values, that is changed",
                    "use while and an index",
                )
            return signal
    steps = iter(iterate(items))
    left = len(items) if isinstance(items, range) else 0
    done = 0

    def go_on() -> Any:
        nonlocal left, done
        for x in steps:
            if type(x) in GROWN or (type(items) is list and is_unclear(items)):
                return _live(items, done, body, get, put, names)
            left -= 1
            done += 1
            signal = body(x)
            if type(signal) is not Signal:
                if signal is not None:
                    return signal
            elif left > _UNROLLED:
                rest = Range(x + items.step, items.stop, items.step)
                return counted(rest, body, get, put, names, signal)
            else:
                stop = logical_or(as_value(signal.broke), as_value(signal.returns))
                return branch(stop, partial(_same, signal), go_on, get, put, names)
        return None

    return go_on()


def _live(items: list[Any], start: int, body: Any, get: Thunk, put: Put, names: Names) -> Any:
    """A loop through a list from an element on, that is as long as the list is at every step."""
    now: Any = Chosen.of(full(start, shape=(), dtype=int64))

    def step() -> Any:
        nonlocal now
        x = element(items, now)
        now = now + 1
        return body(x)

    def put_all(*values: Any) -> None:
        nonlocal now
        put(*values[:-1])
        now = values[-1]

    more: Thunk = lambda: now < length(items)
    every: Thunk = lambda: (*get(), now)
    return loop(True, False, more, step, every, put_all, (*names, "the index"))


def _are_same(x: list[Any], y: list[Any]) -> bool:
    return len(x) == len(y) and all(map(operator.is_, x, y))


def _same(x: Any) -> Any:
    return x


def as_value(x: Any) -> Value:
    return x if isinstance(x, Value) else installed.lift(x)


def returned(signal: Any) -> Any:
    return signal.returns if type(signal) is Signal else type(signal) is Return


def returned_value(signal: Any) -> Any:
    return signal.value


def broke(signal: Any) -> Any:
    return signal.broke if type(signal) is Signal else signal is BREAK


def skipped(signal: Any) -> Any:
    return signal.skips if type(signal) is Signal else signal is CONTINUE


def completed(signal: Any) -> Any:
    if type(signal) is Signal:
        return logical_not(logical_or(as_value(signal.broke), as_value(signal.returns)))
    return signal is None


# expressions


def and_(*parts: Thunk) -> Any:
    return _lazy(parts, False)


def or_(*parts: Thunk) -> Any:
    return _lazy(parts, True)


def same(x: Any) -> Thunk:
    """What is computed already."""
    return lambda: x


def _lazy(parts: tuple[Thunk, ...], decides: bool) -> Any:
    """The first part that decides, else the last: parts behind it are not computed."""
    value = parts[0]()
    for i, part in enumerate(parts[1:], 1):
        holds = filled(value) if type(value) is later.pick else value
        if is_symbolic(holds):
            rest = lambda i=i: _lazy(parts[i:], decides)
            keep = lambda v=value: v
            then, otherwise = (keep, rest) if decides else (rest, keep)
            return branch(holds, then, otherwise, tuple, nothing, ())
        if bool(seen(holds)) is decides:
            return value
        value = part()
    return value


def nothing(*_: Any) -> None:
    """Binds no variable."""


def not_(x: Any) -> Any:
    x = filled(x)
    return Flag.of(logical_not(truth(x, "not"))) if is_symbolic(x) else not seen(x)


def choose(condition: Any, then: Thunk, otherwise: Thunk) -> Any:
    return if_(condition, then, otherwise, tuple, nothing, ())


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: compared(a, "<", b, operator.lt),
    "<=": lambda a, b: compared(a, "<=", b, operator.le),
    ">": lambda a, b: compared(a, ">", b, operator.gt),
    ">=": lambda a, b: compared(a, ">=", b, operator.ge),
    "==": lambda a, b: compared(a, "==", b, lambda a, b: _spelled(a) == _spelled(b)),
    "!=": lambda a, b: compared(a, "!=", b, lambda a, b: _spelled(a) != _spelled(b)),
    "is": lambda a, b: _identical(a, b),
    "is not": lambda a, b: not_(_identical(a, b)),
    "in": lambda a, b: later.contains(a, b),
    "not in": lambda a, b: not_(later.contains(a, b)),
}


def _spelled(x: Any) -> Any:
    return spelled_out(seen(x)) if type(x) in (list, dict, tuple) else x


def _identical(a: Any, b: Any) -> Any:
    if type(b) is bool and is_symbolic(a):
        raise refuse(f"a test whether a tensor is {b}", "compare with ==, or test it by itself")
    return later.identical(a, b)


def compare(left: Any, symbols: tuple[str, ...], *rights: Thunk) -> Any:
    """`left < right < …`, each operand computed once, and none after a comparison that fails."""
    right = rights[0]()
    value = _COMPARE[symbols[0]](left, right)
    if len(symbols) == 1:
        return value
    return and_(lambda: value, lambda: compare(right, symbols[1:], *rights[1:]))


def _int(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and is_symbolic(args[0]) and not args[0].type.dtype.is_float:
        x = args[0]
        return item(astype(x, dtype=int64) if x.type.dtype is bool_ else x)
    if len(args) == 1 and is_symbolic(args[0]):
        return whole(item(args[0]))
    return int(*args, **kwargs)


def _divmod(a: Any, b: Any) -> Any:
    if any(type(x) is Chosen for x in (a, b)):
        return a // b, a % b
    return divmod(a, b)


def _float(*args: Any) -> Any:
    if len(args) == 1 and is_symbolic(args[0]):
        x = item(args[0])
        return x if x.kind is float else Chosen.of(astype(Tensor(x.data), dtype=float64))
    return float(*args)


def _bool(*args: Any) -> Any:
    args = tuple([filled(x) for x in args])
    symbolic = args and is_symbolic(args[0])
    return Flag.of(truth(args[0], "bool()")) if symbolic else bool(*map(seen, args))


def item(x: Any) -> Any:
    """`x.item()`: the one element of a tensor as a number."""
    if not is_symbolic(x):
        return x.item()
    if x.type.dtype is bool_:
        return Flag.of(truth(x, "item()"))
    if x.type.size != 1:
        raise ShapeError("item()", expected="a tensor of one element", got=str(x.type))
    kind = float if x.type.dtype.is_float else int
    plain = Tensor(x.data)
    wide = plain if plain.dtype is TYPES[kind].dtype else astype(plain, dtype=TYPES[kind].dtype)
    return Chosen.of(wide if wide.type.shape == () else reshape(wide, shape=()))


def _isinstance(x: Any, kinds: Any) -> bool:
    known(x)
    if type(x) is Chosen:
        return issubclass(x.kind, kinds)
    if type(x) is Flag:
        return issubclass(bool, kinds)
    if is_symbolic(x) and x.type is BOOL and isinstance(True, kinds) and kinds is not object:
        raise refuse("a test whether a condition on tensors is a Python bool")
    g = guards()
    if g is not None:
        g.kind(x)
    return isinstance(x, kinds)


def _type(*args: Any) -> Any:
    number = len(args) == 1 and type(known(args[0])) in (Chosen, Flag)
    return args[0].kind if number else type(*args)


def _extreme(pick: Any, better: Any) -> Any:
    """`max` or `min` of tensors, as Python goes through them."""

    def extreme(*args: Any, **kwargs: Any) -> Any:
        items = list(iterate(args[0])) if len(args) == 1 else list(args)
        if kwargs or not any(map(is_symbolic, items)):
            return pick(items, **kwargs) if len(args) == 1 else pick(*args, **kwargs)
        best = items[0]
        for x in items[1:]:
            best = choose(better(x, best), partial(_same, x), partial(_same, best))
        return best

    return extreme


def _whether(lazily: Any, plain: Any) -> Any:
    """`any` or `all` of conditions."""

    def whether(items: Any) -> Any:
        found = list(iterate(items))
        if not any(map(is_symbolic, found)):
            return plain(found)
        return lazily(*(partial(_as_truth, x) for x in found))

    return whether


def _as_truth(x: Any) -> Any:
    return Flag.of(truth(x, "a condition")) if is_symbolic(x) else bool(x)


SPECIAL.update({max: _extreme(max, operator.gt), min: _extreme(min, operator.lt)})
SPECIAL.update({any: _whether(or_, any), all: _whether(and_, all)})
SPECIAL.update(
    {
        isinstance: _isinstance,
        type: _type,
        round: rounded,
        divmod: _divmod,
        int: _int,
        float: _float,
        bool: _bool,
        Tensor.item: item,
    }
)
