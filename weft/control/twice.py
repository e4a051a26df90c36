"""Gradients of gradients through loops.

A gradient that may be differentiated goes back through a loop by a plain loop, over stores of the
states that the loop has been in. Its own gradient goes forward through the steps again, and leaves
what it adds to values of a step in stores, one per value: further results of the loop, whose
cotangents go on there when the loop itself is pulled back, in the order in which the tape adds.

A value of the state is one thing at the end of a step and at the start of the next. So what is
added at the end of a step is handed on to the next one, that of the last step to the loop's
result, and what is added at the start of the first one to what the loop started from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft.autodiff.mode import no_grad, recording
from weft.autodiff.tape import Leaf, Pick, apart, pull
from weft.control.branches import (
    Piece,
    border,
    build_cond,
    first_order,
    is_inside,
    nodes_of,
    note,
)
from weft.control.growing import Put, go_on, puts, unnamed, with_last
from weft.control.host import again
from weft.control.listed import Listed
from weft.control.nodes import while_, while_grad
from weft.control.region import Region
from weft.control.store import COUNT, STORE, get, neutral, put, stores
from weft.control.walk import Made, Trail, Values, fetched, walking
from weft.errors import CaptureError
from weft.ops.define import Value, installed
from weft.ops.elementwise import equal, greater, less, minimum, where


class Loop:
    """A loop that was noted, as it is seen from inside: notes of its state's params (`leaves`), and
    where each is; to which notes each value of a step leads (`ends`).
    """

    def __init__(
        self, inits: Values, leaves: Sequence[Any], test: Piece, body: Piece, outs: Values
    ) -> None:
        self.inits, self.leaves, self.test, self.body, self.outs = inits, leaves, test, body, outs
        self.region, self.params, values = body
        self.values = [unnamed(v) for v in values]
        self.body = self.region, self.params, self.values
        self.place = {leaf: i for i, leaf in enumerate(leaves) if leaf is not None}
        self.ends = [self.frontier([v.note]) if v.note is not None else [] for v in self.values]
        self.results = [o.note for o in outs]  # as they are now: a variable may be given another
        inside = [v.note if is_inside(v.note, self.region) else None for v in self.values]
        #: notes of what is next a part of the state: which
        self.ended = {
            n: i for i, n in reversed(list(enumerate(inside))) if n is not None and self.results[i]
        }
        self.put: list[Put] = []  # what steps put into parts of the state
        self.note: Any = None
        self.types: dict[Any, Any] = {}  # of values of a step that have stores of cotangents

    def frontier(self, roots: Sequence[Any]) -> list[Any]:
        return border(roots, self.region)

    def live(self, given: Iterable[int], on_the_way: Iterable[Any] = ()) -> list[int]:
        """The parts of the state that have cotangents at some step, if these have one at the end,
        and these values one at some step.
        """
        stack = [*given]
        for e in on_the_way:
            stack += [self.place[x] for x in (e, *self.frontier([e])) if x in self.place]
        live: set[int] = set()
        while stack:
            i = stack.pop()
            if i not in live:
                live.add(i)
                stack += [self.place[e] for e in self.ends[i] if e in self.place]
        return sorted(live)


def _param(x: Value, region: Region) -> Value:
    """A param for a part of the state."""
    out = region.parameter(x.type)
    if recording.get() and x.type.dtype.is_float:
        out.note = Leaf()
        region.leaves.add(out.note)
    return out


def _piece(
    roots: Sequence[tuple[Any, Value]],
    stops: Sequence[Any],
    sums: dict[Any, Value],
    merged: dict[Any, Any],
    results: Callable[[dict[Any, Value]], list[Value]],
) -> Piece:
    """A step pulled back, one of two ways."""
    with Region() as region:
        found = pull(
            roots, [*stops, *merged], retain=True, create_graph=recording.get(), sums=sums,
            merged=merged,
        )  # fmt: skip
        return region, (), results(found)


def _of(found: dict[Any, Value], n: Any, type_: Any) -> Value:
    """The cotangent of a note, if there is one."""
    return found[n] if n in found else neutral(type_)


# the way back


def pull_again(
    loop: Loop,
    g: dict[Any, Value],
    wanted: Sequence[Any],
    sums: dict[Any, Value],
    parents: Sequence[Any],
    types: dict[Any, Any],
) -> dict[Any, Value]:
    """A loop pulled back so that it can be differentiated, or going on from what was left there
    when that was done: `g` has cotangents of results, and stores of those of values of a step.
    """
    rows = {e: s for e, s in g.items() if type(e) is not int}
    if rows:
        first_order(while_grad, "second derivatives")
    values, leaves, inits = loop.values, loop.leaves, loop.inits
    live = loop.live([i for i in g if type(i) is int], rows)
    ends = [leaves[i] for i in live]
    reach = {e for i in live for e in loop.ends[i]} | {x for e in rows for x in loop.frontier([e])}
    asked = {p for p in wanted if p is not None}
    inside = [p for p in parents if p in asked and p in reach]
    starts = {inits[i].note for i in live} - {None}
    groups = inside + [p for p in parents if p in asked and p in starts and p not in inside]
    if not groups:
        return {}
    begun = [sums[p] if p in sums else neutral(types[p]) for p in groups]
    put_ = puts(inits, loop.params, values, live)
    whole = {p.rows: leaves[p.rows] for p in put_}
    given = with_last(put_, g, loop.outs)
    gs = [given[i] if i in given else neutral(values[i].type) for i in live]
    functions, captured = again("while", [nodes_of(loop.test), nodes_of(loop.body)])
    first, second = functions
    trail = Trail(Made(first, second, (*inits, *map(installed.tensor, captured))))
    with Region() as back:
        back.pulls(loop.region)
        left = back.parameter(COUNT)
        own = [_param(x, back) for x in (*gs, *begun)]
        slopes, totals = own[: len(gs)], dict(zip(groups, own[len(gs) :], strict=True))
        with no_grad():
            at = left - 1
            is_first = equal(at, 0)
            fetches = fetched(loop.params, at, back)
            now = {e: get(s, at, neutral(loop.types[e])) for e, s in rows.items()}
        of = dict(zip(live, slopes, strict=True))
        roots = [(p.note, p.read(of[p.rows])) for p in put_ if p.state is None]
        roots += [(whole.get(i, values[i].note), x) for i, x in of.items()]
        roots += [(e, x) for e, x in now.items() if e not in loop.place]
        merged = {leaves[i]: inits[i].note for i in live if inits[i].note in groups}
        begun_here = {p: totals[p] for p in inside}
        begun_here |= {e: x for e, x in now.items() if e in loop.place}
        for p in put_:
            if p.state is not None:
                go_on(begun_here, leaves[p.state], p.before(of[p.rows], loop.params))

        def at_start(found: dict[Any, Value]) -> list[Value]:
            return [*(neutral(x.type) for x in slopes), *(found[p] for p in groups)]

        def later(found: dict[Any, Value]) -> list[Value]:
            over = [_of(found, e, x.type) for e, x in zip(ends, slopes, strict=True)]
            return [*over, *(found[p] if p in found else totals[p] for p in groups)]

        pieces = [
            _piece(roots, [*groups, *ends], totals, merged, at_start),
            _piece(roots, [*inside, *ends], begun_here, {}, later),
        ]
        outs = build_cond(is_first, pieces)
    back.nodes |= loop.region.nodes
    with Region() as check, no_grad():
        more = greater(left, 0)
    state, after = (left, *own), (at, *outs)
    made = walking(
        state,
        lambda: (trail.steps, *gs, *begun),
        fetches,
        (check.nodes, more),
        (back.nodes, after),
        trail.parts,
    )
    results = made.run()
    if recording.get():
        inputs = (trail.steps, *gs, *begun)
        _note_back(
            loop,
            trail,
            Trail(made),
            Loop(inputs, [x.note for x in state], (check, (), ()), (back, state, after), results),
        )
    with Region() as idle:
        none = dict(zip(groups, begun, strict=True))
        for i, x in zip(live, gs, strict=True):
            if inits[i].note in none:
                none[inits[i].note] = none[inits[i].note] + x
    ran = (Region(), (), results[1 + len(gs) :])
    out = build_cond(equal(trail.steps, 0), [(idle, (), list(none.values())), ran])
    return dict(zip(groups, out, strict=True))


def _note_back(loop: Loop, trail: Trail, own: Trail, back: Loop) -> None:
    """Note the way back through a loop, a loop itself."""
    known = {**loop.region.types, **back.region.types}
    loop.put = puts(loop.inits, loop.params, loop.values, range(len(loop.values)))
    appended = {p.note: p for p in reversed(loop.put) if p.note not in loop.ended}
    carried = {p.state: p for p in reversed(loop.put) if p.state is not None}
    reached = dict.fromkeys(e for found in back.ends for e in found if e not in back.place)
    parents: dict[Any, Any] = {}  # and their types
    for e in reached:
        part = loop.place.get(e, loop.ended.get(e))
        p = appended.get(e) if part is None else carried.get(part)
        if p is not None and loop.results[p.rows] is not None:
            parents[loop.results[p.rows]] = loop.outs[p.rows].type
        if e in loop.place:
            i = loop.place[e]
            parents[Pick(loop.note, e)] = STORE
            parents[loop.inits[i].note] = loop.inits[i].type
            loop.types[e] = loop.inits[i].type
        elif e in loop.ended:
            i = loop.ended[e]
            parents[Pick(loop.note, loop.leaves[i])] = STORE
            parents[loop.results[i]] = loop.outs[i].type
            loop.types[loop.leaves[i]] = loop.outs[i].type
        elif is_inside(e, loop.region):
            parents[Pick(loop.note, e)] = STORE
            loop.types[e] = known[e]
        else:
            parents[e] = known[e]
    for x in back.inits:
        parents[x.note] = x.type
    parents.pop(None, None)

    def pull_(_: Any, g: dict[int, Value], wanted: list[Any], sums: dict[Any, Value]) -> Any:
        first_order(while_grad, "second derivatives")
        with no_grad(), apart():
            return _forth(loop, trail, own, back, g, [p for p in parents if p in wanted], sums)

    noted = [v.note is not None for v in back.values]
    back.note = note(while_, back.outs, noted, list(parents), parents, pull_)


def _forth(
    loop: Loop,
    trail: Trail,
    own: Trail,
    back: Loop,
    g: dict[int, Value],
    asked: Sequence[Any],
    sums: dict[Any, Value],
) -> dict[Any, Value]:
    """The way back through a loop pulled back, which goes the loop's way."""
    live = back.live(g)
    reach = dict.fromkeys(e for i in live for e in back.ends[i] if e not in back.place)
    inner = [e for e in reach if e in loop.place or is_inside(e, loop.region)]
    parts = [loop.place.get(e, loop.ended.get(e)) for e in inner]
    handed = sorted({i for i in parts if i is not None})
    first = {loop.leaves[i]: loop.inits[i].note for i in handed if loop.inits[i].note in asked}
    ones = [p for p in asked if (p in reach and p not in inner) or p in first.values()]
    aside = [e for e in inner if e not in loop.place and e not in loop.ended]
    listed = Listed(loop, handed, aside, asked)
    rows = [e for e in (*(loop.leaves[i] for i in handed), *aside) if Pick(loop.note, e) in asked]
    rows = [e for e in rows if not listed.always(e)]
    wholes = list(listed.wholes.values())
    begun = {i: back.inits[i].note for i in live if back.inits[i].note is not None}
    holders = {n: i for i, n in reversed(begun.items()) if n not in ones}
    shared = len(holders) < len(begun)  # one tensor was the start of two
    if any(loop.place.get(loop.values[i].note) in handed for i in loop.live(handed)):
        raise CaptureError(
            "gradient of a loop's gradient",
            expected="variables that are computed in every step",
            got="one that takes another's value as it is",
            hint="write a = b.clone() instead of a = b, or run this function eagerly",
        )
    last = trail.steps - 1
    with Region() as forth:
        forth.pulls(loop.region)
        at = forth.parameter(COUNT)
        gs = [forth.parameter(back.values[i].type) for i in live]
        totals = {p: forth.parameter(_type(p, loop, back)) for p in ones}
        handed_on = {i: forth.parameter(loop.outs[i].type) for i in handed}
        kept = {e: forth.parameter(STORE) for e in rows}
        lists = listed.start(forth)
        is_first, is_last = equal(at, 0), equal(at, last)
        fetches = fetched(loop.params, at, forth)
        fetches += fetched(back.params, last - at, forth)
        ends, begin = {}, {}
        for i in handed:
            n = next((v for v, k in loop.ended.items() if k == i), None)
            row, out = sums.get(Pick(loop.note, loop.leaves[i])), sums.get(loop.results[i])
            none = neutral(loop.outs[i].type)
            next_row = none if row is None else get(row, minimum(at + 1, last), none)
            ends[i] = n, listed.end(i, where(is_last, none if out is None else out, next_row))
            if n is not None:
                begin[n] = ends[i][1]
        for e in aside:
            if Pick(loop.note, e) in sums:
                begin[e] = get(sums[Pick(loop.note, e)], at, neutral(loop.types[e]))
        listed.begin(begin)
        for n, i in holders.items():
            if n in sums and not shared:
                begin[back.leaves[i]] = where(is_last, sums[n], neutral(sums[n].type))
        roots = [(back.values[i].note, x) for i, x in zip(live, gs, strict=True)]
        stops = [*(back.leaves[i] for i in live), *ones, *inner]
        so_far = {loop.leaves[i]: x for i, x in handed_on.items()}

        def given(found: dict[Any, Value], starts: bool, joined: bool) -> list[Value]:
            slopes = []
            for i, x in zip(live, gs, strict=True):
                n = begun.get(i) if joined else None
                gone = n is not None and holders.get(n) != i
                slopes.append(_of({} if gone else found, n or back.leaves[i], x.type))
            over = [found.get(n, other) for n, other in ends.values()]
            here = {loop.leaves[i]: neutral(x.type) if starts else x for i, x in handed_on.items()}
            there = [
                here[e] if e in here and (starts or e not in found)
                else _of(found, e, loop.types[e])
                for e in rows
            ]  # fmt: skip
            there = [listed.apart(e, x, starts) for e, x in zip(rows, there, strict=True)]
            elements = listed.rows(found, begin, handed_on)
            return [*slopes, *(found[p] for p in ones), *over, *there, *elements]

        def step(joined: bool) -> tuple[Value, ...]:
            """What a step adds; `joined`, values of the state are what that was at first."""
            so = begin | totals
            same = {back.leaves[i]: n for i, n in begun.items()} if joined else {}
            so |= {n: sums[n] for n in holders if joined and n in sums}
            ends_at = [*stops, *same.values()]
            pieces = [
                _piece(roots, ends_at, so, same | first, lambda x: given(x, True, joined)),
                _piece(roots, ends_at, so | so_far, same, lambda x: given(x, False, joined)),
            ]
            return build_cond(is_first, pieces)

        if shared:
            with Region() as one:
                alike = step(True)
            with Region() as other:
                unlike = step(False)
            outs = build_cond(is_last, [(one, (), alike), (other, (), unlike)])
        else:
            outs = step(False)
        count = 1 + len(live) + len(totals) + len(handed)
        changed, elements = [at + 1, *outs][:count], outs[count - 1 + len(rows) :]
        new = [put(kept[e], x) for e, x in zip(rows, outs[count - 1 :], strict=False)]
        after = (*changed, *new, *listed.put(elements, is_first))
    forth.nodes |= back.region.nodes | loop.region.nodes
    with Region() as check:
        more = less(at, trail.steps)
    ahead = [(sums.get(loop.results[i]), loop.outs[i].type) for i in handed]
    inits = (
        neutral(COUNT),
        *(g[i] if i in g else neutral(x.type) for i, x in zip(live, gs, strict=True)),
        *(sums[p] if p in sums else neutral(x.type) for p, x in totals.items()),
        *(neutral(type_) if x is None else x for x, type_ in ahead),
        *stores(len(rows)),
        *(sums[n] if n in sums else neutral(x.type) for n, x in zip(wholes, lists, strict=True)),
    )
    split = len(loop.params)

    def supply(needed: list[int]) -> list[Value]:
        found = trail.more([j for j in needed if j < split])
        return found + own.more([j - split for j in needed if j >= split])

    results = list(
        walking(
            (at, *gs, *totals.values(), *handed_on.values(), *kept.values(), *lists),
            lambda: inits, fetches, (check.nodes, more), (forth.nodes, after), supply,
        ).run()
    )[1:]  # fmt: skip
    found: dict[Any, Value] = {}
    idle = equal(trail.steps, 0)
    for i, x in zip(live, results, strict=False):
        n = begun.get(i)
        if holders.get(n) == i:
            found[n] = where(idle, sums[n] if n in sums else neutral(x.type), x)
    results = results[len(live) :]
    found |= dict(zip(ones, results, strict=False))
    ended = dict(zip(handed, results[len(ones) :], strict=False))
    found |= {loop.results[i]: x for i, x in ended.items() if i not in listed.carried}
    names = (*(Pick(loop.note, e) for e in rows), *wholes)
    found |= dict(zip(names, results[len(ones) + len(handed) :], strict=True))
    listed.finish(found, ended, sums)
    return {p: x for p, x in found.items() if p in asked}


def _type(p: Any, loop: Loop, back: Loop) -> Any:
    types = {x.note: x.type for x in loop.inits}
    return types[p] if p in types else {**loop.region.types, **back.region.types}[p]
