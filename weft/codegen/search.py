"""Kernels that find places."""

from __future__ import annotations

from weft.codegen.extern import Kernel
from weft.codegen.sort_keys import Order, constant
from weft.codegen.text import Value, i64, module, vector
from weft.schedule.search import Nonzero, SearchSorted

#: values searched for side by side, so that one waits for memory while the others step
SIDE_BY_SIDE = 8
#: elements looked at together
LANES = 16


def lower(spec: SearchSorted | Nonzero) -> str:
    if isinstance(spec, SearchSorted):
        return module(_search(spec))
    return module(_count(spec), _sum(), _fill(spec))


def _search(spec: SearchSorted) -> Kernel:
    t = Kernel(operands=3)
    ordered, values, out = (t.operand(n) for n in range(3))
    n, many, block = t.params(3)
    order = Order(spec.dtype, descending=False)
    before = "icmp ule" if spec.right else "icmp ult"

    def key(base: Value, at: Value) -> Value:
        return order.key(t, t.load(order.raw, t.at(base, order.raw, at), spec.dtype.itemsize))[0]

    def find(i: Value, count: int) -> None:
        wanted = [key(values, t.add(i, c)) for c in range(count)]
        low = [t.variable(i64(0)) for _ in range(count)]
        left = t.variable(n)
        with t.endless() as leave:
            size = left.get()
            leave(t.lt(size, 2))
            half = t.op("lshr", size, i64(1))
            for place, w in zip(low, wanted, strict=True):
                after = t.add(place.get(), half)
                yes = t.compare(before, key(ordered, t.sub(after, 1)), w)
                # an even chance, which a branch would guess wrong half the time
                place.set(
                    t.let("i64", f"select {yes}, {after}, {place.get()}, !unpredictable !{{}}")
                )
            left.set(t.sub(size, half))
        for c, (place, w) in enumerate(zip(low, wanted, strict=True)):
            with t.when(t.compare("icmp ne", n, i64(0))):
                yes = t.compare(before, key(ordered, place.get()), w)
                place.set(t.add(place.get(), t.convert("zext", yes, "i64")))
            t.store(place.get(), t.at(out, "i64", t.add(i, c)), 8)

    with t.tasks() as task:
        first = t.mul(task, block)
        t.strip(first, t.min(t.add(first, block), many), (SIDE_BY_SIDE, 1), find)
    t.ret()
    return t


def _nonzero(t: Kernel, spec: Nonzero, x: Value, i: Value, lanes: int) -> Value:
    """Which elements aren't zero: bits besides the sign of a float."""
    raw = f"i{spec.dtype.bits}"
    kind = vector(raw, lanes)
    bits = t.load(kind, t.at(x, raw, i), spec.dtype.itemsize)
    if spec.dtype.is_float:
        bits = t.op("shl", bits, constant(kind, 1))
    return t.compare("icmp ne", bits, constant(kind, 0))


def _count(spec: Nonzero) -> Kernel:
    t = Kernel(operands=2, name="count")
    x, starts = t.operand(0), t.operand(1)
    size, block, _ = t.params(3)
    with t.tasks() as task:
        low = t.mul(task, block)
        total = t.variable(i64(0))

        def add(i: Value, lanes: int) -> None:
            yes = _nonzero(t, spec, x, i, lanes)
            if lanes == 1:
                return total.set(t.add(total.get(), t.convert("zext", yes, "i64")))
            bits = t.convert("bitcast", yes, f"i{lanes}")
            ones = t.call(bits.type, f"llvm.ctpop.{bits.type}", bits)
            ones = ones if lanes == 64 else t.convert("zext", ones, "i64")
            return total.set(t.add(total.get(), ones))

        t.strip(low, t.min(t.add(low, block), size), (64, LANES, 1), add)
        t.store(total.get(), t.at(starts, "i64", task), 8)
    t.ret()
    return t


def _sum() -> Kernel:
    t = Kernel(operands=2, name="sum")
    starts = t.operand(1)
    blocks = t.params(3)[2]
    with t.tasks():
        total = t.variable(i64(0))
        with t.loop(0, blocks) as b:
            p = t.at(starts, "i64", b)
            many = t.load("i64", p, 8)
            t.store(total.get(), p, 8)
            total.set(t.add(total.get(), many))
        t.store(total.get(), t.at(starts, "i64", blocks), 8)
    t.ret()
    return t


def _fill(spec: Nonzero) -> Kernel:
    t = Kernel(operands=3, name="fill")
    x, starts, out = (t.operand(n) for n in range(3))
    size, block, _, room = t.params(4)
    with t.tasks() as task:
        low = t.mul(task, block)
        to = t.variable(t.word(starts, task))

        def write(i: Value, lanes: int) -> None:
            yes = _nonzero(t, spec, x, i, lanes)
            kind = f"i{lanes}"
            left = t.variable(yes if lanes == 1 else t.convert("bitcast", yes, kind))
            with t.endless() as leave:  # one bit after the other
                bits = left.get()
                leave(t.compare("icmp eq", bits, Value(bits.type, "0")))
                # someone may have written to a shared operand since it was counted
                leave(t.compare("icmp uge", to.get(), room))
                if lanes == 1:
                    at = i
                    left.set(Value("i1", "false"))
                else:
                    place = t.let(kind, f"call {kind} @llvm.cttz.{kind}({bits}, i1 true)")
                    at = t.add(i, t.convert("zext", place, "i64"))
                    left.set(t.op("and", bits, t.op("sub", bits, Value(kind, "1"))))
                t.store(at, t.at(out, "i64", to.get()), 8)
                to.set(t.add(to.get(), 1))

        t.declares[f"llvm.cttz.i{LANES}"] = f"declare i{LANES} @llvm.cttz.i{LANES}(i{LANES}, i1)"
        t.strip(low, t.min(t.add(low, block), size), (LANES, 1), write)
    t.ret()
    return t
