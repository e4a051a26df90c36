"""Errors of captures, on the user's line."""

from __future__ import annotations

from typing import Any

from weft.errors import CaptureError
from weft.ir import Location, user_location


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
