"""Loops over the steps of other loops.

What a loop's state was before each step is put into stores by running it again, and a loop that
goes by its steps, in its own order or another, reads them where the other's would read its params.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.autodiff.mode import no_grad
from weft.control.host import again
from weft.control.nodes import emit, while_
from weft.control.region import Region
from weft.control.store import COUNT, STORE, get, neutral, put, stores
from weft.ir import Function, Node
from weft.ir.rewrite import with_inputs
from weft.ops.define import Value, closed, installed, parameter
from weft.types.record import dataclass

Values = Sequence[Value]


@dataclass(frozen=True)
class Made:
    """A loop as a node: its functions, and what it was called with, state first."""

    test: Function
    body: Function
    inputs: tuple[Any, ...]

    def run(self) -> tuple[Value, ...]:
        return emit(while_, self.inputs, (self.test, self.body), {})

    def trail(self, parts: Sequence[int]) -> tuple[Value, list[Value]]:
        """How many steps it takes, and what parts of its state are before each."""
        test, body, count = self.test, self.body, len(self.body.results)
        own = [_symbol(STORE) for _ in parts]
        steps = _symbol(COUNT)
        with closed(), no_grad():
            lift = installed.tensor
            kept = [put(lift(s), lift(body.params[i])) for s, i in zip(own, parts, strict=True)]
            after = lift(steps) + 1
        more = (*own, steps)
        results = (*body.results, *(x.data for x in kept), after.data)
        second = _taking(body.name, (*body.params[:count], *more, *body.params[count:]), results)
        first = _taking(
            test.name, (*test.params[:count], *more, *test.params[count:]), test.results
        )
        start, rest = self.inputs[:count], self.inputs[count:]
        zero = neutral(COUNT)
        outs = Made(first, second, (*start, *stores(len(parts)), zero, *rest)).run()
        return outs[-1], list(outs[count:-1])


def _symbol(type_: Any) -> Node:
    return Node(parameter, (), (("position", 0), ("type", type_)), type_)


def _taking(
    name: str, params: Sequence[Node], results: Sequence[Node], stands: Any = ()
) -> Function:
    """A function of these params, which are given numbers; `stands` are nodes for some others."""
    known: dict[Node, Node] = {}
    for i, p in enumerate(params):
        known[p] = Node(p.op, (), (("position", i), ("type", p.type)), p.type, p.loc)
    made = [known[p] for p in params]
    stands = dict(stands)
    roots = (*stands.values(), *results)
    for n in Function(name, (*params, *stands), roots).order:
        if n not in known:
            known[n] = with_inputs(n, tuple([known[stands.get(i, i)] for i in n.inputs]))
    return Function(name, tuple(made), tuple([known[stands.get(r, r)] for r in results]))


@dataclass(frozen=True)
class Fetch:
    """A param of another loop's step, the param for the store of what it was, and that read."""

    param: Value
    store: Value
    got: Value


def fetched(params: Values, at: Value, region: Region) -> list[Fetch]:
    """What another loop's params were at a step."""
    out = []
    for p in params:
        s = region.parameter(STORE)
        out.append(Fetch(p, s, get(s, at, neutral(p.type))))
    return out


def walking(
    state: Values,
    inits: Callable[[], Values],
    fetches: Sequence[Fetch],
    test: tuple[set[Node], Value],
    body: tuple[set[Node], Values],
    supply: Callable[[list[int]], list[Value]],
) -> Made:
    """A loop that goes by the steps of others. `supply` gives the stores it is found to need, by
    their places among the fetches.
    """
    own = [x.data for x in (*state, *(f.param for f in fetches), *(f.store for f in fetches))]
    results = [x.data for x in (*body[1], *(f.got for f in fetches))]
    (first, second), captured = again(
        "while_grad", [(test[0], own, [test[1].data]), (body[0], own, results)]
    )
    n, m = len(state), len(fetches)
    params, ends = second.params[n : n + m], second.results[: len(second.results) - m]
    stands = dict(zip(params, second.results[len(ends) :], strict=True))
    read: set[Node] = set()
    stack = list(ends)
    while stack:
        x = stack.pop()
        x = stands.get(x, x)
        if x not in read:
            read.add(x)
            stack.extend(x.inputs)
    needed = [j for j in range(m) if second.params[n + m + j] in read]
    given = supply(needed)

    def left(f: Function) -> list[Node]:
        kept = [f.params[n + m + j] for j in needed]
        return [*f.params[:n], *kept, *f.params[n + 2 * m :]]

    return Made(
        _taking(first.name, left(first), first.results),
        _taking(second.name, left(second), ends, {params[j]: stands[params[j]] for j in needed}),
        (*inits(), *given, *map(installed.tensor, captured)),
    )


class Trail:
    """How many steps a loop takes, and stores of what parts of its state were before each."""

    def __init__(self, made: Made) -> None:
        self.made, self.known = made, dict[int, Value]()
        self.steps: Any = None

    def parts(self, wanted: list[int]) -> list[Value]:
        """Made where this is called, and kept for what is called there and further in."""
        self.steps, found = self.made.trail(wanted)
        self.known.update(zip(wanted, found, strict=True))
        return found

    def more(self, wanted: list[int]) -> list[Value]:
        """The same anywhere else: what there is, and others, which are not kept."""
        new = [i for i in wanted if i not in self.known]
        found = dict(zip(new, self.made.trail(new)[1], strict=True)) if new else {}
        return [found[i] if i in found else self.known[i] for i in wanted]
