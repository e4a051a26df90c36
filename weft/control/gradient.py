"""Backward through branches and loops.

A branch is pulled back by a branch of pullbacks, a loop by a loop that runs it again, keeps the
state of every step, and goes through the steps from the last to the first. Contributions to a value
from outside are added to its sum one by one, in the order in which the tape would have added them:
pullbacks take the sums so far and give the new ones. Where there is no sum yet they start from
-0.0, which changes no bit of what is added to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.autodiff.backward import constant
from weft.autodiff.mode import recording
from weft.autodiff.tape import Continued, Leaf, Note, Pick, next_serial, pull
from weft.control.host import again
from weft.control.nodes import cond, emit, while_grad
from weft.control.region import Region, close
from weft.errors import CaptureError
from weft.ir import Function, Node
from weft.ir.rewrite import replace
from weft.ops.define import Op, Value, as_node, capturing, installed

#: a piece of a program after its run: its region, its own params, what it gave
Piece = tuple[Region, Sequence[Value], Sequence[Value]]


def neutral(type_: Any) -> Value:
    """What a sum starts from."""
    return constant(-0.0, type_)


def frontier(roots: Sequence[Any], since: int) -> list[Any]:
    """The notes older than `since`, and leaves, that newer ones lead to."""
    found: dict[Any, None] = {}
    seen: set[Any] = set()
    stack = [r for r in reversed(roots) if r is not None]
    while stack:
        target = stack.pop()
        if target in seen:
            continue
        seen.add(target)
        n = target.note if isinstance(target, Pick) else target
        if isinstance(n, Leaf) or n.serial < since:
            found[target] = None
        else:
            stack.extend(p for p in reversed(n.parents) if p is not None)
    return list(found)


def note(
    op: Op,
    outs: Sequence[Value],
    noted: Sequence[bool],
    parents: Sequence[Any],
    types: dict[Any, Any],
    pull_: Callable[..., dict[Any, Value]],
) -> Note | None:
    """Note a call on the tape: `parents` are what it was computed from, as far as gradients go."""
    if not parents or not any(noted):
        return None
    if isinstance(capturing.now, Region):
        capturing.now.types.update({p: types[p] for p in parents})
    call = Continued(op, (float,) * len(parents), {})
    call.pull = pull_
    made = Note(
        call,
        tuple(parents),
        (None,) * len(parents),
        tuple(o.data for o in outs),
        next_serial[0](),
    )
    for i, (o, yes) in enumerate(zip(outs, noted, strict=True)):
        if yes:
            o.note = Pick(made, i)
    return made


def first_order(op: Op) -> None:
    if recording.get():
        raise CaptureError(
            f"gradient of {op.name}",
            expected="first derivatives",
            got="a gradient of a gradient through control flow on tensors",
            hint="run this function eagerly",
        )


# branches


def note_cond(
    pred: Value,
    pieces: Sequence[Piece],
    outs: Sequence[Value],
    args: Sequence[Value] = (),
    outer: Sequence[dict[Any, Any]] | None = None,
) -> None:
    """Note a branch whose pieces, run on `args`, gave `outs`. `outer` says of each piece which
    notes in it are others outside.
    """
    if not recording.get():
        return
    known = outer or [{} for _ in pieces]
    hidden: list[set[Any]] = [set() for _ in pieces]  # what gradients of the gradient lead to
    noted = [
        o.type.dtype.is_float and any(values[i].note is not None for _, _, values in pieces)
        for i, o in enumerate(outs)
    ]
    parents: dict[Any, None] = {}
    types: dict[Any, Any] = {}
    for (region, _, values), there in zip(pieces, known, strict=True):
        roots = [v.note for v, yes in zip(values, noted, strict=True) if yes]
        parents.update(dict.fromkeys(there.get(e, e) for e in frontier(roots, region.since)))
        inside = {**region.types, **{v.note: v.type for v in values if v.note is not None}}
        types.update(inside | {there[n]: t for n, t in inside.items() if n in there})

    def root(i: int, at: Any) -> Any:
        """The note that a cotangent of a result, or of something on the way, arrives at."""
        if type(at) is int:
            return pieces[i][2][at].note
        return at if at in hidden[i] else None

    def pull_(_: Any, g: dict[Any, Value], wanted: list[Any], sums: dict[Any, Value]) -> Any:
        every = range(len(pieces))
        roots = [[root(i, at) for at in g] for i in every]
        ends: set[Any] = set()
        for i in every:
            ends.update(known[i].get(e, e) for e in frontier(roots[i], pieces[i][0].since))
        groups = [p for p in wanted if p is not None and p in ends]
        started = [p for p in groups if p in sums]
        given = (*g.values(), *(sums[p] for p in started))
        made = [_back(pieces[i], roots[i], groups, started, given, known[i]) for i in every]
        totals, chosen = _settled(groups, given, [(b[1], found) for b, found, _ in made])
        if not chosen:
            return totals
        backs = [
            (back, params, [found[p] if p in found else neutral(types[p]) for p in chosen])
            for (back, params, _), found, _ in made
        ]
        functions, captured = again("cond_grad", [_nodes(back) for back in backs])
        inputs = (pred, *args, *given, *map(installed.tensor, captured))
        picked = emit(cond, inputs, tuple(functions), {})
        if recording.get():
            for i in every:
                _outside(pieces[i], backs[i], outs, made[i][2], n, hidden[i])
            note_cond(pred, backs, picked, (*args, *given), [there for _, _, there in made])
        return totals | {p: picked[i] for i, ps in enumerate(chosen.values()) for p in ps}

    n = note(cond, outs, noted, list(parents), types, pull_)


def _back(
    piece: Piece,
    roots: Sequence[Any],
    groups: Sequence[Any],
    started: Sequence[Any],
    given: Sequence[Value],
    outer: dict[Any, Any],
) -> tuple[Piece, dict[Any, Value], dict[Any, Any]]:
    """A piece pulled back, as one that takes its params and what is `given`: cotangents of `roots`,
    sums of the groups that have been `started`. Also what it gives, by group, and which notes in it
    are others outside.
    """
    region, params, _ = piece
    outer = dict(outer)
    with Region() as back:
        own = [_stand_in(x, back, outer) for x in given]
        found = pull(
            list(zip(roots, own[: len(roots)], strict=True)),
            [*groups, *outer],
            retain=True,
            create_graph=recording.get(),
            sums=dict(zip(started, own[len(roots) :], strict=True)),
            merged={inside: n for inside, n in outer.items() if n in groups},
        )
    back.nodes |= region.nodes
    return (back, (*params, *own), ()), {p: found[p] for p in groups if p in found}, outer


def _settled(
    groups: Sequence[Any],
    given: Sequence[Value],
    made: Sequence[tuple[Sequence[Value], dict[Any, Value]]],
) -> tuple[dict[Any, Value], dict[Any, list[Any]]]:
    """Of pieces pulled back (params, what they found): sums that are something `given` on every
    path, which goes past the branch, as it does in eager code; and the others, those that are one
    value on every path behind the first of them.
    """
    totals: dict[Any, Value] = {}
    first: dict[Any, Any] = {}
    chosen: dict[Any, list[Any]] = {}
    count = len(given)
    own = [{(x.data, x.note): i for i, x in enumerate(ps[len(ps) - count :])} for ps, _ in made]
    for p in groups:
        way = tuple([(f[p].data, f[p].note) if p in f else None for _, f in made])
        past = {stand_ins.get(w) for w, stand_ins in zip(way, own, strict=True)}  # type: ignore[arg-type]
        if not any(way):
            continue
        if len(past) == 1 and None not in past:
            totals[p] = given[past.pop()]  # type: ignore[index]
        else:
            chosen.setdefault(first.setdefault(way, p), []).append(p)
    return totals, chosen


def _stand_in(x: Value, region: Region, outer: dict[Any, Any]) -> Value:
    """A param of a piece for a value outside."""
    out = region.parameter(x.type)
    if recording.get() and x.note is not None:
        out.note = Leaf()
        region.leaves.add(out.note)
        outer[out.note] = x.note
    return out


def _outside(
    piece: Piece,
    back: Piece,
    outs: Sequence[Value],
    outer: dict[Any, Any],
    n: Note | None,
    hidden: set[Any],
) -> None:
    """Add to `outer` what a piece pulled back reads of the piece: its results, and what it computed
    on the way, which are `hidden` results of its note.
    """
    region, _, values = piece
    for v, o in zip(values, outs, strict=True):
        if o.note is not None and _is_inside(v.note, region):
            outer.setdefault(v.note, o.note)
    for e in frontier([v.note for v in back[2]], back[0].since):
        if e not in outer and _is_inside(e, region):
            outer[e] = Pick(n, e)  # type: ignore[arg-type]
            hidden.add(e)


def _is_inside(n: Any, region: Region) -> bool:
    """Whether a note was made in a region."""
    return n is not None and n.serial >= region.since


Pulled = tuple[set[Node], list[Node], list[Node]]


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
) -> Pulled:
    """A piece pulled back: params, cotangents, sums -> cotangents of `ends`, sums of `groups`."""
    with Region() as back:
        gs = [back.parameter(t) for t in slopes]
        ss = [back.parameter(t) for t in sums]
        found = pull(
            [(values[i].note, g) for i, g in zip(positions, gs, strict=True)],
            [*ends, *groups, *(merged or ())],
            retain=True,
            sums=dict(zip(groups, ss, strict=True)),
            merged=merged,
        )
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
    ends = [frontier([v.note], region.since) if v.note is not None else [] for v in values]
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

    def pull_(_: Any, g: dict[int, Value], wanted: list[Any], sums: dict[Any, Value]) -> Any:
        first_order(while_grad)
        live = _live(list(g), ends, place)
        asked = {p for p in wanted if p is not None}
        inside = [p for p in asked if any(p in ends[i] for i in live)]
        inside.sort(key=list(parents).index)
        starts = {inits[i].note for i in live} - {None}
        groups = inside + [p for p in parents if p in asked and p in starts and p not in inside]
        if not groups:
            return {}
        begun = [sums[p] if p in sums else neutral(types[p]) for p in groups]
        gs = [g[i] if i in g else neutral(values[i].type) for i in live]
        slopes, totals = [x.type for x in gs], [s.type for s in begun]
        step = _pulled(
            region, values, live, inside, slopes, totals[: len(inside)], params=params,
            ends=[leaves[i] for i in live], end_types=slopes,
        )  # fmt: skip
        merged = {leaves[i]: inits[i].note for i in live if inits[i].note in groups}
        last = _pulled(region, values, live, groups, slopes, totals, params=params, merged=merged)
        none = _skipped(live, inits, groups, slopes, totals)
        first, second = _nodes(test), _nodes(body)
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

    note(while_grad, outs, noted, list(parents), types, pull_)


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


def _nodes(piece: Piece) -> Pulled:
    region, params, values = piece
    return region.nodes, [p.data for p in params], [as_node(v) for v in values]


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
