"""Functions that call themselves in a plan: each is planned once, with an arena of its own.

A call is a jump to the function's first step. The engine makes room for its arena, and notes where
operands, what was captured and the results lie: nothing is copied.

Before the reverse of a function runs, the function runs once more and keeps, for every call of it,
a record: what the calls inside gave, and the addresses of their records. The reverse reads there
what it would have to compute again. Calls in loops have no such place, as there may be any number
of them: the reverse runs those again. Reverses of reverses: `weft.schedule.levels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.buffer import Layout
from weft.control.call import calls, undefined
from weft.control.store import put
from weft.ir import Function, Node
from weft.ops.define import parameter
from weft.schedule.lasting import turned
from weft.schedule.levels import levels_of, plan_level
from weft.schedule.records import WORD, Records
from weft.schedule.stack import HANDLE, plan_clear
from weft.schedule.steps import OPERANDS, Record, Routine, Spot, When
from weft.schedule.sums import Sums

_WORD = Layout.dense(WORD)


class Callee(NamedTuple):
    """A function that can be called from where something is planned."""

    family: _Family
    name: str
    fixed: list[Any]  # what it takes with every call
    record: Any = None  # of the call that is being planned, if it has one
    keeps: bool = False  # that record is being written
    inside: str = ""  # the function that is being planned


def plan_recursion(p: Any, n: Node, inputs: Sequence[Any]) -> list[Any]:
    """Plan the functions, and a call of the first."""
    count = len(inputs) - n.attr("captured")
    reverse = _reverse_of(p, n) if len(n.regions) == 1 else None
    if reverse is not None:
        return _first(p, n, inputs, reverse)
    family = _Family(p, n, inputs[count:])
    sums = family.sums
    own = list(inputs[:count])
    for i in sums.carried.values() if sums is not None else ():
        own[i] = p.room(Layout.dense(n.inputs[i].type))
        p.copy_to(inputs[i], own[i])
    outs = _called(p, n, Callee(family, n.regions[0].name, family.fixed), own, -1)
    if sums is not None:
        for r, handle in zip(sums.held, family.handles, strict=True):
            sums.drain(p, r, handle, outs[r])
    return outs


def _reverse_of(p: Any, n: Node) -> Node | None:
    """The reverse of a call of a function, if it is taken in the same place."""
    (f,), captured = n.regions, n.attr("captured")
    count = len(n.inputs) - captured
    for m in p.f.order:
        if m.op is not n.op or len(m.regions) != 2 or m.inputs[:count] != n.inputs[:count]:
            continue
        records = Records(m) if m not in p.records else None
        if records is not None and records.same(f, n.inputs[count:]):
            p.records[m] = records, None
            return m  # type: ignore[no-any-return]
    return None


def _first(p: Any, n: Node, inputs: Sequence[Any], reverse: Node) -> list[Any]:
    """A call that keeps what its reverse reads, which then need not run the function again."""
    records, _ = p.records[reverse]
    count = len(inputs) - n.attr("captured")
    family = _Family(p, n, inputs[count:], records)
    own = [p.dense(s) for s in inputs[:count]]
    slot, outs = _keeping(p, n, Callee(family, records.name, family.fixed), own)
    p.records[reverse] = records, slot
    return outs


def plan_call(p: Any, n: Node, inputs: Sequence[Any]) -> list[Any]:
    """Plan a call of a function that is being planned."""
    if n.attr("name") not in p.scope:
        raise undefined(n.attr("name"))
    return _called(p, n, p.scope[n.attr("name")], inputs, n.attr("site"))


def _called(p: Any, n: Node, to: Callee, inputs: Sequence[Any], site: int) -> list[Any]:
    family = to.family
    own = [p.dense(s) for s in inputs]
    if family.levels is not None:
        return plan_level(p, n, to, own, site)
    outs = [Layout.dense(r.type) for r in family.functions[to.name].results]
    records: Any = family.records
    places = records.places.get(site) if records and to.record is not None else None
    if to.name == family.reverse and family.sums is not None:
        carried = family.sums.carried
        made = [own[carried[r]] if r in carried else p.room(x) for r, x in enumerate(outs)]
        slot = None if places is None else _in_record(to, places[0], _WORD)
        if slot is None and site < 0 and n in p.records:
            slot = p.records[n][1]
        if slot is None:
            slot, _ = _keeping(p, n, to, own)
        routine = family.routine(to.name, True)
        p.enter(routine, (*own, *to.fixed, *made), n, When.BACK, Record(slot))
        return made
    if places is None:
        made = [p.room(layout) for layout in outs]
        p.enter(family.routine(to.name, False), (*own, *to.fixed, *made), n, When.CALL)
        return made
    made = [_in_record(to, at, layout) for at, layout in zip(places[1:], outs, strict=True)]
    if to.keeps:
        slot, head = _in_record(to, places[0], _WORD), _in_record(to, 0, _WORD)
        record = Record(slot, records.bytes, head, indirect=True)
        p.enter(family.routine(to.name, True), (*own, *to.fixed, *made), n, When.KEEP, record)
    return made


def _in_record(to: Callee, at: int, layout: Layout) -> Spot:
    return Spot(to.record.base, at, layout)


def _keeping(p: Any, n: Node, to: Callee, own: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Run the function that a reverse is one of; where the address of its record is, and what the
    function gives.
    """
    family = to.family
    records: Any = family.records
    f = family.functions[records.name]
    slot, head = p.room(_WORD), p.chain()
    outs = [p.room(Layout.dense(r.type)) for r in f.results]
    given = own[: len(f.params) - family.captured]
    routine = family.routine(f.name, True)
    record = Record(slot, records.bytes, head)
    p.enter(routine, (*given, *to.fixed, *outs), n, When.KEEP, record)
    return slot, outs


