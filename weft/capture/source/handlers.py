"""Operators for what comes behind the block of a `try`: its else, and its handlers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from weft.autodiff.backward import constant
from weft.capture.effects import later, root
from weft.capture.source.effects import error as raised
from weft.capture.source.flow import Names, Put, Thunk, as_value, if_
from weft.capture.source.signals import NOTHING, Fault, Signal
from weft.capture.source.symbolic import as_bool, branch
from weft.capture.watch import Escape, excluding, handling
from weft.ops.elementwise import logical_and, logical_not, logical_or
from weft.types import TensorType


def fell(signal: Any) -> Any:
    """Whether control came to the end of a block."""
    if type(signal) is not Signal:
        return signal is None
    flags = [signal.broke, signal.returns, signal.skips]
    flags += [f.flag for f in (signal.faults or {}).values()]
    left: Any = False
    for flag in flags:
        if flag is not False:
            left = flag if left is False else logical_or(as_value(left), as_value(flag))
    return not left if isinstance(left, bool) else logical_not(left)


def orelse(signal: Any, body: Thunk, get: Thunk, put: Put, names: Names, block: Any) -> Any:
    """What a try ends with whose else comes once its block is done."""
    if block.ended:
        return signal
    fine = fell(signal)
    for fault in block.faults:
        fine = logical_and(as_value(fine), logical_not(as_value(fault.flag)))
    return if_(fine, body, lambda: signal, get, put, names)


def caught(
    signal: Any,
    get: Thunk,
    put: Put,
    names: Names,
    block: handling,
    handlers: tuple[tuple[Thunk, Any], ...],
) -> Any:
    """What a block ended with, once handlers have taken the errors it may have ended with."""
    found = list(signal.faults.values()) if type(signal) is Signal and signal.faults else []
    rest: Any = signal._replace(faults=None) if found else signal
    if found and rest.value is NOTHING and rest.broke is False and rest.skips is False:
        rest = None

    def among(faults: list[Any]) -> Any:
        if not faults:
            return rest
        first, *more = faults
        error = _built(first) if type(first) is Fault else first.error()

        def handled() -> Any:
            if type(first) is not Fault:
                block.restore(first, put, root().token)
            handle = next((f for kinds, f in handlers if isinstance(error, kinds())), None)
            if handle is None:
                raise raised(error, *filter(None, [error.__cause__]))
            return handle(error)

        if block.ended and not more:
            return handled()
        return if_(first.flag, handled, partial(among, more), get, put, names)

    return among([*block.faults, *found])


def _built(fault: Fault) -> BaseException:
    error: BaseException = fault.kind.__new__(fault.kind, *fault.args)
    error.args = fault.args
    error.__dict__.update(fault.inside)
    return error


def unless(pending: list[Escape], f: Thunk, gives: Sequence[TensorType] = ()) -> Any:
    """f() where none of these errors was raised; else values that nobody reads."""
    flag = as_bool(False)
    for fault in pending:
        flag = logical_or(flag, as_bool(fault.flag))

    def told() -> Any:
        with excluding(pending):
            return f()

    nothing: Any = lambda *_: None
    return branch(flag, lambda: tuple(constant(0, t) for t in gives), told, tuple, nothing, ())


later.unless = unless
