"""A function that calls itself, while it is being built.

Its body is run on symbols of its own; where it calls itself stands a `call`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.autodiff.mode import recording
from weft.control.branches import border, first_order
from weft.control.build import state_params
from weft.control.call import call, recursion
from weft.control.nodes import AGAIN, Regions, emit
from weft.control.region import Region, close
from weft.control.reverse import Recurring, Site
from weft.ops.define import Value, data_of, installed
from weft.ops.record import replay
from weft.types import TensorType

Values = Sequence[Value]


class Recursive(Recurring):
    """A function that calls itself. `start` begins a run of its body, which `calls` it; `ended`
    says whether that is all there is to know; `emit` makes it part of the program.
    """

    def __init__(self, name: str, gives: Sequence[TensorType]) -> None:
        super().__init__()
        self.name, self.gives = name, tuple(gives)
        self.outside: list[Any] = []  # notes of what the body reads of the outside
        self.types = {}  # of these

    def start(self, types: Sequence[TensorType]) -> tuple[Region, list[Value]]:
        self.region = Region()
        self.params, self.leaves = state_params(self.region, types)
        self.calls: list[Values] = []  # what it was called with inside
        return self.region, self.params

    @property
    def nodes(self) -> Any:
        return self.region.nodes

    @property
    def ends(self) -> list[Any]:
        return [*self.leaves, *self.outside]

    @property
    def end_types(self) -> list[Any]:
        return [*(p.type for p in self.params), *(self.types[e] for e in self.outside)]

    def reached(self, live: Sequence[int]) -> set[Any]:
        roots = [self.values[i].note for i in live]
        found = set(border(roots, self.region)) if live else set(self.outside)
        return found | {leaf for leaf in self.leaves if leaf is not None}

    def call(self, xs: Values) -> tuple[Value, ...]:
        """A call of itself in the body."""
        if not self.gives:
            return ()
        xs = [installed.tensor(data_of(x), x.note) for x in xs]
        site = Site(len(self.calls), xs, [*(x.note for x in xs), *self.outside])
        outs = emit(call, xs, (), {"name": self.name, "gives": self.gives, "site": site.number})
        self.calls.append(xs)
        if recording.get():
            parents = [x.note for x in xs if x.note is not None]
            types = self.types | {x.note: x.type for x in xs if x.note is not None}
            self.note_inside(site, outs, [*parents, *self.outside], types)
        return outs

    def ended(self, values: Values) -> bool:
        """Told what the body gave; False if it has to be run again."""
        self.values = values
        own = {leaf for leaf in self.leaves if leaf is not None}
        self.types |= self.region.types | {v.note: v.type for v in values if v.note is not None}
        found = [e for e in border([v.note for v in values], self.region) if e not in own]
        new = [e for e in found if e not in self.outside]
        self.outside += new
        return not new

    def emit(self, inits: Values) -> tuple[Value, ...]:
        """The function as part of the program, and what it gives for these operands."""
        if not self.gives:
            return ()
        inits = [installed.tensor(data_of(x), x.note) for x in inits]
        (f,), captured = close(self.name, [self.piece])
        inputs = (*inits, *map(installed.tensor, captured))
        outs = emit(recursion, inputs, (f,), {"captured": len(captured)})
        if recording.get():
            self._note(inits, outs)
        return outs

    def _note(self, inits: Values, outs: Values) -> None:
        noted = self._noted(inits)
        place = {leaf: i for i, leaf in enumerate(self.leaves) if leaf is not None}
        ends = [border([v.note], self.region) if v.note else [] for v in self.values]
        given = [
            t.dtype.is_float and any(e not in place or noted[place[e]] for e in found)
            for t, found in zip(self.gives, ends, strict=True)
        ]
        starts = [x for x, yes in zip(inits, noted, strict=True) if yes and x.note is not None]
        parents = dict.fromkeys([x.note for x in starts] + self.outside)
        types = self.types | {x.note: x.type for x in starts}
        site = Site(-1, inits, [*(x.note for x in inits), *self.outside])
        self.note_outside(site, outs, given, list(parents), types)

    def _noted(self, inits: Values) -> list[bool]:
        """Which operands are computed from something with a gradient, at some depth."""
        place = {leaf: i for i, leaf in enumerate(self.leaves) if leaf is not None}
        noted = [x.note is not None for x in inits]
        ends = [[border([x.note], self.region) if x.note else [] for x in xs] for xs in self.calls]
        changed = True
        while changed:
            now = [
                was or any(any(e not in place or noted[place[e]] for e in at[i]) for at in ends)
                for i, was in enumerate(noted)
            ]
            changed, noted = now != noted, now
        return [yes and leaf is not None for yes, leaf in zip(noted, self.leaves, strict=True)]


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