class _Family:
    """The functions of a recursion, planned when they are first called."""

    def __init__(
        self, p: Any, n: Node, fixed: Sequence[Any], records: Records | None = None
    ) -> None:
        """`records`: what the reverse of a function reads, which is not one of these."""
        self.p, self.captured = p, len(fixed)
        self.functions = {f.name: f for f in n.regions}
        #: functions around that these call, which take something with every call too
        self.around: dict[str, Callee] = {
            name: to
            for name, to in p.scope.items()
            if name not in self.functions and any(calls(f, name) for f in n.regions)
        }
        self.sums: Sums | None = None  # that calls of the reverse add to where they lie
        self.handles: list[Spot] = []  # of the stacks of these
        self.own = {f.name: len(f.params) - self.captured for f in n.regions}
        self.made: dict[tuple[str, bool], Routine] = {}
        self.records, self.reverse = records, ""
        self.levels = levels_of(n)
        self.keeping = n.regions[0]  # the function that keeps a record, so that it does
        if len(n.regions) == 2:
            self.records = records = p.records[n][0] if n in p.records else Records(n)
            self.reverse, self.keeping = n.regions[0].name, records.forward
            self._in_place(records.reverse)
            if n in p.records:  # the other one does not run
                f = self.functions[self.reverse]
                params = f.params[self.own[f.name] :]
                fixed = [turned(p, f, x, s) for x, s in zip(params, fixed, strict=False)]
        elif records is not None:
            self.keeping = records.keeping(n.regions[0], n.inputs[len(n.inputs) - len(fixed) :])
        around = [s for to in self.around.values() for s in to.fixed]
        self.fixed = [*fixed, *self.handles, *around]
        self.puts = any(map(_puts, n.regions))
        self.fixed += [p.arena()] if self.puts else []

    def _in_place(self, f: Function) -> None:
        """The reverse takes the sums so far last, and gives the new ones."""
        first = self.own[f.name] - len(f.results)
        self.sums = Sums(f, {r: first + r for r in range(len(f.results))}, f.name)
        self.handles = [self.p.stack(HANDLE) for _ in self.sums.held]
        for handle in self.handles:
            self.p.append(plan_clear(), (handle,), ())
        self.functions[f.name] = self.sums.rewritten()

    def routine(self, name: str, record: bool) -> Routine:
        """The routine of a function, with a record to every call or not."""
        if (name, record) not in self.made:
            writes = record and name != self.reverse and self.records is not None
            keeps = self.records.bytes if writes and self.records is not None else 0
            if self.levels is not None and record and name == self.levels.forward:
                keeps = self.levels.bytes
            made = self.made[name, record] = Routine(name, keeps)
            self.p.routines.append(made)
            f = self.keeping if writes else self.functions[name]
            made.plan = self._planned(f, record, writes)
        return self.made[name, record]

    def _planned(self, f: Function, record: bool, keeps: bool) -> Any:
        layouts = [s.layout for s in self.fixed]
        own = f.params[: self.own[f.name]]
        extra = tuple(_symbol(layout) for layout in layouts[len(f.params) - len(own) :])
        whole = Function(f.name, (*f.params, *extra), f.results)
        inner = self.p.routine(whole, [*(Layout.dense(x.type) for x in own), *layouts])
        there = [inner.spots[x] for x in whole.params[len(own) :]]
        inner.root = there[-1] if self.puts else None
        base = OPERANDS + len(whole.params) + len(whole.results)
        held = Spot(base, 0, _WORD) if record else None
        for name in self.functions:
            inner.scope[name] = Callee(self, name, there, held, keeps, f.name)
        if f.name == self.reverse and self.sums is not None:
            inner.in_place = self.sums.carried
        at = self.captured + len(self.handles)
        for name, to in self.around.items():
            inner.scope[name] = Callee(to.family, name, there[at : at + len(to.fixed)])
            at += len(to.fixed)
        return inner.plan()


def _puts(f: Function) -> bool:
    """Whether a function, or a piece of it, puts something into a store."""
    return any(n.op is put or any(map(_puts, n.regions)) for n in f.order)


def _symbol(layout: Any) -> Node:
    type_ = getattr(layout, "type", layout)
    return Node(parameter, (), (("position", 0), ("type", type_)), type_)
