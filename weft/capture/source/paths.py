"""Running one path of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.capture.effects import Raised, endless
from weft.capture.refusal import refused
from weft.capture.source.signals import Left
from weft.capture.watch import Escaped
from weft.control.region import Region
from weft.errors import CaptureError

Thunk = Callable[[], Any]


def ran(what: str, region: Region, f: Thunk) -> Any:
    """What a path gives. An error on a path that may never be taken is no error yet."""
    try:
        with region:
            return f()
    except (CaptureError, Left):
        region.restore()
        raise
    except RecursionError as e:
        region.restore()
        raise endless(what) from e
    except Exception as e:
        region.restore()
        raise refused(what, "a path that can be captured", f"{type(e).__name__}: {e}") from e
    finally:
        region.close()


def raising(f: Thunk) -> Any:
    """f(), the error that it ends with made part of the program."""
    try:
        return f()
    except (Raised, Escaped) as e:
        e.finish()
        raise
