"""Errors of captures, on the user's line."""

from __future__ import annotations

from weft.errors import CaptureError
from weft.ir import user_location


def refused(what: str, expected: str, got: str, hint: str = "") -> CaptureError:
    """An error that says where the user's program can't be captured, and why."""
    loc = user_location()
    place = f'{what} at "{loc.file}":{loc.line}' if loc is not None else what
    return CaptureError(place, expected=expected, got=got, hint=hint)
