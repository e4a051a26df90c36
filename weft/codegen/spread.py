"""Kernels that put elements among zeros: see `weft.schedule.spread`."""

from __future__ import annotations

from weft.codegen.extern import Kernel
from weft.codegen.text import Value, i64, module
from weft.schedule.spread import Spread

#: parameters before the nest
COMMON = 5
UNROLL = 8


def lower(spec: Spread) -> str:
    return module(_fill(), _write(spec))


def _fill() -> Kernel:
    t = Kernel(operands=2, name="fill")
    size, block = t.params(2)
    out = t.operand(1)
    zeros = {64: Value("<64 x i8>", "zeroinitializer"), 1: Value("i8", "0")}
    with t.tasks() as task:
        low = t.mul(task, block)
        t.strip(
            low,
            t.min(t.add(low, block), size),
            (64, 1),
            lambda i, w: t.store(zeros[w], t.at(out, "i8", i), 1),
        )
    t.ret()
    return t


def _write(spec: Spread) -> Kernel:
    t = Kernel(operands=2)
    words = t.params(COMMON + 3 * spec.dims)
    _, _, offset, rows, block = words[:COMMON]
    sizes, own, theirs = (words[COMMON + k * spec.dims :][: spec.dims] for k in range(3))
    element = f"i{8 * spec.width}"
    x, out = t.operand(0), t.at(t.operand(1), element, offset)
    with t.tasks() as task:
        first = t.mul(task, block)
        place = t.unravel(first, sizes)
        with t.loop(first, t.min(t.add(first, block), rows)):
            source, to = i64(0), i64(0)
            for v, a, b in zip(place, own, theirs, strict=False):
                source, to = t.add(source, t.mul(v.get(), a)), t.add(to, t.mul(v.get(), b))
            read, write = t.at(x, element, source), t.at(out, element, to)

            def move(i: Value, w: int, read: Value = read, write: Value = write) -> None:
                for lane in range(w):
                    j = t.add(i, lane)
                    value = t.load(element, t.at(read, element, t.mul(j, own[-1])), spec.width)
                    t.store(value, t.at(write, element, t.mul(j, theirs[-1])), spec.width)

            t.strip(0, sizes[-1], (UNROLL, 1), move)
            t.advance(place, sizes)
    t.ret()
    return t
