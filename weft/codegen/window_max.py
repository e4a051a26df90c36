"""The kernel of the largest elements of windows: see `weft.schedule.window_max`.

Of a few rows of windows, the largest of each column of elements goes to scratch memory, with the
lowest of all numbers before and behind; then the largest of these across. Between the two lies
some time: a vector that is read across two which were just written waits for both.
"""

from __future__ import annotations

import math

from weft.codegen.extern import Kernel
from weft.codegen.registers import literal
from weft.codegen.text import Value, i64, module, vector
from weft.codegen.verbs import emit, memory
from weft.ops.scalar import input_, maximum
from weft.schedule.window_max import ROWS, VECTOR, WindowMax


def lower(spec: WindowMax) -> str:
    return module(_Max(spec).write())


class _Max:
    """The kernel being written."""

    def __init__(self, spec: WindowMax) -> None:
        self.t, self.spec, self.d = Kernel(operands=2), spec, spec.dtype
        self.m, self.lanes = memory(spec.dtype), VECTOR // spec.dtype.itemsize
        self.many = vector(self.m, self.lanes)
        self.lowest = literal(-math.inf, spec.dtype, self.lanes)
        self.rule = maximum(input_(0, spec.dtype), input_(1, spec.dtype))

    def write(self) -> Kernel:
        t = self.t
        x, out = t.operand(0), t.operand(1)
        channels, group, down, block, across, rows, columns, *rest = t.params(12)
        by, above, before, kept, room = rest
        held = t.at(t.scratch_memory(), "i8", t.mul(t.worker, room))
        with t.tasks() as task:
            which, part = t.divmod(task, self._pieces(channels, group))
            image, number = t.divmod(which, self._pieces(down, block))
            first, channel = t.mul(number, block), t.mul(part, group)
            last = t.min(t.add(first, block), down)
            with t.loop(0, t.mul(kept, ROWS), self.lanes) as i:
                self._store(self.lowest, t.at(held, self.m, i))
            with (
                t.loop(channel, t.min(t.add(channel, group), channels)) as c,
                t.loop(first, last, ROWS) as begin,
            ):
                plane, end = t.add(t.mul(image, channels), c), t.min(t.add(begin, ROWS), last)
                source = t.at(x, self.m, t.mul(plane, t.mul(rows, columns)))
                target = t.at(out, self.m, t.mul(plane, t.mul(down, across)))
                with t.loop(begin, end) as row:
                    y = t.sub(t.mul(row, by), above)
                    low = t.select(t.lt(y, 0), i64(0), y)
                    high = t.min(t.add(y, self.spec.kernel[0]), rows)
                    to = t.at(held, self.m, t.add(t.mul(t.sub(row, begin), kept), before))
                    self._down(source, low, high, columns, to)
                with t.loop(begin, end) as row:
                    from_ = t.at(held, self.m, t.mul(t.sub(row, begin), kept))
                    self._across(from_, t.at(target, self.m, t.mul(row, across)), across)
        t.ret()
        return t

    def _pieces(self, total: Value, size: Value) -> Value:
        return self.t.op("udiv", self.t.add(total, self.t.sub(size, 1)), size)

    def _down(self, image: Value, low: Value, high: Value, columns: Value, to: Value) -> None:
        """The largest of each column of the rows from `low` on, before `high`."""
        t, tall = self.t, self.spec.kernel[0]
        here, count = t.at(image, self.m, t.mul(low, columns)), t.sub(high, low)
        all_ = t.compare("icmp eq", count, i64(tall))
        with t.when(all_), t.loop(0, columns, self.lanes) as i:
            at = t.min(i, t.sub(columns, self.lanes))
            taps = [t.at(here, self.m, t.add(at, t.mul(columns, n))) for n in range(tall)]
            self._store(self._largest([self._load(p) for p in taps]), t.at(to, self.m, at))
        with t.when(t.lt(count, tall)), t.loop(0, columns, self.lanes) as i:
            at = t.min(i, t.sub(columns, self.lanes))
            found = t.variable(self.lowest)
            with t.loop(0, count) as n:
                x = self._load(t.at(here, self.m, t.add(at, t.mul(columns, n))))
                found.set(self._largest([found.get(), x]))
            self._store(found.get(), t.at(to, self.m, at))

    def _across(self, from_: Value, out: Value, across: Value) -> None:
        """The largest of neighbouring columns."""
        t, wide, step = self.t, self.spec.kernel[1], self.spec.step
        with t.loop(0, across, self.lanes) as i:
            at = t.min(i, t.sub(across, self.lanes))
            here = t.at(from_, self.m, t.mul(at, step))
            taps = []
            for n in range(0, wide, step):
                pair = [self._load(t.at(here, self.m, n + k * self.lanes)) for k in range(step)]
                taps += pair if step == 1 else [self._every_second(pair, k) for k in range(2)]
            self._store(self._largest(taps[:wide]), t.at(out, self.m, at))

    def _every_second(self, pair: list[Value], first: int) -> Value:
        picks = ", ".join(f"i32 {n}" for n in range(first, 2 * self.lanes, 2))
        said = f"shufflevector {pair[0]}, {pair[1]}, <{self.lanes} x i32> <{picks}>"
        return self.t.let(self.many, said)

    def _largest(self, xs: list[Value]) -> Value:
        """Of equal ones the last, of NaNs the first, so that any neighbours may be compared
        first.
        """
        while len(xs) > 1:
            pairs = list(zip(xs[::2], xs[1::2], strict=False))
            xs = [self._larger(*p) for p in pairs] + xs[2 * len(pairs) :]
        return xs[0]

    def _larger(self, a: Value, b: Value) -> Value:
        (out,) = emit(self.t, [self.rule], self.lanes, lambda n, _: (a, b)[n.value])
        return out

    def _load(self, here: Value) -> Value:
        return self.t.load(self.many, here, self.d.itemsize)

    def _store(self, x: Value, here: Value) -> None:
        self.t.store(x, here, self.d.itemsize)
