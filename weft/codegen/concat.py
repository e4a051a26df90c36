"""Kernels that join operands along an axis: see `weft.schedule.concat`."""

from __future__ import annotations

from weft.codegen.extern import Kernel, call_copy, copy_function
from weft.codegen.text import i64, module
from weft.schedule.concat import Concat

ENTRY = 3  # words of the table for each operand: number, begin, end


def lower(spec: Concat) -> str:
    t = Kernel(operands=spec.count + 1)
    size, row_bytes, block = t.params(3)
    out, table = t.operand(spec.count), t.at(t.frame, "i64", 3 + spec.count + 1 + 3)
    with t.tasks() as task:
        low = t.mul(task, block)
        high = t.min(t.add(low, block), size)
        row0, begin = t.divmod(low, row_bytes)
        at, row, within, entry = (t.variable(v) for v in (low, row0, begin, i64(0)))
        with t.endless() as leave:  # which operand the block begins in
            leave(t.lt(within.get(), t.word(t.at(table, "i64", entry.get()), 2)))
            entry.set(t.add(entry.get(), ENTRY))
        with t.endless() as leave:
            here, place = at.get(), within.get()
            leave(t.compare("icmp sge", here, high))
            item = t.at(table, "i64", entry.get())
            number, first, last = (t.word(item, n) for n in range(3))
            source = t.pointer(t.frame, t.add(number, 3))
            run = t.sub(last, first)
            offset = t.add(t.mul(row.get(), run), t.sub(place, first))
            count = t.min(t.sub(last, place), t.sub(high, here))
            call_copy(t, t.at(out, "i8", here), t.at(source, "i8", offset), count)
            at.set(t.add(here, count))
            within.set(t.add(place, count))
            # a block that ends inside an operand is over anyway
            after = t.add(entry.get(), ENTRY)
            around = t.lt(t.word(t.at(table, "i64", after), 0), 0)
            entry.set(t.select(around, i64(0), after))
            row.set(t.add(row.get(), t.convert("zext", around, "i64")))
            within.set(t.select(around, i64(0), within.get()))
    t.ret()
    return module(copy_function(), t)
