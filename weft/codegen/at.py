"""Kernels of index functions: see `weft.schedule.at` for what they compute and the order of their
params.

A row of the result is walked along its last index j. What does not depend on j is computed once a
row, or once for all of them. Conditions that compare j with something fixed (the edges of a
padding, a diagonal) cut the row into segments in which they are constant; within a segment indices
are linear in j, so that a load is a vector load where its step is 1, and two where it is 2
(windows). A rule that is beyond that (it divides j, or looks j up) is computed one element at a
time.

A guarded load reads from stack memory instead of the operand where its guard does not hold: no
branch, no stray access.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.codegen.at_levels import Levels
from weft.codegen.extern import TRUE, Kernel
from weft.codegen.text import Value, i64, module
from weft.codegen.verbs import emit, memory, register
from weft.ops.scalar import Scalar, walk
from weft.schedule.at import AtSpec
from weft.types.dtype import DType, bool_

#: nodes of a rule that is written at three widths
SIMPLE = 6

Leaf = Callable[[Scalar, list[Value]], Value]


def lower(spec: AtSpec) -> str:
    return module(_At(spec).write())


class _At:
    """One kernel being written."""

    def __init__(self, spec: AtSpec) -> None:
        self.spec = spec
        self.t = t = Kernel(operands=len(spec.dtypes) + 1)
        self.x = [t.operand(n) for n in range(len(spec.dtypes))]
        self.out = t.operand(len(spec.dtypes))
        words = iter(t.params(spec.extra + 4 + spec.rank + sum(spec.ranks)))
        self.params = [next(words) for _ in range(spec.extra)]
        self.block, self.per_row, self.piece, self.rows = (next(words) for _ in range(4))
        self.sizes = [next(words) for _ in range(spec.rank)]
        self.strides = [[next(words) for _ in range(rank)] for rank in spec.ranks]
        self.nothing = t.scratch(
            "i8", 512
        )  # what a guarded load reads where its guard does not hold
        self.levels = Levels(spec.root, spec.rank - 1)
        self.slots: dict[int, Value] = {}
        self.index: list[Value] = []

    def write(self) -> Kernel:
        t = self.t
        t.store(Value("<64 x i8>", "zeroinitializer"), self.nothing, 64)
        self._keep(self.levels.once, self._leaf(None))
        with t.tasks() as task:
            which, part = t.divmod(task, self.per_row)
            first, begin = t.mul(which, self.block), t.mul(part, self.piece)
            end = t.min(t.add(begin, self.piece), self.sizes[-1])
            place = t.unravel(first, self.sizes)
            with t.loop(first, t.min(t.add(first, self.block), self.rows)) as row:
                self.index = [v.get() for v in place]
                self._row(
                    t.at(self.out, memory(self.spec.root.dtype), t.mul(row, self.sizes[-1])),
                    begin,
                    end,
                )
                t.advance(place, self.sizes)
        t.ret()
        return t

    def _row(self, out: Value, begin: Value, end: Value) -> None:
        t, levels = self.t, self.levels
        self._keep(levels.per_row, self._leaf(None))
        if not levels.breaks:
            return self._segment(out, begin, end)
        breaks = emit(t, levels.breaks, 1, self._leaf(None))
        cursor = t.variable(begin)
        with t.endless() as leave:
            now = cursor.get()
            leave(t.compare("icmp sge", now, end))
            until = end
            for b in breaks:
                nearer = t.op("and", t.lt(now, b), t.lt(b, until))
                until = t.select(nearer, b, until)
            self._segment(out, now, until)
            cursor.set(until)
        return None

    def _segment(self, out: Value, begin: Value, end: Value) -> None:
        t, levels = self.t, self.levels
        self._keep(levels.per_segment, self._leaf(begin))
        streams = [self._stream(n) for n in range(len(levels.streams))]
        lanes = self._lanes()

        def body(step: int) -> None:
            def one(i: Value, w: int) -> None:
                leaf = self._leaf(
                    i,
                    w,
                    lambda n: self._read(streams[n], levels.streams[n].node.dtype, i, w, step),
                )
                (value,) = emit(t, [levels.root], w, leaf)
                t.write(self.spec.root.dtype, value, out, i, w)

            widths = self._widths(lanes, step)
            if step:
                self._cover(begin, end, widths, one)
            else:
                t.strip(begin, end, widths, one)

        if lanes == 1:
            return body(0)
        if not streams:
            return self._computed(out, begin, end, lanes)
        others = TRUE
        for step in (1, 2) if any(s.skips for s in levels.streams) else (1,):
            all_ = self._steps(streams, step)
            with t.when(all_):
                body(step)
            others = t.op("and", others, t.op("xor", all_, TRUE))
        with t.when(others):
            body(0)
        return None

    def _steps(self, streams: Sequence[tuple[Value, Value, Value | None]], wanted: int) -> Value:
        """Whether all loads of a segment that read anything have this step."""
        t, all_ = self.t, TRUE
        for _, step, guard in streams:
            own = t.compare("icmp eq", step, i64(wanted))
            if guard is not None:
                own = t.op("or", own, t.op("xor", guard, TRUE))
            all_ = t.op("and", all_, own)
        return all_

    def _cover(
        self, begin: Value, end: Value, widths: tuple[int, ...], one: Callable[[Value, int], None]
    ) -> None:
        """`one(i, lanes)` over the range; the last vector begins early enough to end with it."""
        t, lanes = self.t, widths[0]
        last = t.sub(end, lanes)
        long = t.compare("icmp sge", last, begin)
        with t.when(long), t.loop(begin, end, lanes) as i:
            one(t.min(i, last), lanes)
        with t.when(t.op("xor", long, TRUE)):
            t.strip(begin, end, widths[1:], one)

    def _widths(self, lanes: int, step: int) -> tuple[int, ...]:
        """Vectors, then single elements. Rows may be short: a simple rule gets a step between."""
        if lanes == 1:
            return (1,)
        short = step == 1 and lanes >= 8 and len(walk([self.levels.root])) <= SIMPLE
        return (lanes, lanes // 4, 1) if short else (lanes, 1)

    def _computed(self, out: Value, begin: Value, end: Value, lanes: int) -> None:
        """A segment that reads nothing: long rules (random numbers) are written once, the last
        vector through the stack.
        """
        t, d = self.t, self.spec.root.dtype
        stage = t.scratch(memory(d, lanes))
        with t.loop(begin, end, lanes) as i:
            (value,) = emit(t, [self.levels.root], lanes, self._leaf(i, lanes))
            left = t.sub(end, i)
            partial = t.lt(left, lanes)
            t.write(d, value, t.select(partial, stage, t.at(out, memory(d), i)), 0, lanes)
            with t.when(partial), t.loop(0, left) as j:
                t.write(d, t.read(d, stage, j), out, t.add(i, j))

    def _lanes(self) -> int:
        if not self.levels.linear:
            return 1
        moved = [self.spec.root.dtype, *(s.node.dtype for s in self.levels.streams)]
        lanes = 64 // max(d.compute.itemsize for d in moved)
        widest = max(n.dtype.itemsize for n in walk([self.levels.root]))
        return lanes if widest <= max(d.itemsize for d in moved) else min(lanes, 16)

    def _keep(self, nodes: Sequence[tuple[int, Scalar]], leaf: Leaf) -> None:
        """Compute what this level owes the next and put it into slots."""
        for (slot, _), v in zip(nodes, emit(self.t, [n for _, n in nodes], 1, leaf), strict=True):
            self.slots[slot] = v

    def _leaf(
        self, j: Value | None, lanes: int = 1, stream: Callable[[int], Value] | None = None
    ) -> Leaf:
        t = self.t

        def leaf(n: Scalar, args: list[Value]) -> Value:
            if n.verb == "input":
                kind, number = n.value
                if kind == "stream":
                    assert stream is not None
                    return stream(number)
                return t.splat(self.slots[number], lanes)
            if n.verb == "param":
                if isinstance(n.value, tuple):  # the stride of an operand
                    return self.strides[n.value[0]][n.value[1]]
                return t.splat(self.params[n.value], lanes)
            if n.verb == "index":
                if n.value != self.spec.rank - 1:
                    return t.splat(self.index[n.value], lanes)
                assert j is not None
                return j if lanes == 1 else t.op("add", t.splat(j, lanes), t.iota(lanes))
            return self._load(n, args)

        return leaf

    def _load(self, n: Scalar, args: list[Value]) -> Value:
        """One element, at indices computed one by one."""
        t, guard = self.t, args[-1] if n.args and n.args[-1].dtype is bool_ else None
        offset = i64(0)
        for at, stride in zip(args, self.strides[n.value], strict=False):
            offset = t.add(offset, t.mul(at, stride))
        here = t.at(self.x[n.value], memory(n.dtype), offset)
        return t.read(n.dtype, here if guard is None else t.select(guard, here, self.nothing), 0)

    def _stream(self, n: int) -> tuple[Value, Value, Value | None]:
        """Where a load of a segment would be at j = 0, its step in elements, its guard."""
        t, s = self.t, self.levels.streams[n]
        start, step = self.slots[s.start], self.slots[s.step]
        origin = t.at(self.x[s.node.value], memory(s.node.dtype), start)
        return origin, step, None if s.guard is None else self.slots[s.guard]

    def _read(
        self,
        stream: tuple[Value, Value, Value | None],
        d: DType,
        i: Value,
        lanes: int,
        known: int,
    ) -> Value:
        """The elements from index `i` on; `known` is the step, or 0 if that is known when it
        runs.
        """
        t, (origin, step, guard) = self.t, stream
        m = memory(d)
        here = t.at(origin, m, t.mul(i, known or step))
        if guard is not None:
            here = t.select(guard, here, self.nothing)
        if lanes == 1 or known == 1:
            return t.read(d, here, 0, lanes)
        if known == 2:  # the second vector begins an element early: nothing behind the last is read
            many = memory(d, lanes)
            pair = [t.load(many, t.at(here, m, n), d.itemsize) for n in (0, lanes - 1)]
            picks = [*range(0, lanes, 2), *range(lanes + 1, 2 * lanes, 2)]
            said = ", ".join(f"i32 {p}" for p in picks)
            x = t.let(many, f"shufflevector {pair[0]}, {pair[1]}, <{lanes} x i32> <{said}>")
            return t.convert("trunc", x, register(bool_, lanes)) if d is bool_ else x
        stride = step if guard is None else t.select(guard, step, i64(0))
        out = Value(memory(d, lanes), "poison")
        for lane in range(lanes):
            one = t.load(m, t.at(here, m, t.mul(stride, lane)), d.itemsize)
            out = t.let(out.type, f"insertelement {out}, {one}, i64 {lane}")
        return t.convert("trunc", out, register(bool_, lanes)) if d is bool_ else out
