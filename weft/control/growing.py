"""Backward through the rows that a loop puts behind each other.

Rows that every step puts into a tensor of the loop's state are read by nobody before the loop is
over, unless by what is computed of the tensor. So the tensor's cotangent is the same at every step,
and that of what a step has put is its rows of it: the first contribution, since what reads the rows
is newer than what else the steps compute. Where the value is also a part of the state, the rest of
its contributions come of the next step, whose sum goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from weft.autodiff.backward import constant as constant_of
from weft.autodiff.mode import no_grad, recording
from weft.autodiff.tape import Leaf, Note, Part, Pick, Row, next_serial
from weft.buffer import Buffer
from weft.buffer.interchange import read_number
from weft.control.region import Region
from weft.ir import Function, Node
from weft.ops.creation import full
from weft.ops.define import Call, Value, capturing, constant, data_of, installed
from weft.ops.elementwise import add, astype, where
from weft.ops.growing import get_rows, many, put_rows
from weft.ops.joining import concat
from weft.ops.movement import reshape
from weft.types import Shape, TensorType
from weft.types.dtype import int64
from weft.types.record import dataclass


@dataclass(frozen=True, eq=False)
class Put:
    """A value that a step puts into a part of the state: always, or as a flag says."""

    rows: int  # the part of the state
    place: int  # the part that counts the rows
    at: Any  # where the value's rows begin; outside, if it was not put
    behind: Any  # of those that every step puts, how many are before
    total: Any  # and how many there are
    sizes: Shape  # of the value's rows, as `get_rows` has them
    note: Any
    state: int | None  # the part of the state that it is too
    spot: int | None  # the part that says where its rows begin, -1 where it is not put

    @property
    def always(self) -> bool:
        """Whether every step puts it."""
        return self.at.op is not where

    def here(self) -> Value:
        """Where the value's rows begin."""
        return installed.tensor(self.at) + self.behind  # type: ignore[no-any-return]

    def last(self, state: Sequence[Value]) -> Value:
        """Where those of the step before begin, as the state then says."""
        if self.spot is not None:
            return installed.tensor(data_of(state[self.spot]))
        count = installed.tensor(data_of(state[self.place]))
        return count + (self.behind - self.total)  # type: ignore[no-any-return]

    def read(self, cotangent: Value) -> Value:
        """The value's cotangent out of that of all rows."""
        return get_rows(cotangent, self.here(), sizes=self.sizes)  # type: ignore[no-any-return]

    def before(self, cotangent: Value, state: Sequence[Value]) -> Value:
        """The same of the step before."""
        return get_rows(cotangent, self.last(state), sizes=self.sizes)  # type: ignore[no-any-return]


def element(rows: Value, at: Value, made: Value | None = None) -> Value:
    """An element of a list, a row of what a loop has put together: in eager code it is a value of
    its own. `made`: it itself, where it is known by another name.
    """
    with no_grad():
        out: Value = get_rows(rows, at, sizes=()) if made is None else made
    if rows.note is None or not rows.type.dtype.is_float:
        return installed.tensor(out.data)
    return installed.tensor(out.data, _part(rows.type, rows.note, data_of(rows), at, out))


def _part(type_: TensorType, whole: Any, data: Any, at: Value, out: Value) -> Note:
    """The note of a row of a tensor of this type, note and data."""
    call = Part(get_rows, (type_, at.type), {"sizes": ()}, out.type)
    call.widen = lambda g: put_rows(constant_of(-0.0, type_), at, g)
    call.read = lambda s: get_rows(s, at, sizes=())
    call.put = lambda s, total: put_rows(s, at, total)
    call.was = None
    return Note(call, (whole, None), (data, data_of(at)), out.data, next_serial[0]())


def name(x: Value, rows: Value, at: Value) -> None:
    """Let a value that has become an element of a list be that from here on, whatever name it is
    used by: contributions go to the element's sum. What is not of this piece stays what it is.
    """
    now = capturing.now
    if not isinstance(now, Region) or x.note is None or isinstance(x.note, Leaf):
        return
    if x.note.serial < now.since:
        return
    if rows.note is None or not recording.get() or not rows.type.dtype.is_float:
        return
    note, x.note = x.note, element(rows, at, x).note
    x.note.call.was = note


def unnamed(x: Value) -> Value:
    """The value as it was before it became an element."""
    was = getattr(x.note.call, "was", None) if x.note.__class__ is Note else None
    return x if was is None else unnamed(installed.tensor(data_of(x), was))


@dataclass(frozen=True, eq=False)
class Last:
    """A part of the state that is the last element of a list, of rows that are another part."""

    state: int
    rows: int
    place: int  # the part that counts the rows
    starts: bool  # whether it is before the first step, too

    def at(self, state: Sequence[Value]) -> Value:
        """Where its row is."""
        return installed.tensor(data_of(state[self.place])) - 1

    def note(self, whole: Any, state: Sequence[Value]) -> Note:
        """The element's, where the rows have this note."""
        rows, x = state[self.rows], state[self.state]
        return _part(rows.type, whole, data_of(rows), self.at(state), x)


