"""Padded copies: the part of an operand that a block needs, with the zeros that its windows see, so
that all that follows reads plain strides and checks no border.
"""

from __future__ import annotations

from weft.codegen.contract_index import (
    MAX_LABELS,
    YES,
    arg,
    both,
    div,
    down,
    equal,
    fits,
    function,
    get,
    increase,
    put,
    repeat,
)
from weft.codegen.contract_pack import Packing, low_bits, masked
from weft.codegen.contract_tile import prefetch
from weft.codegen.text import Text, Value, Variable, i64
from weft.schedule.contract_spec import AXIS, ContractSpec

#: vectors to copy while memory is on its way
AHEAD = 96


def slab_function(spec: ContractSpec) -> Text:
    """slab(out, source, n, axes, lows, highs, strides): copy the box in which labels run from
    `lows` to `highs`. Sets each label's stride within the copy and gives where the element of
    labels all 0 would lie, in elements from `out`. There are at least two axes.
    """
    pointers = dict.fromkeys(("axes", "lows", "highs", "strides"), "ptr")
    t = function("slab", "i64", out="ptr", source="ptr", n="i64", **pointers)
    n, strides = arg("n"), arg("strides", "ptr")
    begins, lengths, counters = (t.scratch("i64", 32) for _ in range(3))
    with t.loop(0, MAX_LABELS) as i:
        put(t, i64(0), strides, i)
    size, origin = t.variable(i64(1)), t.variable(i64(0))
    with down(t, n) as a:
        pad = t.sub(i64(0), _field(t, a, "pad"))
        low, high = t.variable(pad), t.variable(pad)
        with t.loop(0, 2) as q:  # the two labels of the axis
            label = t.add(t.mul(a, len(AXIS)), t.add(t.mul(q, 2), AXIS.index("p")))
            which, by = (get(t, arg("axes", "ptr"), t.add(label, i)) for i in range(2))
            with t.when(fits(t, i64(0), which)):
                ends = [t.mul(by, get(t, arg(e, "ptr"), which)) for e in ("lows", "highs")]
                increase(t, low, t.min(*ends))
                increase(t, high, t.select(t.lt(*ends), ends[1], ends[0]))
                put(t, t.add(get(t, strides, which), t.mul(by, size.get())), strides, which)
        length = t.add(t.sub(high.get(), low.get()), 1)
        put(t, low.get(), begins, a)
        put(t, length, lengths, a)
        put(t, i64(0), counters, a)
        increase(t, origin, t.mul(t.sub(pad, low.get()), size.get()))
        inner = equal(t, t.add(a, 1), n)
        size.set(t.mul(size.get(), t.select(inner, _pitch(t, spec, length), length)))
    _copy(t, spec, begins, lengths, counters)
    t.ret(origin.get())
    return t


def _field(t: Text, axis: Value, name: str) -> Value:
    return get(t, arg("axes", "ptr"), t.add(t.mul(axis, len(AXIS)), AXIS.index(name)))


def _pitch(t: Text, spec: ContractSpec, length: Value) -> Value:
    """Rows of a copy begin where vectors do."""
    return t.op("and", t.add(length, spec.lanes - 1), i64(-spec.lanes))


def _copy(t: Text, spec: ContractSpec, begins: Value, lengths: Value, counters: Value) -> None:
    """Plane by plane of the last two axes, row by row along the last. Planes along the axis before
    these are equally spaced; `counters` count through those before that.
    """
    p, n = Packing(spec), arg("n")
    last, high = t.sub(n, 1), t.sub(n, 2)
    dense = "any" not in (spec.slab_l, spec.slab_r)
    length, begin, size, stride = (
        get(t, lengths, last),
        get(t, begins, last),
        *(_field(t, last, f) for f in ("size", "stride")),
    )
    rows, up, up_size, up_stride = (
        get(t, lengths, high),
        get(t, begins, high),
        *(_field(t, high, f) for f in ("size", "stride")),
    )
    deep = t.lt(i64(0), high)  # whether there is a third axis
    third = t.select(deep, t.sub(high, 1), i64(0))
    planes, first, planes_there, apart = (
        t.select(deep, x, i64(other))
        for x, other in (
            (get(t, lengths, third), 1),
            (get(t, begins, third), 0),
            (_field(t, third, "size"), 1),
            (_field(t, third, "stride"), 0),
        )
    )
    # memory that comes from far away takes as long as so many vectors: planes that this is
    vectors = t.add(div(t, t.mul(rows, _pitch(t, spec, length)), i64(p.lanes)), 1)
    soon = t.mul(t.add(div(t, i64(AHEAD), vectors), 1), apart)
    steps = None if dense else [_field(t, axis, "step") for axis in (last, high, third)]
    step, up_step, apart_by = steps or (None, None, None)
    if apart_by is not None:
        apart_by = t.select(deep, apart_by, i64(1))
    out, more = t.variable(arg("out", "ptr")), t.variable(i64(1))
    with repeat(t, more):
        offset, inside = t.variable(i64(0)), t.variable(YES)
        with t.loop(0, third) as a:
            u = t.add(get(t, begins, a), get(t, counters, a))
            by = None if dense else _field(t, a, "step")
            at, ok = _element(t, u, _field(t, a, "size"), by)
            inside.set(both(t, inside.get(), ok))
            increase(t, offset, t.mul(at, _field(t, a, "stride")))
        whole, some = p.element_at(t, arg("source", "ptr"), offset.get()), inside.get()
        with t.loop(0, planes) as k:
            at, ok = _element(t, t.add(first, k), planes_there, apart_by)
            plane, there_is = p.element_at(t, whole, t.mul(at, apart)), both(t, some, ok)
            if masked(spec) and dense:
                from_ = p.element_at(t, plane, t.mul(up, up_stride))
                low, high_rows = (_clamp(t, t.sub(x, up), rows) for x in (i64(0), up_size))
                there = (low, t.select(there_is, high_rows, low))
                strides = up_stride, soon
                _dense_plane(t, p, out.get(), from_, (begin, length, size), there, rows, strides)
                out.set(p.element_at(t, out.get(), t.mul(rows, _pitch(t, spec, length))))
            else:
                with t.loop(0, rows) as i:
                    at, ok = _element(t, t.add(up, i), up_size, up_step)
                    elements = t.select(both(t, there_is, ok), size, i64(0))
                    row = p.element_at(t, plane, t.mul(at, up_stride))
                    _sparse_row(t, p, out.get(), row, begin, length, elements, stride, step)
                    out.set(p.element_at(t, out.get(), _pitch(t, spec, length)))
        _count_up(t, third, lengths, counters, more)


