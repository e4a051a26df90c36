"""What a captured program took from outside: the Python values that shaped it.

While a function is captured, every attribute, global, closure variable and element of a container
that it reads from objects that were there before is noted with what it was. `Guards.check` says
whether all of it still is: plain values by type and equality, everything else by identity.

Writes to such places are noted too, and undone by `restore`: a program does not repeat them by
itself, so whoever runs it has to (`writes`), or must not run it at all (`unguarded`).
"""

from __future__ import annotations

import dataclasses
import functools
import io
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from operator import is_
from typing import Any

from weft.buffer.buffer import Buffer
from weft.capture import places
from weft.capture.implicit import attributes, is_implicit, is_library_file, slots
from weft.capture.places import MISSING, Content, Missing
from weft.capture.refusal import refused
from weft.capture.state import is_collection, is_fixed, parts
from weft.ops.define import Value
from weft.types.size import plain

PLAIN = (int, float, bool, str, bytes, complex, type(None))


#: a tensor from outside: its note and its type
Held = tuple[Value, Any, Any]

#: attributes whose value is worked out when they are read
_COMPUTED = (property, types.GetSetDescriptorType)


def _is_slot(x: Any) -> bool:
    return isinstance(x, types.MemberDescriptorType)


def is_library(x: Any) -> bool:
    """Whether a class, function or module is taken to stay as it is: one of a library."""
    name = x.__name__ if isinstance(x, types.ModuleType) else getattr(x, "__module__", None)
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is None:
        return not isinstance(x, types.ModuleType) and name in (None, "builtins")
    known = _libraries.get(module)
    if known is None:
        file = getattr(module, "__file__", None)
        known = _libraries[module] = file is None or is_library_file(file)
        if name == "__main__":
            known = _libraries[module] = False
    return known


_libraries: dict[types.ModuleType, bool] = {}


def is_iterator(kind: type) -> bool:
    """Whether objects of a class move on when they are read: generators, zip; streams are not."""
    step = getattr(kind, "__next__", None)
    return isinstance(step, types.WrapperDescriptorType) and not issubclass(kind, io.IOBase)


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
        return bool(a.hex() == b.hex())
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


class _Fast:
    """All reads as one function that compares by identity, written for them.

    Equal values that are other objects by now make it say no; then `renewed` looks closer.
    """

    def __init__(self, reads: Iterable[Read]) -> None:
        self.names: dict[str, Any] = {}
        tests = [self._test(r) for r in reads]
        lines = [f"def holds({', '.join(f'{n}={n}' for n in self.names)}):"]
        lines += ["    try:", f"        return ({' and '.join(tests) or 'True'})"]
        lines += ["    except (LookupError, ValueError, AttributeError):", "        return False"]
        space = dict(self.names)
        exec("\n".join(lines), space)
        self.holds: Callable[[], bool] = space["holds"]

    def _name(self, x: Any) -> str:
        name = f"v{len(self.names)}"
        self.names[name] = x
        return name

    def _test(self, r: Read) -> str:
        owner = self._name(r.owner)
        if r.get is places.entry:
            key = repr(r.key) if type(r.key) is str else self._name(r.key)
            if r.expected is MISSING:
                return f"{key} not in {owner}"
            return f"{owner}[{key}] is {self._name(r.expected)}"
        if r.get is places.contents and r.expected is not MISSING:
            return f"{owner}.cell_contents is {self._name(r.expected)}"
        if r.get is places.element and r.expected is not MISSING:
            return f"{owner}[{r.key}] is {self._name(r.expected)}"
        if r.get is getattr and r.key.isidentifier():
            return f"{owner}.{r.key} is {self._name(r.expected)}"
        if r.get is places.content:
            return self._content(r, owner)
        if r.get is places.kind:
            return f"{self._name(type)}({owner}) is {self._name(r.expected)}"
        return f"{self._name(r)}.failure() is None"

    def _content(self, r: Read, owner: str) -> str:
        found = r.expected.elements
        if not found:
            return f"not {owner}"
        if r.expected.kind is list and len(found) <= _SPELLED:
            each = [f"{owner}[{i}] is {self._name(x)}" for i, x in enumerate(found)]
            return " and ".join([f"len({owner}) == {len(found)}", *each])
        return f"{self._name(_Whole(r))}.holds()"


