"""Padded copies: the part of an operand that a block needs, with the zeros that its windows see, so that all that follows
reads plain strides and checks no border.
"""

from __future__ import annotations

from weft.codegen.contract_index import MAX_LABELS, arg, call, div, down, function, get, increase, put, rem, walk
from weft.codegen.contract_pack import Packing, masked
from weft.codegen.text import Text, Value, i64
from weft.schedule.contract_spec import AXIS, ContractSpec


def _field(t: Text, axes: Value, axis: Value, name: str) -> Value:
    return get(t, axes, t.add(t.mul(axis, len(AXIS)), AXIS.index(name)))


def slab_function(spec: ContractSpec) -> Text:
    """slab(out, source, n, axes, lows, highs, strides): copy the box in which labels run from `lows` to `highs`; sets each
    label's stride within the copy, and gives where the element of labels all 0 would lie, in elements from `out`.
    """
    pointers = {name: "ptr" for name in ("axes", "lows", "highs", "strides")}
    t = function("slab", "i64", out="ptr", source="ptr", n="i64", **pointers)
    n, axes, strides = arg("n"), arg("axes", "ptr"), arg("strides", "ptr")
    begins, lengths, steps, counters = (t.scratch("i64", 32) for _ in range(4))
    with t.loop(0, MAX_LABELS) as i:
        put(t, i64(0), strides, i)
    size, origin = t.variable(i64(1)), t.variable(i64(0))
    with down(t, n) as a:
        pad = _field(t, axes, a, "pad")
        low, high = t.variable(t.sub(i64(0), pad)), t.variable(t.sub(i64(0), pad))
        for label, by in (("p", "p_by"), ("q", "q_by")):
            which, factor = _field(t, axes, a, label), _field(t, axes, a, by)
            with t.when(t.compare("icmp sge", which, i64(0))):
                ends = [t.mul(factor, get(t, arg(e, "ptr"), which)) for e in ("lows", "highs")]
                increase(t, low, t.min(ends[0], ends[1]))
                increase(t, high, t.select(t.lt(ends[0], ends[1]), ends[1], ends[0]))
                put(t, t.add(get(t, strides, which), t.mul(factor, size.get())), strides, which)
        put(t, low.get(), begins, a)
        put(t, size.get(), steps, a)
        put(t, i64(0), counters, a)
        length = t.add(t.sub(high.get(), low.get()), 1)
        put(t, length, lengths, a)
        increase(t, origin, t.mul(t.sub(t.sub(i64(0), pad), low.get()), size.get()))
        size.set(t.mul(size.get(), length))
    _copy(t, spec, size.get(), begins, lengths, counters)
    t.ret(origin.get())
    return t


def _copy(t: Text, spec: ContractSpec, size: Value, begins: Value, lengths: Value, counters: Value) -> None:
    """Row by row along the last axis."""
    n, axes = arg("n"), arg("axes", "ptr")
    p = Packing(spec)
    last = t.sub(n, 1)
    length, begin, extent = get(t, lengths, last), get(t, begins, last), _field(t, axes, last, "size")
    stride, step = _field(t, axes, last, "stride"), _field(t, axes, last, "step")
    with walk(t, 0, size) as row:
        row.step = length
        offset, inside = t.variable(i64(0)), t.variable(Value("i1", "true"))
        with t.loop(0, last) as a:
            u, by = t.add(get(t, begins, a), get(t, counters, a)), _field(t, axes, a, "step")
            ok = t.compare("icmp sge", u, i64(0))
            at = t.variable(u)
            with t.when(t.op("and", ok, t.compare("icmp ne", by, i64(1)))):
                at.set(div(t, u, by))
            exact = t.compare("icmp eq", t.mul(at.get(), by), u)
            ok = t.op("and", ok, t.op("and", exact, t.lt(at.get(), _field(t, axes, a, "size"))))
            inside.set(t.op("and", inside.get(), ok))
            increase(t, offset, t.mul(at.get(), _field(t, axes, a, "stride")))
        dense = t.op("and", t.compare("icmp eq", stride, i64(1)), t.compare("icmp eq", step, i64(1)))
        to = p.element_at(t, arg("out", "ptr"), row.now)
        valid = t.select(inside.get(), extent, i64(0))
        call(t, "void", "slab_row", to, arg("source", "ptr"), offset.get(), begin, length, valid, stride, step,
             t.convert("zext", dense, "i64"))  # fmt: skip
        carry = t.variable(last)
        with walk(t, 0, i64(1)) as more:
            up = t.sub(carry.get(), 1)
            live = t.compare("icmp sge", up, i64(0))
            more.step = i64(1)
            with t.when(live):
                now = t.add(get(t, counters, up), 1)
                wrapped = t.compare("icmp eq", now, get(t, lengths, up))
                put(t, t.select(wrapped, i64(0), now), counters, up)
                carry.set(up)
                again = t.variable(t.select(wrapped, i64(0), i64(1)))
            more.step = t.select(live, again.get(), i64(1))


def row_function(spec: ContractSpec) -> Text:
    """slab_row(out, source, offset, begin, length, size, stride, step, dense): one row; may write zeros a vector past its end."""
    words = {name: "i64" for name in ("offset", "begin", "length", "size", "stride", "step", "dense")}
    t = function("slab_row", "void", out="ptr", source="ptr", **words)
    p = Packing(spec)
    out, begin, length, size = arg("out", "ptr"), arg("begin"), arg("length"), arg("size")
    source = p.element_at(t, arg("source", "ptr"), arg("offset"))
    zero = Value(p.element, "0.0" if p.element in ("float", "double") else "0")
    dense = t.compare("icmp ne", arg("dense"), i64(0))
    if masked(spec):
        with t.when(dense):
            with t.loop(0, length, p.lanes) as i:
                u = t.add(begin, i)  # the coordinate of the first lane
                skip = _clamp(t, t.sub(i64(0), u), p.lanes)
                stop = _clamp(t, t.sub(size, u), p.lanes)
                bits = t.op("xor", t.sub(t.op("shl", i64(1), stop), 1), t.sub(t.op("shl", i64(1), skip), 1))
                bits = t.select(t.lt(skip, stop), bits, i64(0))
                x = p.raw_run(t, p.element_at(t, source, u), bits)
                t.store(x, p.element_at(t, out, i), p.align)
            t.emit("ret void")
            t.label(t.fresh("dead"))
    with t.loop(0, length) as i:
        u = t.add(begin, i)
        at = t.variable(u)
        ok = t.compare("icmp sge", u, i64(0))
        with t.when(t.op("and", ok, t.compare("icmp ne", arg("step"), i64(1)))):
            at.set(div(t, u, arg("step")))
            left = rem(t, u, arg("step"))
            at.set(t.select(t.compare("icmp eq", left, i64(0)), at.get(), size))
        ok = t.op("and", ok, t.lt(at.get(), size))
        x = t.variable(zero)
        with t.when(ok):
            x.set(t.load(p.element, p.element_at(t, source, t.mul(at.get(), arg("stride"))), p.align))
        t.store(x.get(), p.element_at(t, out, i), p.align)
    t.emit("ret void")
    return t


def _clamp(t: Text, x: Value, high: int) -> Value:
    return t.min(t.select(t.lt(x, 0), i64(0), x), high)
