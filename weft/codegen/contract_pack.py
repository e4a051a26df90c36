"""Packing: one vector of lanes (rows of l or columns of r) for a block of depth, side by side in memory.

    out[k, lane] = source[lanes[lane] + depths[k]]        lane < count, else 0

converted to the accumulator's dtype. Three functions give the same: "pack_lanes" reads vectors along the lanes, "pack_depth"
along the depth and transposes them in registers, "pack_any" one element at a time. Nothing but the elements named is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.codegen import verbs
from weft.codegen.contract_index import arg, call, function, get, walk
from weft.codegen.text import Text, Value, i64, vector
from weft.schedule.contract_spec import ContractSpec, accumulator

COMMON = {"out": "ptr", "row": "i64", "source": "ptr", "lanes": "ptr", "count": "i64", "depths": "ptr", "steps": "i64"}


def masked(spec: ContractSpec) -> bool:
    """Whether the machine loads and stores some lanes of a vector at no extra cost."""
    return spec.tile.vector == 64


def low_bits(t: Text, n: Value, lanes: int) -> Value:
    """The integer whose n lowest bits are set, 0 <= n <= lanes, as i64."""
    return t.sub(t.op("shl", i64(1), n), 1)


def as_mask(t: Text, bits: Value, lanes: int) -> Value:
    cut = t.convert("trunc", bits, f"i{lanes}")
    return t.convert("bitcast", cut, f"<{lanes} x i1>")


def _suffix(type_: str) -> str:
    lanes, element = type_[1:-1].split(" x ")
    return f"v{lanes}{ {'float': 'f32', 'double': 'f64'}.get(element, element) }"


def masked_load(t: Text, type_: str, pointer: Value, align: int, mask: Value) -> Value:
    """Lanes that the mask leaves out are 0, and their memory is not touched."""
    name = f"llvm.masked.load.{_suffix(type_)}.p0"
    t.declares.setdefault(name, f"declare {type_} @{name}(ptr, {mask.type}, {type_})")
    return t.let(type_, f"call {type_} @{name}(ptr align {align} {pointer.name}, {mask}, {type_} zeroinitializer)")


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

    def from_lanes(self) -> Text:
        """pack_lanes(…, position, run, stride): lanes come in runs of equal stride; the first lane is `position` into one."""
        t = function("pack_lanes", "void", **COMMON, position="i64", run="i64", stride="i64")
        everything = [arg(name, kind) for name, kind in COMMON.items()]
        out, row, source, lanes, count, depths, steps = everything
        whole = t.op(
            "and",
            t.compare("icmp eq", arg("stride"), i64(1)),
            t.op(
                "and",
                t.compare("icmp eq", count, i64(self.lanes)),
                t.compare("icmp sle", t.add(arg("position"), self.lanes), arg("run")),
            ),
        )
        with t.when(whole):
            begin = self.element_at(t, source, get(t, lanes, 0))
            with t.loop(0, steps) as k:
                x = self.run(t, self.element_at(t, begin, get(t, depths, k)))
                t.store(x, t.at(out, "i8", t.mul(k, row)), self.wide)
            t.emit("ret void")
            t.label(t.fresh("dead"))
        if masked(self.spec):
            self._segments(t)
        else:
            call(t, "void", "pack_any", *everything)
        t.emit("ret void")
        return t

    def _segments(self, t: Text) -> None:
        """Run by run: the first store sets all lanes, the others theirs."""
        out, row, source, lanes, count, depths, steps = (arg(name, kind) for name, kind in COMMON.items())
        stride, run = arg("stride"), arg("run")
        position = t.variable(arg("position"))
        with walk(t, 0, count) as lane:
            lane.step = t.min(t.sub(run, position.get()), t.sub(count, lane.now))
            position.set(i64(0))
            bits = t.op("shl", low_bits(t, lane.step, self.lanes), lane.now)
            stored = t.select(t.compare("icmp eq", lane.now, i64(0)), i64(-1), bits)
            mask = as_mask(t, stored, self.lanes)
            first = self.element_at(t, source, get(t, lanes, lane.now))
            near = t.compare("icmp eq", stride, i64(1))
            twos = t.compare("icmp eq", stride, i64(2))

            def fill(read, begin: Value, mask: Value = mask) -> None:  # type: ignore[no-untyped-def]
                with t.loop(0, steps) as k:
                    x = read(self.element_at(t, begin, get(t, depths, k)))
                    masked_store(t, x, t.at(out, "i8", t.mul(k, row)), self.wide, mask)

            with t.when(near):
                fill(lambda p: self.run(t, p, bits), self.element_at(t, first, t.sub(i64(0), lane.now)))
            with t.when(twos):
                fill(lambda p: self._evens(t, p, lane.now, lane.step), self.element_at(t, first, t.mul(lane.now, -2)))
            with t.when(t.op("xor", t.op("or", near, twos), Value("i1", "true"))):
                with t.loop(0, steps) as k:
                    depth, here = get(t, depths, k), t.at(out, "i8", t.mul(k, row))
                    with t.when(t.compare("icmp eq", lane.now, i64(0))):
                        t.store(Value(self.many, "zeroinitializer"), here, self.wide)
                    with t.loop(0, lane.step) as i:
                        x = t.load(self.element, self.element_at(t, first, t.add(depth, t.mul(i, stride))), self.align)
                        t.store(self.raise_(t, x), t.at(here, self.one, t.add(lane.now, i)), self.wide)

    def _evens(self, t: Text, pointer: Value, first: Value, count: Value) -> Value:
        """Every second element: two vectors of neighbours, shuffled. Reads nothing beyond the last element wanted."""
        span = t.sub(t.mul(count, 2), 1)
        bits = t.op("shl", low_bits(t, span, 2 * self.lanes), t.mul(first, 2))
        halves = []
        for part in range(2):
            mask = as_mask(t, t.op("lshr", bits, i64(part * self.lanes)), self.lanes)
            here = self.element_at(t, pointer, part * self.lanes)
            halves.append(masked_load(t, self.elements, here, self.align, mask))
        return self.raise_(t, shuffle(t, *halves, [2 * i for i in range(self.lanes)]))

    def from_depth(self) -> Text:
        """pack_depth(…, position, run): steps of depth come in runs of neighbours; the first is `position` into one."""
        t = function("pack_depth", "void", **COMMON, position="i64", run="i64")
        out, row, source, lanes, count, depths, steps = (arg(name, kind) for name, kind in COMMON.items())
        position = t.variable(arg("position"))
        with walk(t, 0, steps) as k:
            k.step = t.min(t.min(t.sub(arg("run"), position.get()), t.sub(steps, k.now)), self.lanes)
            after = t.add(position.get(), k.step)
            position.set(t.select(t.compare("icmp eq", after, arg("run")), i64(0), after))
            here = t.at(out, "i8", t.mul(k.now, row))
            begin = self.element_at(t, source, get(t, depths, k.now))
            full = t.compare("icmp eq", k.step, i64(self.lanes))
            if masked(self.spec):
                bits = low_bits(t, k.step, self.lanes)
                rows = []
                for i in range(self.lanes):
                    inside = t.lt(i64(i), count)
                    own = t.select(inside, get(t, lanes, t.select(inside, i64(i), i64(0))), i64(0))
                    rows.append(self.run(t, self.element_at(t, begin, own), t.select(inside, bits, i64(0))))
                columns = transpose(t, rows, self.wide)
                with t.when(full):
                    for i, x in enumerate(columns):
                        t.store(x, t.at(here, "i8", t.mul(row, i)), self.wide)
                with t.when(t.op("xor", full, Value("i1", "true"))):
                    kept = t.scratch(self.many, self.lanes)
                    for i, x in enumerate(columns):
                        t.store(x, t.at(kept, self.many, i), 64)
                    with t.loop(0, k.step) as i:
                        x = t.load(self.many, t.at(kept, self.many, i), 64)
                        t.store(x, t.at(here, "i8", t.mul(row, i)), self.wide)
            else:
                whole = t.op("and", full, t.compare("icmp eq", count, i64(self.lanes)))
                with t.when(whole):
                    rows = [self.run(t, self.element_at(t, begin, get(t, lanes, i))) for i in range(self.lanes)]
                    for i, x in enumerate(transpose(t, rows, self.wide)):
                        t.store(x, t.at(here, "i8", t.mul(row, i)), self.wide)
                with t.when(t.op("xor", whole, Value("i1", "true"))):
                    part = t.at(depths, "i64", k.now)
                    call(t, "void", "pack_any", here, row, source, lanes, count, part, k.step)
        t.emit("ret void")
        return t


def shuffle(t: Text, a: Value, b: Value, picks: list[int]) -> Value:
    """Lanes of a and b (numbered behind a's) by number."""
    said = ", ".join(f"i32 {p}" for p in picks)
    return t.let(a.type, f"shufflevector {a}, {b}, <{len(picks)} x i32> <{said}>")


def transpose(t: Text, rows: list[Value], itemsize: int) -> list[Value]:
    """A square of vectors, in steps that are one instruction each: unpack within 128 bits, then choose among 128-bit blocks."""
    n = len(rows)
    numbers = [[(r, c) for c in range(n)] for r in range(n)]  # transposed beside, to see where columns end up
    for distance, low, high in _steps(n, min(16 // itemsize, n)):
        for i in (i for i in range(n) if not i & distance):
            a, b, both = rows[i], rows[i + distance], numbers[i] + numbers[i + distance]
            rows[i], rows[i + distance] = shuffle(t, a, b, low), shuffle(t, a, b, high)
            numbers[i], numbers[i + distance] = [both[p] for p in low], [both[p] for p in high]
    return [rows[numbers.index([(r, c) for r in range(n)])] for c in range(n)]


def _steps(n: int, inner: int) -> Iterator[tuple[int, list[int], list[int]]]:
    """Pairs of rows at a distance are replaced by two shuffles of both."""
    size = 1
    while size < inner:
        low: list[int] = []
        for start in (b + g for b in range(0, n, inner) for g in range(0, inner // 2, size)):
            low += [*range(start, start + size), *range(n + start, n + start + size)]
        yield size, low, [p + inner // 2 for p in low]
        size *= 2
    blocks = [range(b, b + inner) for b in range(0, 2 * n, inner)]
    while size < n:
        yield size, [p for b in blocks[::2] for p in b], [p for b in blocks[1::2] for p in b]
        size *= 2
