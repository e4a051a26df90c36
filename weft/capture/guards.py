"""What a captured program took from outside: the Python values that shaped it.

While a function is captured, every attribute, global, closure variable and element of a container
that it reads from objects that were there before is noted with what it was. `Guards.check` says
whether all of it still is: plain values by type and equality, everything else by identity.

Writes to such places are noted too, and undone by `restore`: a program does not repeat them by
itself, so whoever runs it has to (`writes`), or must not run it at all (`unguarded`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from operator import is_
from typing import Any

PLAIN = (int, float, bool, str, bytes, complex, type(None))


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()


def is_plain(x: Any) -> bool:
    """Whether a value is compared by equality: numbers, strings, None, tuples of such."""
    return type(x) in PLAIN or (type(x) is tuple and all(map(is_plain, x)))


def same(a: Any, b: Any) -> bool:
    """Identical, or plain values of one type that are equal (0.0 and -0.0 are not)."""
    if a is b:
        return True
    if type(a) is Content and type(b) is Content:
        return a.kind is b.kind and same(a.elements, b.elements)
    if type(a) is tuple and type(b) is tuple:
        return len(a) == len(b) and all(map(same, a, b))
    if type(a) is not type(b) or not is_plain(a):
        return False
    if type(a) is float:
        return a.hex() == b.hex()
    return bool(a == b)


@dataclass(frozen=True, slots=True)
class Read:
    """A place that was read, and what was found there."""

    get: Callable[[Any, Any], Any]  # (owner, key) -> value
    owner: Any
    key: Any
    expected: Any
    said: str  # how the user would name the place

    def failure(self) -> str | None:
        try:
            now = self.get(self.owner, self.key)
        except Exception as e:
            now = e
        if same(now, self.expected):
            return None
        return f"{self.said} was {_shown(self.expected)}, now it is {_shown(now)}"


@dataclass(slots=True)
class Write:
    """A place outside that was given another value: `put(owner, key, value)`."""

    put: Callable[[Any, Any, Any], None]
    owner: Any
    key: Any
    before: Any
    value: Any
    said: str


class _Group:
    """Reads of one dict, compared together."""

    __slots__ = ("absent", "get", "keys", "reads", "wanted")

    def __init__(self, reads: list[Read]) -> None:
        there = [r for r in reads if r.expected is not MISSING]
        owner = reads[0].owner
        self.reads, self.get = reads, owner.__getitem__
        self.keys, self.wanted = [r.key for r in there], [r.expected for r in there]
        gone = frozenset(r.key for r in reads if r.expected is MISSING)
        self.absent = partial(gone.isdisjoint, owner) if gone else None

    def holds(self) -> bool:
        """Whether everything is identical, which is not said of equal values."""
        try:
            found = all(map(is_, map(self.get, self.keys), self.wanted))
        except LookupError:
            return False
        return found and (self.absent is None or self.absent())

    def failure(self) -> str | None:
        return next(filter(None, (r.failure() for r in self.reads)), None)


class Guards:
    """Reads and writes of places outside, in one trace."""

    def __init__(self) -> None:
        self.reads: dict[tuple[int, Any], Read] = {}
        self.made: dict[int, Any] = {}  # objects of the trace's own, held so that ids stay theirs
        self.writes: dict[tuple[int, Any], Write] = {}
        self.unguarded: list[str] = []  # why another run might differ although check() passes
        self.paused = 0
        self._flat: list[_Group] | None = None
        self._spaces: dict[type, Any] = {}
        self._slow: list[Read] = []

    # noting

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """`owner.name` was read."""
        said = f"{_called(owner)}.{name}"
        kind = type(owner)
        inside = getattr(owner, "__dict__", None)
        if isinstance(owner, type):
            for base in owner.__mro__:
                if name in base.__dict__:
                    self.item(self._space(base), name, base.__dict__[name], said)
                    return
            self._note(getattr, owner, name, value, said)
        elif isinstance(inside, dict) and inside.get(name, MISSING) is value:
            self.item(inside, name, value, said)
        else:
            for base in kind.__mro__:
                if name in base.__dict__:
                    if isinstance(inside, dict):
                        self.item(inside, name, MISSING, said)
                    self.item(self._space(base), name, base.__dict__[name], said)
                    if hasattr(base.__dict__[name], "__set__"):  # a slot: the value is elsewhere
                        self._note(getattr, owner, name, value, said)
                    return
            self._note(getattr, owner, name, value, said)

    def _space(self, kind: type) -> Any:
        """The names of a class: one object each time, unlike `__dict__`."""
        return self._spaces.setdefault(kind, kind.__dict__)

    def item(self, owner: Mapping[Any, Any], key: Any, value: Any, said: str = "") -> None:
        """`owner[key]` of a dict was read; MISSING where there was none."""
        self._note(_entry, owner, key, value, said or f"{_called(owner)}[{key!r}]")

    def element(self, owner: Any, key: Any, value: Any) -> None:
        """`owner[key]` of a list was read."""
        self._note(_element, owner, key, value, f"{_called(owner)}[{key!r}]")

    def content(self, owner: Any) -> None:
        """All of a list, dict or set was read."""
        if (id(owner), _CONTENT) in self.reads:
            return
        self._note(_content, owner, _CONTENT, Content(owner), f"the content of {_called(owner)}")

    def cell(self, cell: Any, name: str) -> None:
        """A closure variable was read."""
        value = _contents(cell, None)
        self._note(_contents, cell, None, value, f"the variable {name}")

    def _note(self, get: Any, owner: Any, key: Any, value: Any, said: str) -> None:
        if self.paused or id(owner) in self.made:
            return
        place = (id(owner), key if _hashable(key) else repr(key))
        if place in self.writes or place in self.reads:
            return  # what it held at the start is noted, or it is the trace's own
        self.reads[place] = Read(get, owner, key, value, said)
        self._flat = None

    def make(self, x: Any) -> Any:
        """Note that an object is the trace's own."""
        self.made[id(x)] = x
        return x

    def write(self, put: Any, owner: Any, key: Any, before: Any, value: Any, said: str) -> None:
        """Told when a place outside has been given another value."""
        if id(owner) in self.made:
            return
        place = (id(owner), key)
        known = self.writes.get(place)
        if known is None:
            self.writes[place] = Write(put, owner, key, before, value, said)
        else:
            known.value = value

    def restore(self) -> None:
        """Give every place that was written what it held before."""
        for w in reversed(self.writes.values()):
            w.put(w.owner, w.key, w.before)

    # checking

    def check(self) -> str | None:
        """None, or the first place that is not what it was."""
        if self._flat is None:
            self._group()
        for group in self._flat:  # type: ignore[union-attr]
            if not group.holds():
                said = group.failure()
                if said is not None:
                    return said
        for read in self._slow:
            said = read.failure()
            if said is not None:
                return said
        return None

    def _group(self) -> None:
        by_owner: dict[int, list[Read]] = {}
        self._slow = []
        for read in self.reads.values():
            if read.get is _entry and _hashable(read.key):
                by_owner.setdefault(id(read.owner), []).append(read)
            else:
                self._slow.append(read)
        self._flat = [_Group(reads) for reads in by_owner.values()]

    def __len__(self) -> int:
        return len(self.reads)


# places


def _entry(owner: Any, key: Any) -> Any:
    return owner.get(key, MISSING)


def _element(owner: Any, key: Any) -> Any:
    return owner[key] if -len(owner) <= key < len(owner) else MISSING


def _contents(cell: Any, _: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


_CONTENT = "the whole content"


class Content:
    """A container's elements, to compare with later ones."""

    def __init__(self, owner: Any) -> None:
        self.kind = type(owner)
        self.elements = _elements(owner)

    def __repr__(self) -> str:
        return f"{len(self.elements)} elements"


def _elements(owner: Any) -> tuple[Any, ...]:
    if isinstance(owner, dict):
        return (*owner.keys(), *owner.values())
    return tuple(owner)


def _content(owner: Any, _: Any) -> Any:
    return Content(owner)


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _called(owner: Any) -> str:
    if isinstance(owner, type):
        return owner.__qualname__
    name = getattr(owner, "__name__", None)
    return name if isinstance(name, str) else f"a {type(owner).__name__}"


def _shown(x: Any) -> str:
    text = repr(x) if is_plain(x) or isinstance(x, Content | _Missing) else f"a {type(x).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
