"""What two paths leave that can't be one value: one of several things, by a number of the program.

Strings, functions, modules, classes, None and other objects stay the things they are, apart from
each other; tensors and numbers among them are values of the program, one for each type.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import operator
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from weft.capture.chosen import Chosen, Flag
from weft.capture.facts import possible
from weft.capture.join import Unfit, blank
from weft.capture.perhaps import Perhaps, outside
from weft.capture.refusal import refused
from weft.capture.runs import later as of_runs, settled
from weft.capture.structure import LEAF, SPECIAL, Form, flatten
from weft.capture.things import (
    CARRIED,
    Known,
    holds,
    is_fit,
    is_own,
    is_plain,
    is_thing,
    is_value,
    kind_of,
    one,
    opened,
)
from weft.ops.define import Value, data_of, installed
from weft.ops.elementwise import equal, logical_not, logical_or, where


class Pick(Unfit):
    """One of several things, by a number of the program. No two are of one kind."""

    __slots__ = ("at", "parts")

    def __init__(self, at: Any, parts: Sequence[Any]) -> None:
        self.at = Chosen.of(at) if isinstance(at, Value) else at
        self.parts = tuple(parts)

    def possible(self) -> list[int]:
        """The numbers that it may have here."""
        return possible(self.at, len(self.parts))

    def each(self, f: Callable[[Any], Any], tried: bool = True) -> Any:
        """What `f` gives of the one it is. `tried`: an error is one of the program's."""
        f = partial(_tried, f) if tried else f
        return later.among(self.at, {i: partial(f, self.parts[i]) for i in self.possible()})

    def read(self, f: Callable[[Any], Any]) -> Any:
        """Likewise, of an `f` that only reads."""
        numbers = self.possible()
        try:
            found = [f(self.parts[i]) for i in numbers]
        except (AttributeError, LookupError, TypeError):
            return self.each(f)
        return self.given(numbers, found)

    def read_with(self, other: Any, f: Callable[[Any], Any]) -> Any:
        """Likewise, of an operator between it and another operand."""
        plain = all(is_plain(x) for x in (other, *self.parts))
        return (self.read if plain else self.each)(f)

    def given(self, numbers: list[int], found: list[Any]) -> Any:
        """One of these, by the number."""
        if all(type(x) is bool for x in found):
            return self.is_one_of([i for i, x in zip(numbers, found, strict=True) if x], numbers)
        return later.picked(self.at, dict(zip(numbers, found, strict=True)))

    def is_one_of(self, numbers: list[int], every: list[int]) -> Any:
        """Whether it has one of these numbers, out of all that it may have."""
        if not numbers or len(numbers) == len(every):
            return bool(numbers)
        rest = [i for i in every if i not in numbers]
        turned = len(rest) < len(numbers)
        tests = [equal(plain(self.at), number(i)) for i in (rest if turned else numbers)]
        found = functools.reduce(logical_or, tests)
        return Flag.of(logical_not(found) if turned else found)

    def one(self, f: Callable[[Any], Any]) -> Any:
        """The one it is, where `f` of all others is an error."""

        def checked(x: Any) -> Any:
            f(x)
            return x

        found = self.each(checked)
        return found.used() if type(found) is Pick else found

    def said(self, say: Callable[[Any], Any]) -> Any:
        return ("pick", say(self.at), *map(say, self.parts))

    def used(self, *_: Any, **__: Any) -> Any:
        names = ", ".join(type(x).__name__ for x in self.parts)
        raise refused(
            "what depends on tensors",
            "one value, or a use by a call, an operator, an attribute or an index",
            f"another use of what is one of several things ({names})",
            "use it in a branch of its own: if i == 0: ...",
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self.one(iter))

    def __getitem__(self, key: Any) -> Any:
        return self.each(lambda x: x[key])

    __len__ = __bool__ = __contains__ = __hash__ = __enter__ = __exit__ = used
    __str__ = __repr__ = __format__ = __index__ = __int__ = __float__ = __setitem__ = used


def plain(at: Any) -> Value:
    return installed.tensor(data_of(at))


def number(i: int) -> Value:
    """A number of a part."""
    return installed.lift(np.int64(i))


def _tried(f: Callable[[Any], Any], x: Any) -> Any:
    """f(x); where x is no value, an error is what the program raises."""
    try:
        return f(x)
    except Exception as e:
        if is_value(x) or later.is_refusal(e):
            raise
        raise later.error(e) from None


