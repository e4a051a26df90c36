"""The reverse of a function that calls itself, which is one too.

It takes what the function took, cotangents of its results and the sums that cotangents of its
`ends` have come to; it gives the new sums. At a `call` it calls itself, with the sums as they are
there: so contributions are added one by one, in the order in which the tape would have added them.
What the body computes is computed again.

A reverse is a function like any other, and has a reverse. That one adds to values of the first
function too: to what it was given and gave, which are its caller's values, and to others, which are
one call's alone. The sums of these are `KEPT`: an entry of a store for every call, given to the
caller, who has it among its own. The function's reverse goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.autodiff.mode import recording
from weft.autodiff.tape import Leaf, Pick, pull
from weft.control.branches import border, first_order, is_inside, note
from weft.control.call import call, calls, recursion
from weft.control.host import again
from weft.control.nodes import emit
from weft.control.region import Region
from weft.control.store import COUNT, STORE, get, neutral, put
from weft.errors import CaptureError
from weft.ir import Function
from weft.ops.define import Value, as_node, installed
from weft.types import TensorType

Values = Sequence[Value]

#: stands for the sums of a call's own values, among results and ends
KEPT = "kept"


class Site:
    """A call of a function: its operands, the notes that the function's `ends` are here, those of
    the results, and its own.
    """

    def __init__(self, number: int, xs: Values, links: Sequence[Any]) -> None:
        self.number, self.xs, self.links = number, list(xs), list(links)
        self.results: list[Any] = []
        self.note: Any = None

    def noted(self, n: Any, outs: Values) -> None:
        self.note = n
        self.results = [o.note for o in outs]  # as they are now: variables may be given others


class Recurring:
    """A function that calls itself, and what its body came to."""

    name: str
    gives: tuple[TensorType, ...]
    of: Recurring | None = None  # the function that it is the reverse of
    params: Values
    values: Values
    region: Region  # notes made before are of the outside, or of `of`
    nodes: Any
    types: dict[Any, Any]  # of notes

    def __init__(self) -> None:
        self.kept: list[Any] = []  # notes of a call's own values that have sums in a store
        self.reverse: Reverse | None = None  # while it is made

    @property
    def ends(self) -> list[Any]:
        """Notes in the body that cotangents go on to, which are the caller's."""
        raise NotImplementedError

    @property
    def end_types(self) -> list[Any]:
        raise NotImplementedError

    @property
    def results(self) -> list[Any]:
        """The notes of what it gives, where the body made them."""
        return [v.note if is_inside(v.note, self.region) else None for v in self.values]

    @property
    def piece(self) -> Any:
        return self.nodes, [p.data for p in self.params], [as_node(v) for v in self.values]

    def reached(self, live: Sequence[int]) -> set[Any]:
        """The ends that cotangents of these results arrive at, at some depth."""
        raise NotImplementedError

    def entry(self) -> tuple[Any, ...]:
        """The types of what is kept."""
        return tuple(self.types[e] for e in self.kept)

    def note_inside(self, site: Site, outs: Values, parents: Sequence[Any], types: Any) -> None:
        """Note a call of it in its body."""

        def pull_(_: Any, g: Any, wanted: list[Any], sums: dict[Any, Value]) -> Any:
            if self.reverse is None:
                raise CaptureError(
                    f"gradient of {self.name}",
                    expected="backward() outside of a function that calls itself",
                    got="one inside of it, through its own calls",
                )
            return self.reverse.call(site, g, wanted, sums)

        floats = [o.type.dtype.is_float for o in outs]
        site.noted(note(call, outs, floats, parents, types, pull_), outs)

    def note_outside(
        self, site: Site, outs: Values, noted: Sequence[bool], parents: Sequence[Any], types: Any
    ) -> None:
        """Note a call of it from outside."""

        def pull_(_: Any, g: Any, wanted: list[Any], sums: dict[Any, Value]) -> Any:
            if KEPT in g or self.of is not None:
                first_order(recursion, "second derivatives")
            live = sorted(i for i in g if i != KEPT)
            asked = [p for p in wanted if p is not None]
            reached = self.reached([] if KEPT in g else live)
            ends = enumerate(zip(self.ends, site.links, strict=True))
            places = [i for i, (e, link) in ends if link in asked and e in reached]
            return Reverse(self, live, places, KEPT in g).run(site, g, asked, sums)

        site.noted(note(recursion, outs, noted, parents, types, pull_), outs)


