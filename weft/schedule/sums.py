"""Sums that go through loops and calls, each in one place of memory.

The reverse of a loop or of a function that calls itself hands the sum that the cotangents of a
weight have come to from step to step and from call to call, and all that is ever done with it is to
add to it. So it need not be handed on: every addition is made where it lies.

What is added is often a contraction of small operands, an outer product say, as large as the
weight. Of these the operands are put on a stack, and added when there are enough of them
(`weft.schedule.drain`): memory is then gone through once for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from weft.buffer import Layout
from weft.control.call import call
from weft.control.nodes import Control, cond
from weft.ir import Function, Node
from weft.ir.rewrite import uses, with_inputs
from weft.ops.define import parameter, result
from weft.ops.elementwise import add
from weft.schedule.drain import LEAST, most, plan_drain
from weft.schedule.single import plan_single
from weft.schedule.stack import HANDLE, Field, entry, plan_clear, plan_keep, plan_more
from weft.schedule.steps import When
from weft.types.dtype import float32, float64

#: adds where its first operand lies: (sum, value), or (sum, handle, p, q), see `Term`
accumulate = Control("accumulate", infer=lambda x, *rest, **how: x)


class Term(NamedTuple):
    """A contraction that is added to a sum: p[i, k] * q[i, j], summed over i, to [k, j]."""

    p: Node
    q: Node


class Link(NamedTuple):
    """A node that a sum goes through: where from, and what it adds or, in a branch, what the paths
    do, which are given the sum as a param.
    """

    node: Node
    source: Node
    value: Node | None = None
    paths: tuple[Chain, ...] = ()
    result: int = 0
    param: int = 0


Chain = list[Link]  # from a result back to a param


class Sums:
    """Which results of a function are such sums: `carried` says of each which param it goes on
    from, `held` which have a stack.
    """

    def __init__(self, f: Function, pairs: Mapping[int, int], name: str = "") -> None:
        """`pairs`: what could be. `name`: of the function, if it calls itself."""
        self.f, self.carried = f, dict(pairs)
        while True:  # what a call of its own hands on is a sum if the function hands it on
            found = {r: _chain(f, r, p, name, self.carried) for r, p in self.carried.items()}
            self.chains = {r: chain for r, chain in found.items() if chain is not None}
            if len(self.chains) == len(found):
                break
            self.carried = {r: self.carried[r] for r in self.chains}
        self.terms = {r: _terms(chain) for r, chain in self.chains.items()}
        self.held = [r for r, terms in self.terms.items() if _worth(f.results[r].type, terms)]

    def rewritten(self) -> Function:
        """The function adding in place. Behind its params it takes the handles of stacks."""
        handles = {r: _symbol() for r in self.held}
        chains = [(chain, handles.get(r)) for r, chain in self.chains.items()]
        made = _in_place(self.f, chains)
        return Function(made.name, (*made.params, *handles.values()), made.results)

    def drain(self, p: Any, r: int, handle: Any, total: Any) -> None:
        """Plan that all on the stack of a sum is added."""
        (term, *_) = self.terms[r]
        assert term is not None
        _drain(p, handle, total, Layout.dense(term.p.type), Layout.dense(term.q.type))


def term(value: Node) -> Term | None:
    """A value as what can be put on a stack."""
    if value.op.name != "contract" or value.type.dtype not in (float32, float64):
        return None
    spec, out = value.attr("spec"), value.type
    if len(spec.out) != 2:
        return None
    k, j = spec.out
    a, b = (value.inputs[0], spec.a), (value.inputs[1], spec.b)
    for (p, of_p), (q, of_q) in ((a, b), (b, a)):
        if len(of_p) == len(of_q) == 2 and of_p[0] == of_q[0] and (of_p[1], of_q[1]) == (k, j):
            (depth, rows), (same, columns) = p.type.shape, q.type.shape
            if depth == same and (rows, columns) == out.shape:
                return Term(p, q)
    return None


def _terms(chain: Chain) -> list[Term | None]:
    """All that is added, None for what can't be put on a stack."""
    out = []
    for link in chain:
        out += [term(link.value)] if link.value is not None else []
        out += [t for path in link.paths for t in _terms(path)]
    return out


def _worth(type_: Any, terms: Sequence[Term | None]) -> bool:
    """Whether all that is added are products of one kind, much smaller than the sum."""
    kinds = {(t.p.type, t.q.type) if t is not None else None for t in terms}
    if len(kinds) != 1:
        return False
    (kind,) = kinds
    return kind is not None and type_.nbytes >= max(LEAST, 2 * sum(t.nbytes for t in kind))


# finding them


