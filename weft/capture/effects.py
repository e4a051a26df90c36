"""What a captured function does besides computing, in order: prints, errors, calls of Python.

The capture under way has one token, in a tensor that everyone knows of. A call of Python takes it
and puts its own there. So branches join it and loops carry it like any tensor assigned in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.capture.refusal import refused
from weft.capture.stacks import rooms
from weft.capture.text import Text, an_error, written
from weft.capture.watch import (
    Raised as Ended,
    Watch,
    faults as faults,
    finished,
    finishing as finishing,
    handler as handler,
    handling as handling,
)
from weft.control.branches import build_cond
from weft.control.host import emit_host, first_token
from weft.control.region import Region
from weft.errors import CaptureError
from weft.ir import Location, user_location
from weft.ops.define import Value, capturing, data_of, installed
from weft.types import TensorType


class Raised(Ended):
    """Ends a path of a program that ends by raising: `finish` makes that part of the program."""

    def __init__(self, error: BaseException, *cause: BaseException | None) -> None:
        self.error, self.cause, self.loc = error, cause, user_location()

    def finish(self) -> None:
        """Have the program raise here, from the line where it was said."""
        with finished():
            for room in rooms():
                room.end()
            cause = [c if c is None else an_error(c) for c in self.cause]
            tell(written("raise", (an_error(self.error), *cause)), loc=self.loc)


def root() -> Any:
    """The trace under way, or None: of a graph made by hand nothing is done in order."""
    now: Any = capturing.now
    while isinstance(now, Region):
        now = now.parent
    return None if now is None or now.by_hand else now


def endless(what: str) -> CaptureError:
    """The error of functions that call each other to no end while they are captured."""
    trace = root()
    for entry in () if trace is None else trace.running:
        known: CaptureError | None = trace.endless.get(entry.f)
        if known is not None:
            return known
    got = "functions that call each other without end"
    return refused(what, "a path that ends", got, "write the recursion as a loop")


def tell(
    x: Text, gives: Sequence[TensorType] = (), loc: Location | None = None
) -> tuple[Value, ...]:
    """Have Python work out `x` here, whenever the program comes by; what that gives."""
    pending = faults()
    if pending:  # an error was raised before, on some path
        return later.unless(pending, lambda: tell(x, gives, loc), gives)
    trace = root()
    if trace.token is None:
        trace.token = installed.tensor(first_token())
    cell = trace.token
    token, *results = emit_host((installed.tensor(cell.data), *x.values), x.said, tuple(gives), loc)
    _put(cell, token)
    return tuple(results)


def _put(cell: Value, token: Value) -> None:
    assert capturing.now is not None
    capturing.now.keep(cell)
    cell.data = data_of(token)


def raise_if(condition: Value, raising: Region, position: int) -> None:
    """Raise in the program as a region did that was run on one path, the first or the second; on
    the other nothing is done.
    """
    cells = [root().token, *(room.cell for room in rooms())]
    after = [installed.tensor(c.data) for c in cells]
    raising.restore()
    before = [installed.tensor(c.data) for c in cells]
    pieces = [(raising, (), after), (Region(), (), before)]
    out = build_cond(condition, pieces if position == 0 else pieces[::-1])
    for cell, value in zip(cells, out, strict=True):
        _put(cell, value)


def happened() -> tuple[Any, ...]:
    """What was done so far besides computing: another answer if something was done in between."""
    trace = root()
    if trace is None:
        return ()
    return (None if trace.token is None else trace.token.data, trace.position())


def is_conditional() -> bool:
    """Whether what is run now is part of a branch or loop, or follows a call of Python: then an
    error is one of the program's.
    """
    trace, now = root(), capturing.now
    while type(now) is Watch:
        now = now.parent
    inside = isinstance(now, Region) or bool(faults())
    return trace is not None and (inside or trace.token is not None)


class _Later:
    """What a later module gives."""

    unless: Callable[..., tuple[Value, ...]]


later = _Later()
