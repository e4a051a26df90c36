"""Functions that call themselves in a plan: each is planned once, with an arena of its own.

A call is a jump to the function's first step. The engine makes room for its arena, and notes where
operands, what was captured and the results lie: nothing is copied.

Before the reverse of a function runs, the function runs once more and keeps, for every call of it,
a record: what the calls inside gave, and the addresses of their records. The reverse reads there
what it would have to compute again. Calls in loops have no such place, as there may be any number
of them: the reverse runs those again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.buffer import Layout
from weft.control.call import call, calls, undefined
from weft.ir import Function, Node
from weft.ops.define import parameter
from weft.schedule.arena import ALIGN
from weft.schedule.stack import HANDLE, plan_clear
from weft.schedule.steps import OPERANDS, Record, Routine, Spot, When
from weft.schedule.sums import Sums
from weft.types import TensorType
from weft.types.dtype import int64

_WORD = Layout.dense(TensorType((), int64))


class Callee(NamedTuple):
    """A function that can be called from where something is planned."""

    family: _Family
    name: str
    fixed: list[Any]  # what it takes with every call
    record: Any = None  # of the call that is being planned, if it has one
    keeps: bool = False  # that record is being written


def plan_recursion(p: Any, n: Node, inputs: Sequence[Any]) -> list[Any]:
    """Plan the functions, and a call of the first."""
    count = len(inputs) - n.attr("captured")
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


def plan_call(p: Any, n: Node, inputs: Sequence[Any]) -> list[Any]:
    """Plan a call of a function that is being planned."""
    if n.attr("name") not in p.scope:
        raise undefined(n.attr("name"))
    return _called(p, n, p.scope[n.attr("name")], inputs, n.attr("site"))


def _called(p: Any, n: Node, to: Callee, inputs: Sequence[Any], site: int) -> list[Any]:
    family = to.family
    own = [p.dense(s) for s in inputs]
    outs = [Layout.dense(r.type) for r in family.functions[to.name].results]
    places = family.places.get(site) if to.record is not None else None
    if to.name == family.reverse and family.sums is not None:
        carried = family.sums.carried
        made = [own[carried[r]] if r in carried else p.room(x) for r, x in enumerate(outs)]
        slot = None if places is None else _in_record(to, places[0], _WORD)
        if slot is None:
            slot = _keeping(p, n, to, own)
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
        record = Record(slot, family.bytes, head, indirect=True)
        p.enter(family.routine(to.name, True), (*own, *to.fixed, *made), n, When.KEEP, record)
    return made


def _in_record(to: Callee, at: int, layout: Layout) -> Spot:
    return Spot(to.record.base, at, layout)


def _keeping(p: Any, n: Node, to: Callee, own: Sequence[Any]) -> Any:
    """Run the function that a reverse is one of; where the address of its record is."""
    family = to.family
    f = family.functions[family.forward]
    slot, head = p.room(_WORD), p.chain()
    outs = [p.room(Layout.dense(r.type)) for r in f.results]
    given = own[: len(f.params) - family.captured]
    routine = family.routine(f.name, True)
    record = Record(slot, family.bytes, head)
    p.enter(routine, (*given, *to.fixed, *outs), n, When.KEEP, record)
    return slot


class _Family:
    """The functions of a recursion, planned when they are first called."""

    def __init__(self, p: Any, n: Node, fixed: Sequence[Any]) -> None:
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
        self.reverse, self.forward = "", ""
        self.places: dict[int, list[int]] = {}  # of calls by site: their part of a record
        self.bytes = 0
        if len(n.regions) == 2:
            self.reverse, self.forward = (f.name for f in n.regions)
            self._layout()
            self._in_place(n.regions[0])
        around = [s for to in self.around.values() for s in to.fixed]
        self.fixed = [*fixed, *self.handles, *around]

    def _layout(self) -> None:
        """What a record has: where the list of all is, then for each call the address of its record
        and what it gave.
        """
        self.bytes = ALIGN
        found = list(_sites(self.functions[self.forward], self.forward))
        for site in dict.fromkeys(found):
            if found.count(site) == 1:
                self.places[site] = []
                for type_ in (_WORD.type, *(r.type for r in self._results())):
                    self.places[site].append(self.bytes)
                    self.bytes += -(-type_.nbytes // ALIGN) * ALIGN

    def _in_place(self, f: Function) -> None:
        """The reverse takes the sums so far last, and gives the new ones."""
        first = self.own[f.name] - len(f.results)
        self.sums = Sums(f, {r: first + r for r in range(len(f.results))}, f.name)
        self.handles = [self.p.stack(HANDLE) for _ in self.sums.held]
        for handle in self.handles:
            self.p.append(plan_clear(), (handle,), ())
        self.functions[f.name] = self.sums.rewritten()

    def _results(self) -> Sequence[Node]:
        return self.functions[self.forward].results

    def routine(self, name: str, record: bool) -> Routine:
        """The routine of a function, with a record to every call or not."""
        if (name, record) not in self.made:
            keeps = self.bytes if record and name == self.forward else 0
            made = self.made[name, record] = Routine(name, keeps)
            self.p.routines.append(made)
            made.plan = self._planned(self.functions[name], record)
        return self.made[name, record]

    def _planned(self, f: Function, record: bool) -> Any:
        layouts = [s.layout for s in self.fixed]
        own = f.params[: self.own[f.name]]
        extra = tuple(_symbol(layout) for layout in layouts[len(f.params) - len(own) :])
        whole = Function(f.name, (*f.params, *extra), f.results)
        inner = self.p.routine(whole, [*(Layout.dense(x.type) for x in own), *layouts])
        there = [inner.spots[x] for x in whole.params[len(own) :]]
        base = OPERANDS + len(whole.params) + len(whole.results)
        held = Spot(base, 0, _WORD) if record else None
        keeps = record and f.name == self.forward
        for name in self.functions:
            inner.scope[name] = Callee(self, name, there, held, keeps)
        if f.name == self.reverse and self.sums is not None:
            inner.in_place = self.sums.carried
        at = self.captured + len(self.handles)
        for name, to in self.around.items():
            inner.scope[name] = Callee(to.family, name, there[at : at + len(to.fixed)])
            at += len(to.fixed)
        return inner.plan()


def _sites(f: Function, name: str) -> list[int]:
    """The calls of a function in a piece of itself, those in loops and in other functions aside."""
    found = [n.attr("site") for n in f.order if n.op is call and n.attr("name") == name]
    inner = (r for n in f.order if n.op.name == "cond" for r in n.regions)
    return found + [site for r in inner for site in _sites(r, name)]


def _symbol(layout: Any) -> Node:
    type_ = getattr(layout, "type", layout)
    return Node(parameter, (), (("position", 0), ("type", type_)), type_)
