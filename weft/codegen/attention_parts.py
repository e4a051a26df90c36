"""What attention kernels are made of: products of tiles, rows brought to scratch memory and stored
from there, keys packed for the tiles, what a weight of 0 adds.
"""

from __future__ import annotations

from weft.codegen.contract_index import YES, arg, call, equal, fits, function, invert, put, walk
from weft.codegen.contract_pack import (
    Packing,
    as_mask,
    clear,
    clear_last,
    low_bits,
    masked,
    masked_load,
)
from weft.codegen.contract_tile import tile_function, tile_height, tile_name
from weft.codegen.registers import intrinsic, literal, memory
from weft.codegen.text import Text, Value, i64
from weft.codegen.verbs import cast
from weft.schedule.contract_spec import ContractSpec
from weft.types.dtype import DType, float64


def tiles(spec: ContractSpec) -> tuple[str, list[Text]]:
    """The tiles and what calls them: globals, functions."""
    names = ", ".join(f"ptr @{tile_name(*shape)}" for shape in spec.shapes)
    table = f"@tiles = internal constant [{len(spec.shapes)} x ptr] [{names}]"
    size = Packing(spec).panel_bytes
    zeros = f"@zeros = internal constant [{size} x i8] zeroinitializer, align 64"
    parts = [tile_function(spec, *shape) for shape in spec.shapes]
    return f"{table}\n{zeros}\n", [*parts, _column_function(spec), _product_function(spec)]


def _column_function(spec: ContractSpec) -> Text:
    """column(rows, steps, l, l_row, l_step, r, r_step, first, first_row, c, c_row, narrow): tiles
    below each other, of one panel of columns, or of one vector of them if it is `narrow`. Strides
    in bytes.
    """
    l = {"l": "ptr", "l_row": "i64", "l_step": "i64", "r": "ptr", "r_step": "i64"}
    ends = {"first": "ptr", "first_row": "i64", "c": "ptr", "c_row": "i64", "narrow": "i64"}
    t = function("column", "void", rows="i64", steps="i64", **l, **ends)
    with walk(t, 0, arg("rows")) as i:
        left = t.sub(arg("rows"), i.now)
        which, i.step = tile_height(t, left, spec.tile)
        lower = t.add(which, len(spec.tile.widths) - 1)
        number = t.select(equal(t, which, 0), arg("narrow"), lower)
        l_at, first, c = (
            t.at(arg(name, "ptr"), "i8", t.mul(i.now, arg(f"{name}_row")))
            for name in ("l", "first", "c")
        )
        code = t.load("ptr", t.at(Value("ptr", "@tiles"), "ptr", number), 8)
        rest = (arg("r", "ptr"), arg("r_step"), first, arg("first_row"), c, arg("c_row"))
        args = (arg("steps"), l_at, arg("l_row"), arg("l_step"), *rest)
        t.emit(f"call void {code.name}({', '.join(map(str, args))})")
    t.emit("ret void")
    return t


def _product_function(spec: ContractSpec) -> Text:
    """product(rows, cols, steps, l, l_row, l_step, r, r_step, r_panel, c, c_row, go_on): a matrix
    of sums, panel by panel of its columns; where `go_on`, sums that c holds go on.
    """
    words = {"rows": "i64", "cols": "i64", "steps": "i64"}
    l = {"l": "ptr", "l_row": "i64", "l_step": "i64"}
    r = {"r": "ptr", "r_step": "i64", "r_panel": "i64"}
    t = function("product", "void", **words, **l, **r, c="ptr", c_row="i64", go_on="i1")
    p, c_row = Packing(spec), arg("c_row")
    with t.loop(0, arg("cols"), spec.panel) as j:
        panel = t.op("udiv", j, i64(spec.panel))
        r_at = t.at(arg("r", "ptr"), "i8", t.mul(panel, arg("r_panel")))
        c = t.at(arg("c", "ptr"), p.one, j)
        first = t.select(arg("go_on", "i1"), c, Value("ptr", "@zeros"))
        first_row = t.select(arg("go_on", "i1"), c_row, i64(0))
        narrow = i64(0)
        if len(spec.tile.widths) > 1:
            few = fits(t, t.sub(arg("cols"), j), spec.lanes)
            narrow = t.convert("zext", few, "i64")
        l_args = (arg("l", "ptr"), arg("l_row"), arg("l_step"))
        args = (*l_args, r_at, arg("r_step"), first, first_row, c, c_row, narrow)
        call(t, "void", "column", arg("rows"), arg("steps"), *args)
    t.emit("ret void")
    return t