def _element(t: Text, u: Value, size: Value, step: Value | None) -> tuple[Value, Value]:
    """Which element coordinate `u` reads, and whether there is one."""
    if step is None:
        return u, t.compare("icmp ult", u, size)
    at = t.variable(u)
    with t.when(t.compare("icmp ne", step, i64(1))):
        at.set(div(t, u, step))
    exact = equal(t, t.mul(at.get(), step), u)
    return at.get(), both(t, fits(t, i64(0), u), t.lt(at.get(), size), exact)


def _dense_plane(
    t: Text, p: Packing, out: Value, source: Value, along: tuple[Value, Value, Value],
    there: tuple[Value, Value], rows: Value, strides: tuple[Value, Value],
) -> None:  # fmt: skip
    """Rows, a vector wide at a time, with zeros where nothing is. `along` is a row's first
    coordinate, how many follow, and how many elements there are; `there` which rows there are;
    `strides` are from row to row and from plane to plane: the next plane is brought near.
    """
    (begin, length, size), (stride, apart) = along, strides
    pitch = _pitch(t, p.spec, length)
    zero = Value(p.elements, "zeroinitializer")
    with t.loop(0, length, p.lanes) as i:
        u = t.add(begin, i)  # the coordinate of the first lane
        bits = t.op("shl", i64(-1), _clamp(t, t.sub(i64(0), u), p.lanes))
        bits = t.op("and", low_bits(t, _clamp(t, t.sub(size, u), p.lanes)), bits)
        first = t.add(t.mul(there[0], stride), u)
        from_ = t.variable(p.element_at(t, source, first))
        to = t.variable(p.element_at(t, out, i))
        for low, high in ((i64(0), there[0]), there, (there[1], rows)):
            with t.loop(low, high):
                x = zero
                if low is there[0]:
                    x = p.some(t, from_.get(), bits)
                    prefetch(t, p.element_at(t, from_.get(), apart), write=False)
                    from_.set(p.element_at(t, from_.get(), stride))
                t.store(x, to.get(), p.align)
                to.set(p.element_at(t, to.get(), pitch))


def _sparse_row(
    t: Text, p: Packing, out: Value, row: Value, begin: Value, length: Value, size: Value,
    stride: Value, step: Value | None,
) -> None:  # fmt: skip
    """Element by element."""
    with t.loop(0, length) as i:
        at, ok = _element(t, t.add(begin, i), size, step)
        x = t.variable(Value(p.element, "0.0" if p.element in ("float", "double") else "0"))
        with t.when(ok):
            x.set(t.load(p.element, p.element_at(t, row, t.mul(at, stride)), p.align))
        t.store(x.get(), p.element_at(t, out, i), p.align)


def _count_up(t: Text, n: Value, lengths: Value, counters: Value, more: Variable) -> None:
    """The next combination of `n` counters; `more` is 0 after the last."""
    carry = t.variable(i64(1))
    with down(t, n) as a:
        now = t.add(get(t, counters, a), carry.get())
        over = equal(t, now, get(t, lengths, a))
        put(t, t.select(over, i64(0), now), counters, a)
        carry.set(t.select(over, carry.get(), i64(0)))
    more.set(t.sub(i64(1), carry.get()))


def _clamp(t: Text, x: Value, high: int | Value) -> Value:
    return t.min(t.select(t.lt(x, 0), i64(0), x), high)