def _operator(name: str, f: Callable[[Any, Any], Any]) -> None:
    def of_both(p: Pick, other: Any) -> Any:
        return p.read_with(other, lambda x: f(x, other))

    def turned(p: Pick, other: Any) -> Any:
        return p.read_with(other, lambda x: f(other, x))

    setattr(Pick, f"__{name}__", of_both)
    setattr(Pick, f"__r{name}__", turned)


def _in_place(name: str, f: Callable[[Any, Any], Any]) -> None:
    setattr(Pick, f"__i{name}__", lambda p, other: p.each(lambda x: f(x, other)))


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_"):
    _operator(_name.rstrip("_"), getattr(operator, _name))
    _in_place(_name.rstrip("_"), getattr(operator, f"i{_name.rstrip('_')}"))
for _f in (operator.neg, operator.pos, operator.abs, operator.invert):
    setattr(Pick, f"__{_f.__name__.strip('_')}__", lambda p, f=_f: p.each(f))


def _comparison(f: Callable[[Any, Any], Any], turned: Callable[[Any, Any], Any], sign: str) -> None:
    def method(p: Pick, other: Any) -> Any:
        by = sys._getframe(1)

        def compare(x: Any) -> Any:
            try:
                return f(x, other)
            except TypeError:  # say it as it was asked
                if _sign(by) != sign:
                    turned(other, x)
                raise

        return p.read_with(other, compare)

    setattr(Pick, f"__{f.__name__}__", method)


def _sign(frame: types.FrameType) -> str:
    """The comparison that a piece of code is at."""
    for at in dis.get_instructions(frame.f_code):
        if at.offset == frame.f_lasti and at.opname == "COMPARE_OP":
            return at.argrepr.removeprefix("bool(").removesuffix(")")
    return ""


_comparison(operator.lt, operator.gt, "<")
_comparison(operator.gt, operator.lt, ">")
_comparison(operator.le, operator.ge, "<=")
_comparison(operator.ge, operator.le, ">=")
_comparison(operator.eq, operator.eq, "==")
_comparison(operator.ne, operator.ne, "!=")


# as structures


def _parts(x: Pick) -> tuple[Form, Sequence[Any]]:
    leaves: list[Any] = [x.at]
    kinds: list[Any] = []
    for p in x.parts:
        if is_value(p):
            more, form = flatten(p)
            leaves += more
            kinds.append(form)
        else:
            kinds.append(Known(p))
    return Form(Pick, tuple(kinds), (LEAF,) * len(leaves)), leaves


def _built(form: Form, leaves: Sequence[Any]) -> Any:
    """Where nothing is captured it is known which it is: a function's result."""
    parts, k = [], 1
    for kind in form.names:
        n = kind.count if type(kind) is Form else 0
        parts.append(kind.build(leaves[k : k + n]) if type(kind) is Form else kind.x)
        k += n
    at = leaves[0]
    return parts[at] if type(at) is int else Pick(at, parts)


SPECIAL[Pick] = _parts, _built
CARRIED.add(Pick)


class Ended(Pick):
    """What is returned: its containers are what they hold."""

    __slots__ = ()


def _ended_parts(x: Ended) -> tuple[Form, Sequence[Any]]:
    found = [flatten(p) for p in x.parts]
    leaves = [x.at, *(v for more, _ in found for v in more)]
    return Form(Ended, tuple(form for _, form in found), (LEAF,) * len(leaves)), leaves


SPECIAL[Ended] = _ended_parts, _built


def ended(x: Any) -> Any:
    """A structure to be returned, as one that can be put together when it is known which it is."""
    if type(x) is Pick:
        return Ended(x.at, [*map(ended, x.parts)])
    x = settled(x)
    found = opened(x)
    if found is None or type(x) is Perhaps:
        return x
    parts = [*map(ended, found[1])]
    return x if all(map(operator.is_, parts, found[1])) else found[0].build(parts)


# two as one


