"""The kernel that adds elements to all places of their windows: see `weft.schedule.window`."""

from __future__ import annotations

from weft.codegen.extern import TRUE, Kernel
from weft.codegen.text import Value, i64, module, vector
from weft.codegen.verbs import memory
from weft.schedule.window import WindowSpread


def lower(spec: WindowSpread) -> str:
    return module(_Spread(spec).write())


class _Spread:
    """The kernel being written."""

    def __init__(self, spec: WindowSpread) -> None:
        self.t, self.d = Kernel(operands=2), spec.dtype
        self.m, self.lanes = memory(spec.dtype), 64 // spec.dtype.itemsize
        self.plus = "fadd" if spec.dtype.is_float else "add"

    def write(self) -> Kernel:
        t, m = self.t, self.m
        g, out = t.operand(0), t.operand(1)
        planes, block, down, across, rows, columns, *rest = t.params(13)
        tall, wide, step_down, step, above, before, every = rest
        with t.tasks() as task:
            first = t.mul(task, block)
            with t.loop(first, t.min(t.add(first, block), planes)) as plane:
                source = t.at(g, m, t.mul(plane, t.mul(down, across)))
                target = t.at(out, m, t.mul(plane, t.mul(rows, columns)))
                self._clear(target, t.mul(rows, columns))
                with t.polled(0, down, every) as (low, high), t.loop(low, high) as o:
                    line = t.at(source, m, t.mul(o, across))
                    with t.loop(0, tall) as tap:
                        row = t.sub(t.add(t.mul(o, step_down), tap), above)
                        with t.when(t.compare("icmp ult", row, rows)):
                            here = t.at(target, m, t.mul(row, columns))
                            with t.loop(0, wide) as j:
                                self._tap(line, here, t.sub(j, before), across, columns, step)
        t.ret()
        return t

    def _clear(self, target: Value, size: Value) -> None:
        def zero(i: Value, w: int) -> None:
            nothing = Value(vector(self.m, w), "zeroinitializer")
            self.t.store(nothing, self.t.at(target, self.m, i), self.d.itemsize)

        self.t.strip(0, size, (self.lanes, 1), zero)

    def _tap(
        self, line: Value, target: Value, start: Value, across: Value, columns: Value, step: Value
    ) -> None:
        """target[start + o * step] += line[o], for every o for which that is inside."""
        t, zero = self.t, i64(0)
        short = t.select(t.lt(start, 0), t.sub(zero, start), zero)
        low = t.op("udiv", t.add(short, t.sub(step, 1)), step)
        room = t.sub(t.sub(columns, 1), start)
        fit = t.select(t.lt(room, 0), zero, t.add(t.op("udiv", room, step), 1))
        high = t.min(fit, across)
        straight = t.compare("icmp eq", step, i64(1))
        with t.when(straight):
            t.strip(
                low,
                high,
                (self.lanes, 1),
                lambda i, w: self._add(line, i, target, t.add(start, i), w),
            )
        with t.when(t.op("xor", straight, TRUE)), t.loop(low, high) as i:
            self._add(line, i, target, t.add(start, t.mul(i, step)), 1)

    def _add(self, line: Value, i: Value, target: Value, place: Value, w: int) -> None:
        t, kind, size = self.t, vector(self.m, w), self.d.itemsize
        here = t.at(target, self.m, place)
        given = t.load(kind, t.at(line, self.m, i), size)
        t.store(t.op(self.plus, t.load(kind, here, size), given), here, size)
