"""What a function that calls itself keeps of every call for its reverse.

For each call inside, the address of that one's record and what it gave; and the contractions that
the reverse would compute again. That a value of the reverse is one of the function's is seen by how
it is computed, branch for branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.buffer import Layout
from weft.control.call import call
from weft.control.nodes import Control, cond
from weft.ir import Function, Node
from weft.ir.node import exact
from weft.ir.rewrite import uses
from weft.ops.define import result
from weft.ops.elementwise import add
from weft.schedule.arena import ALIGN
from weft.schedule.steps import Spot
from weft.types import TensorType
from weft.types.dtype import int64

WORD = TensorType((), int64)

#: a value that is also written to the record of the call of a function, and one that is read there
kept = Control("kept", infer=lambda x, **how: x)
held = Control("held", infer=lambda **how: how["type"])


class Said(NamedTuple):
    """A value: its number, the branches it is in, and the function or region it stands in."""

    node: Node
    number: int
    path: frozenset[tuple[int | None, int]]
    inside: Function


class Records:
    """Where things are in a record: of a recursion of a reverse and the function."""

    def __init__(self, n: Node) -> None:
        reverse, forward = n.regions
        self.name, captured = forward.name, n.attr("captured")
        outer = n.inputs[len(n.inputs) - captured :]
        count = len(forward.params) - captured
        self.names: dict[Any, int] = {}
        there, self.results = self._said(forward, count, outer)
        back, _ = self._said(reverse, count, outer)
        self.places: dict[int, list[int]] = {}  # of calls by site
        self.values: dict[int, int] = {}  # of others, by number
        self.bytes = ALIGN  # first, where the list of all records is
        found = list(sites(forward, forward.name))
        for site in dict.fromkeys(found):
            if found.count(site) == 1:
                types = (WORD, *(r.type for r in forward.results))
                self.places[site] = [self._place(t) for t in types]
        first: dict[int, Said] = {}
        for x in there:
            first.setdefault(x.number, x)
        numbers = {x.node: x.number for x in back}
        read: dict[Node, int] = {}
        for x in back:
            if getattr(x.node.op, "contract", None) is not None:
                end = _end(x, lambda u: numbers.get(u) in first)
                number = numbers[end]
                if number in first and first[number].path <= x.path:
                    read[end] = number
                    if number not in self.values:
                        self.values[number] = self._place(end.type)
        self.forward = self.keeping(forward, outer)
        self.reverse = _rewritten(
            reverse,
            lambda was, n: self._node(held, (), read[was], n) if was in read else None,
        )

    def keeping(self, f: Function, outer: Sequence[Node]) -> Function:
        """The function, or the same one elsewhere, with what it writes to its record."""
        said, _ = self._said(f, len(f.params) - len(outer), outer)
        wanted: dict[Node, int] = {}
        for x in said:
            if x.number in self.values and x.number not in wanted.values():
                wanted[x.node] = x.number
        return _rewritten(
            f, lambda was, n: self._node(kept, (n,), wanted[was], n) if was in wanted else None
        )

    def same(self, f: Function, outer: Sequence[Node]) -> bool:
        """Whether a function that reads these values of the outside is this one."""
        given = len(f.params) - len(outer)
        return f.name == self.name and self._said(f, given, outer)[1] == self.results

    def _node(self, op: Any, inputs: tuple[Node, ...], number: int, n: Node) -> Node:
        attrs = (("name", self.name), ("number", number), ("type", n.type))
        return Node(op, inputs, attrs, n.type, n.loc)

    def _place(self, type_: TensorType) -> int:
        at = self.bytes
        self.bytes += -(-type_.nbytes // ALIGN) * ALIGN
        return at

    # which values are the same

    def _said(
        self, f: Function, count: int, outer: Sequence[Node]
    ) -> tuple[list[Said], list[int | None]]:
        """All values of a function, and its results' numbers. The same number, the same value."""
        own = len(f.params) - len(outer)
        given = [self._number(("own" if i < count else "back", i)) for i in range(own)]
        out: list[Said] = []
        known = self._walk(f, [*given, *(self._number(("outer", x)) for x in outer)], (), out)
        return out, [known.get(r) for r in f.results]

    def _number(self, key: Any) -> int:
        return self.names.setdefault(key, len(self.names))

    def _walk(
        self, f: Function, given: Sequence[int | None], path: Any, out: list[Said]
    ) -> dict[Node, int]:
        known = {p: n for p, n in zip(f.params, given, strict=True) if n is not None}
        ends: dict[Node, list[list[int | None]]] = {}
        for n in f.order:
            if n.op is cond:
                test, *rest = [known.get(x) for x in n.inputs]
                ends[n] = []
                for k, region in enumerate(n.regions):
                    inner = self._walk(region, rest, (*path, (test, k)), out)
                    ends[n].append([inner.get(r) for r in region.results])
                continue
            key = None if n in known else _key(n, known, ends)
            if key is not None:
                known[n] = self._number(key)
                out.append(Said(n, known[n], frozenset(path), f))
        return known


def _key(n: Node, known: dict[Node, int], ends: dict[Node, list[list[int | None]]]) -> Any:
    """What a value is computed of, in words; None where that is not known."""
    of = n.inputs[0] if n.op is result else n
    if of.op is cond:
        found = [known.get(of.inputs[0]), *(e[n.attr("position")] for e in ends[of])]
    elif of.regions:
        return None
    else:
        found = [known.get(x) for x in of.inputs]
    if None in found or (n.op is not result and n.op is call):
        return None
    said = of.op, () if of.op is cond else exact(of.attrs), n.type, tuple(found)
    return (*said, n.attr("position")) if n.op is result else said


def _end(x: Said, there: Callable[[Node], bool]) -> Node:
    """What a contraction is added up to, as far as the function computes that too."""
    users, n = uses(x.inside), x.node
    while len(users[n]) == 1 and n not in x.inside.results:
        (u,) = users[n]
        if u.op is not add or u.type is not n.type or not there(u):
            break
        n = u
    return n


def _rewritten(f: Function, rule: Callable[[Node, Node], Node | None]) -> Function:
    """A function, what its branches do included, with nodes replaced."""
    made: dict[Node, Node] = {p: p for p in f.params}
    for n in f.order:
        if n in made:
            continue
        regions = tuple(_rewritten(r, rule) for r in n.regions) if n.op is cond else n.regions
        new = Node(n.op, tuple([made[i] for i in n.inputs]), n.attrs, n.type, n.loc, regions)
        made[n] = rule(n, new) or new
    return Function(f.name, f.params, tuple([made[r] for r in f.results]))


def sites(f: Function, name: str) -> list[int]:
    """The calls of a function in a piece of itself, those in loops and in other functions aside."""
    found = [n.attr("site") for n in f.order if n.op is call and n.attr("name") == name]
    inner = (r for n in f.order if n.op is cond for r in n.regions)
    return found + [site for r in inner for site in sites(r, name)]


# planning


def plan_kept(p: Any, n: Node, inputs: Sequence[Any]) -> Any:
    """A value that goes to the record, if one is written."""
    to = p.scope[n.attr("name")]
    if to.keeps:
        p.copy_to(inputs[0], _spot(to, n))
    return inputs[0]


def plan_held(p: Any, n: Node, inputs: Sequence[Any]) -> Any:
    return _spot(p.scope[n.attr("name")], n)


def _spot(to: Any, n: Node) -> Spot:
    at = to.family.records.values[n.attr("number")]
    return Spot(to.record.base, at, Layout.dense(n.type))