def _chain(f: Function, r: int, p: int, name: str, carried: Mapping[int, int]) -> Chain | None:
    """How a result goes on from a param; None if anything but that is done with it on the way."""
    users, param, n = uses(f), f.params[p], f.results[r]
    if n.type is not param.type or f.results.count(n) != 1 or users[n]:
        return None
    below = {param}
    for x in f.order:
        if any(i in below for i in x.inputs):
            below.add(x)
    chain: Chain = []
    while n is not param:
        link = _link(n, below, name, carried)
        if link is None or len(users[link.source]) != 1 or link.source in f.results:
            return None
        chain.append(link)
        n = link.source
    return chain


def _link(n: Node, below: set[Node], name: str, carried: Mapping[int, int]) -> Link | None:
    if n.op is add:
        sums = [i for i in n.inputs if i in below]
        if len(sums) != 1 or any(i.type is not n.type for i in n.inputs):
            return None
        (value,) = (i for i in n.inputs if i is not sums[0])
        return Link(n, sums[0], value)
    of = n.inputs[0] if n.op is result else None
    if of is not None and of.op is call and of.attr("name") == name:
        at = carried.get(n.attr("position"))
        return None if at is None else Link(n, of.inputs[at])
    if of is not None and of.op is cond:
        given = [i for i, x in enumerate(of.inputs[1:]) if x in below and x.type is n.type]
        for i in given:
            paths = [_chain(g, n.attr("position"), i, name, carried) for g in of.regions]
            if all(path is not None for path in paths):
                given_paths = tuple(path or [] for path in paths)
                return Link(of, of.inputs[1 + i], None, given_paths, n.attr("position"), i)
    return None


# in place


def _in_place(f: Function, chains: Sequence[tuple[Chain, Node | None]]) -> Function:
    adds = {link.node: (link, h) for chain, h in chains for link in chain if link.value is not None}
    branches: dict[Node, list[tuple[Link, Node | None]]] = {}
    for chain, handle in chains:
        for link in chain:
            if link.paths:
                branches.setdefault(link.node, []).append((link, handle))
    known: dict[Node, Node] = {p: p for p in f.params}
    for n in f.order:
        inputs = tuple([known[i] for i in n.inputs])
        if n in adds:
            link, handle = adds[n]
            known[n] = _added(n, known, link, handle)
        elif n in branches:
            known[n] = _branch(n, inputs, branches[n])
        else:
            known[n] = with_inputs(n, inputs)
    return Function(f.name, f.params, tuple([known[r] for r in f.results]))


def _added(n: Node, known: Mapping[Node, Node], link: Link, handle: Node | None) -> Node:
    assert link.value is not None
    operands: tuple[Node, ...] = (known[link.value],)
    if handle is not None:
        found = term(link.value)
        assert found is not None
        operands = (handle, known[found.p], known[found.q])
    return Node(accumulate, (known[link.source], *operands), (), n.type, n.loc)


def _branch(n: Node, inputs: tuple[Node, ...], links: list[tuple[Link, Node | None]]) -> Node:
    handles = tuple([h for _, h in links if h is not None])
    regions = []
    for path, f in enumerate(n.regions):
        own = [_symbol() if h is not None else None for _, h in links]
        chains = [(link.paths[path], h) for (link, _), h in zip(links, own, strict=True)]
        made = _in_place(f, chains)
        more = tuple([h for h in own if h is not None])
        regions.append(Function(made.name, (*made.params, *more), made.results))
    attrs = (*n.attrs, ("in_place", tuple((link.result, link.param) for link, _ in links)))
    return Node(n.op, (*inputs, *handles), attrs, n.type, n.loc, tuple(regions))


def in_place(n: Node) -> tuple[tuple[int, int], ...]:
    """Which results of a branch go on from which of its operands, where these lie."""
    return dict(n.attrs).get("in_place", ())  # type: ignore[no-any-return]


def _symbol() -> Node:
    return Node(parameter, (), (("position", 0), ("type", HANDLE.type)), HANDLE.type)


# planning


def plan_accumulate(p: Any, n: Node, inputs: Sequence[Any]) -> Any:
    """Plan an addition: the sum is where it was."""
    total, *rest = inputs
    if len(rest) == 1:
        (value,) = rest
        lie = (total.layout, value.layout)
        launch = plan_single(add, (n.type, n.type), lie, {}, n.type, p.machine)
        p.append(launch, (total, value, total), (n,))
        return total
    handle, *parts = rest[0], *(p.dense(x) for x in rest[1:])
    layouts = [x.layout for x in parts]
    p.append(plan_keep(layouts, 0), (handle, *parts), (n,))
    full = p.room(plan_more(0, Field.COUNT).outs[0])
    p.append(plan_more(most(entry(layouts)) - 1, Field.COUNT), (handle, full), ())
    there = p.jump(When.IF_FALSE, full)
    _drain(p, handle, total, *layouts)
    there.target = len(p.steps)
    return total


def _drain(p: Any, handle: Any, total: Any, left: Layout, right: Layout) -> None:
    behind = entry([left])
    launch = plan_drain(left, right, entry([left, right]), behind, p.machine.vector)
    p.append(launch, (handle, total), ())
    p.append(plan_clear(), (handle,), ())
