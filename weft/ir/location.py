"""Where in the user's program something was said, and what it was called there.

Looked up once per call site: capture asks for every op it records.
"""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from opcode import opmap
from types import CodeType, FrameType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep  # contextlib and its like
_INSTALLED = ("site-packages", "dist-packages")  # under it, but not of it
_LONGEST = 80  # characters of source that are worth repeating


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the user's source: file, line and column span (1-based columns; 0 where Python
    does not know, no file where there is none), the variable that the value was assigned to, and
    the expression.

    >>> print(Location("model.py", 12, 9, 19, "y", "x @ self.w"))
    "model.py":12:9
    """

    file: str = ""
    line: int = 0
    column: int = 0
    end_column: int = 0
    name: str = ""
    text: str = ""

    def __str__(self) -> str:
        return f'"{self.file}":{self.line}' + (f":{self.column}" if self.column else "")


def user_location() -> Location | None:
    """The innermost frame outside this package and Python's own: the line the user would point
    at.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_internal(code.co_filename):
            key = (id(code), frame.f_lasti)
            found = _known.get(key)
            if found is None:
                if len(_known) >= _MOST:
                    _known.clear()
                found = _known[key] = (_find(code, frame.f_lasti, frame.f_lineno), code)
            return found[0]
        frame = frame.f_back
    return None


#: by code object and instruction; the code is held so that its id stays its own. Emptied when full:
#: a program that makes functions without end must not keep them all.
_known: dict[tuple[int, int], tuple[Location, CodeType]] = {}
_MOST = 1 << 16


@lru_cache(maxsize=4096)
def is_internal(file: str) -> bool:
    """Whether a file is of this package or of Python's own library."""
    if file.startswith((_PACKAGE, "<frozen ")):
        return True
    return file.startswith(_LIBRARY) and not file[len(_LIBRARY) :].startswith(_INSTALLED)


def _find(code: CodeType, at: int, line: int) -> Location:
    nowhere = (line, None, None, None)
    first, last, start, end = next(islice(code.co_positions(), at // 2, None), nowhere)
    name = _assigned(code, at)
    if first is None or start is None or end is None:
        return Location(code.co_filename, first or line, name=name)
    source = linecache.getline(code.co_filename, first).encode()  # columns count bytes
    one = last == first
    text = source[start : end if one else None].decode(errors="ignore").strip()
    if not one or len(text) > _LONGEST:
        text = f"{text[:_LONGEST]} …" if text else ""
    start = len(source[:start].decode(errors="ignore")) if source else start
    end = len(source[:end].decode(errors="ignore")) if source else end
    return Location(code.co_filename, first, start + 1, end + 1 if one else 0, name, text)


_STORES = {opmap[n] for n in ("STORE_NAME", "STORE_GLOBAL") if n in opmap}
_LOCALS = {opmap[n] for n in ("STORE_FAST", "STORE_DEREF") if n in opmap}
_PAIRS = {opmap[n] for n in ("STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST") if n in opmap}
_COPY, _EXTENDED, _CACHE = opmap["COPY"], opmap["EXTENDED_ARG"], opmap.get("CACHE", 0)


def _assigned(code: CodeType, at: int) -> str:
    """The plain name that the instruction's value is stored to at once, if it is.

    Read from the bytecode: the source may be gone, and parsing it costs more than this.
    """
    body, argument, i = code.co_code, 0, at + 2
    while i + 1 < len(body):
        operation = body[i]
        argument = argument << 8 | body[i + 1]
        i += 2
        if operation == _EXTENDED:
            continue
        if operation in _LOCALS:
            return _local(code, argument)
        if operation in _STORES:
            return code.co_names[argument]
        if operation in _PAIRS:
            return _local(code, argument >> 4)
        if operation != _CACHE and (operation != _COPY or argument != 1):
            return ""
        argument = 0
    return ""


def _local(code: CodeType, i: int) -> str:
    """The i-th of locals, cells that are no locals, and free variables, in Python's order."""
    cells = (c for c in code.co_cellvars if c not in code.co_varnames)
    return (*code.co_varnames, *cells, *code.co_freevars)[i]
