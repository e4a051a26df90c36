"""Kernels that add up stacks of products: see `weft.schedule.drain`."""

from __future__ import annotations

from weft.codegen.extern import Kernel
from weft.codegen.registers import intrinsic, literal
from weft.codegen.text import Value, module
from weft.schedule.drain import COLUMNS, ROWS, Drain
from weft.schedule.stack import Field


def lower(spec: Drain) -> str:
    t = Kernel(operands=3 if spec.listed else 2)
    source, total = t.operand(0), t.operand(1)
    out = t.operand(2) if spec.listed else total
    *entry, depth, rows, columns = t.params(3 if spec.listed else 5)
    lanes = spec.vector // spec.dtype.itemsize
    if spec.listed:
        count = t.word(source, 0)
    else:
        memory, count = t.pointer(source, int(Field.MEMORY)), t.word(source, int(Field.COUNT))

    def pair(n: Value) -> tuple[Value, Value]:
        """Where operands lie."""
        if spec.listed:
            at = t.mul(n, 2)
            return t.pointer(source, t.add(at, 1)), t.pointer(source, t.add(at, 2))
        p = t.at(memory, "i8", t.mul(n, entry[0]))
        return p, t.at(p, "i8", entry[1])

    def tile(row: Value, high: int, column: Value, width: int) -> None:
        """The sums of some rows and columns."""
        wide = min(width, lanes)
        places = [(r, v) for r in range(high) for v in range(width // wide)]
        at = {
            (r, v): t.add(t.add(t.mul(t.add(row, r), columns), column), v * wide) for r, v in places
        }
        sums = {}
        if not spec.deep:
            sums = {x: t.variable(t.read(spec.dtype, total, at[x], wide)) for x in places}
        with t.loop(0, count) as n:
            p, q = pair(n)
            own = {x: t.variable(literal(0.0, spec.dtype, wide)) for x in places}
            with t.loop(0, depth) as i:
                start = t.add(t.mul(i, columns), column)
                right = [
                    t.read(spec.dtype, q, t.add(start, v * wide), wide)
                    for v in range(width // wide)
                ]
                first = t.add(t.mul(i, rows), row)
                for r in range(high):
                    left = t.splat(t.read(spec.dtype, p, t.add(first, r)), wide)
                    for v, x in enumerate(right):
                        own[r, v].set(intrinsic(t, "fma", left, x, own[r, v].get()))
            for here, term in own.items():
                if spec.deep:
                    old = t.read(spec.dtype, total, at[here], wide)
                    t.write(spec.dtype, t.op("fadd", old, term.get()), total, at[here], wide)
                else:
                    sums[here].set(t.op("fadd", sums[here].get(), term.get()))
        for here, whole in sums.items():
            t.write(spec.dtype, whole.get(), out, at[here], wide)

    widths = (*(lanes * n for n in range(COLUMNS, 0, -1)), 1)
    with t.tasks() as task:
        t.poll()
        first = t.mul(task, COLUMNS * lanes)
        last = t.min(t.add(first, COLUMNS * lanes), columns)

        def strip(column: Value, width: int) -> None:
            def run(row: Value, high: int) -> None:
                tile(row, high, column, width)

            t.strip(0, rows, tuple(dict.fromkeys((spec.rows, ROWS, 1))), run)

        t.strip(first, last, widths, strip)
    t.ret()
    return module(t)
