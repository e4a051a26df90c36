"""Packing: one vector of lanes (rows of l or columns of r), for a block of depth, in a row.

    out[k, lane] = source[lanes[lane] + depths[k]]        lane < count

converted to the accumulator's dtype. "pack_near" and "pack_even" read vectors along the lanes,
"pack_depth" along the depth, transposed in registers, "pack_any" one element at a time;
"pack_rows" packs a whole block of columns that are neighbours. Nothing but the elements named is
read. Lanes behind the last reach no result. They may come out as zeros or copies of others, but not
as what was in memory before: a product of denormal numbers takes some machines a hundred times as
long as another, and integers read as floats are denormal.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen import verbs
from weft.codegen.contract_index import (
    arg,
    both,
    call,
    div,
    equal,
    fits,
    function,
    get,
    leave,
    put,
    rem,
    walk,
)
from weft.codegen.text import Text, Value, element_of, i64, lanes_of, vector
from weft.schedule.contract_spec import ContractSpec, accumulator

#: What every packing function takes: where vectors go and how many bytes apart; where offsets count
#: from; those of the lanes, and how many; those of depth, and how many.
COMMON = {
    "out": "ptr",
    "row": "i64",
    "source": "ptr",
    "lanes": "ptr",
    "count": "i64",
    "depths": "ptr",
    "steps": "i64",
}
LINE = 64  # bytes that come from memory together
Common = tuple[Value, Value, Value, Value, Value, Value, Value]


def common() -> Common:
    return tuple(arg(name, kind) for name, kind in COMMON.items())  # type: ignore[return-value]


def masked(spec: ContractSpec) -> bool:
    """Whether the machine loads and stores some lanes of a vector at no extra cost."""
    return spec.tile.vector == 64


def low_bits(t: Text, n: Value) -> Value:
    """The integer whose n lowest bits are set, 0 <= n < 64."""
    return t.sub(t.op("shl", i64(1), n), 1)


def as_mask(t: Text, bits: Value, lanes: int) -> Value:
    return t.convert("bitcast", t.convert("trunc", bits, f"i{lanes}"), f"<{lanes} x i1>")


def masked_load(
    t: Text, type_: str, pointer: Value, align: int, mask: Value, other: Value | None = None
) -> Value:
    """Lanes that the mask leaves out are those of `other`, or 0; their memory is not touched."""
    name = f"llvm.masked.load.{_suffix(type_)}.p0"
    t.declares.setdefault(name, f"declare {type_} @{name}(ptr, {mask.type}, {type_})")
    rest = other or Value(type_, "zeroinitializer")
    return t.let(type_, f"call {type_} @{name}(ptr align {align} {pointer.name}, {mask}, {rest})")


def masked_store(t: Text, x: Value, pointer: Value, align: int, mask: Value) -> None:
    name = f"llvm.masked.store.{_suffix(x.type)}.p0"
    t.declares.setdefault(name, f"declare void @{name}({x.type}, ptr, {mask.type})")
    t.emit(f"call void @{name}({x}, ptr align {align} {pointer.name}, {mask})")


def _suffix(type_: str) -> str:
    element = element_of(type_)
    return f"v{lanes_of(type_)}" + {"float": "f32", "double": "f64"}.get(element, element)


class Packing:
    """The types of a kernel, and its packing functions."""

    def __init__(self, spec: ContractSpec) -> None:
        self.spec, self.lanes = spec, spec.lanes
        self.acc = accumulator(spec.dtype)
        self.element, self.one = verbs.memory(spec.dtype), verbs.register(self.acc)
        self.elements, self.many = (vector(x, self.lanes) for x in (self.element, self.one))
        self.align, self.wide = spec.dtype.itemsize, spec.wide
        self.panel_bytes = spec.panel * spec.wide
        self.packed = spec.r not in ("place", "turn", "panels")

    def element_at(self, t: Text, pointer: Value, offset: int | Value) -> Value:
        return t.at(pointer, self.element, offset)

    def widen(self, t: Text, x: Value) -> Value:
        return verbs.cast(t, x, self.spec.dtype, self.acc)

    def run(self, t: Text, pointer: Value) -> Value:
        """A vector of neighbours."""
        return self.widen(t, t.load(self.elements, pointer, self.align))

    def some(self, t: Text, pointer: Value, bits: Value) -> Value:
        """Those of a vector's elements that `bits` names, others 0; not converted."""
        mask = as_mask(t, bits, self.lanes)
        return masked_load(t, self.elements, pointer, self.align, mask)

    def any(self) -> Text:
        t = function("pack_any", "void", **COMMON)
        out, row, source, lanes, count, depths, steps = common()
        with t.loop(0, steps) as k:
            here, depth = t.at(out, "i8", t.mul(k, row)), get(t, depths, k)
            with t.loop(0, count) as i:
                from_ = self.element_at(t, source, t.add(get(t, lanes, i), depth))
                x = self.widen(t, t.load(self.element, from_, self.align))
                t.store(x, t.at(here, self.one, i), self.wide)
        t.emit("ret void")
        return t

    def from_runs(self, stride: int) -> Text:
        """pack_near, pack_even(…, position, run): lanes come in runs of this stride; the first is
        `position` into one.
        """
        name = {1: "pack_near", 2: "pack_even"}[stride]
        t = function(name, "void", **COMMON, position="i64", run="i64")
        out, row, source, lanes, count, depths, steps = common()
        ends = t.add(arg("position"), self.lanes)
        with t.when(both(t, equal(t, count, self.lanes), fits(t, ends, arg("run")))):
            begin = self.element_at(t, source, get(t, lanes, 0))
            to = t.variable(out)
            with t.loop(0, steps) as k:
                here = self.element_at(t, begin, get(t, depths, k))
                x = self.run(t, here) if stride == 1 else self._evens(t, here)
                t.store(x, to.get(), self.wide)
                to.set(t.at(to.get(), "i8", row))
            leave(t)
        if masked(self.spec):
            self._segments(t, stride)
        else:
            call(t, "void", "pack_any", *common())
        t.emit("ret void")
        return t

    def _evens(self, t: Text, pointer: Value) -> Value:
        """Every second element. The second vector starts an element early, so as not to read beyond
        the last one wanted.
        """
        n = self.lanes
        a, b = (
            t.load(self.elements, self.element_at(t, pointer, start), self.align)
            for start in (0, n - 1)
        )
        return self.widen(t, shuffle(t, a, b, [*range(0, n, 2), *range(n + 1, 2 * n, 2)]))

    def _segments(self, t: Text, stride: int) -> None:
        """Runs that end within the vector, two at a time: the first two set all lanes, the others
        theirs.
        """
        out, row, source, lanes, count, depths, steps = common()
        position = t.variable(arg("position"))

        def segment(lane: Value) -> tuple[Value, list[Value], Value]:
            """The run at `lane`: how many lanes, which elements of the vectors that hold them, and
            where these vectors begin. None behind the last lane.
            """
            n = t.min(t.sub(arg("run"), position.get()), t.sub(count, lane))
            position.set(i64(0))
            elements = t.select(t.lt(i64(0), n), t.sub(t.mul(n, stride), stride - 1), i64(0))
            skip = t.mul(lane, stride)
            bits = t.op("shl", low_bits(t, elements), skip)
            parts = [t.op("lshr", bits, i64(i * self.lanes)) for i in range(stride)]
            first = get(t, lanes, t.select(t.lt(lane, count), lane, i64(0)))
            start = self.element_at(t, source, t.sub(first, skip))
            return n, [as_mask(t, x, self.lanes) for x in parts], start

        with walk(t, 0, count) as lane:
            n, masks, start = segment(lane.now)
            more, other_masks, other_start = segment(t.add(lane.now, n))
            lane.step = t.add(n, more)
            own = t.op("shl", low_bits(t, lane.step), lane.now)
            all_ = t.select(equal(t, lane.now, 0), i64(-1), own)
            stored = as_mask(t, all_, self.lanes)
            to = t.variable(out)
            with t.loop(0, steps) as k:
                xs = []
                for i in range(stride):
                    skip = t.add(get(t, depths, k), i * self.lanes)
                    here, there = (self.element_at(t, s, skip) for s in (start, other_start))
                    x = masked_load(t, self.elements, here, self.align, masks[i])
                    x = masked_load(t, self.elements, there, self.align, other_masks[i], x)
                    xs.append(x)
                x = xs[0] if stride == 1 else shuffle(t, xs[0], xs[1], range(0, 2 * self.lanes, 2))
                masked_store(t, self.widen(t, x), to.get(), self.wide, stored)
                to.set(t.at(to.get(), "i8", row))

    def from_depth(self) -> Text:
        """pack_depth(…, position, run): steps of depth come in runs of neighbours; the first is
        `position` into one.

        Lanes that are a page apart share few places in the cache, so a few of them at a time are
        read, for as many steps as make a line.
        """
        t = function("pack_depth", "void", **COMMON, position="i64", run="i64")
        out, row, source, lanes, count, depths, steps = common()
        some = min(self.lanes, 8)
        offsets = t.scratch("i64", self.lanes)
        with t.loop(0, self.lanes) as i:  # lanes behind the last repeat the first
            put(t, get(t, lanes, t.select(t.lt(i, count), i, i64(0))), offsets, i)
        position = t.variable(arg("position"))
        with walk(t, 0, steps) as k:
            most = t.min(t.sub(steps, k.now), LINE // self.align)
            k.step = t.min(t.sub(arg("run"), position.get()), most)
            after = t.add(position.get(), k.step)
            position.set(t.select(equal(t, after, arg("run")), i64(0), after))
            begin = self.element_at(t, source, get(t, depths, k.now))
            here = t.at(out, "i8", t.mul(k.now, row))
            whole = t.sub(k.step, rem(t, k.step, i64(self.inner)))
            with t.loop(0, count, some) as lane:
                to, table = t.variable(t.at(here, self.one, lane)), t.at(offsets, "i64", lane)
                with t.loop(0, whole, self.inner) as i:
                    for x in self.turned(t, begin, i, table, some):
                        t.store(x, to.get(), self.wide)
                        to.set(t.at(to.get(), "i8", row))
            with t.when(t.lt(whole, k.step)):
                part, last = t.at(depths, "i64", t.add(k.now, whole)), t.sub(k.step, whole)
                rest = t.at(here, "i8", t.mul(whole, row))
                call(t, "void", "pack_any", rest, row, source, lanes, count, part, last)
        t.emit("ret void")
        return t

    @property
    def inner(self) -> int:
        """Steps of depth that are transposed together: those that make 128 bits."""
        return min(16 // self.wide, self.lanes)

    def turned(self, t: Text, source: Value, at: Value, offsets: Value, lanes: int) -> list[Value]:
        """Vectors of so many lanes for `inner` steps of depth, neighbours from step `at` on."""
        inner = self.inner
        piece = vector(self.element, inner)
        rows = []
        for j in range(inner):
            parts = []
            for lane in range(j, lanes, inner):
                row = self.element_at(t, source, get(t, offsets, lane))
                parts.append(t.load(piece, self.element_at(t, row, at), self.align))
            while len(parts) > 1:
                pairs = zip(parts[::2], parts[1::2], strict=True)
                parts = [shuffle(t, a, b, range(2 * lanes_of(a.type))) for a, b in pairs]
            rows.append(self.widen(t, parts[0]))
        return turn(t, rows)

    def from_rows(self) -> Text:
        """pack_rows(out, panel, source, count, depths, steps): all columns of a block, which are
        neighbours, row after row of r; panels are `panel` bytes apart.
        """
        pointers = {"out": "ptr", "panel": "i64", "source": "ptr", "count": "i64", "depths": "ptr"}
        t = function("pack_rows", "void", **pointers, steps="i64")
        count = arg("count")
        whole = t.sub(count, rem(t, count, i64(self.spec.panel)))
        with t.loop(0, arg("steps")) as k:
            begin = self.element_at(t, arg("source", "ptr"), get(t, arg("depths", "ptr"), k))
            to = t.variable(t.at(arg("out", "ptr"), "i8", t.mul(k, self.panel_bytes)))
            with t.loop(0, whole, self.spec.panel) as j:
                for v in range(self.spec.tile.widths[0]):
                    x = self.run(t, self.element_at(t, begin, t.add(j, v * self.lanes)))
                    t.store(x, t.at(to.get(), self.many, v), self.wide)
                to.set(t.at(to.get(), "i8", arg("panel")))
            self._last(t, self.element_at(t, begin, whole), to.get(), t.sub(count, whole))
        t.emit("ret void")
        return t

    def tail(self) -> Text:
        """pack_tail(out, source, step, count, steps): the columns that fill no vector, neighbours
        in rows `step` bytes apart, where r is read in place.
        """
        words = {"step": "i64", "count": "i64", "steps": "i64"}
        t = function("pack_tail", "void", out="ptr", source="ptr", **words)
        clear(t, arg("out", "ptr"), t.mul(arg("steps"), self.panel_bytes))
        out, source = t.variable(arg("out", "ptr")), t.variable(arg("source", "ptr"))
        with t.loop(0, arg("steps")):
            self._last(t, source.get(), out.get(), arg("count"))
            out.set(t.at(out.get(), "i8", self.panel_bytes))
            source.set(t.at(source.get(), "i8", arg("step")))
        t.emit("ret void")
        return t

    def _last(self, t: Text, begin: Value, out: Value, count: Value) -> None:
        """Columns that fill no panel."""
        if not masked(self.spec):
            with t.loop(0, count) as j:
                x = t.load(self.element, self.element_at(t, begin, j), self.align)
                t.store(self.widen(t, x), t.at(out, self.one, j), self.wide)
            return
        with t.loop(0, count, self.lanes) as j:
            bits = low_bits(t, t.min(t.sub(count, j), self.lanes))
            x = self.widen(t, self.some(t, self.element_at(t, begin, j), bits))
            t.store(x, t.at(out, self.one, j), self.wide)


def clear(t: Text, begin: Value, size: Value) -> None:
    """Zeros in so many bytes."""
    name = "llvm.memset.p0.i64"
    t.declares.setdefault(name, f"declare void @{name}(ptr, i8, i64, i1)")
    t.emit(f"call void @{name}({begin}, i8 0, {size}, i1 false)")


def clear_last(
    t: Text, spec: ContractSpec, out: Value, count: Value, steps: Value, panel: Value
) -> None:
    """Zeros in the last of the panels for so many columns, `panel` bytes apart, if these leave some
    of it free.
    """
    with t.when(t.lt(i64(0), rem(t, count, i64(spec.panel)))):
        begin = t.mul(div(t, count, i64(spec.panel)), panel)
        clear(t, t.at(out, "i8", begin), t.mul(steps, Packing(spec).panel_bytes))


def shuffle(t: Text, a: Value, b: Value, picks: Sequence[int]) -> Value:
    """Lanes of a and b (numbered behind a's) by number."""
    said = ", ".join(f"i32 {p}" for p in picks)
    type_ = vector(element_of(a.type), len(picks))
    return t.let(type_, f"shufflevector {a}, {b}, <{len(picks)} x i32> <{said}>")


def turn(t: Text, rows: list[Value]) -> list[Value]:
    """Transpose each square of len(rows) lanes that the vectors have in common, by unpacking."""
    inner, n = len(rows), lanes_of(rows[0].type)
    column = [0] * inner  # of the first lane of each vector: where columns end up
    size = 1
    while size < inner:
        low: list[int] = []
        for block in range(0, n, inner):
            for start in range(block, block + inner // 2, size):
                low += [*range(start, start + size), *range(n + start, n + start + size)]
        high = [p + inner // 2 for p in low]
        for i in (i for i in range(inner) if not i & size):
            a, b = rows[i], rows[i + size]
            rows[i], rows[i + size] = shuffle(t, a, b, low), shuffle(t, a, b, high)
            column[i + size] = column[i] + inner // (2 * size)
        size *= 2
    return [rows[column.index(c)] for c in range(inner)]
