"""A function that calls itself, while it is being built, and its reverse.

Its body is run on symbols of its own; where it calls itself stands a `call`. The reverse is a
recursive function too: it takes what the function took, cotangents of its results and the sums that
cotangents of its operands and of what it read outside have come to, and gives the new sums. At a
`call` it calls itself, with the sums as they are there: so contributions are added one by one, in
the order in which the tape would have added them. What the body computes is computed again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.autodiff.mode import recording
from weft.autodiff.tape import frontier, pull
from weft.control.branches import first_order, note
from weft.control.build import state_params
from weft.control.call import call, calls, recursion
from weft.control.host import again
from weft.control.nodes import AGAIN, Regions, emit
from weft.control.region import Region, close
from weft.control.store import neutral
from weft.errors import CaptureError
from weft.ir import Function
from weft.ops.define import Value, as_node, data_of, installed
from weft.ops.record import replay
from weft.types import TensorType

Values = Sequence[Value]


class Recursive:
    """A function that calls itself. `start` begins a run of its body, which `calls` it; `ended`
    says whether that is all there is to know; `emit` makes it part of the program.
    """

    def __init__(self, name: str, gives: Sequence[TensorType]) -> None:
        self.name, self.gives = name, tuple(gives)
        self.outside: list[Any] = []  # notes of what the body reads of the outside
        self.types: dict[Any, Any] = {}  # of these
        self.reverse: _Reverse | None = None  # while it is made

    def start(self, types: Sequence[TensorType]) -> tuple[Region, list[Value]]:
        self.region = Region()
        self.params, self.leaves = state_params(self.region, types)
        self.calls: list[Values] = []  # what it was called with inside
        return self.region, self.params

    def call(self, xs: Values) -> tuple[Value, ...]:
        """A call of itself in the body."""
        if not self.gives:
            return ()
        xs = [installed.tensor(data_of(x), x.note) for x in xs]
        site = len(self.calls)
        outs = emit(call, xs, (), {"name": self.name, "gives": self.gives, "site": site})
        self.calls.append(xs)
        if recording.get():
            floats = [t.dtype.is_float for t in self.gives]
            parents = [x.note for x in xs if x.note is not None]
            types = self.types | {x.note: x.type for x in xs if x.note is not None}

            def pull_(_: Any, g: Any, wanted: list[Any], sums: dict[Any, Value]) -> Any:
                if self.reverse is None:
                    raise CaptureError(
                        f"gradient of {self.name}",
                        expected="backward() outside of a function that calls itself",
                        got="one inside of it, through its own calls",
                    )
                return self.reverse.call(site, xs, g, wanted, sums)

            note(call, outs, floats, [*parents, *self.outside], types, pull_)
        return outs

    def ended(self, values: Values) -> bool:
        """Told what the body gave; False if it has to be run again."""
        self.values = values
        own = {leaf for leaf in self.leaves if leaf is not None}
        self.types |= self.region.types | {v.note: v.type for v in values if v.note is not None}
        found = [e for e in frontier([v.note for v in values], self.region.since) if e not in own]
        new = [e for e in found if e not in self.outside]
        self.outside += new
        return not new

    def emit(self, inits: Values) -> tuple[Value, ...]:
        """The function as part of the program, and what it gives for these operands."""
        if not self.gives:
            return ()
        inits = [installed.tensor(data_of(x), x.note) for x in inits]
        (f,), captured = close(self.name, [self._piece()])
        inputs = (*inits, *map(installed.tensor, captured))
        outs = emit(recursion, inputs, (f,), {"captured": len(captured)})
        if recording.get():
            self._note(inits, outs)
        return outs

    def _piece(self) -> Any:
        params, values = [p.data for p in self.params], [as_node(v) for v in self.values]
        return self.region.nodes, params, values

    # gradients

    def _note(self, inits: Values, outs: Values) -> None:
        noted = self._noted(inits)
        place = {leaf: i for i, leaf in enumerate(self.leaves) if leaf is not None}
        ends = [frontier([v.note], self.region.since) if v.note else [] for v in self.values]
        given = [
            t.dtype.is_float and any(e not in place or noted[place[e]] for e in found)
            for t, found in zip(self.gives, ends, strict=True)
        ]
        starts = [x for x, yes in zip(inits, noted, strict=True) if yes and x.note is not None]
        parents = dict.fromkeys([x.note for x in starts] + self.outside)
        types = self.types | {x.note: x.type for x in starts}

        def pull_(_: Any, g: dict[int, Value], wanted: list[Any], sums: dict[Any, Value]) -> Any:
            first_order(recursion)
            reached = {e for i in g for e in ends[i]}
            asked = [p for p in wanted if p is not None]
            outside = [e for e in self.outside if e in asked and e in reached]
            places = [i for i, x in enumerate(inits) if x.note in asked and self.leaves[i]]
            return _Reverse(self, sorted(g), places, outside).run(inits, g, asked, sums)

        note(recursion, outs, given, list(parents), types, pull_)

    def _noted(self, inits: Values) -> list[bool]:
        """Which operands are computed from something with a gradient, at some depth."""
        place = {leaf: i for i, leaf in enumerate(self.leaves) if leaf is not None}
        noted = [x.note is not None for x in inits]
        ends = [
            [frontier([x.note], self.region.since) if x.note else [] for x in xs]
            for xs in self.calls
        ]
        changed = True
        while changed:
            now = [
                was or any(any(e not in place or noted[place[e]] for e in at[i]) for at in ends)
                for i, was in enumerate(noted)
            ]
            changed, noted = now != noted, now
        return [yes and leaf is not None for yes, leaf in zip(noted, self.leaves, strict=True)]


class _Wider(Exception):
    """A call inside has cotangents, or asks for some, that were not reckoned with."""

    def __init__(self, of: _Reverse) -> None:
        self.of = of


class _Reverse:
    """The reverse of a recursive function: of which results it takes cotangents, of which operands
    and of what from outside it gives them.
    """

    def __init__(
        self, of: Recursive, live: list[int], places: list[int], outside: list[Any]
    ) -> None:
        self.of, self.live, self.places, self.outside = of, live, places, outside
        self.name = f"{of.name}_grad"

    def run(
        self, inits: Values, g: dict[int, Value], asked: Sequence[Any], sums: dict[Any, Value]
    ) -> dict[Any, Value]:
        """The sums after a call of the function from outside of it."""
        while True:
            try:
                piece = self._piece()
                break
            except _Wider as e:
                if e.of is not self:
                    raise
        functions, captured = again(self.name, [piece])
        if calls(functions[0], self.of.name):
            functions, captured = again(self.name, [piece, self.of._piece()])
            functions[1] = _named(self.of.name, functions[1])
        xs = (*self._operands(inits, g, asked, sums), *map(installed.tensor, captured))
        outs = emit(recursion, xs, tuple(functions), {"captured": len(captured)})
        return self._totals(inits, asked, outs)

    def _piece(self) -> Any:
        of = self.of
        outer, of.reverse = of.reverse, self
        try:
            with Region() as back:
                gs = [back.parameter(of.gives[i]) for i in self.live]
                ends = [*(of.leaves[i] for i in self.places), *self.outside]
                begun = [back.parameter(t) for t in self._types()]
                found = pull(
                    [(of.values[i].note, g) for i, g in zip(self.live, gs, strict=True)],
                    ends,
                    retain=True,
                    sums=dict(zip(ends, begun, strict=True)),
                )
                out = [as_node(found[e]) for e in ends]
        finally:
            of.reverse = outer
        params = [x.data for x in (*of.params, *gs, *begun)]
        return of.region.nodes | back.nodes, params, out

    def _types(self) -> tuple[TensorType, ...]:
        of = self.of
        return (*(of.params[i].type for i in self.places), *(of.types[e] for e in self.outside))

    def call(
        self,
        site: int,
        xs: Values,
        g: dict[int, Value],
        wanted: Sequence[Any],
        sums: dict[Any, Value],
    ) -> dict[Any, Value]:
        """The sums after a call of the function inside of it."""
        asked = [p for p in wanted if p is not None]
        live = sorted({*self.live, *g})
        places = sorted({*self.places, *(i for i, x in enumerate(xs) if x.note in asked)})
        if live != self.live or places != self.places:
            self.live, self.places = live, places
            raise _Wider(self)
        operands = self._operands(xs, g, asked, sums)
        attrs = {"name": self.name, "gives": self._types(), "site": site}
        outs = emit(call, operands, (), attrs)
        return self._totals(xs, asked, outs)

    def _ends(self, xs: Values) -> list[Any]:
        return [*(xs[i].note for i in self.places), *self.outside]

    def _operands(
        self, xs: Values, g: dict[int, Value], asked: Sequence[Any], sums: dict[Any, Value]
    ) -> list[Value]:
        """Operands, cotangents, sums to go on from; a sum that is asked for twice goes on once."""
        left = {e: sums[e] for e in asked if e in sums}
        begun = [
            left.pop(e) if e in left else neutral(t)
            for e, t in zip(self._ends(xs), self._types(), strict=True)
        ]
        slopes = [g[i] if i in g else neutral(self.of.gives[i]) for i in self.live]
        return [*xs, *slopes, *begun]

    def _totals(self, xs: Values, asked: Sequence[Any], outs: Values) -> dict[Any, Value]:
        totals: dict[Any, Value] = {}
        for e, total in zip(self._ends(xs), outs, strict=True):
            if e in asked:
                totals[e] = totals[e] + total if e in totals else total
        return totals


def _named(name: str, f: Function) -> Function:
    return Function(name, f.params, f.results)


# called again, on other symbols


def build_recursion(
    name: str,
    inits: Values,
    gives: Sequence[TensorType],
    body: Callable[[Recursive, Values], Values],
) -> tuple[Value, ...]:
    """What a function that calls itself gives for these operands: `body` is run on symbols."""
    it = Recursive(name, gives)
    while True:
        region, params = it.start([x.type for x in inits])
        with region:
            values = body(it, params)
        if it.ended(values):
            return it.emit(inits)


def _again_recursion(xs: Sequence[Any], regions: Regions, captured: int) -> tuple[Value, ...]:
    count = len(xs) - captured
    if len(regions) > 1:  # a reverse
        if any(isinstance(x, Value) and x.note is not None for x in xs):
            first_order(recursion)
        return emit(recursion, xs, regions, {"captured": captured})
    (f,) = regions

    def body(it: Recursive, params: Values) -> Values:
        around, _building.names = _building.names, {**_building.names, f.name: it}
        try:
            return replay(f, (*params, *xs[count:]))
        finally:
            _building.names = around

    return build_recursion(f.name, xs[:count], [r.type for r in f.results], body)


class _Building(threading.local):
    """Functions that are being built, by name."""

    names: Mapping[str, Recursive] = {}


_building = _Building()


def _again_call(xs: Sequence[Any], regions: Regions, name: str, **how: Any) -> tuple[Value, ...]:
    found = _building.names.get(name)
    return emit(call, xs, (), {"name": name, **how}) if found is None else found.call(xs)


AGAIN.update({"recursion": _again_recursion, "call": _again_call})
