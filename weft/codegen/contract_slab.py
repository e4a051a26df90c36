"""Padded copies: the part of an operand that a block needs, with the zeros that its windows see, so that all that follows
reads plain strides and checks no border.
"""

from __future__ import annotations

from weft.codegen.contract_index import MAX_LABELS, arg, div, down, function, get, increase, put, repeat
from weft.codegen.contract_pack import Packing, low_bits, masked
from weft.codegen.text import Text, Value, Variable, i64
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
    lanes = spec.lanes
    begins, lengths, counters = (t.scratch("i64", 32) for _ in range(3))
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
        put(t, i64(0), counters, a)
        length = t.add(t.sub(high.get(), low.get()), 1)
        put(t, length, lengths, a)
        inner = t.compare("icmp eq", t.add(a, 1), n)
        length = t.select(inner, t.op("and", t.add(length, lanes - 1), i64(-lanes)), length)  # rows begin where vectors do
        increase(t, origin, t.mul(t.sub(t.sub(i64(0), pad), low.get()), size.get()))
        size.set(t.mul(size.get(), length))
    _copy(t, spec, begins, lengths, counters)
    t.ret(origin.get())
    return t


def _copy(t: Text, spec: ContractSpec, begins: Value, lengths: Value, counters: Value) -> None:
    """Plane by plane of the last two axes, row by row along the last; there are at least two."""
    n, axes = arg("n"), arg("axes", "ptr")
    p = Packing(spec)
    last, high = t.sub(n, 1), t.sub(n, 2)
    length, rows, begin = get(t, lengths, last), get(t, lengths, high), get(t, begins, last)
    pitch = t.op("and", t.add(length, spec.lanes - 1), i64(-spec.lanes))
    size, stride, step = (_field(t, axes, last, f) for f in ("size", "stride", "step"))
    up, up_size, up_stride, up_step = get(t, begins, high), *(_field(t, axes, high, f) for f in ("size", "stride", "step"))
    out, more = t.variable(arg("out", "ptr")), t.variable(i64(1))
    with repeat(t, more):
        offset, inside = t.variable(i64(0)), t.variable(Value("i1", "true"))
        with t.loop(0, high) as a:
            u = t.add(get(t, begins, a), get(t, counters, a))
            at, ok = _element(t, u, _field(t, axes, a, "size"), _field(t, axes, a, "step"))
            inside.set(t.op("and", inside.get(), ok))
            increase(t, offset, t.mul(at, _field(t, axes, a, "stride")))
        plane, some = p.element_at(t, arg("source", "ptr"), offset.get()), inside.get()
        with t.loop(0, rows) as i:
            at, ok = _element(t, t.add(up, i), up_size, up_step)
            extent = t.select(t.op("and", some, ok), size, i64(0))
            row = p.element_at(t, plane, t.mul(at, up_stride))
            if masked(spec) and "any" not in (spec.slab_l, spec.slab_r):
                _dense_row(t, p, out.get(), row, begin, length, extent)
            else:
                _sparse_row(t, p, out.get(), row, begin, length, extent, stride, step)
            out.set(p.element_at(t, out.get(), pitch))
        _count_up(t, high, lengths, counters, more)


def _element(t: Text, u: Value, size: Value, step: Value) -> tuple[Value, Value]:
    """Which element coordinate u reads, and whether there is one."""
    at = t.variable(u)
    with t.when(t.compare("icmp ne", step, i64(1))):
        at.set(div(t, u, step))
    exact = t.compare("icmp eq", t.mul(at.get(), step), u)
    there = t.op("and", t.compare("icmp sge", u, i64(0)), t.lt(at.get(), size))
    return at.get(), t.op("and", exact, there)


def _dense_row(t: Text, p: Packing, out: Value, row: Value, begin: Value, length: Value, size: Value) -> None:
    """Whole vectors, with zeros where nothing is."""
    with t.loop(0, length, p.lanes) as i:
        u = t.add(begin, i)  # the coordinate of the first lane
        here, to = p.element_at(t, row, u), p.element_at(t, out, i)
        skip, stop = t.sub(i64(0), u), t.sub(size, u)
        inside = t.op("and", t.compare("icmp sle", skip, i64(0)), t.compare("icmp sge", stop, i64(p.lanes)))
        with t.when(inside):
            t.store(t.load(p.elements, here, p.align), to, p.align)
        with t.when(t.op("xor", inside, Value("i1", "true"))):
            bits = t.op("shl", i64(-1), _clamp(t, skip, p.lanes))
            bits = t.op("and", low_bits(t, _clamp(t, stop, p.lanes)), bits)
            t.store(p.raw_run(t, here, bits), to, p.align)


def _sparse_row(
    t: Text, p: Packing, out: Value, row: Value, begin: Value, length: Value, size: Value, stride: Value, step: Value
) -> None:
    with t.loop(0, length) as i:
        at, ok = _element(t, t.add(begin, i), size, step)
        x = t.variable(Value(p.element, "0.0" if p.element in ("float", "double") else "0"))
        with t.when(ok):
            x.set(t.load(p.element, p.element_at(t, row, t.mul(at, stride)), p.align))
        t.store(x.get(), p.element_at(t, out, i), p.align)


def _count_up(t: Text, n: Value, lengths: Value, counters: Value, more: Variable) -> None:
    """The next combination of `n` counters; sets `more` to 0 after the last."""
    carry = t.variable(i64(1))
    with down(t, n) as a:
        now = t.add(get(t, counters, a), carry.get())
        over = t.compare("icmp eq", now, get(t, lengths, a))
        put(t, t.select(over, i64(0), now), counters, a)
        carry.set(t.select(over, carry.get(), i64(0)))
    more.set(t.sub(i64(1), carry.get()))


def _clamp(t: Text, x: Value, high: int) -> Value:
    return t.min(t.select(t.lt(x, 0), i64(0), x), high)