def bring_function(spec: ContractSpec) -> Text:
    """bring(out, pitch, source, row, col, rows, cols): a matrix in the accumulator's dtype, rows
    `pitch` elements apart, with zeros between.
    """
    sizes = {"row": "i64", "col": "i64", "rows": "i64", "cols": "i64"}
    t = function("bring", "void", out="ptr", pitch="i64", source="ptr", **sizes)
    p, cols = Packing(spec), arg("cols")
    near = equal(t, arg("col"), 1)
    whole = t.select(near, t.op("and", cols, i64(-p.lanes)), i64(0))
    with t.loop(0, arg("rows")) as i:
        from_ = p.element_at(t, arg("source", "ptr"), t.mul(i, arg("row")))
        to = t.at(arg("out", "ptr"), p.one, t.mul(i, arg("pitch")))
        with t.when(t.lt(cols, arg("pitch"))):
            clear(t, to, t.mul(arg("pitch"), p.wide))
        with t.loop(0, whole, p.lanes) as j:
            t.store(p.run(t, p.element_at(t, from_, j)), t.at(to, p.one, j), p.wide)
        done = whole
        if masked(spec):
            some = t.op("and", near, t.lt(whole, cols))
            with t.when(some):
                bits = low_bits(t, t.sub(cols, whole))
                x = masked_load(
                    t, p.elements, p.element_at(t, from_, whole), p.align, as_mask(t, bits, p.lanes)
                )
                t.store(p.widen(t, x), t.at(to, p.one, whole), p.wide)
            done = t.select(near, cols, whole)
        with t.loop(done, cols) as j:
            x = t.load(p.element, p.element_at(t, from_, t.mul(j, arg("col"))), p.align)
            t.store(p.widen(t, x), t.at(to, p.one, j), p.wide)
    t.emit("ret void")
    return t


def transpose_function(spec: ContractSpec) -> Text:
    """transpose(out, source, row, col, rows, cols, table): a matrix whose rows are a tile's
    columns, packed for it: panel after panel of rows, in each `cols` steps. `table` has a word for
    each.
    """
    words = {"row": "i64", "col": "i64", "rows": "i64", "cols": "i64"}
    t = function("transpose", "void", out="ptr", source="ptr", **words, table="ptr")
    p, rows, cols, table = Packing(spec), arg("rows"), arg("cols"), arg("table", "ptr")
    lanes = t.scratch("i64", p.lanes)
    with t.loop(0, cols) as k:
        put(t, t.mul(k, arg("col")), table, k)
    near = equal(t, arg("col"), 1)
    row = i64(p.panel_bytes)
    clear_last(t, spec, arg("out", "ptr"), rows, cols, t.mul(cols, p.panel_bytes))
    with t.loop(0, rows, p.lanes) as i:
        count = t.min(t.sub(rows, i), p.lanes)
        with t.loop(0, count) as lane:
            put(t, t.mul(t.add(i, lane), arg("row")), lanes, lane)
        panel = t.op("udiv", i, i64(spec.panel))
        skip = t.op("urem", i, i64(spec.panel))
        to = t.at(arg("out", "ptr"), "i8", t.mul(t.mul(panel, cols), p.panel_bytes))
        common = (t.at(to, p.one, skip), row, arg("source", "ptr"), lanes, count, table, cols)
        with t.when(near):
            call(t, "void", "pack_depth", *common, i64(0), cols)
        with t.when(invert(t, near)):
            call(t, "void", "pack_any", *common)
    t.emit("ret void")
    return t


def behind_function(spec: ContractSpec) -> Text:
    """behind(out, before, source, row, low, high, cols): `before` and 0 times the rows low..high-1
    of a matrix, whose rows are `row` bytes apart: zeros with a sign, or NaN.
    """
    words = {"row": "i64", "low": "i64", "high": "i64", "cols": "i64"}
    t = function("behind", "void", out="ptr", before="ptr", source="ptr", **words)
    p = Packing(spec)
    zero = literal(0.0, p.acc, p.lanes)
    with t.loop(0, arg("cols"), p.lanes) as j:
        total = t.variable(t.load(p.many, t.at(arg("before", "ptr"), p.one, j), p.wide))
        column = t.at(arg("source", "ptr"), p.one, j)
        with t.loop(arg("low"), arg("high")) as i:
            x = t.load(p.many, t.at(column, "i8", t.mul(i, arg("row"))), p.wide)
            total.set(t.op("fadd", total.get(), t.op("fmul", zero, x)))
        t.store(total.get(), t.at(arg("out", "ptr"), p.one, j), p.wide)
    t.emit("ret void")
    return t