class _Wider(Exception):
    """A call inside has cotangents, or asks for some, that were not reckoned with."""

    def __init__(self, of: Reverse) -> None:
        self.of = of


class Reverse(Recurring):
    """The reverse of a function: of which results it takes cotangents (`kept`: sums of its own
    values too), of which ends it gives sums.
    """

    of: Recurring

    def __init__(self, of: Recurring, live: list[int], places: list[int], kept: bool) -> None:
        super().__init__()
        self.of, self.live, self.places, self.takes_kept = of, live, places, kept
        self.name = f"{of.name}_grad"

    @property
    def ends(self) -> list[Any]:
        return [*self.leaves, *self.of.ends, *self.of.results, KEPT]

    @property
    def end_types(self) -> list[Any]:
        own = [p.type for p in self.params[len(self.of.params) :]]
        return [*own, *self.of.end_types, *self.of.gives, STORE]

    def reached(self, live: Sequence[int]) -> set[Any]:
        found = set(border([v.note for v in self.values], self.region))
        return found | {KEPT}

    def run(
        self, site: Site, g: dict[Any, Value], asked: Sequence[Any], sums: dict[Any, Value]
    ) -> dict[Any, Value]:
        """The sums after a call of the function from outside of it."""
        while True:
            try:
                self._run()
                break
            except _Wider as e:
                if e.of is not self:
                    raise
        own = self._operands(site, g, asked, sums)
        functions, captured = self._functions()
        xs = (*site.xs, *own, *map(installed.tensor, captured))
        outs = emit(recursion, xs, functions, {"captured": len(captured)})
        if recording.get():
            for n in border([v.note for v in self.values], self.region):
                if is_inside(n, self.of.region) and n not in (*self.of.results, *self.of.kept):
                    self.of.kept.append(n)
                    self.of.types[n] = self.types[n]
            above = self._above(site, own)
            noted = [v.note is not None for v in self.values]
            self.note_outside(above, outs, noted, *self._parents(above))
        return self._totals(site, asked, outs)

    def _run(self) -> None:
        """The function's body pulled back."""
        of, before = self.of, self.of.reverse
        of.reverse = self
        ends, types = of.ends, of.end_types
        try:
            with Region() as back:
                back.pulls(of.region)
                self.leaves: list[Any] = []
                gs = [self._param(back, of.gives[i]) for i in self.live]
                kept = [self._param(back, STORE)] if self.takes_kept else []
                begun = [self._param(back, types[i]) for i in self.places]
                roots = [(of.values[i].note, g) for i, g in zip(self.live, gs, strict=True)]
                if kept:
                    roots += zip(of.kept, _taken(of, kept[0]), strict=True)
                sums: dict[Any, Value] = {}
                for i, s in zip(self.places, begun, strict=True):
                    if ends[i] == KEPT:
                        assert of.of is not None
                        sums.update(zip(of.of.kept, _taken(of.of, s), strict=True))
                    else:
                        sums.setdefault(ends[i], s)
                found = pull(
                    roots,
                    self._stops(ends),
                    retain=True,
                    create_graph=recording.get(),
                    sums=sums,
                )
                self.values = self._found(found, begun, sums)
        finally:
            of.reverse = before
        self.params = [*of.params, *gs, *kept, *begun]
        self.gives = tuple(types[i] for i in self.places)
        self.region, self.nodes = back, of.nodes | back.nodes
        self.types = of.types | back.types

    def _param(self, back: Region, type_: Any) -> Value:
        out = back.parameter(type_)
        leaf = Leaf() if recording.get() and type_.dtype.is_float else None
        if leaf is not None:
            out.note = leaf
            back.leaves.add(leaf)
        self.leaves.append(leaf)
        return out

    def _stops(self, ends: Sequence[Any]) -> list[Any]:
        stops = [ends[i] for i in self.places if ends[i] != KEPT]
        if isinstance(self.of, Reverse):  # what comes to values of that function stays there
            inner = self.of.of
            stops += [*inner.kept, *(e for e in inner.results if e is not None)]
        return stops

    def _found(self, found: dict[Any, Value], begun: Values, sums: dict[Any, Value]) -> list[Value]:
        """The new sums of the places; of two that are one value, the first has it all."""
        ends, out = self.of.ends, list[Value]()
        for i, s in zip(self.places, begun, strict=True):
            if ends[i] == KEPT:
                inner: Any = self.of.of
                out.append(put(neutral(STORE), *(found[e] for e in inner.kept)))
            else:
                out.append(found[ends[i]] if sums[ends[i]] is s else s)
        return out

    def call(
        self, site: Site, g: dict[Any, Value], wanted: Sequence[Any], sums: dict[Any, Value]
    ) -> dict[Any, Value]:
        """The sums after a call of the function inside of it."""
        ends = self.of.ends
        asked = [p for p in wanted if p is not None]
        live = sorted({*self.live, *(i for i in g if i != KEPT)})
        more = (i for i, link in enumerate(site.links) if ends[i] is not None and link in asked)
        places = sorted({*self.places, *more})
        kept = self.takes_kept or KEPT in g
        if (live, places, kept) != (self.live, self.places, self.takes_kept):
            self.live, self.places, self.takes_kept = live, places, kept
            raise _Wider(self)
        own = self._operands(site, g, asked, sums)
        gives = tuple(self.of.end_types[i] for i in places)
        attrs = {"name": self.name, "gives": gives, "site": site.number}
        outs = emit(call, [*site.xs, *own], (), attrs)
        if recording.get():
            above = self._above(site, own)
            self.note_inside(above, outs, *self._parents(above))
        return self._totals(site, asked, outs)

    def _operands(
        self, site: Site, g: dict[Any, Value], asked: Sequence[Any], sums: dict[Any, Value]
    ) -> list[Value]:
        """Cotangents, sums to go on from; a sum that is asked for twice goes on once."""
        left = {e: sums[e] for e in asked if e in sums}
        types = self.of.end_types
        begun = [
            left.pop(site.links[i]) if site.links[i] in left else neutral(types[i])
            for i in self.places
        ]
        slopes = [g[i] if i in g else neutral(self.of.gives[i]) for i in self.live]
        kept = [g[KEPT] if KEPT in g else neutral(STORE)] if self.takes_kept else []
        return [*slopes, *kept, *begun]

    def _totals(self, site: Site, asked: Sequence[Any], outs: Values) -> dict[Any, Value]:
        totals: dict[Any, Value] = {}
        for i, total in zip(self.places, outs, strict=True):
            e = site.links[i]
            if e in asked:
                totals[e] = totals[e] + total if e in totals else total
        return totals

    def _functions(self) -> tuple[tuple[Function, ...], list[Any]]:
        """It, those that it calls, and what they capture."""
        chain: list[Recurring] = [self]
        functions, captured = again(self.name, [self.piece])
        x: Recurring | None = self.of
        while x is not None:
            name = x.name
            if any(calls(f, name) for f in functions):
                chain.append(x)
                functions, captured = again(self.name, [one.piece for one in chain])
            x = x.of
        named = [
            Function(x.name, f.params, f.results) for x, f in zip(chain, functions, strict=True)
        ]
        return tuple(named), captured

    # when it is noted itself

    def _above(self, site: Site, own: Values) -> Site:
        """A call of it in place of one of the function."""
        own = [installed.tensor(x.data, x.note) for x in own]
        kept = None if site.note is None else Pick(site.note, KEPT)
        links = [*(x.note for x in own), *site.links, *site.results, kept]
        return Site(site.number, [*site.xs, *own], links)

    def _parents(self, above: Site) -> tuple[list[Any], dict[Any, Any]]:
        own = [x.type for x in above.xs[len(self.of.params) :]]
        types = [*own, *self.of.end_types, *self.of.gives, STORE]
        known = {e: t for e, t in zip(above.links, types, strict=True) if e is not None}
        return list(known), known


def _taken(of: Recurring, store: Value) -> list[Value]:
    """The sums of a call's own values out of what was kept of it."""
    entry = of.entry()
    zero = neutral(COUNT)
    return [get(store, zero, neutral(t), entry=entry, part=i) for i, t in enumerate(entry)]
