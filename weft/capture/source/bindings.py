"""The operator that reads a variable which may have no value."""

from __future__ import annotations

from typing import Any

from weft.capture.join import Unjoined
from weft.capture.perhaps import Perhaps, there
from weft.capture.source.effects import error
from weft.capture.source.flow import Thunk
from weft.capture.source.picks import unless

_SAYS = {
    "local": "cannot access local variable '{}' where it is not associated with a value",
    "free": "cannot access free variable '{}' where it is not associated with a value in "
    "enclosing scope",
}


def bound(read: Thunk, name: str, kind: str) -> Any:
    """A variable's value; Python's error where it has none."""

    def made() -> BaseException:
        return (UnboundLocalError if kind == "local" else NameError)(_SAYS[kind].format(name))

    try:
        x = read()
    except NameError as e:  # raised where the variable is read
        trace = e.__traceback__ and e.__traceback__.tb_next
        raise error(made()).with_traceback(trace) from None
    if type(x) is Perhaps:
        return there(x, lambda flag: unless(flag, made))
    return x.used() if type(x) is Unjoined else x