#: elements of a list that are compared one by one
_SPELLED = 16


class _Whole:
    """All of a container."""

    __slots__ = ("count", "owner", "values", "wanted")

    def __init__(self, read: Read) -> None:
        self.owner, self.wanted = read.owner, read.expected.elements
        self.values = self.owner.values if isinstance(self.owner, dict) else None
        self.count = len(self.wanted) // (1 if self.values is None else 2)

    def holds(self) -> bool:
        owner = self.owner
        if len(owner) != self.count:
            return False
        if self.values is None:
            return all(map(is_, owner, self.wanted))
        return all(map(is_, chain(owner, self.values()), self.wanted))


def _never() -> bool:
    return False


class Guards:
    """Reads and writes of places outside, in one trace."""

    def __init__(self) -> None:
        self.reads: dict[tuple[int, Any], Read] = {}
        self.made: dict[int, Any] = {}  # objects of the trace's own, held so that ids stay theirs
        self.writes: dict[tuple[int, Any], Write] = {}
        self.unguarded: list[str] = []  # why another run might differ although check() passes
        self.paused = 0
        self.opened: dict[int, Any] = {}  # objects that are guarded as a whole
        self.tensors: dict[int, Held] = {}  # those outside that were asked what they are, by id
        self.varying: Collection[Any] = ()  # places that hold another number in every call
        self.inputs: Callable[..., Any] | None = None  # makes an input of a program of such
        self._fast: _Fast | None = None
        #: True where all is seen at a glance to be what it was; else `check` looks closer
        self.quick: Callable[[], bool] = _never
        self._spaces: dict[type, Any] = {}

    # noting

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """`owner.name` was read."""
        if self.paused or id(owner) in self.made:
            return
        said = f"{_called(owner)}.{name}"
        kind = owner if isinstance(owner, type) else type(owner)
        if kind is not owner:
            inside = getattr(owner, "__dict__", None)
            if isinstance(inside, dict):
                found = inside.get(name, MISSING)
                self.item(inside, name, found, said)
                if found is value:
                    return
            if not is_library(kind):
                self.kind(owner)
        for base in kind.__mro__:
            if name in base.__dict__:
                found = base.__dict__[name]
                if not is_library(base):
                    self.item(self._space(base), name, found, said)
                if (isinstance(found, _COMPUTED) and is_plain(value)) or _is_slot(found):
                    self._note(getattr, owner, name, value, said)
                return
            if not is_library(base):
                self.item(self._space(base), name, MISSING, said)
        if is_plain(value):
            self._note(getattr, owner, name, value, said)

    def tensor(self, x: Value) -> None:
        """A tensor was asked for an attribute: if it is one from outside, what it is may count."""
        if isinstance(x.data, Buffer):
            self.tensors.setdefault(id(x), (x, x.note, x.type))

    def kind(self, x: Any) -> None:
        """It was looked of which class an object is."""
        if not is_fixed(x) and type(x).__flags__ & places.HEAP:
            self._note(places.kind, x, places.KIND, type(x), f"the class of {_called(x)}")

    def _space(self, kind: type) -> Any:
        """The names of a class: one object each time, unlike `__dict__`."""
        return self._spaces.setdefault(kind, kind.__dict__)

    def item(self, owner: Mapping[Any, Any], key: Any, value: Any, said: str = "") -> None:
        """`owner[key]` of a dict was read; MISSING where there was none."""
        self._note(places.entry, owner, key, value, said or f"{_called(owner)}[{key!r}]")

    def element(self, owner: Any, key: Any, value: Any) -> None:
        """`owner[key]` of a list was read."""
        self._note(places.element, owner, key, value, f"{_called(owner)}[{key!r}]")

    def number(self, owner: Any, key: Any, value: Any) -> Any:
        """What `owner[key]` of a dict stands for if it is a number that changes: an input of the
        program, of which only the type is guarded. None for all others.
        """
        place = (id(owner), key)
        if self.inputs is None or self.paused or type(value) not in (int, float):
            return None
        if place not in self.varying or place in self.writes:
            return None
        said = f"the type of {key!r}"
        self._note(places.entry_type, owner, ("type", key), type(value), said)
        return self.inputs(place, functools.partial(places.entry, owner, key), value, str(key))

    def changed(self) -> list[tuple[int, Any]]:
        """Places that hold another number of the same type now."""
        out = []
        for place, read in self.reads.items():
            if read.get is places.entry and type(read.expected) in (int, float):
                now = places.entry(read.owner, read.key)
                if type(now) is type(read.expected) and not same(now, read.expected):
                    out.append(place)
        return out

    def content(self, owner: Any) -> None:
        """All of a list, dict or set was read."""
        if (id(owner), places.CONTENT) in self.reads:
            return
        said = f"the content of {_called(owner)}"
        self._note(places.content, owner, places.CONTENT, Content(owner), said)

    def function(self, f: Any) -> None:
        """The code and the defaults of a function were used."""
        for name in ("__code__", "__defaults__"):
            self._note(getattr, f, name, getattr(f, name), f"{f.__qualname__}.{name}")
        if f.__kwdefaults__:
            self.content(f.__kwdefaults__)

    def state(self, x: Any) -> None:
        """Anything that an object holds may have been read."""
        if self.paused or (id(x), places.STATE) in self.reads or is_fixed(x):
            return
        if id(x) in self.made:
            for part in places.elements(x) if type(x) in (list, dict, set) else ():
                self.state(part)
            return
        if type(x) is tuple:  # holds the same for ever; often one that the code has just made
            for part in x:
                self.state(part)
            return
        found = parts(x)
        said = f"the content of {_called(x)}"
        if found is None:
            self.unguarded.append(f"{said}, which is too much to watch")
        else:
            self._note(places.state, x, places.STATE, Content(x, found), said)

    def cell(self, cell: Any, name: str) -> None:
        """A closure variable was read."""
        value = places.contents(cell, None)
        self._note(places.contents, cell, None, value, f"the variable {name}")

    def _note(self, get: Any, owner: Any, key: Any, value: Any, said: str) -> None:
        if self.paused or id(owner) in self.made:
            return
        key = plain(key)
        place = (id(owner), key if _hashable(key) else repr(key))
        if place in self.writes or place in self.reads:
            return  # what it held at the start is noted, or it is the trace's own
        self.reads[place] = Read(get, owner, key, value, said)
        self._forget()
        for x in value.elements if isinstance(value, Content) else (value,):
            if get is not places.state:
                self.whole(x)

    def whole(self, x: Any) -> None:
        """Guard all that an object holds, if operators or loops may read it unseen."""
        kind: Any = type(x)
        if is_collection(kind):
            self.state(x)
        if is_iterator(kind) and id(x) not in self.made:
            raise refused(
                "iteration",
                "what gives the same whenever it is read",
                f"a {kind.__name__} from outside, which each call moves on",
                "pass what it gives, or iterate over a list",
            )
        if kind is tuple:
            for part in x:
                self.whole(part)
        if not is_implicit(kind) or id(x) in self.made or id(x) in self.opened:
            return
        self.opened[id(x)] = x
        space = getattr(x, "__dict__", None)
        if isinstance(space, dict):
            for name in attributes(kind) or tuple(space):
                value = space[name]
                self.item(space, name, value, f"{_called(x)}.{name}")
                self._containers(value)
        for name in slots(kind):
            value = getattr(x, name, MISSING)
            if value is not MISSING:
                self._note(getattr, x, name, value, f"{_called(x)}.{name}")
                self._containers(value)

    def _containers(self, x: Any) -> None:
        """Guard the content of a container, and of those in it."""
        if type(x) in (list, dict, set) and (id(x), places.CONTENT) not in self.reads:
            self.content(x)
            for element in places.elements(x):
                self._containers(element)

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
        if self._fast is None:
            self._fast = _Fast(self.reads.values())
            self.quick = self._fast.holds
        if self.quick():
            return None
        for read in self.reads.values():
            said = read.failure()
            if said is not None:
                return said
        self._renew()
        return None

    def _renew(self) -> None:
        """Equal values are other objects now: compare with those from here on."""
        for place, read in self.reads.items():
            now = read.get(read.owner, read.key)
            if now is not read.expected and not isinstance(now, Content):
                self.reads[place] = dataclasses.replace(read, expected=now)
        self._forget()

    def _forget(self) -> None:
        self._fast, self.quick = None, _never

    def __len__(self) -> int:
        return len(self.reads)


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
    text = repr(x) if is_plain(x) or isinstance(x, Content | Missing) else f"a {type(x).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
