"""Reductions across vectors: positions lie side by side, and each row of the nest adds to all of
them.

The accumulators of a block of columns are a table in stack memory, one row per lane (one row in all
where the order is plain). A panel of rows that belong to one lane is taken at a time, so that most
of the traffic is what is reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.codegen.jit import vector_bytes
from weft.codegen.reduce_frame import Frame, Span, spans
from weft.codegen.reduce_monoid import State, read, upto, write
from weft.codegen.registers import memory
from weft.codegen.text import Value, i64
from weft.schedule.reduce_spec import width_limit

PANEL = 8


def columns(f: Frame) -> None:
    t, w, n = f.t, f.words, len(f.inputs)
    table = _Table(f)
    with f.task() as (low, high, begin, end, shift, block):
        first = t.mul(block, w["width"])
        count = t.min(t.sub(w["columns"], first), w["width"])
        with spans(t, low, high, f.kept, n + 1) as span, t.loop(0, span.length) as j:
            place = [t.add(o, t.mul(j, s)) for o, s in zip(span.offsets, span.steps, strict=True)]
            place = [
                t.add(o, first) if m else o for o, m in zip(place, f.spec.moving, strict=False)
            ] + place[n:]
            many = t.lt(w["chunk"], t.sub(end, begin))
            summed = t.op("or", many, t.compare("icmp sle", end, begin))  # else one chunk is all
            with t.when(summed):
                table.fill(table.total, count)
            with t.loop(begin, end, w["chunk"]) as start:
                table.reduce(place, start, t.min(t.add(start, w["chunk"]), end), count)
                with t.when(many):
                    table.join(table.total, table.parts, count)
            out = t.add(t.add(place[n], shift), t.mul(first, w["columns.out"]))
            table.store(
                [t.select(summed, p, q) for p, q in zip(table.total, table.parts, strict=True)],
                out,
                count,
            )


class _Table:
    """Accumulators of up to `width_limit` columns for each lane, and their totals over chunks."""

    def __init__(self, f: Frame) -> None:
        self.f, self.t, spec = f, f.t, f.spec
        self.group = f.group
        self.lanes, self.limit = spec.lanes, width_limit(spec.lanes, spec.acc)
        self.parts = [self.t.scratch(memory(d), self.lanes * self.limit) for d in spec.states]
        self.total = [self.t.scratch(memory(d), self.limit) for d in spec.states]

    def fill(self, table: Sequence[Value], count: Value) -> None:
        with self.t.loop(0, count, self.group) as c:
            self._put(table, c, self.f.monoid.start(self.group))

    def join(self, into: Sequence[Value], other: Sequence[Value], count: Value) -> None:
        with self.t.loop(0, count, self.group) as c:
            self._put(into, c, self.f.monoid.join(self._get(into, c), self._get(other, c)))

    def reduce(self, place: list[Value], start: Value, stop: Value, count: Value) -> None:
        """Accumulate rows start..stop-1 and leave the result in the first row of `parts`."""
        t, f, n = self.t, self.f, len(self.f.inputs)
        used = t.min(t.sub(stop, start), self.lanes)
        with spans(t, start, stop, f.reduced, n) as span:
            step = PANEL * self.lanes
            fresh = t.select(t.compare("icmp eq", span.first, start), used, i64(0))
            panels = t.op("udiv", t.sub(span.length, fresh), i64(step))
            whole = t.add(fresh, t.mul(panels, step))
            with t.loop(
                0, 2
            ) as end:  # single rows: the first of each lane, and after the panels what is left
                head = t.compare("icmp eq", end, i64(0))
                with t.loop(
                    t.select(head, i64(0), whole), t.select(head, fresh, span.length)
                ) as row:
                    self._panel(
                        place, span, row, 1, t.op("and", row, i64(self.lanes - 1)), count, head
                    )
                with (
                    t.when(head),
                    t.loop(fresh, whole, step) as base,
                    t.loop(0, self.lanes) as lane,
                ):
                    self._panel(place, span, t.add(base, lane), PANEL, lane, count, None)
        with t.loop(0, self.lanes.bit_length() - 1) as k:
            half = t.op("lshr", i64(self.lanes // 2), k)
            with (
                t.loop(0, t.min(t.sub(used, half), half)) as lane,
                t.loop(0, count, self.group) as c,
            ):
                low, high = self._cell(lane, c), self._cell(t.add(lane, half), c)
                self._put(
                    self.parts,
                    low,
                    f.monoid.join(self._get(self.parts, low), self._get(self.parts, high)),
                )

    def _panel(
        self,
        place: list[Value],
        span: Span,
        row: Value,
        rows: int,
        lane: Value,
        count: Value,
        fresh: Value | None,
    ) -> None:
        """Rows row, row + lanes, … (`rows` of them) into one lane, which holds nothing yet where
        `fresh`.
        """
        t, f = self.t, self.f
        numbers = [t.add(row, k * self.lanes) for k in range(rows)]
        bases = [
            [
                f.element(i, t.add(place[i], t.add(o, t.mul(r, s))))
                for i, (o, s) in enumerate(zip(span.offsets, span.steps, strict=True))
            ]
            for r in numbers
        ]
        once = [
            {
                i: t.splat(read(t, d, b[i], 1), self.group)
                for i, d in enumerate(f.spec.inputs)
                if not f.spec.moving[i]
            }
            for b in bases
        ]
        index = [
            t.splat(t.add(span.first, r), self.group) if f.monoid.arg else None for r in numbers
        ]

        def cells(c: Value, mask: Value | None) -> None:
            cell = self._cell(lane, c)
            state = self._get(self.parts, cell)
            if fresh is not None:
                state = [
                    t.select(fresh, a, b)
                    for a, b in zip(f.monoid.start(self.group), state, strict=True)
                ]
            for k in range(rows):
                loads = [
                    once[k][i]
                    if i in once[k]
                    else read(t, d, t.at(bases[k][i], memory(d), c), self.group, mask)
                    for i, d in enumerate(f.spec.inputs)
                ]
                state = f.absorb(state, f.value(loads, index[k]))
            self._put(self.parts, cell, state)

        self._along(count, cells, often=rows > 1)

    def store(self, table: Sequence[Value], out: Value, count: Value) -> None:
        """Finish the accumulators in the first row of `table`; results lie side by side, or not."""
        t, f = self.t, self.f
        step = f.words["columns.out"]
        dense = t.compare("icmp eq", step, i64(1))

        def finish(c: Value, mask: Value | None) -> None:
            f.emit_result(self._get(table, c), t.add(out, c), mask)

        with t.when(dense):
            self._along(count, finish, often=False)
        with t.when(t.op("xor", dense, Value("i1", "true"))), t.loop(0, count) as c:
            f.emit_result(self._get(table, c, 1), t.add(out, t.mul(c, step)))

    def _along(
        self, count: Value, body: Callable[[Value, Value | None], None], often: bool
    ) -> None:
        """The body for every vector of the columns; what is not done often is written once, where
        masks cost nothing.
        """
        t = self.t
        if not often and vector_bytes() == 64:
            with t.loop(0, count, self.group) as c:
                body(c, upto(t, t.sub(count, c), self.group))
            return
        whole = t.op("and", count, i64(-self.group))
        with t.loop(0, whole, self.group) as c:
            body(c, None)
        with t.when(t.lt(whole, count)):
            body(whole, upto(t, t.sub(count, whole), self.group))

    def _cell(self, row: Value, column: Value) -> Value:
        return column if self.lanes == 1 else self.t.add(self.t.mul(row, self.limit), column)

    def _get(self, table: Sequence[Value], cell: Value, lanes: int = 0) -> State:
        lanes = lanes or self.group
        return [
            read(self.t, d, self.t.at(p, memory(d), cell), lanes)
            for p, d in zip(table, self.f.spec.states, strict=True)
        ]

    def _put(self, table: Sequence[Value], cell: Value, state: State) -> None:
        for p, d, v in zip(table, self.f.spec.states, state, strict=True):
            write(self.t, v, d, self.t.at(p, memory(d), cell))
