"""Reductions of elements that lie apart, for any nest of kept and reduced axes.

In order: a few positions advance together, so that one's addition hides the other's latency. Dealt
to lanes: a chunk's values are put side by side in stack memory first, by vectors where the
innermost axis allows ("staged"), and then added as a row is.
"""

from __future__ import annotations

from weft.codegen.reduce_frame import Frame, Span, spans, unravel
from weft.codegen.reduce_monoid import Lanes, State, group_of, read, upto
from weft.codegen.registers import memory, register
from weft.codegen.text import Value, Variable, i64
from weft.schedule.reduce_spec import CHUNK, LANES, TOGETHER


def chains(f: Frame) -> None:
    if f.spec.lanes == 1:
        _in_order(f)
    else:
        _dealt(f, group=1)


def staged(f: Frame) -> None:
    _dealt(f, f.group)


def _in_order(f: Frame) -> None:
    t, n = f.t, len(f.inputs)
    totals = [[t.variable(s) for s in f.monoid.start(1)] for _ in range(TOGETHER)]
    parts = [[t.variable(s) for s in f.monoid.start(1)] for _ in range(TOGETHER)]
    with f.task() as (low, high, begin, end, shift, _), t.loop(low, high, TOGETHER) as p:
        last = t.sub(high, 1)
        places = [unravel(t, t.min(t.add(p, q), last), f.kept, n + 1)[1] for q in range(TOGETHER)]
        bases = [[f.element(i, place[i]) for i in range(n)] for place in places]
        for total in totals:
            _set(total, f.monoid.start(1))
        with t.loop(begin, end, f.words["chunk"]) as start:
            for part in parts:
                _set(part, f.monoid.start(1))
            stop = t.min(t.add(start, f.words["chunk"]), end)
            with spans(t, start, stop, f.reduced, n) as span, t.loop(0, span.length) as j:
                along = _along(f, span, j)
                index = t.add(span.first, j) if f.monoid.arg else None
                for base, part in zip(bases, parts, strict=True):
                    loads = _elements(f, base, along)
                    _set(part, f.absorb(_get(part), f.value(loads, index)))
            for total, part in zip(totals, parts, strict=True):
                _set(total, f.monoid.join(_get(total), _get(part)))
        for q, (place, total) in enumerate(zip(places, totals, strict=True)):
            with t.when(t.lt(t.add(p, q), high)):
                f.emit_result(_get(total), t.add(place[-1], shift))


def _dealt(f: Frame, group: int) -> None:
    t, n, d = f.t, len(f.inputs), f.spec.acc
    lanes = Lanes(t, f.monoid, group_of(d))
    one = register(d)
    stage = t.scratch(one, CHUNK + LANES)
    total = [t.variable(s) for s in f.monoid.start(1)]
    groups = range(LANES // lanes.group)
    with f.task() as (low, high, begin, end, shift, _), t.loop(low, high) as p:
        _, place = unravel(t, p, f.kept, n + 1)
        bases = [f.element(i, place[i]) for i in range(n)]
        _set(total, f.monoid.start(1))
        with t.loop(begin, end, f.words["chunk"]) as start:
            stop = t.min(t.add(start, f.words["chunk"]), end)
            with spans(t, start, stop, f.reduced, n) as span:
                to = t.at(stage, one, t.sub(span.first, start))
                if group == 1:
                    with t.loop(0, span.length) as j:
                        (value,) = f.value(_elements(f, bases, _along(f, span, j)), None)
                        t.store(value, t.at(to, one, j), d.itemsize)
                else:
                    _stage(f, bases, span, to, group)
            count = t.sub(stop, start)
            for g in groups:  # up to a whole step of the lanes
                t.store(
                    lanes.starts[0], t.at(stage, one, t.add(count, g * lanes.group)), d.itemsize
                )
            lanes.clear(len(groups))
            with t.loop(0, count, LANES) as r:
                for g in groups:
                    lanes.take(
                        g, read(t, d, t.at(stage, one, t.add(r, g * lanes.group)), lanes.group)
                    )
            _set(total, f.monoid.join(_get(total), lanes.finish(len(groups), start)))
        f.emit_result(_get(total), t.add(place[-1], shift))


def _stage(f: Frame, bases: list[Value], span: Span, to: Value, group: int) -> None:
    """Values of a span, side by side. Whole vectors are written: what is too much, the next span
    writes over.
    """
    t, spec = f.t, f.spec
    starts = [
        f.t.at(b, memory(d), o) for b, d, o in zip(bases, spec.inputs, span.offsets, strict=True)
    ]
    once = [
        None if m else t.splat(read(t, d, s, 1), group)
        for m, d, s in zip(spec.moving, spec.inputs, starts, strict=True)
    ]

    def put(j: Value, mask: Value | None) -> None:
        loads = [
            o or read(t, d, t.at(s, memory(d), j), group, mask)
            for o, d, s in zip(once, spec.inputs, starts, strict=True)
        ]
        (value,) = f.value(loads, None)
        t.store(value, t.at(to, register(spec.acc), j), spec.acc.itemsize)

    whole = t.op("and", span.length, i64(-group))
    with t.loop(0, whole, group) as j:
        put(j, None)
    with t.when(t.lt(whole, span.length)):
        put(whole, upto(t, t.sub(span.length, whole), group))


def _along(f: Frame, span: Span, j: Value) -> list[Value]:
    return [f.t.add(o, f.t.mul(j, s)) for o, s in zip(span.offsets, span.steps, strict=True)]


def _elements(f: Frame, bases: list[Value], offsets: list[Value]) -> list[Value]:
    dtypes = f.spec.inputs
    return [
        read(f.t, d, f.t.at(b, memory(d), o), 1)
        for b, d, o in zip(bases, dtypes, offsets, strict=True)
    ]


def _get(state: list[Variable]) -> State:
    return [v.get() for v in state]


def _set(state: list[Variable], values: State) -> None:
    for v, new in zip(state, values, strict=True):
        v.set(new)
