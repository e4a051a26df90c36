"""Where in the user's program something was said."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from itertools import islice
from types import FrameType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the user's source: file, line and column span (1-based columns; 0 where Python
    does not know).
    """

    file: str
    line: int
    column: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        return f'"{self.file}":{self.line}' + (f":{self.column}" if self.column else "")


def user_location() -> Location | None:
    """The innermost frame outside this package: the line the user would point at."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return None
    code = frame.f_code
    nowhere = (frame.f_lineno, None, None, None)
    line, _, column, end = next(islice(code.co_positions(), frame.f_lasti // 2, None), nowhere)
    return Location(
        code.co_filename,
        line or frame.f_lineno,
        0 if column is None else column + 1,
        0 if end is None else end + 1,
    )
