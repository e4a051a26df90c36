"""Operators for `match`: patterns, tested as Python does, of which tests may be symbols.

A pattern is a function of a subject that gives whether it fits and what it captures, by name.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from functools import partial
from typing import Any

from weft.capture.chosen import Flag
from weft.capture.source.calls import SPECIAL
from weft.capture.source.flow import Names, Put, Thunk, and_, choose, filled, if_, or_
from weft.capture.source.picks import identical
from weft.capture.source.ranges import is_symbolic
from weft.capture.source.reads import attr, item, known, made, seen
from weft.capture.things import is_plain
from weft.capture.unions import Pick
from weft.control.build import truth
from weft.ops.elementwise import logical_not

Fit = tuple[Any, dict[str, Any]]
Pattern = Callable[[Any], Fit]
Case = tuple[Pattern, Callable[..., None] | None, Thunk | None, Thunk]
NO: Fit = (False, {})
#: what classes say of themselves: their objects are sequences, mappings, or matched as a whole
_SEQUENCE, _MAPPING, _SELF = 1 << 5, 1 << 6, 1 << 22


def match(subject: Any, get: Thunk, put: Put, names: Names, cases: tuple[Case, ...]) -> Any:
    """What the first case that fits ends with; None where none does."""
    if type(subject) is Flag:  # a bool: two ways, in each of which it is known
        ways = [partial(match, x, get, put, names, cases) for x in (True, False)]
        return if_(subject, ways[0], ways[1], get, put, names)

    if type(subject) is Pick and not all(map(is_plain, subject.parts)):
        numbers = subject.possible()
        ways = [
            partial(match, x, get, put, names, cases) for x in (subject.parts[numbers[0]], subject)
        ]
        if len(numbers) == 1:
            return ways[0]()
        return if_(subject.is_one_of(numbers[:1], numbers), ways[0], ways[1], get, put, names)

    def among(i: int) -> Any:
        if i == len(cases):
            return None
        pattern, bind, guard, body = cases[i]
        others = partial(among, i + 1)
        fits, captured = pattern(subject)

        def taken() -> Any:
            if bind is not None:
                bind(**{f"{name}_": x for name, x in captured.items()})
            if guard is None:
                return body()
            return if_(guard(), body, others, get, put, names)

        return if_(fits, taken, others, get, put, names)

    return among(0)


def equals(value: Thunk) -> Pattern:
    """A literal, or a value by its dotted name."""
    return lambda x: (_true(x == value()), {})


def _true(x: Any) -> Any:
    x = filled(x)
    return truth(x, "match") if is_symbolic(x) else bool(seen(x))


def is_(value: Any) -> Pattern:
    """None, True or False."""

    def fit(x: Any) -> Fit:
        if type(x) is Flag and value is not None:
            return (x if value else logical_not(x)), {}
        return identical(x, value), {}

    return fit


def named(name: str | None, pattern: Pattern | None = None) -> Pattern:
    """`pattern as name`; `name`; `_`"""

    def fit(x: Any) -> Fit:
        fits, captured = (True, {}) if pattern is None else pattern(x)
        return fits, captured if name is None else {**captured, name: x}

    return fit


def rest(name: str | None) -> Any:
    """`*name`: as many elements of a sequence as are left."""
    return name, named(name)


def _all(pairs: Any) -> Fit:
    """Whether every pattern fits its subject; none is asked after one that does not."""
    every: Any = True
    found: dict[str, Any] = {}
    for pattern, x in pairs:
        fits, captured = pattern(x)
        if fits is False:
            return NO
        every = and_(partial(_same, every), partial(_same, fits))
        found.update(captured)
    return every, found


def _same(x: Any) -> Any:
    return x


def sequence(*patterns: Any) -> Pattern:
    def fit(x: Any) -> Fit:
        if not type(known(x)).__flags__ & _SEQUENCE:
            return NO
        star = next((i for i, p in enumerate(patterns) if type(p) is tuple), None)
        count = len(x)
        least = len(patterns) - (star is not None)
        if count < least or (star is None and count > least):
            return NO
        parts = [item(x, i) for i in range(count)]
        if star is not None:
            last = star + count - least
            parts = [*parts[:star], made(parts[star:last]), *parts[last:]]
        return _all(
            (p[1] if type(p) is tuple else p, y) for p, y in zip(patterns, parts, strict=True)
        )

    return fit


def mapping(name: str | None, keys: tuple[Thunk, ...], *patterns: Pattern) -> Pattern:
    def fit(x: Any) -> Fit:
        if not type(known(x)).__flags__ & _MAPPING or len(x) < len(keys):
            return NO
        wanted = [key() for key in keys]
        twice = [k for k, n in collections.Counter(wanted).items() if n > 1]
        if twice:
            raise ValueError(f"mapping pattern checks duplicate key ({twice[0]!r})")
        seen(x)
        missing = object()
        found = [x.get(k, missing) for k in wanted]
        if any(v is missing for v in found):
            return NO
        fits, captured = _all(zip(patterns, found, strict=True))
        if name is not None and fits is not False:
            captured[name] = made({k: v for k, v in x.items() if k not in wanted})
        return fits, captured

    return fit


def instance(kind: Thunk, names: tuple[str, ...], *patterns: Pattern) -> Pattern:
    """`kind(*patterns, name=pattern, …)`"""

    def fit(x: Any) -> Fit:
        wanted = kind()
        if not isinstance(wanted, type):
            match x:  # the error that it is in this version of Python
                case wanted():
                    pass
        if not SPECIAL[isinstance](known(x), wanted):
            return NO
        count = len(patterns) - len(names)
        own: list[Any] = []
        attributes = [*_positional(wanted, count, own), *names]
        twice = [k for k, n in collections.Counter(attributes).items() if n > 1]
        if twice:
            raise TypeError(
                f"{wanted.__name__}() got multiple sub-patterns for attribute {twice[0]!r}"
            )
        try:
            found = [x] * len(own) + [attr(x, name) for name in attributes]
        except AttributeError:
            return NO
        return _all(zip(patterns, found, strict=True))

    return fit


def _positional(kind: type, count: int, own: list[Any]) -> tuple[str, ...]:
    """The attributes that patterns by position are about; in `own`, one for the object itself."""
    if not count:
        return ()
    known = getattr(kind, "__match_args__", None)
    allowed = 0 if known is None else len(known) if type(known) is tuple else -1
    if allowed < 0:
        got = type(known).__name__
        raise TypeError(f"{kind.__name__}.__match_args__ must be a tuple (got {got})")
    if known is None and kind.__flags__ & _SELF:
        own += [None] if count == 1 else []
        allowed = 1
    if count > allowed:
        many = "" if allowed == 1 else "s"
        raise TypeError(
            f"{kind.__name__}() accepts {allowed} positional sub-pattern{many} ({count} given)"
        )
    return () if known is None else tuple(known[:count])


def either(*patterns: Pattern) -> Pattern:
    """`a | b`"""

    def fit(x: Any) -> Fit:
        first, *others = patterns
        fits, captured = first(x)
        if not others or fits is True:
            return fits, captured
        second, then = either(*others)(x)
        if fits is False or second is False:
            return (second, then) if fits is False else (fits, captured)
        every = second is True or or_(partial(_same, fits), partial(_same, second))
        ways = [partial(_same, dict(sorted(found.items()))) for found in (captured, then)]
        return every, choose(fits, ways[0], ways[1])

    return fit
