"""Places that a captured function reads: functions of an owner and a key, giving what is there."""

from __future__ import annotations

from typing import Any

from weft.capture.state import parts

#: keys of what is read of an owner as a whole
CONTENT, STATE, KIND = "the whole content", "all that it holds", "its class"
#: of a class's flags: written in Python, so that its objects may get another
HEAP = 1 << 9


class Missing:
    """What is found where there is nothing."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = Missing()


class Content:
    """A container's elements, or all that an object holds, to compare with later ones."""

    def __init__(self, owner: Any, found: tuple[Any, ...] | None = None) -> None:
        self.kind = type(owner)
        self.elements = elements(owner) if found is None else found

    def __repr__(self) -> str:
        return f"{len(self.elements)} elements"


def elements(owner: Any) -> tuple[Any, ...]:
    """Those of a container; of a dict, the keys and then the values."""
    if isinstance(owner, dict):
        return (*owner.keys(), *owner.values())
    return tuple(owner)


def entry(owner: Any, key: Any) -> Any:
    """`owner[key]` of a dict."""
    return owner.get(key, MISSING)


def entry_type(owner: Any, key: Any) -> Any:
    """The type of `owner[key[1]]` of a dict."""
    return type(owner.get(key[1], MISSING))


def element(owner: Any, key: Any) -> Any:
    """`owner[key]` of a list."""
    return owner[key] if -len(owner) <= key < len(owner) else MISSING


def contents(cell: Any, _: Any) -> Any:
    """The value of a closure's variable."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def content(owner: Any, _: Any) -> Any:
    """All elements."""
    return Content(owner)


def state(owner: Any, _: Any) -> Any:
    """All that an object holds."""
    found = parts(owner)
    return MISSING if found is None else Content(owner, found)


def kind(owner: Any, _: Any) -> type:
    """The class."""
    return type(owner)
