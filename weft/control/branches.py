"""Backward through branches: see `weft.control.gradient`.

What a path computed on the way is a further result of the branch to gradients of gradients: its
cotangent goes on there, in the order in which the tape would have added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.autodiff.mode import recording
from weft.autodiff.tape import Continued, Leaf, Note, Pick, frontier, next_serial, pull
from weft.control.host import again
from weft.control.nodes import cond, emit
from weft.control.region import Region, close
from weft.control.store import neutral
from weft.errors import CaptureError
from weft.ir import Node
from weft.ops.define import Op, Value, as_node, capturing, installed

#: a piece of a program after its run: its region, its own params, what it gave
Piece = tuple[Region, Sequence[Value], Sequence[Value]]
#: its nodes, params and results
Pulled = tuple[set[Node], list[Node], list[Node]]


def build_cond(pred: Value, pieces: Sequence[Piece]) -> tuple[Value, ...]:
    """The values that one of two pieces gives."""
    functions, captured = close(
        "cond", [(r.nodes, [], [as_node(v) for v in values]) for r, _, values in pieces]
    )
    inputs = (pred, *map(installed.tensor, captured))
    outs = emit(cond, inputs, tuple(functions), {})
    note_cond(pred, pieces, outs)
    return outs


def border(roots: Sequence[Any], region: Region) -> list[Any]:
    """The notes older than a region's, and leaves, that its own lead to. Elements of a list that a
    piece reads which the region pulls back are the list's.
    """
    return frontier(roots, region.since, region.origin, region.types)


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
    call.owes = False
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


def first_order(op: Op, most: str = "first derivatives") -> None:
    if recording.get():
        raise CaptureError(
            f"gradient of {op.name}",
            expected=most,
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
        parents.update(dict.fromkeys(there.get(e, e) for e in border(roots, region)))
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
            ends.update(known[i].get(e, e) for e in border(roots[i], pieces[i][0]))
        groups = [p for p in wanted if p is not None and p in ends]
        started = [p for p in groups if p in sums]
        given = (*g.values(), *(sums[p] for p in started))
        made = [_back(pieces[i], roots[i], groups, started, given, known[i]) for i in every]
        totals, chosen = _settled(groups, given, [(b[1], found) for b, found, _ in made])
        if not chosen:
            return totals
        of = {p: v.type for _, found, _ in made for p, v in found.items()} | types
        backs = [
            (back, params, [found[p] if p in found else neutral(of[p]) for p in chosen])
            for (back, params, _), found, _ in made
        ]
        functions, captured = again("cond_grad", [nodes_of(back) for back in backs])
        inputs = (pred, *args, *given, *map(installed.tensor, captured))
        picked = emit(cond, inputs, tuple(functions), {})
        if recording.get():
            for i in every:
                _outside(pieces[i], backs[i], results, made[i][2], n, hidden[i])
            note_cond(pred, backs, picked, (*args, *given), [there for _, _, there in made])
        return totals | {p: picked[i] for i, ps in enumerate(chosen.values()) for p in ps}

    n = note(cond, outs, noted, list(parents), types, pull_)
    results = [o.note for o in outs]  # as they are now: a variable may be given another


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
        back.pulls(region)
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
    results: Sequence[Any],
    outer: dict[Any, Any],
    n: Note | None,
    hidden: set[Any],
) -> None:
    """Add to `outer` what a piece pulled back reads of the piece: its results, and what it computed
    on the way, which are `hidden` results of its note.
    """
    region, _, values = piece
    for v, given in zip(values, results, strict=True):
        if given is not None and is_inside(v.note, region):
            outer.setdefault(v.note, given)
    for e in border([v.note for v in back[2]], back[0]):
        if e not in outer and is_inside(e, region):
            outer[e] = Pick(n, e)  # type: ignore[arg-type]
            hidden.add(e)


def is_inside(n: Any, region: Region) -> bool:
    """Whether a note was made in a region."""
    return n is not None and n.serial >= region.since


def nodes_of(piece: Piece) -> Pulled:
    region, params, values = piece
    return region.nodes, [p.data for p in params], [as_node(v) for v in values]
