"""Packing: one vector of lanes (rows of l or columns of r) for a block of depth, side by side in memory.

    out[k, lane] = source[lanes[lane] + depths[k]]        lane < count, else 0

converted to the accumulator's dtype. Functions that give the same: "pack_near" and "pack_even" read vectors along the lanes,
"pack_depth" along the depth and transposes them in registers, "pack_any" one element at a time; "pack_rows" packs a whole block
of columns that are neighbours. Nothing but the elements named is read. Lanes behind the last may hold anything: they reach no result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.codegen import verbs
from weft.codegen.contract_index import arg, call, function, get, put, rem, walk
from weft.codegen.text import Text, Value, i64, lanes_of, vector
from weft.schedule.contract_spec import ContractSpec, accumulator

COMMON = {"out": "ptr", "row": "i64", "source": "ptr", "lanes": "ptr", "count": "i64", "depths": "ptr", "steps": "i64"}


def masked(spec: ContractSpec) -> bool:
    """Whether the machine loads and stores some lanes of a vector at no extra cost."""
    return spec.tile.vector == 64


def low_bits(t: Text, n: Value) -> Value:
    """The integer whose n lowest bits are set, 0 <= n < 64."""
    return t.sub(t.op("shl", i64(1), n), 1)


def as_mask(t: Text, bits: Value, lanes: int) -> Value:
    cut = t.convert("trunc", bits, f"i{lanes}")
    return t.convert("bitcast", cut, f"<{lanes} x i1>")


def _suffix(type_: str) -> str:
    lanes, element = type_[1:-1].split(" x ")
    return f"v{lanes}{ {'float': 'f32', 'double': 'f64'}.get(element, element) }"


def masked_load(t: Text, type_: str, pointer: Value, align: int, mask: Value, other: Value | None = None) -> Value:
    """Lanes that the mask leaves out are those of `other`, or 0, and their memory is not touched."""
    name = f"llvm.masked.load.{_suffix(type_)}.p0"
    t.declares.setdefault(name, f"declare {type_} @{name}(ptr, {mask.type}, {type_})")
    rest = other or Value(type_, "zeroinitializer")
    return t.let(type_, f"call {type_} @{name}(ptr align {align} {pointer.name}, {mask}, {rest})")


def masked_store(t: Text, x: Value, pointer: Value, align: int, mask: Value) -> None:
    name = f"llvm.masked.store.{_suffix(x.type)}.p0"
    t.declares.setdefault(name, f"declare void @{name}({x.type}, ptr, {mask.type})")
    t.emit(f"call void @{name}({x}, ptr align {align} {pointer.name}, {mask})")


class Packing:
    """What the packing functions share: the types of a kernel."""

    def __init__(self, spec: ContractSpec) -> None:
        self.spec, self.lanes = spec, spec.lanes
        self.acc = accumulator(spec.dtype)
        self.element, self.one = verbs.memory(spec.dtype), verbs.register(self.acc)
        self.elements, self.many = vector(self.element, self.lanes), vector(self.one, self.lanes)
        self.align, self.wide = spec.dtype.itemsize, self.acc.itemsize

    def raise_(self, t: Text, x: Value) -> Value:
        return verbs.cast(t, x, self.spec.dtype, self.acc)

    def element_at(self, t: Text, pointer: Value, offset: int | Value) -> Value:
        return t.at(pointer, self.element, offset)

    def run(self, t: Text, pointer: Value, bits: Value | None = None) -> Value:
        """A vector of neighbours, or those of its lanes that `bits` names."""
        if bits is None:
            return self.raise_(t, t.load(self.elements, pointer, self.align))
        return self.raise_(t, self.raw_run(t, pointer, bits))

    def raw_run(self, t: Text, pointer: Value, bits: Value) -> Value:
        """The same, as it lies in memory."""
        return masked_load(t, self.elements, pointer, self.align, as_mask(t, bits, self.lanes))

    def any(self) -> Text:
        t = function("pack_any", "void", **COMMON)
        out, row, source = arg("out", "ptr"), arg("row"), arg("source", "ptr")
        with t.loop(0, arg("steps")) as k:
            here, depth = t.at(out, "i8", t.mul(k, row)), get(t, arg("depths", "ptr"), k)
            with t.loop(0, arg("count")) as i:
                from_ = self.element_at(t, source, t.add(get(t, arg("lanes", "ptr"), i), depth))
                x = self.raise_(t, t.load(self.element, from_, self.align))
                t.store(x, t.at(here, self.one, i), self.wide)
            with t.loop(arg("count"), self.lanes) as i:
                t.store(Value(self.one, "0.0" if self.acc.is_float else "0"), t.at(here, self.one, i), self.wide)
        t.emit("ret void")
        return t

    def from_runs(self, stride: int) -> Text:
        """pack_near, pack_even(…, position, run): lanes come in runs of this stride; the first lane is `position` into one."""
        t = function({1: "pack_near", 2: "pack_even"}[stride], "void", **COMMON, position="i64", run="i64")
        everything = [arg(name, kind) for name, kind in COMMON.items()]
        out, row, source, lanes, count, depths, steps = everything
        whole = t.op(
            "and",
            t.compare("icmp eq", count, i64(self.lanes)),
            t.compare("icmp sle", t.add(arg("position"), self.lanes), arg("run")),
        )
        with t.when(whole):
            begin = self.element_at(t, source, get(t, lanes, 0))
            to = t.variable(out)
            with t.loop(0, steps) as k:
                here = self.element_at(t, begin, get(t, depths, k))
                t.store(self.run(t, here) if stride == 1 else self._evens(t, here), to.get(), self.wide)
                to.set(t.at(to.get(), "i8", row))
            t.emit("ret void")
            t.label(t.fresh("dead"))
        if masked(self.spec):
            self._segments(t, stride)
        else:
            call(t, "void", "pack_any", *everything)
        t.emit("ret void")
        return t

    def _evens(self, t: Text, pointer: Value) -> Value:
        """Every second element. The second vector starts an element early, so as not to read beyond the last one wanted."""
        n = self.lanes
        halves = [t.load(self.elements, self.element_at(t, pointer, at), self.align) for at in (0, n - 1)]
        return self.raise_(t, shuffle(t, *halves, [*range(0, n, 2), *range(n + 1, 2 * n, 2)]))

    def _segments(self, t: Text, stride: int) -> None:
        """Runs that end within the vector, two at a time: the first pair sets all lanes, the others theirs. `stride` is 1 or 2:
        every element, or every second.
        """
        out, row, source, lanes, count, depths, steps = (arg(name, kind) for name, kind in COMMON.items())
        position = t.variable(arg("position"))

        def segment(lane: Value) -> tuple[Value, list[Value], Value]:
            """The run at `lane`: how many lanes, which elements of the vectors that hold them, and where these begin; none
            behind the last."""
            n = t.min(t.sub(arg("run"), position.get()), t.sub(count, lane))
            position.set(i64(0))
            span = n if stride == 1 else t.select(t.lt(i64(0), n), t.sub(t.mul(n, stride), stride - 1), i64(0))
            bits = t.op("shl", low_bits(t, span), t.mul(lane, stride))
            parts = [as_mask(t, t.op("lshr", bits, i64(i * self.lanes)), self.lanes) for i in range(stride)]
            inside = t.select(t.lt(lane, count), lane, i64(0))
            return n, parts, self.element_at(t, source, t.sub(get(t, lanes, inside), t.mul(lane, stride)))

        with walk(t, 0, count) as lane:
            n, masks, first = segment(lane.now)
            more, others, second = segment(t.add(lane.now, n))
            lane.step = t.add(n, more)
            own = t.op("shl", low_bits(t, lane.step), lane.now)
            stored = as_mask(t, t.select(t.compare("icmp eq", lane.now, i64(0)), i64(-1), own), self.lanes)
            to = t.variable(out)
            with t.loop(0, steps) as k:
                x = self._merged(t, get(t, depths, k), masks, first, others, second)
                masked_store(t, x, to.get(), self.wide, stored)
                to.set(t.at(to.get(), "i8", row))

    def _merged(
        self, t: Text, depth: Value, masks: list[Value], first: Value, others: list[Value], second: Value
    ) -> Value:
        """Lanes of two runs, each with the masks of its one or two vectors."""
        xs = []
        for i, (own, other) in enumerate(zip(masks, others, strict=True)):
            here, there = (self.element_at(t, p, t.add(depth, i * self.lanes)) for p in (first, second))
            x = masked_load(t, self.elements, here, self.align, own)
            xs.append(masked_load(t, self.elements, there, self.align, other, x))
        return self.raise_(t, xs[0] if len(xs) == 1 else shuffle(t, *xs, range(0, 2 * self.lanes, 2)))

    def columns(self) -> Text:
        """pack_tail(out, source, step, count, steps): the few columns, neighbours in rows `step` bytes apart, that fill no
        vector where r is read in place."""
        t = function("pack_tail", "void", out="ptr", source="ptr", step="i64", count="i64", steps="i64")
        out, source = t.variable(arg("out", "ptr")), t.variable(arg("source", "ptr"))
        with t.loop(0, arg("steps")):
            self._tail(t, source.get(), out.get(), arg("count"))
            out.set(t.at(out.get(), "i8", self.spec.panel * self.wide))
            source.set(t.at(source.get(), "i8", arg("step")))
        t.emit("ret void")
        return t

    def from_rows(self) -> Text:
        """pack_rows(out, panel, source, count, depths, steps): all columns of a block, neighbours, row after row of r."""
        spec = self.spec
        t = function("pack_rows", "void", out="ptr", panel="i64", source="ptr", count="i64", depths="ptr", steps="i64")
        row = spec.panel * self.wide
        count, steps = arg("count"), arg("steps")
        whole = t.sub(count, rem(t, count, i64(spec.panel)))
        with t.loop(0, steps) as k:
            begin = self.element_at(t, arg("source", "ptr"), get(t, arg("depths", "ptr"), k))
            to = t.variable(t.at(arg("out", "ptr"), "i8", t.mul(k, row)))
            with t.loop(0, whole, spec.panel) as j:
                here = self.element_at(t, begin, j)
                for v in range(spec.tile.widths[0]):
                    x = self.run(t, self.element_at(t, here, v * self.lanes))
                    t.store(x, t.at(to.get(), self.many, v), self.wide)
                to.set(t.at(to.get(), "i8", arg("panel")))
            self._tail(t, self.element_at(t, begin, whole), to.get(), t.sub(count, whole))
        t.emit("ret void")
        return t

    def _tail(self, t: Text, begin: Value, out: Value, count: Value) -> None:
        """The columns that fill no panel; what is left of their last vector is 0."""
        if masked(self.spec):
            with t.loop(0, count, self.lanes) as j:
                left = t.min(t.sub(count, j), self.lanes)
                x = self.run(t, self.element_at(t, begin, j), low_bits(t, left))
                t.store(x, t.at(out, self.one, j), self.wide)
            return
        with t.loop(0, count, self.lanes) as j:
            t.store(Value(self.many, "zeroinitializer"), t.at(out, self.one, j), self.wide)
        with t.loop(0, count) as j:
            x = self.raise_(t, t.load(self.element, self.element_at(t, begin, j), self.align))
            t.store(x, t.at(out, self.one, j), self.wide)

    def from_depth(self) -> Text:
        """pack_depth(…, position, run): steps of depth come in runs of neighbours; the first is `position` into one.

        As many steps at a time as make 128 bits are read from each lane; unpacking within 128 bits transposes them.
        """
        t = function("pack_depth", "void", **COMMON, position="i64", run="i64")
        out, row, source, lanes, count, depths, steps = (arg(name, kind) for name, kind in COMMON.items())
        inner = min(16 // self.wide, self.lanes)
        offsets = t.scratch("i64", self.lanes)
        with t.loop(0, self.lanes) as i:  # lanes behind the last repeat the first: nobody looks at them
            put(t, get(t, lanes, t.select(t.lt(i, count), i, i64(0))), offsets, i)
        position = t.variable(arg("position"))
        with walk(t, 0, steps) as k:
            k.step = t.min(t.sub(arg("run"), position.get()), t.sub(steps, k.now))
            position.set(i64(0))
            begin = self.element_at(t, source, get(t, depths, k.now))
            to = t.variable(t.at(out, "i8", t.mul(k.now, row)))
            whole = t.sub(k.step, rem(t, k.step, i64(inner)))
            with t.loop(0, whole, inner) as i:
                for x in self._turned(t, self.element_at(t, begin, i), offsets, inner):
                    t.store(x, to.get(), self.wide)
                    to.set(t.at(to.get(), "i8", row))
            left = t.sub(k.step, whole)
            with t.when(t.lt(i64(0), left)):
                part = t.at(depths, "i64", t.add(k.now, whole))
                call(t, "void", "pack_any", to.get(), row, source, lanes, count, part, left)
        t.emit("ret void")
        return t

    def _turned(self, t: Text, here: Value, offsets: Value, inner: int) -> list[Value]:
        """`inner` vectors, one per step of depth."""
        piece = vector(self.element, inner)

        def joined(parts: list[Value]) -> Value:
            while len(parts) > 1:
                n = 2 * lanes_of(parts[0].type)
                said = ", ".join(f"i32 {i}" for i in range(n))
                parts = [
                    t.let(f"<{n} x {self.element}>", f"shufflevector {a}, {b}, <{n} x i32> <{said}>")
                    for a, b in zip(parts[::2], parts[1::2], strict=True)
                ]
            return parts[0]

        rows = []
        for j in range(inner):
            own = [self.element_at(t, here, get(t, offsets, b + j)) for b in range(0, self.lanes, inner)]
            rows.append(self.raise_(t, joined([t.load(piece, p, self.align) for p in own])))
        return turn(t, rows)


def shuffle(t: Text, a: Value, b: Value, picks: Sequence[int]) -> Value:
    """Lanes of a and b (numbered behind a's) by number."""
    said = ", ".join(f"i32 {p}" for p in picks)
    return t.let(a.type, f"shufflevector {a}, {b}, <{len(picks)} x i32> <{said}>")


def turn(t: Text, rows: list[Value]) -> list[Value]:
    """Transpose each square of len(rows) lanes that the vectors have in common, by unpacking."""
    inner, n = len(rows), lanes_of(rows[0].type)
    names = [[(r, c) for c in range(n)] for r in range(inner)]  # moved beside, to see where columns end up
    size = 1
    while size < inner:
        low: list[int] = []
        for start in (b + g for b in range(0, n, inner) for g in range(0, inner // 2, size)):
            low += [*range(start, start + size), *range(n + start, n + start + size)]
        high = [p + inner // 2 for p in low]
        for i in (i for i in range(inner) if not i & size):
            a, b, both = rows[i], rows[i + size], names[i] + names[i + size]
            rows[i], rows[i + size] = shuffle(t, a, b, low), shuffle(t, a, b, high)
            names[i], names[i + size] = [both[p] for p in low], [both[p] for p in high]
        size *= 2
    return [rows[next(r for r in range(inner) if names[r][0] == (0, c))] for c in range(inner)]
