"""Errors of captures, on the user's line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from types import TracebackType
from typing import Any

from weft.errors import CaptureError, WeftError
from weft.ir import Location, user_location
from weft.ir.location import is_internal


class Left(BaseException):
    """Ends the capture of a path, which is captured once more."""

    def __init__(self, of: Any) -> None:
        self.of = of


def refused(what: str, expected: str, got: str, hint: str = "") -> CaptureError:
    """An error that says where the user's program can't be captured, and why."""
    return CaptureError(located(what, user_location()), expected=expected, got=got, hint=hint)


def located(what: str, loc: Location | None) -> str:
    """What an error is about, with its place."""
    return f'{what} at "{loc.file}":{loc.line}' if loc is not None else what


def on_line(e: CaptureError, f: Callable[..., Any], unguarded: Sequence[str]) -> None:
    """Give an error that a capture of `f` ended with the line it came from, if it says none, and
    what is wrong with the code if that is that it can't be read.
    """
    place, hint = e.place, e.hint
    if '"' not in place:
        lines = [(t.tb_frame.f_code.co_filename, t.tb_lineno) for t in _users(e.__traceback__)]
        place = located(place, Location(*lines[-1]) if lines else defined(f))
    if unread := [reason for reason in unguarded if reason.endswith(NO_SOURCE)]:
        hint = f"{unread[0]}; {READABLE}"
    WeftError.__init__(e, place, expected=e.expected, got=e.got, hint=hint)


#: how a reason ends that there is no source, and what to do then
NO_SOURCE = "is not to be found"
READABLE = "put the function into a file, or run it in a notebook"


def defined(f: Callable[..., Any]) -> Location | None:
    """Where a function begins."""
    code = getattr(f, "__code__", None)
    return None if code is None else Location(code.co_filename, code.co_firstlineno)


def shortened(e: BaseException) -> TracebackType | None:
    """The traceback of what a capture ended with, without Weft's frames between the user's; what
    Weft raises on purpose ends on the user's line.
    """
    users = list(_users(e.__traceback__))
    if not users:
        return e.__traceback__
    if isinstance(e, WeftError):
        users[-1].tb_next = None
    for t, after in pairwise(users):
        t.tb_next = after
    return users[0]


def _users(t: TracebackType | None) -> Iterator[TracebackType]:
    while t is not None:
        if not is_internal(t.tb_frame.f_code.co_filename):
            yield t
        t = t.tb_next
