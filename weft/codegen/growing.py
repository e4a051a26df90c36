"""Kernels that move rows: see `weft.schedule.growing`."""

from __future__ import annotations

from weft.codegen.extern import Kernel, call_copy, copy_function
from weft.codegen.text import Value, i64, module
from weft.schedule.growing import Rows


def lower(spec: Rows) -> str:
    return module(copy_function(), _put(spec) if spec.what == "put" else _get())


def _put(spec: Rows) -> Kernel:
    t = Kernel(operands=spec.count + 3)
    x, out = t.operand(0), t.operand(spec.count + 2)
    n, row, *rows = t.params(2 + spec.count)
    with t.tasks():
        with t.when(t.compare("icmp ne", x, out)):
            call_copy(t, out, x, t.mul(n, row))
        at = t.word(t.operand(1), 0)
        for i, count in enumerate(rows):
            low, size = _inside(t, at, count, n)
            to = t.at(out, "i8", t.mul(t.add(at, low), row))
            source = t.at(t.operand(2 + i), "i8", t.mul(low, row))
            call_copy(t, to, source, t.mul(size, row))
            at = t.add(at, count)
    t.ret()
    return t


def _get() -> Kernel:
    t = Kernel(operands=3)
    x, out = t.operand(0), t.operand(2)
    n, row, count = t.params(3)
    with t.tasks():
        at = t.word(t.operand(1), 0)
        low, size = _inside(t, at, count, n)
        with t.when(t.lt(size, count)), t.loop(0, t.mul(count, row)) as byte:
            t.store(Value("i8", "0"), t.at(out, "i8", byte), 1)
        source = t.at(x, "i8", t.mul(t.add(at, low), row))
        call_copy(t, t.at(out, "i8", t.mul(low, row)), source, t.mul(size, row))
    t.ret()
    return t


def _inside(t: Kernel, at: Value, count: Value, n: Value) -> tuple[Value, Value]:
    """Of `count` rows from `at` on the first that is one of `n`, and how many are."""
    zero = i64(0)
    before, at = t.sub(zero, count), t.min(at, n)
    at = t.select(t.lt(at, before), before, at)  # however far outside it was, nothing overflows
    low = t.sub(zero, t.min(at, zero))  # rows before the first
    high = t.min(count, t.sub(n, at))
    size = t.sub(high, low)
    outside = t.lt(size, 1)
    return t.select(outside, zero, low), t.select(outside, zero, size)
