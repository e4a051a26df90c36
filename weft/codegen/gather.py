"""Kernels that read by index."""

from __future__ import annotations

from weft.codegen.extern import Kernel, call_copy, copy_function
from weft.codegen.text import Value, module, vector
from weft.schedule.gather import GatherElements, GatherRows

#: indices checked at once
LANES = 8
#: how many rows ahead to ask for memory, and for how much of a row: nothing else can foresee them
AHEAD, NEAR = 2, 1024


def lower(spec: GatherRows | GatherElements) -> str:
    if isinstance(spec, GatherRows):
        return module(copy_function(), _rows(spec))
    return module(_elements(spec))


def _rows(spec: GatherRows) -> Kernel:
    t = Kernel(operands=3)
    x, index, out = (t.operand(n) for n in range(3))
    rows, k, n, run, block, segments, segment = t.params(7)
    with t.tasks() as task:
        which, part = t.divmod(task, segments)
        first = t.mul(which, block)
        last = t.min(t.add(first, block), rows)
        skip = t.mul(part, segment)
        size = t.min(segment, t.sub(run, skip))
        o, j0 = t.divmod(first, k)
        start, j = t.variable(t.mul(o, n)), t.variable(j0)
        with t.loop(first, last) as row:
            later = t.min(t.add(j.get(), AHEAD), t.sub(k, 1))
            _, soon, _ = t.index(spec.index, index, later, n)  # perhaps bad: read by nothing
            _fetch(t, t.at(x, "i8", t.add(t.mul(t.add(start.get(), soon), run), skip)), size)
            picked = t.checked_index(spec.index, index, j.get(), n)
            source = t.add(t.mul(t.add(start.get(), picked), run), skip)
            to = t.add(t.mul(row, run), skip)
            call_copy(t, t.at(out, "i8", to), t.at(x, "i8", source), size)
            t.turn(j, k, start, n)
    t.ret()
    return t


def _fetch(t: Kernel, row: Value, size: Value) -> None:
    """Ask for the memory of a row, wherever that is: a wrong address is ignored."""
    name = "llvm.prefetch.p0"
    t.declares.setdefault(name, f"declare void @{name}(ptr, i32, i32, i32)")
    with t.loop(0, t.min(size, NEAR), 64) as line:
        t.emit(f"call void @{name}({t.at(row, 'i8', line)}, i32 0, i32 3, i32 1)")


def _elements(spec: GatherElements) -> Kernel:
    t = Kernel(operands=3)
    x, index, out = (t.operand(n) for n in range(3))
    rows, length, stride, group, base, step, column, n, block, segments, segment = t.params(11)
    element = f"i{8 * spec.width}" if spec.width <= 8 else vector("i64", 2)

    def move(source: Value, to: Value) -> None:
        t.store(t.load(element, t.at(x, element, source), 1), t.at(out, element, to), 1)

    with t.tasks() as task:
        which, part = t.divmod(task, segments)
        first = t.mul(which, block)
        last = t.min(t.add(first, block), rows)
        low = t.mul(part, segment)
        high = t.min(t.add(low, segment), length)
        g, j0 = t.divmod(first, group)
        start, j = t.variable(t.mul(g, base)), t.variable(j0)
        with t.loop(first, last) as row:
            indices, to = t.mul(row, stride), t.mul(row, length)
            here = start.get()
            v = t.variable(low)
            with t.endless() as leave:  # whole vectors, until one has a bad index
                now = v.get()
                after = t.add(now, LANES)
                leave(t.lt(high, after))
                _, front, bad = t.index(spec.index, index, t.add(indices, now), n, LANES)
                leave(t.any(bad))
                columns = t.op("add", t.iota(LANES), t.splat(now, LANES))
                source = t.op("mul", front, t.splat(step, LANES))
                source = t.op("add", source, t.op("mul", columns, t.splat(column, LANES)))
                source = t.op("add", source, t.splat(here, LANES))
                for lane in range(LANES):
                    one = t.let("i64", f"extractelement {source}, i64 {lane}")
                    move(one, t.add(t.add(to, now), lane))
                v.set(after)
            with t.loop(v.get(), high) as now:
                picked = t.checked_index(spec.index, index, t.add(indices, now), n)
                source = t.add(t.mul(picked, step), t.mul(now, column))
                move(t.add(source, here), t.add(to, now))
            t.turn(j, group, start, base)
    t.ret()
    return t
