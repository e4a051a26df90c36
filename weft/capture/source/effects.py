"""Operators for what is done besides computing: text, print, assert, raise, breakpoint."""

from __future__ import annotations

import builtins
import contextlib
import sys
import types
from typing import Any

from weft.capture.effects import (
    Raised,
    finishing as finishing,
    handler,
    handling as handling,
    is_conditional,
    root,
    tell,
)
from weft.capture.implicit import is_users
from weft.capture.join import UNDEFINED
from weft.capture.source.calls import SPECIAL, call
from weft.capture.source.reads import refuse
from weft.capture.source.signals import Throw
from weft.capture.text import Text, is_deferred, written
from weft.capture.unions import Pick
from weft.capture.watch import Escaped, suppressing
from weft.errors import CaptureError
from weft.ir import user_location
from weft.ops.define import capturing

_CONVERSIONS: dict[str, Any] = {"s": str, "r": repr, "a": ascii}
_HOOKS = {"str": ("__str__", "__repr__"), "repr": ("__repr__",), "format": ("__format__",)}


# text


def shown(x: Any, how: str, *spec: Any) -> Any:
    """`str(x)`, `repr(x)`, `ascii(x)` or `format(x, spec)`"""
    if root() is None:
        return getattr(builtins, how)(x, *spec)
    if type(x) is Pick:
        return x.read(lambda v: shown(v, how, *spec))
    hook = _written_by_user(x, how)
    if hook is not None:
        return call(hook, x, *spec)
    if is_deferred(x) or any(type(s) is Text for s in spec):
        return written(how, (x, *spec))
    if how == "format" and not any(spec):
        return shown(x, "str")
    return getattr(builtins, how)(x, *spec)


def _written_by_user(x: Any, how: str) -> Any:
    """A method of the user's that makes text of an object."""
    for name in _HOOKS.get(how, ()):
        f: Any = getattr(type(x), name, None)
        if isinstance(f, types.FunctionType) and is_users(f.__code__.co_filename):
            return f
        if f is not getattr(object, name):
            return None
    return None


def formatted(x: Any, conversion: str, spec: Any = "") -> Any:
    """A part of an f-string."""
    if conversion:
        x = shown(x, _CONVERSIONS[conversion].__name__)
        if type(x) is str and type(spec) is str:
            return format(x, spec)
    return shown(x, "format", spec)


def text(*parts: Any) -> Any:
    """An f-string."""
    if all(type(p) is str for p in parts):
        return "".join(parts)
    one = next((p for p in parts if type(p) is Pick), None)
    if one is not None and all(type(p) is str for p in parts if p is not one):
        return one.read(lambda x: text(*[x if p is one else p for p in parts]))
    return written("text", parts)


def mod(a: Any, b: Any) -> Any:
    """`a % b`, which formats if `a` is text."""
    if isinstance(a, str) and root() is not None and is_deferred(b):
        return written("mod", (a, b))
    return a % b


def _text_of(how: str) -> Any:
    def make(*args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return getattr(builtins, how)(*args, **kwargs)
        return shown(args[0], how)

    return make


def _format(x: Any, spec: Any = "") -> Any:
    return shown(x, "format", spec)


# print


def _print(*args: Any, **kwargs: Any) -> None:
    if root() is None:
        print(*args, **kwargs)
        return
    file = kwargs.get("file")
    if file in (None, sys.stdout, sys.stderr):
        kwargs.pop("file", None)
        kwargs["stream"] = "stderr" if file is not None and file is sys.stderr else "stdout"
    parts = [shown(x, "str") if _written_by_user(x, "str") is not None else x for x in args]
    tell(written("print", parts, kwargs))


# errors


def error(x: Any, *cause: Any, leaving: bool = False) -> Any:
    """What `raise x` and `raise x from cause` raise. On a path of a program, the program does."""
    if isinstance(x, type) and issubclass(x, BaseException):
        x = call(x)
    if not isinstance(x, BaseException):
        return x  # Python says what is wrong with it
    made = [call(c) if isinstance(c, type) else c for c in cause]
    if is_conditional():
        block = handler(x)
        if block is None:
            return Raised(x, *made)
        if block.outside is not capturing.now or block.faults:
            if leaving and block is handling.stack[-1] and not made:
                return Throw(x, f"{user_location()} {type(x).__name__}")
            if block.watch is not None:
                if made:
                    x.__cause__ = made[0]
                return Escaped(x, block)
            raise refuse(
                f"a {type(x).__name__} on a path that depends on tensors, inside a try that "
                "handles it",
                "leave the try block by a flag, and test that behind it",
            )
    if made:
        x.__cause__ = made[0]
    return x


def refusals() -> tuple[type[BaseException], ...]:
    """What no handler of a captured function takes: it is not of the function's doing."""
    return () if capturing.now is None else (CaptureError, Raised, Escaped)


def thrown(x: Any, *cause: Any) -> Any:
    """`raise` in a block whose statement has handlers: raised, or how the block ends."""
    made = error(x, *cause, leaving=True)
    if type(made) is Throw:
        return made
    raise made


def kinds(x: Any) -> tuple[Any, ...]:
    """The classes of errors that a handler takes."""
    return x if isinstance(x, tuple) else (x,)


def failed(*message: Any) -> Any:
    """What an assert raises."""
    return AssertionError(*message)


# the debugger


def is_captured() -> bool:
    """Whether what is done is left to the program."""
    return root() is not None


def breakpoint_(variables: dict[str, Any]) -> None:
    """`breakpoint()` in a program, at the user's line, with the variables there."""
    known = {k: v for k, v in variables.items() if v is not UNDEFINED}
    loc = user_location()
    file, line = (loc.file, loc.line) if loc is not None else ("<program>", 1)
    tell(written("breakpoint", (known, file, line)))


SPECIAL[contextlib.suppress] = suppressing
SPECIAL.update({builtins.print: _print, builtins.format: _format})
SPECIAL.update({f: _text_of(f.__name__) for f in (str, repr, ascii)})