def lasts(inits: Sequence[Value], values: Sequence[Value], live: Sequence[int]) -> list[Last]:
    """The parts of the state that each step leaves as the last elements of lists."""
    counts = [j for j, v in enumerate(values) if data_of(v).op is add]
    found = {
        i: (r, j)
        for i in live
        for r in live
        for j in counts
        if i != r and _is_last(values[i], values[r], values[j])
    }
    return [Last(i, r, j, _is_last(inits[i], inits[r], inits[j])) for i, (r, j) in found.items()]


def _is_next(count: Any, at: Any) -> bool:
    return (
        count.op is add
        and count.inputs[0] is at
        and count.inputs[1].op is constant
        and count.inputs[1].attr("value") == 1
    )


def _is_last(x: Value, rows: Value, count: Value) -> bool:
    n = data_of(rows)
    if n.op is not put_rows or not _is_next(data_of(count), n.inputs[1]):
        return False
    return len(n.inputs) == 3 and n.inputs[2] is data_of(x)


def behind(rows: Value, parts: Sequence[Value]) -> Value:
    """`rows`, which are these elements and runs of them behind each other."""
    if not rows.type.dtype.is_float or all(p.note is None for p in parts):
        return rows
    call = Row(concat, tuple([p.type for p in parts]), {"axis": 0}, rows.type)
    split: list[Any] = []
    start: Any = 0
    for p in parts:
        at, n = full(start, shape=(), dtype=int64), many(rows.type, p.type)
        sizes = () if p.type.ndim < rows.type.ndim else (n,)
        split.append(lambda g, at=at, sizes=sizes: get_rows(g, at, sizes=sizes))
        start = start + n
    call.split, call.join = split, partial(_joined, rows.type, [p.type for p in parts])
    note = Note(call, tuple([p.note for p in parts]), (), rows.data, next_serial[0]())
    return installed.tensor(rows.data, note)


def _joined(whole: Any, types: Sequence[Any], sums: Sequence[Value | None]) -> Value:
    missing = constant_of(-0.0, whole)
    parts = [constant_of(-0.0, t) if s is None else s for t, s in zip(types, sums, strict=True)]
    return put_rows(missing, full(0, shape=(), dtype=int64), *parts)  # type: ignore[no-any-return]


def together(rows: Value) -> Value:
    """All elements of a list as one tensor: in eager code it is a value of its own."""
    if rows.note is None:
        return rows
    call = Call(reshape, (rows.type,), {"shape": rows.type.shape}, rows.type)
    out = installed.tensor(rows.data)
    installed.note(call, (rows,), (out,))
    return out


def tie(
    inits: Sequence[Value],
    params: Sequence[Value],
    values: Sequence[Value],
    outs: Sequence[Value],
) -> None:
    """Let what the last step has put and left in the state be the list's element, of one sum."""
    put = puts(inits, params, values, range(len(outs)))
    for p in put:
        if p.state is None or p.spot is not None or p.sizes:
            continue
        if outs[p.rows].note is not None:
            o = outs[p.state]
            o.note = element(outs[p.rows], p.last(outs), o).note
    known = {p.state for p in put}
    for q in lasts(inits, values, range(len(outs))):
        if q.state not in known and outs[q.rows].note is not None:
            o = outs[q.state]
            o.note = element(outs[q.rows], q.at(outs), o).note


def go_on(sums: dict[Any, Value], target: Any, g: Value) -> None:
    """Another contribution to a sum."""
    sums[target] = sums[target] + g if target in sums else g


def with_last(put: Sequence[Put], g: dict[Any, Value], outs: Sequence[Value]) -> dict[Any, Value]:
    """Cotangents of a loop's results: what the last step has put and left in the state is one."""
    given = dict(g)
    for p in put:
        if p.state is not None and p.rows in g:
            row = p.before(g[p.rows], outs)
            given[p.state] = row + given[p.state] if p.state in given else row
    return given


