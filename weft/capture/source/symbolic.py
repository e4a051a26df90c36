"""Branches whose conditions are symbols: every path is run once, into a region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from weft.autodiff.mode import enable_grad
from weft.buffer.interchange import read_number
from weft.capture import perhaps
from weft.capture.aliases import is_unclear
from weft.capture.effects import Raised, raise_if
from weft.capture.facts import assume, decided
from weft.capture.join import (
    Slots,
    blank,
    join,
)
from weft.capture.refusal import refused
from weft.capture.source.paths import raising, ran
from weft.capture.source.signals import Left, Unknown, alike, as_signal, is_left, is_signal
from weft.capture.stacks import alike_before
from weft.capture.watch import Escaped, Faults
from weft.control.branches import build_cond
from weft.control.build import truth
from weft.control.nodes import BOOL
from weft.control.region import Region
from weft.ops.define import Value, capturing, constant, data_of, installed
from weft.ops.elementwise import logical_not

Thunk = Callable[[], Any]
Put = Callable[..., None]


def branch(
    condition: Value,
    then: Thunk,
    otherwise: Thunk,
    get: Thunk,
    put: Put,
    names: Sequence[str],
    tries: int = 3,
) -> Any:
    """What `then` or `otherwise` gives; variables and all else they change are joined.

    Of the variables that `get` gives, those with names matter afterwards.
    """
    pred = truth(condition, "if")
    known = decided(pred)
    if known is not None:
        return (then if known else otherwise)()
    before = get()
    slots, regions, ends = Slots(), [], []
    cells = getattr(get, "__closure__", None) or ()  # which functions called may assign to
    faults = Faults()
    for i, f in enumerate((then, otherwise)):
        region = Region()
        assume(pred, i == 0, region)
        own = Slots()

        def path(f: Thunk = f, region: Region = region, own: Slots = own) -> Any:
            result = raising(f)
            own.add(region)
            own.containers.update({id(c): c for c in cells})
            return result, list(get()[: len(names)]), own.held()

        try:
            ends.append(ran("a branch", region, path))
            slots.add(region)
        except Raised:
            raise_if(pred, region, i)
            faults.drop()
            put(*before)
            assume(pred, i != 0, capturing.now)
            return (otherwise, then)[i]()
        except Escaped as e:
            ends.append(e)
        except Left as e:
            faults.drop()
            put(*before)
            if not isinstance(e, Unknown):
                raise
            return (otherwise, then)[i]()  # what the other path gives has its type
        regions.append(region)
        region.restore()
        faults.take(region)
        put(*before)
    ended = [e for e in ends if isinstance(e, Escaped)]
    if ended:  # what follows is as if it had not
        other: Any = next((e for e in ends if not isinstance(e, Escaped)), (None, [], {}))
        result = as_signal(other[0]) if is_signal(other[0]) else other[0]
        mean = [blank(x) for x in (result, other[1], other[2])]
        ends = [mean if isinstance(e, Escaped) else e for e in ends]
    if tries and not ended and _restacked(slots, ends):
        faults.drop()
        for region in regions:
            region.close()
        return branch(condition, then, otherwise, get, put, names, tries - 1)
    sides = [[result, after, slots.values(held)] for result, after, held in ends]
    leaves = slots.leaves_still([side[2] for side in sides])
    left = [is_left(s[0]) for s in sides]
    if any(is_signal(s[0]) for s in sides):
        sides[0][0], sides[1][0] = alike(sides[0][0], sides[1][0])
    for side, found in zip(sides, faults.sides(), strict=True):
        side[0] = side[0], found

    def choose(left: list[Value], right: list[Value]) -> Sequence[Value]:
        ways = [(_known(a), _known(b)) for a, b in zip(left, right, strict=True)]
        rest = [i for i, way in enumerate(ways) if way not in _FLAGS]
        sides = [[settled(side[i]) for i in rest] for side in (left, right)]
        pieces = [(r, (), v) for r, v in zip(regions, sides, strict=True)]
        with enable_grad():  # what a path passes on keeps its history inside no_grad() too
            made = iter(build_cond(pred, pieces) if rest else ())
        flags = {way: pred if way[0] else logical_not(pred) for way in ways if way in _FLAGS}
        return [flags[way] if way in flags else next(made) for way in ways]

    paths, found = (then, otherwise), [held for _, _, held in ends]
    result, after, held = join(
        "a branch", sides[0], sides[1], names, choose, paths, found, left,
        partial(perhaps.sides, regions=regions), regions,
    )  # fmt: skip
    for region in regions:
        region.close()
    put(*(after or before[: len(names)]), *before[len(names) :])
    slots.put(held)
    for x in leaves:
        x.note = x.leaf
    faults.give(result[1])
    if len(ended) == 2:
        if ended[0].block is not ended[1].block:
            raise refused("a branch", "errors that one try handles", "errors that two handle")
        raise ended[0]
    return result[0]


def _restacked(slots: Slots, ends: list[Any]) -> bool:
    """Whether a list is a stack from now on that only one path has left as one."""
    found = False
    for key, x in slots.containers.items():
        if type(x) is list:
            one, two = (held.get(key, x) for _, _, held in ends)
            found = alike_before(x, one, two) or found
    return found


#: what two paths leave in a flag that is the condition, or its opposite
_FLAGS = ((True, False), (False, True))


def settled(x: Value) -> Value:
    """A value for good: the tensor may be given another one."""
    return installed.tensor(data_of(x), x.note)


def _known(x: Value) -> bool | None:
    """The value of a flag that a path has set."""
    n = data_of(x)
    if n.op is not constant or x.type is not BOOL or is_unclear(n):
        return None
    return bool(read_number(n.attr("value")))


def as_bool(x: Any) -> Value:
    """A condition as a symbol."""
    if isinstance(x, Value):
        return truth(x, "a condition")
    return installed.lift(bool(x))
