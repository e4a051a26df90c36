"""What the reverse of a function's reverse reads: records of what calls on both ways gave.

The function runs once more and keeps, for every call of it, a record: the address of the record of
each call inside, and what it gave. Then its reverse runs, and adds what its calls inside gave.
Calls in loops have no such place, as there may be any number of them: those are run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.buffer import Layout
from weft.ir import Node
from weft.schedule.arena import ALIGN
from weft.schedule.records import WORD, sites
from weft.schedule.steps import Record, Spot, When
from weft.types import TensorType

_WORD = Layout.dense(WORD)


class Levels:
    """Where things are in a record: of functions each of which is the reverse of what the ones
    behind it do.
    """

    def __init__(self, n: Node) -> None:
        self.forward = n.regions[-1].name
        self.reverses = [f.name for f in n.regions[:-1]]
        self.slots: dict[
            int, int
        ] = {}  # of calls by site: where in a record that of theirs is said
        self.places: dict[tuple[str, int], list[int]] = {}  # by function and site: what they gave
        self.bytes = ALIGN  # first, where the list of all records is
        functions = {f.name: f for f in n.regions}
        found = {name: list(sites(f, name)) for name, f in functions.items()}
        for site in dict.fromkeys(found[self.forward]):
            if found[self.forward].count(site) > 1:
                continue
            self.slots[site] = self._place(WORD)
            for name in (self.forward, *self.reverses[1:]):
                if found[name].count(site) == 1:
                    results = functions[name].results
                    self.places[name, site] = [self._place(r.type) for r in results]

    def _place(self, type_: TensorType) -> int:
        at = self.bytes
        self.bytes += -(-type_.nbytes // ALIGN) * ALIGN
        return at


def levels_of(n: Node) -> Levels | None:
    """Of a recursion, if it is one of reverses: known by their names."""
    *reverses, forward = n.regions
    named = all(f.name.startswith(f"{forward.name}_grad") for f in reverses)
    return Levels(n) if len(reverses) > 1 and named else None


def plan_level(p: Any, n: Node, to: Any, own: Sequence[Any], site: int) -> list[Any]:
    """Plan a call of one of the functions."""
    family, levels = to.family, to.family.levels
    outs = [Layout.dense(r.type) for r in family.functions[to.name].results]
    known = to.record is not None and (to.name, site) in levels.places
    if known:
        places = zip(levels.places[to.name, site], outs, strict=True)
        made = [_in_record(to, at, layout) for at, layout in places]
        if to.inside != to.name:
            return made  # it has been called before
    else:
        made = [p.room(layout) for layout in outs]
    operands = (*own, *to.fixed, *made)
    slot = None
    if to.record is not None and site in levels.slots:
        slot = _in_record(to, levels.slots[site], _WORD)
    if to.name in levels.reverses:
        slot = slot or _keeping(p, n, to, own)
        p.enter(family.routine(to.name, True), operands, n, When.BACK, Record(slot))
    elif known:
        assert slot is not None
        record = Record(slot, levels.bytes, _in_record(to, 0, _WORD), indirect=True)
        p.enter(family.routine(to.name, True), operands, n, When.KEEP, record)
    else:
        p.enter(family.routine(to.name, False), operands, n, When.CALL)
    return made


def _in_record(to: Any, at: int, layout: Layout) -> Spot:
    return Spot(to.record.base, at, layout)


def _keeping(p: Any, n: Node, to: Any, own: Sequence[Any]) -> Any:
    """Run the functions that a reverse goes back through; where the address of its record is."""
    family, levels = to.family, to.family.levels
    slot, head = p.room(_WORD), p.chain()
    before = levels.reverses[levels.reverses.index(to.name) + 1 :]
    for name in (levels.forward, *reversed(before)):
        f = family.functions[name]
        outs = [p.room(Layout.dense(r.type)) for r in f.results]
        given = own[: len(f.params) - family.captured]
        first = name == levels.forward
        record = Record(slot, levels.bytes, head) if first else Record(slot)
        when = When.KEEP if first else When.BACK
        p.enter(family.routine(name, True), (*given, *to.fixed, *outs), n, when, record)
    return slot