def line_function(dtype: DType) -> Text:
    """line(out, source, col, count): a row of a mask, element after element."""
    t = function("line", "void", out="ptr", source="ptr", col="i64", count="i64")
    element, align, count = memory(dtype), dtype.itemsize, arg("count")
    near = equal(t, arg("col"), 1)
    lanes = 64 // dtype.itemsize
    whole = t.select(near, t.op("and", count, i64(-lanes)), i64(0))
    with t.loop(0, whole, lanes) as j:
        x = t.load(memory(dtype, lanes), t.at(arg("source", "ptr"), element, j), align)
        t.store(x, t.at(arg("out", "ptr"), element, j), align)
    with t.loop(whole, count) as j:
        x = t.load(element, t.at(arg("source", "ptr"), element, t.mul(j, arg("col"))), align)
        t.store(x, t.at(arg("out", "ptr"), element, j), align)
    t.emit("ret void")
    return t


def scale_function(spec: ContractSpec) -> Text:
    """scale(at, count, by): so many numbers of the operands' dtype, in place, in whole vectors."""
    p = Packing(spec)
    t = function("scale", "void", at="ptr", count="i64", by="double")
    by = cast(t, cast(t, arg("by", "double"), float64, spec.dtype), spec.dtype, p.acc)
    spread = t.splat(by, p.lanes)
    with t.loop(0, arg("count"), p.lanes) as i:
        here = t.at(arg("at", "ptr"), p.one, i)
        x = settled(t, spec.dtype, t.load(p.many, here, p.wide))
        t.store(settled(t, spec.dtype, t.op("fmul", x, spread)), here, p.wide)
    t.emit("ret void")
    return t


def store_function(spec: ContractSpec) -> Text:
    """store(out, source, pitch, rows, cols): rows of sums as a dense result."""
    p, cols = Packing(spec), arg("cols")
    words = {"pitch": "i64", "rows": "i64", "cols": "i64"}
    t = function("store", "void", out="ptr", source="ptr", **words)
    whole = t.op("and", cols, i64(-p.lanes))
    with t.loop(0, arg("rows")) as i:
        to = p.element_at(t, arg("out", "ptr"), t.mul(i, cols))
        from_ = t.at(arg("source", "ptr"), p.one, t.mul(i, arg("pitch")))
        for low, high, type_, step in ((i64(0), whole, p.many, p.lanes), (whole, cols, p.one, 1)):
            with t.loop(low, high, step) as j:
                x = t.load(type_, t.at(from_, p.one, j), p.wide)
                t.store(cast(t, x, p.acc, spec.dtype), p.element_at(t, to, j), p.align)
    t.emit("ret void")
    return t


def small_function(spec: ContractSpec) -> Text:
    """small(source, row, col, rows, cols): whether all elements of a matrix are below 2**40."""
    p, cols = Packing(spec), arg("cols")
    words = {"row": "i64", "col": "i64", "rows": "i64", "cols": "i64"}
    t = function("small", "i1", source="ptr", **words)
    whole = t.select(equal(t, arg("col"), 1), t.op("and", cols, i64(-p.lanes)), i64(0))
    lanes = t.variable(Value(f"<{p.lanes} x i1>", "splat (i1 true)"))
    one = t.variable(YES)

    def below(x: Value, lanes: int) -> Value:
        return t.compare("fcmp olt", intrinsic(t, "fabs", x), literal(2.0**40, p.acc, lanes))

    with t.loop(0, arg("rows")) as i:
        row = p.element_at(t, arg("source", "ptr"), t.mul(i, arg("row")))
        with t.loop(0, whole, p.lanes) as j:
            x = p.run(t, p.element_at(t, row, j))
            lanes.set(t.op("and", lanes.get(), below(x, p.lanes)))
        with t.loop(whole, cols) as j:
            x = t.load(p.element, p.element_at(t, row, t.mul(j, arg("col"))), p.align)
            one.set(t.op("and", one.get(), below(p.widen(t, x), 1)))
    bits = t.convert("bitcast", lanes.get(), f"i{p.lanes}")
    all_ = t.compare("icmp eq", bits, Value(bits.type, "-1"))
    t.emit(f"ret {t.op('and', all_, one.get())}")
    return t


def settled(t: Text, dtype: DType, x: Value) -> Value:
    """Rounded to a dtype that is held in a wider one, as the end of an op does."""
    acc = dtype.compute
    return x if dtype is acc else cast(t, cast(t, x, acc, dtype), dtype, acc)