def united(x: Any, y: Any, paths: Sequence[Any]) -> tuple[Any, Any]:
    """What two paths leave, both as one of the same things where they are not one value. `paths`
    are their regions, where they are known.
    """
    if x is y:
        return x, y
    if type(x) is Pick or type(y) is Pick or differ(x, y) or are_two(x, y, paths):
        return _alike(x, y, paths)
    one, two = opened(x), opened(y)
    if one is None or two is None or one[0] != two[0]:
        return x, y
    both = [united(a, b, paths) for a, b in zip(one[1], two[1], strict=True)]
    if all(
        a is b
        for v, w in zip(both, zip(one[1], two[1], strict=True), strict=True)
        for a, b in zip(v, w, strict=True)
    ):
        return x, y
    return one[0].build([a for a, _ in both]), two[0].build([b for _, b in both])


def differ(x: Any, y: Any) -> bool:
    """Whether things are among what can't be one value."""
    if not (is_thing(x) or is_thing(y)) or one(x, y):
        return False
    if type(x) is type(y) and dataclasses.is_dataclass(type(x)):
        return False
    return is_fit(x) and is_fit(y)


def are_two(x: Any, y: Any, paths: Sequence[Any]) -> bool:
    """Whether they are two containers that were there before, and may be changed under other
    names.
    """
    new = any(id(v) in path.objects for v in (x, y) for path in paths)
    return bool(paths) and not new and is_own(x) and is_own(y)


def _alike(x: Any, y: Any, paths: Sequence[Any]) -> tuple[Any, Any]:
    sides = [spread(v, path) for v, path in zip((x, y), paths or (None, None), strict=True)]
    if not all(is_fit(p) for _, parts in sides for p in parts.values()):
        return x, y
    found = kinds_of([p for _, parts in sides for p in parts.values()])
    for (_, parts), path in zip(sides, paths, strict=False):
        for p in parts.values():
            if reaches(p, path):
                raise refused(
                    "a branch",
                    "functions and objects that hold nothing the branch has computed",
                    f"a {type(p).__name__} made on one path that does",
                    "make it before the branch, or return the tensors",
                )
    if len(found) == 1 and all(len(parts) == 1 for _, parts in sides):
        left, right = (p for _, parts in sides for p in parts.values())
        return left, right
    blanks = [outside(p, paths) if is_value(p) else p for p in found]
    ways = zip((x, y), paths or (None, None), strict=True)
    one, two = (as_pick(v, found, blanks, path) for v, path in ways)
    return one, two


def spread(x: Any, path: Any = None) -> tuple[Any, dict[int, Any]]:
    """A number, and what it may be by it."""
    if type(x) is not Pick:
        return 0, {0: x}
    return x.at, {i: x.parts[i] for i in possible(x.at, len(x.parts), path)}


def kinds_of(parts: Sequence[Any]) -> list[Any]:
    """One of every kind."""
    found: list[Any] = []
    for p in parts:
        if kind_of(p) not in map(kind_of, found):
            found.append(p)
    return found


def as_pick(x: Any, kinds: Sequence[Any], blanks: Sequence[Any], path: Any) -> Pick:
    """As one of parts of these kinds, which a path has left."""
    at, parts = spread(x, path)
    every = [*map(kind_of, kinds)]
    places = {i: every.index(kind_of(p)) for i, p in parts.items()}
    values = list(blanks)
    for i, p in parts.items():
        values[places[i]] = p
    with path or nullcontext():
        return Pick(moved(at, places), values)


def empty(x: Any) -> Any:
    """What stands for a part that it is not."""
    return blank(x) if is_value(x) else x


def moved(at: Any, places: dict[int, int]) -> Any:
    """A number of a part as that of its place."""
    if len(places) == 1:
        return next(iter(places.values()))
    if all(i == place for i, place in places.items()):
        return at
    out: Any = number(next(iter(places.values())))
    for i, place in list(places.items())[1:]:
        out = where(equal(plain(at), number(i)), number(place), out)
    return Chosen.of(out)


def reaches(x: Any, path: Any) -> bool:
    """Whether a thing that a path has made holds what it has computed."""
    if path is None or is_value(x):
        return False
    return holds(x, lambda v: data_of(v) in path.nodes, path.objects)


class _Later:
    """What a later module gives."""

    among: Callable[[Any, dict[int, Callable[[], Any]]], Any]
    picked: Callable[[Any, dict[int, Any]], Any]
    error: Callable[[BaseException], Any]
    is_refusal: Callable[[BaseException], bool]


later = _Later()
of_runs.united, of_runs.are_two = united, are_two
