"""Backward through branches and loops.

A branch is pulled back by a branch of pullbacks, a loop by a loop that runs it again, keeps the
state of every step, and goes through the steps from the last to the first. Contributions to a value
from outside are added to its sum one by one, in the order in which the tape would have added them:
pullbacks take the sums so far and give the new ones. Where there is no sum yet they start from
-0.0, which changes no bit of what is added to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.autodiff.mode import recording
from weft.autodiff.tape import apart, pull
from weft.control.branches import Piece, Pulled, border, nodes_of, note
from weft.control.growing import Last, Put, go_on, lasts, puts, reads, with_last
from weft.control.host import again
from weft.control.nodes import emit, while_grad
from weft.control.region import Region, close
from weft.control.store import neutral
from weft.control.twice import Loop, pull_again
from weft.ir import Function, Node
from weft.ir.rewrite import replace
from weft.ops.define import Value, as_node, installed


def _pulled(
    region: Region,
    values: Sequence[Value],
    positions: Sequence[int],
    groups: Sequence[Any],
    slopes: Sequence[Any],
    sums: Sequence[Any],
    *,
    params: Sequence[Value] = (),
    ends: Sequence[Any] = (),
    end_types: Sequence[Any] = (),
    merged: dict[Any, Any] | None = None,
    put: Sequence[Put] = (),
    leaves: Sequence[Any] = (),
    last: Sequence[Last] = (),
) -> Pulled:
    """A piece pulled back: params, cotangents, sums -> cotangents of `ends`, sums of `groups`.
    `put`: what it puts into parts of the state whose notes are among `leaves`; `last`: which of
    these are the last elements of others.
    """
    with Region() as back:
        gs = [back.parameter(t) for t in slopes]
        ss = [back.parameter(t) for t in sums]
        of = dict(zip(positions, gs, strict=True))
        whole = {p.rows: leaves[p.rows] for p in put}
        first = [(p.note, p.read(of[p.rows])) for p in put if p.state is None]
        begun = dict(zip(groups, ss, strict=True))
        for p in put if ends else ():
            if p.state is not None:
                go_on(begun, leaves[p.state], p.before(of[p.rows], params))
        roots = first + [(whole.get(i, values[i].note), g) for i, g in of.items()]
        single = reads([n for n, _ in roots], groups, region.since)
        begun.update({r.note: r.sum(begun[r.whole]) for r in single})
        wholes = {p.rows: (merged or {}).get(leaves[p.rows], leaves[p.rows]) for p in last}
        parts = {leaves[p.state]: p.note(wholes[p.rows], params) for p in last}
        found = pull(
            roots,
            [*ends, *groups, *(merged or ()), *(r.note for r in single)],
            retain=True,
            sums=begun,
            merged={**(merged or {}), **parts} if parts else merged,
        )
        found.update({r.whole: r.put(found[r.whole], found[r.note]) for r in single})
        out = [found[e] if e in found else neutral(t) for e, t in zip(ends, end_types, strict=True)]
        nodes = [as_node(x) for x in (*out, *(found[p] for p in groups))]
    inputs = [x.data for x in (*params, *gs, *ss)]
    return region.nodes | back.nodes, inputs, nodes


# loops


def note_while(
    inits: Sequence[Value],
    leaves: Sequence[Any],
    test: Piece,
    body: Piece,
    outs: Sequence[Value],
    checkpoint: int,
) -> None:
    """Note a loop. `leaves`: the notes of the state's params inside it, None where not floating.
    `checkpoint`: of how many steps the state is kept at most, 0 for all.
    """
    if not recording.get():
        return
    end = installed.tensor(outs[0].data)
    region, params, values = body
    count = len(inits)
    place = {leaf: i for i, leaf in enumerate(leaves) if leaf is not None}
    ends = [border([v.note], region) if v.note is not None else [] for v in values]
    noted = [x.note is not None for x in inits]
    changed = True
    while changed:
        now = [
            was
            or (
                leaves[i] is not None
                and any(noted[place[e]] if e in place else True for e in ends[i])
            )
            for i, was in enumerate(noted)
        ]
        changed, noted = now != noted, now
    noted = [yes and leaf is not None for yes, leaf in zip(noted, leaves, strict=True)]
    parents = dict.fromkeys(e for i in range(count) if noted[i] for e in ends[i] if e not in place)
    types = {**region.types, **{v.note: v.type for v in values if v.note is not None}}
    for x, yes in zip(inits, noted, strict=True):
        if yes and x.note is not None:
            parents[x.note] = None
            types[x.note] = x.type

    def pull_(_: Any, g: dict[Any, Value], wanted: list[Any], sums: dict[Any, Value]) -> Any:
        if recording.get() or any(type(at) is not int for at in g):
            with apart():
                return pull_again(loop, g, wanted, sums, list(parents), types)
        live = _live(list(g), ends, place)
        asked = {p for p in wanted if p is not None}
        inside = [p for p in asked if any(p in ends[i] for i in live)]
        inside.sort(key=list(parents).index)
        starts = {inits[i].note for i in live} - {None}
        groups = inside + [p for p in parents if p in asked and p in starts and p not in inside]
        if not groups:
            return {}
        begun = [sums[p] if p in sums else neutral(types[p]) for p in groups]
        put = puts(inits, params, values, live)
        known = {p.state for p in put}
        last_ = [p for p in lasts(inits, values, live) if p.state not in known]
        given = with_last(put, g, outs)
        gs = [given[i] if i in given else neutral(values[i].type) for i in live]
        slopes, totals = [x.type for x in gs], [s.type for s in begun]
        step = _pulled(
            region, values, live, inside, slopes, totals[: len(inside)], params=params,
            ends=[leaves[i] for i in live], end_types=slopes, put=put, leaves=leaves,
            last=last_,
        )  # fmt: skip
        merged = {leaves[i]: inits[i].note for i in live if inits[i].note in groups}
        last = _pulled(
            region, values, live, groups, slopes, totals, params=params,
            merged=merged, put=put, leaves=leaves, last=[p for p in last_ if p.starts],
        )  # fmt: skip
        none = _skipped(live, inits, groups, slopes, totals)
        first, second = nodes_of(test), nodes_of(body)
        functions, captured = again("while_grad", [first, second, step, last])
        kept, needed = without(functions, count)
        regions = (*needed, close("while_grad", [none])[0][0])
        inputs = (*(inits[i] for i in kept), *gs, *begun, *map(installed.tensor, captured))
        attrs = {
            "state": len(kept), "slopes": len(live), "inner": tuple(range(len(inside))),
            "kept": kept, "checkpoint": checkpoint,
        }  # fmt: skip
        totals_ = emit(while_grad, (*inputs, end), regions, attrs)
        return dict(zip(groups, totals_, strict=True))

    n = note(while_grad, outs, noted, list(parents), types, pull_)
    with apart():
        loop = Loop(inits, leaves, test, body, outs)
    loop.note = n


def without(
    functions: Sequence[Function], count: int
) -> tuple[tuple[int, ...], tuple[Function, ...]]:
    """Test, body, step and last of a reverse without what they need not know of the `count` parts
    of the state; which they do.
    """
    test, body, step, last = functions
    needed: set[int] = set()
    stack = [i for f in (test, step, last) for i in _read(f, f.results, count)]
    while stack:
        i = stack.pop()
        if i not in needed:
            needed.add(i)
            stack.extend(_read(body, body.results[i : i + 1], count))
    kept = tuple(sorted(needed or {0}))
    results = tuple(body.results[i] for i in kept)
    body = Function(body.name, body.params, results)
    return kept, tuple(_fewer(f, kept, count) for f in (test, body, step, last))


def _read(f: Function, results: Sequence[Node], count: int) -> list[int]:
    """Which of its first params some results of a function are computed from."""
    order = Function(f.name, f.params, tuple(results)).order
    used = {i for n in order for i in n.inputs} | set(results)
    return [i for i, p in enumerate(f.params[:count]) if p in used]


def _fewer(f: Function, kept: Sequence[int], count: int) -> Function:
    """A function without some of its first params, which it does not read."""
    params = (*(f.params[i] for i in kept), *f.params[count:])
    stands: dict[Node, Node] = {
        p: Node(p.op, (), (("position", i), ("type", p.type)), p.type, p.loc)
        for i, p in enumerate(params)
    }
    if len(params) == len(f.params):
        return f
    moved = replace(Function(f.name, params, f.results), stands)
    return Function(f.name, tuple(stands.values()), moved.results)


def _live(given: list[int], ends: Sequence[list[Any]], place: dict[Any, int]) -> list[int]:
    """The parts of the state that have cotangents at some step, if these have one at the end."""
    live = set(given)
    stack = list(given)
    while stack:
        for e in ends[stack.pop()]:
            if e in place and place[e] not in live:
                live.add(place[e])
                stack.append(place[e])
    return sorted(live)


def _skipped(
    live: list[int], inits: Sequence[Value], groups: list[Any], slopes: Any, totals: Any
) -> Pulled:
    """A loop that ran no step: cotangents of the end are those of the start."""
    with Region() as back:
        gs = [back.parameter(t) for t in slopes]
        ss = [back.parameter(t) for t in totals]
        out = dict(zip(groups, ss, strict=True))
        for i, g in zip(live, gs, strict=True):
            if inits[i].note in out:
                out[inits[i].note] = out[inits[i].note] + g
        nodes = [as_node(out[p]) for p in groups]
    return back.nodes, [x.data for x in (*gs, *ss)], nodes