def puts(
    inits: Sequence[Value], params: Sequence[Value], values: Sequence[Value], live: Sequence[int]
) -> list[Put]:
    """What steps put into parts of the state that have cotangents, and read nothing of."""
    out: list[Put] = []
    counts = {p.data: i for i, p in enumerate(params)}
    nodes = tuple([data_of(v) for v in values])
    for i in live:
        calls = _calls(values[i], params[i])
        if not calls or inits[i].note is not None or _is_read(i, calls, params, nodes):
            continue
        first = calls[0][0].inputs[1]
        place = counts.get(first.inputs[1] if first.op is where else first)
        if place is None or not _is_behind(calls, params[place].data, data_of(values[place])):
            continue
        always = len(calls) == 1 and first.op is not where
        for n, note in calls:
            total: Any = sum(many(n.type, v.type) for v in n.inputs[2:])
            behind: Any = 0
            for v, parent in zip(n.inputs[2:], note.parents[2:], strict=True):
                at = n.inputs[1]
                states = (j for j in live if j != i and data_of(values[j]) is v)
                spots = (j for j, x in enumerate(values) if data_of(x) is at)
                spot = None if always or behind else next(spots, None)
                state = next(states, None) if always or spot is not None else None
                sizes = v.type.shape[: v.type.ndim + 1 - n.type.ndim]
                out.append(Put(i, place, at, behind, total, sizes, parent, state, spot))
                behind = behind + many(n.type, v.type)
    return out


def spots(inits: Sequence[Value], params: Sequence[Value], values: Sequence[Value]) -> list[Any]:
    """Where values are put, if they are, that are parts of the state too."""
    nodes = [data_of(v) for v in values]
    found = puts(inits, params, values, range(len(values)))
    put = [p for p in found if p.spot is None and p.state is None and not p.sizes]
    carried = {v.note for v in values if v.note is not None}
    return [p.at for p in put if p.note in carried and p.at not in nodes]


def _calls(value: Value, param: Value) -> list[Any]:
    """The calls that make a part of the state from what it was, each with its note."""
    n, note, out = data_of(value), value.note, []
    while n.op is put_rows:
        if note is None or note.call.op is not put_rows:
            return []
        out.append((n, note))
        n, note = n.inputs[0], note.parents[0]
    return out[::-1] if n is param.data else []


def _is_read(i: int, calls: list[Any], params: Sequence[Value], nodes: tuple[Node, ...]) -> bool:
    """Whether a step does anything else with the rows than to put others behind them."""
    own = [n for n, _ in calls]
    rows = {params[i].data, *own}
    body = Function("body", tuple([p.data for p in params]), nodes)
    elsewhere = (n for n in body.order if n not in own)
    return any(x in rows for n in elsewhere for x in n.inputs) or any(
        n in rows for j, n in enumerate(nodes) if j != i
    )


def _is_behind(calls: list[Any], count: Any, end: Any) -> bool:
    """Whether each call puts its rows right behind those that there are: none is written twice."""
    for k, (n, _) in enumerate(calls):
        at = n.inputs[1]
        after = calls[k + 1][0].inputs[1] if k + 1 < len(calls) else end
        after = after.inputs[1] if after.op is where else after
        if after.op is not add or after.inputs[0] is not count:
            return False
        by = after.inputs[1]
        if at.op is where:
            missing = at.inputs[2]
            last = missing.op is constant and isinstance(missing.attr("value"), Buffer)
            if not last or read_number(missing.attr("value")) != -1 or at.inputs[1] is not count:
                return False
            if by.op is not astype or by.inputs[0] is not at.inputs[0] or len(n.inputs) != 3:
                return False
            if n.inputs[2].type.ndim == n.type.ndim:
                return False
        else:
            total: Any = sum(many(n.type, v.type) for v in n.inputs[2:])
            if at is not count or by.op is not constant or by.attr("value") != total:
                return False
        count = after
    return True


@dataclass(frozen=True, eq=False)
class Read:
    """An element of a list that a piece reads, and reads nothing else of: contributions go on from
    the element's own sum, as if it stood in the tape itself.
    """

    whole: Any  # the note of the tensor whose rows the elements are
    note: Any  # of the element
    at: Any

    def sum(self, sums: Value) -> Value:
        """The element's, of the sums of all."""
        return get_rows(sums, installed.tensor(self.at), sizes=())  # type: ignore[no-any-return]

    def put(self, sums: Value, total: Value) -> Value:
        """The sums of all with the element's."""
        return put_rows(sums, installed.tensor(self.at), total)  # type: ignore[no-any-return]


def reads(roots: Sequence[Any], groups: Sequence[Any], since: int) -> list[Read]:
    """The groups of which a piece reads one element, known by the notes of what it gives."""
    found: dict[Any, list[Any]] = {}
    seen: set[Any] = set()
    stack = [r for r in roots if r is not None]
    wanted = set(groups)
    while stack:
        target = stack.pop()
        n = target.note if isinstance(target, Pick) else target
        if n in seen or isinstance(n, Leaf) or n.serial < since:
            continue
        seen.add(n)
        for p in n.parents:
            if p in wanted:
                found.setdefault(p, []).append(n)
            if p is not None:
                stack.append(p)
    return [
        Read(g, n, n.saved[1])
        for g, (n, *more) in found.items()
        if not more and n.call.op is get_rows and not n.call.attrs["sizes"]
    ]
