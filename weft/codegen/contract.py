"""The contraction kernel: blocks of the result, cut into tiles (contract_tile), from operands in place or packed (contract_pack).

A task is a block of rows by a block of columns of one batch element, for the whole depth. Depth is taken in blocks: sums go on
from what the block before left, in the result itself or, where that cannot hold them (half types, scattered elements), in the
worker's scratch memory. So no blocking changes a bit.
"""

from __future__ import annotations

from weft.codegen import verbs
from weft.codegen.contract_index import (
    MAX_LABELS, arg, at, call, div, divide_function, function, get, offset_function, ranges_function, rem, table_function, walk,
)  # fmt: skip
from weft.codegen.contract_pack import Packing, as_mask, low_bits, masked, masked_store
from weft.codegen.contract_slab import slab_function
from weft.codegen.contract_tile import tile_function, tile_name
from weft.codegen.text import Text, Value, i64, module
from weft.schedule.contract_spec import OPERANDS, ContractSpec, accumulator, param

NO, YES = Value("i1", "false"), Value("i1", "true")


def lower(spec: ContractSpec) -> str:
    """The module of a contraction kernel: "kernel", and "pack" where columns are packed for all tasks beforehand."""
    p = Packing(spec)
    parts = [divide_function(), offset_function(), table_function(), *(tile_function(spec, *x) for x in spec.shapes)]
    modes = {spec.l, spec.r}
    if modes != {"place"}:
        parts.append(p.any())
    if "near" in modes:
        parts.append(p.from_runs(1))
    if "even" in modes:
        parts.append(p.from_runs(2))
    if "depth" in modes:
        parts.append(p.from_depth())
    if spec.r == "near" and not spec.slab_r:
        parts.append(p.from_rows())
    if spec.slab_l or spec.slab_r:
        parts += [ranges_function(), slab_function(spec)]
    if spec.l != "place":
        parts.append(_prepare(spec, "l"))
    parts += [p.columns()] if spec.r == "place" else [_prepare(spec, "r"), _pack_columns(spec)]
    parts += [_finish(spec), _kernel(spec)]
    if spec.shared:
        parts.append(_pack(spec))
    names = ", ".join(f"ptr @{tile_name(*x)}" for x in spec.shapes)
    tiles = f"@tiles = internal constant [{len(spec.shapes)} x ptr] [{names}]\n"
    return tiles + f"@zeros = internal constant [{spec.panel * p.wide} x i8] zeroinitializer, align 64\n" + module(*parts)


class Frame:
    """The params of a launch, read once each."""

    def __init__(self, t: Text) -> None:
        self.t, self.frame = t, arg("frame", "ptr")
        self._known: dict[str, Value] = {}

    def load(self, *names: str) -> None:
        """Read params here, where everything that follows may use them."""
        for name in names:
            self._known[name] = self.t.word(self.frame, param(name))

    def __getitem__(self, name: str) -> Value:
        return self._known.get(name) or self.t.word(self.frame, param(name))

    def words(self, name: str) -> Value:
        """The params that another param points to."""
        return at(self.t, self.frame, t_add(self.t, self[name]))

    def group(self, name: str, operand: str) -> tuple[Value, Value, Value]:
        """How many labels a group has, their sizes, and their strides in an operand ("l", "r" or "c")."""
        here = self.words(f"{name}_at")
        n = get(self.t, here, 0)
        return n, at(self.t, here, 1), at(self.t, here, self.t.add(self.t.mul(n, 1 + "lrc".index(operand)), 1))


def t_add(t: Text, word: Value) -> Value:
    return t.add(word, param("l_word"))


def _prepare(spec: ContractSpec, side: str) -> Text:
    """prepare_x(frame, slice, batch, lane, count, depth, steps): tables of offsets for a block of an operand, and where they
    count from; if it has windows, after copying what they see.
    """
    lanes = {"l": "rows", "r": "cols"}[side]
    t = function(
        f"prepare_{side}", "ptr", frame="ptr", slice="ptr", batch="i64", lane="i64", count="i64", depth="i64", steps="i64"
    )
    f, p = Frame(t), Packing(spec)
    slice_, batch = arg("slice", "ptr"), arg("batch")
    source = t.pointer(arg("frame", "ptr"), f[f"{side}_word"])
    groups = [f.group(g, side) for g in ("batch", lanes, "depth")]
    strides = [g[2] for g in groups]
    if spec.slab_l if side == "l" else spec.slab_r:
        lows, highs, own = (t.scratch("i64", MAX_LABELS) for _ in range(3))
        first = i64(0)
        starts = ((batch, i64(1)), (arg("lane"), arg("count")), (arg("depth"), arg("steps")))
        strides = []
        for (n, sizes, _), (start, count) in zip(groups, starts, strict=True):
            call(t, "void", "ranges", start, count, n, sizes, at(t, lows, first), at(t, highs, first))
            strides.append(at(t, own, first))
            first = t.add(first, n)
        axes = f.words(f"axes_{side}_at")
        copy = t.at(slice_, "i8", f[f"slab_{side}"])
        origin = call(t, "i64", "slab", copy, source, get(t, axes, 0), at(t, axes, 1), lows, highs, own)
        source = p.element_at(t, copy, origin)
    n, sizes, _ = groups[0]
    source = p.element_at(t, source, call(t, "i64", "offset", batch, n, sizes, strides[0]))
    for (n, sizes, _), by, name, start, count in (
        (groups[1], strides[1], f"{lanes}_{side}", arg("lane"), arg("count")),
        (groups[2], strides[2], f"depth_{side}", arg("depth"), arg("steps")),
    ):
        call(t, "void", "table", t.at(slice_, "i8", f[name]), start, count, n, sizes, by)
    t.emit(f"ret {source}")
    return t


def _pack_lanes(
    t: Text, f: Frame, spec: ContractSpec, side: str, out: Value, row: Value, source: Value, lane: Value, first: Value,
    count: Value, depth: Value, steps: Value,
) -> None:  # fmt: skip
    """Pack one vector of lanes, which begins `lane` behind the block's `first`."""
    slice_ = arg("slice", "ptr")
    lanes = at(t, t.at(slice_, "i8", f[{"l": "rows_l", "r": "cols_r"}[side]]), lane)
    depths = t.at(slice_, "i8", f[f"depth_{side}"])
    common = (out, row, source, lanes, count, depths, steps)
    mode = spec.l if side == "l" else spec.r
    if mode == "any":
        call(t, "void", "pack_any", *common)
    else:
        run, at_ = (f[f"{side}_depth_run"], depth) if mode == "depth" else (f[f"{side}_run"], t.add(first, lane))
        call(t, "void", f"pack_{mode}", *common, rem(t, at_, run), run)


def _pack_columns(spec: ContractSpec) -> Text:
    """pack_columns(frame, slice, batch, col, count, depth, steps, out, panel): panels of r, `panel` bytes from one to the next."""
    t = function(
        "pack_columns", "void", frame="ptr", slice="ptr", batch="i64", col="i64", count="i64", depth="i64", steps="i64",
        out="ptr", panel="i64",
    )  # fmt: skip
    f, p = Frame(t), Packing(spec)
    names = ("batch", "col", "count", "depth", "steps")
    source = call(t, "ptr", "prepare_r", arg("frame", "ptr"), arg("slice", "ptr"), *(arg(n) for n in names))
    row = i64(spec.panel * p.wide)
    if spec.r == "near" and not spec.slab_r:
        run = f["r_run"]
        with t.when(t.compare("icmp sle", t.add(rem(t, arg("col"), run), arg("count")), run)):
            cols, depths = (t.at(arg("slice", "ptr"), "i8", f[n]) for n in ("cols_r", "depth_r"))
            begin = p.element_at(t, source, get(t, cols, 0))
            call(t, "void", "pack_rows", arg("out", "ptr"), arg("panel"), begin, arg("count"), depths, arg("steps"))
            t.emit("ret void")
            t.label(t.fresh("dead"))
    with t.loop(0, arg("count"), spec.lanes) as j:
        panel, within = div(t, j, i64(spec.panel)), rem(t, j, i64(spec.panel))
        out = t.at(t.at(arg("out", "ptr"), "i8", t.mul(panel, arg("panel"))), p.one, within)
        count = t.min(t.sub(arg("count"), j), spec.lanes)
        _pack_lanes(t, f, spec, "r", out, row, source, j, arg("col"), count, arg("depth"), arg("steps"))
    t.emit("ret void")
    return t


def _finish(spec: ContractSpec) -> Text:
    """finish(tile, c, height, count, rows, cols): from a tile in scratch memory to the result, rounding to its dtype."""
    t = function("finish", "void", tile="ptr", c="ptr", height="i64", count="i64", rows="ptr", cols="ptr")
    p = Packing(spec)
    tile, c, count, cols = arg("tile", "ptr"), arg("c", "ptr"), arg("count"), arg("cols", "ptr")

    def lower_(x: Value) -> Value:
        return verbs.cast(t, x, p.acc, spec.dtype)

    first = get(t, cols, 0)
    near = t.compare("icmp eq", t.sub(get(t, cols, t.sub(count, 1)), first), t.sub(count, 1))
    with t.loop(0, arg("height")) as i:
        from_ = t.at(tile, p.one, t.mul(i, spec.panel))
        into = p.element_at(t, c, get(t, arg("rows", "ptr"), i))
        done = t.variable(i64(0))
        with t.when(near):
            whole = t.sub(count, rem(t, count, i64(spec.lanes)))
            end = count if masked(spec) else whole
            with t.loop(0, end, spec.lanes) as j:
                x = lower_(t.load(p.many, t.at(from_, p.one, j), p.wide))
                to = p.element_at(t, into, t.add(first, j))
                if masked(spec):
                    left = t.min(t.sub(count, j), spec.lanes)
                    masked_store(t, x, to, p.align, as_mask(t, low_bits(t, left), spec.lanes))
                else:
                    t.store(x, to, p.align)
            done.set(end)
        with t.loop(done.get(), count) as j:
            x = lower_(t.load(p.one, t.at(from_, p.one, j), p.wide))
            t.store(x, p.element_at(t, into, get(t, cols, j)), p.align)
    t.emit("ret void")
    return t


def _block(t: Text, f: Frame, number: Value, kind: str) -> tuple[Value, Value]:
    """Where a block of rows or columns begins, and its size."""
    block, span, count = f[f"{kind}_block"], f[f"{kind}_span"], f[f"{kind}_span_blocks"]
    within = t.mul(rem(t, number, count), block)
    return t.add(t.mul(div(t, number, count), span), within), t.min(block, t.sub(span, within))


def _slice(t: Text, f: Frame) -> Value:
    """The worker's own scratch memory."""
    scratch = t.pointer(arg("frame", "ptr"), 2)
    behind = t.add(f["shared"], t.mul(arg("worker"), f["slice"]))
    t.emit(f"%slice = getelementptr i8, {scratch}, {behind}")
    return arg("slice", "ptr")


def _pack(spec: ContractSpec) -> Text:
    """Pack r for all tasks: one block of columns and of depth each."""
    t = Text("i64 @pack(ptr %frame, i64 %lo, i64 %hi, i64 %worker)")
    f = Frame(t)
    slice_ = _slice(t, f)
    bytes_ = i64(spec.panel * accumulator(spec.dtype).itemsize)
    panels = div(t, t.add(f["col_block"], spec.panel - 1), i64(spec.panel))
    with t.loop(arg("lo"), arg("hi")) as task:
        kb, rest = rem(t, task, f["depth_blocks"]), div(t, task, f["depth_blocks"])
        cb, batch = rem(t, rest, f["col_blocks"]), div(t, rest, f["col_blocks"])
        k = t.mul(kb, f["depth_block"])
        steps = t.min(f["depth_block"], t.sub(f["depth"], k))
        j, count = _block(t, f, cb, "col")
        panel = t.mul(rest, panels)
        skip = t.mul(t.add(t.mul(panel, f["depth"]), k), bytes_)
        out = t.at(t.pointer(arg("frame", "ptr"), 2), "i8", skip)
        call(t, "void", "pack_columns", arg("frame", "ptr"), slice_, batch, j, count, k, steps, out, t.mul(f["depth"], bytes_))
    t.ret()
    return t


def _kernel(spec: ContractSpec) -> Text:
    t = Text("i64 @kernel(ptr %frame, i64 %lo, i64 %hi, i64 %worker)")
    f = Frame(t)
    _slice(t, f)
    before = t.variable(i64(-1))
    with t.loop(arg("lo"), arg("hi")) as task:
        rb, rest = rem(t, task, f["row_blocks"]), div(t, task, f["row_blocks"])
        cb, batch = rem(t, rest, f["col_blocks"]), div(t, rest, f["col_blocks"])
        Task(t, f, spec, rb, cb, batch, before).emit()
    t.ret()
    return t


class Task:
    """The code of one task."""

    def __init__(
        self, t: Text, f: Frame, spec: ContractSpec, rb: Value, cb: Value, batch: Value, before: object
    ) -> None:
        self.t, self.f, self.spec, self.batch = t, f, spec, batch
        self.p, self.frame, self.slice = Packing(spec), arg("frame", "ptr"), arg("slice", "ptr")
        self.panel_bytes = spec.panel * self.p.wide
        self.cb = cb
        self.row, self.height = _block(t, f, rb, "row")
        self.col, self.width = _block(t, f, cb, "col")
        self.rows_c, self.cols_c = (t.at(self.slice, "i8", f[n]) for n in ("rows_c", "cols_c"))
        place = t.add(t.mul(cb, f["row_blocks"]), rb)
        with t.when(t.compare("icmp ne", place, before.get())):  # type: ignore[attr-defined]
            for table, group, start, count in (
                (self.rows_c, "rows", self.row, self.height),
                (self.cols_c, "cols", self.col, self.width),
            ):
                call(t, "void", "table", table, start, count, *f.group(group, "c"))
            before.set(place)  # type: ignore[attr-defined]
        self.c = self.base(t.pointer(self.frame, OPERANDS + 2), "c")

    def base(self, pointer: Value, operand: str) -> Value:
        """Where this batch element of an operand begins."""
        skip = call(self.t, "i64", "offset", self.batch, *self.f.group("batch", operand))
        return self.p.element_at(self.t, pointer, skip)

    def emit(self) -> None:
        t, f, spec = self.t, self.f, self.spec
        if spec.l == "place":
            start = self.base(t.pointer(self.frame, f["l_word"]), "l")
            self.l_base = t.at(start, "i8", t.mul(self.row, f["l_row"]))
        if spec.r == "place":
            start = self.base(t.pointer(self.frame, f["r_word"]), "r")
            self.r_base = self.p.element_at(t, start, self.col)
        with t.loop(0, f["depth_blocks"]) as kb:
            self._poll(kb)
            self.k = t.mul(kb, f["depth_block"])
            self.steps = t.min(f["depth_block"], t.sub(f["depth"], self.k))
            self.resume = t.compare("icmp ne", kb, i64(0))
            self.last = t.compare("icmp eq", t.add(kb, 1), f["depth_blocks"])
            self._columns()
            if spec.l != "place":
                self.l_source = call(
                    t, "ptr", "prepare_l", self.frame, self.slice, self.batch, self.row, self.height, self.k, self.steps
                )
            self.slot = t.variable(t.at(self.slice, "i8", f["partial"]))
            with walk(t, 0, self.height) as i:
                self._row_of_tiles(i)

    def _poll(self, kb: Value) -> None:
        t, f = self.t, self.f
        with t.when(t.compare("icmp ne", f["poll"], i64(0))):
            due = t.compare("icmp eq", rem(t, kb, f["poll"]), i64(0))
            with t.when(t.op("and", due, t.compare("icmp ne", kb, i64(0)))):
                poll = t.pointer(self.frame, 1)
                stop = t.let("i64", f"call i64 {poll.name}({self.frame}, {arg('worker')})")
                with t.when(t.compare("icmp ne", stop, i64(0))):
                    t.ret(2)
                    t.label(t.fresh("dead"))

    def _columns(self) -> None:
        """Where the packed columns of this block are, packed now unless they were before."""
        t, f, spec = self.t, self.f, self.spec
        if spec.r == "place":
            return
        if spec.shared:
            panels = div(t, t.add(f["col_block"], spec.panel - 1), i64(spec.panel))
            first = t.mul(t.add(t.mul(self.batch, f["col_blocks"]), self.cb), panels)
            skip = t.mul(t.add(t.mul(first, f["depth"]), self.k), self.panel_bytes)
            self.packed = t.at(t.pointer(self.frame, 2), "i8", skip)
            self.panel = t.mul(f["depth"], self.panel_bytes)
            return
        self.packed = t.at(self.slice, "i8", f["packed_r"])
        self.panel = t.mul(f["depth_block"], self.panel_bytes)
        self._pack(self.col, self.width, self.packed, self.panel)

    def _pack(self, col: Value, count: Value, out: Value, panel: Value) -> None:
        call(
            self.t, "void", "pack_columns", self.frame, self.slice, self.batch, col, count, self.k, self.steps, out, panel
        )

    def _row_of_tiles(self, i) -> None:  # type: ignore[no-untyped-def]
        """The tiles beside each other that share rows i.now …, as many as a tile may have and there are."""
        t, f, spec = self.t, self.f, self.spec
        which, i.step = _choose(t, t.sub(self.height, i.now), spec.tile.heights)
        if spec.l == "place":
            l, l_row, l_step = t.at(self.l_base, "i8", t.mul(i.now, f["l_row"])), f["l_row"], f["l_depth"]
            l = t.at(l, "i8", t.mul(self.k, l_step))
        else:
            room = -(-spec.tile.heights[0] // spec.lanes) * spec.lanes  # lanes of a packed row of l
            l, l_row, l_step = t.at(self.slice, "i8", f["packed_l"]), i64(self.p.wide), i64(room * self.p.wide)
            with t.loop(0, i.step, spec.lanes) as lane:
                count = t.min(t.sub(i.step, lane), spec.lanes)
                _pack_lanes(
                    t, f, spec, "l", t.at(l, self.p.one, lane), l_step, self.l_source, t.add(i.now, lane), self.row, count,
                    self.k, self.steps,
                )  # fmt: skip
        rows_c = at(t, self.rows_c, i.now)
        into = self.p.element_at(t, self.c, get(t, rows_c, 0))
        with walk(t, 0, self.width) as j:
            self._tile(i, j, which, rows_c, into, (l, l_row, l_step))

    def _tile(self, i, j, which: Value, rows_c: Value, into: Value, l: tuple[Value, Value, Value]) -> None:  # type: ignore[no-untyped-def]
        t, f, spec = self.t, self.f, self.spec
        lanes, widths = spec.lanes, spec.tile.widths
        left = t.sub(self.width, j.now)
        if spec.r == "place":
            vectors = t.variable(i64(1))
            width_at = t.variable(i64(len(widths) - 1))
            r = t.variable(t.at(self.slice, "i8", f["packed_r"]))
            r_step = t.variable(i64(self.panel_bytes))
            fits = t.compare("icmp sge", left, i64(lanes))
            with t.when(fits):
                w, n = _choose(t, div(t, left, i64(lanes)), widths)
                vectors.set(n)
                width_at.set(w)
                r.set(t.at(self.p.element_at(t, self.r_base, j.now), "i8", t.mul(self.k, f["r_depth"])))
                r_step.set(f["r_depth"])
            with t.when(t.op("and", t.op("xor", fits, YES), t.compare("icmp eq", i.now, i64(0)))):
                # the last columns fill no vector: those alone are packed
                from_ = t.at(self.p.element_at(t, self.r_base, j.now), "i8", t.mul(self.k, f["r_depth"]))
                call(t, "void", "pack_tail", r.get(), from_, f["r_depth"], left, self.steps)
            vectors, width_at, r, r_step = vectors.get(), width_at.get(), r.get(), r_step.get()
        else:
            count = t.min(left, spec.panel)
            need = div(t, t.add(count, lanes - 1), i64(lanes))
            width_at, vectors = _choose_cover(t, need, widths)
            tallest = t.compare("icmp eq", which, i64(0))
            width_at = t.select(tallest, width_at, i64(0))
            vectors = t.select(tallest, vectors, i64(widths[0]))
            r = t.at(self.packed, "i8", t.mul(div(t, j.now, i64(spec.panel)), self.panel))
            r_step = i64(self.panel_bytes)
        whole = t.mul(vectors, lanes)
        j.step = t.min(whole, left)
        cols_c = at(t, self.cols_c, j.now)
        c, c_row = self.slot.get(), i64(self.panel_bytes)
        direct = NO
        if self.p.acc is spec.dtype:
            first = get(t, cols_c, 0)
            end = get(t, cols_c, t.sub(j.step, 1))
            near = t.compare("icmp eq", t.sub(end, first), t.sub(whole, 1))
            direct = t.op("and", t.op("and", near, t.compare("icmp eq", j.step, whole)),
                          t.compare("icmp ne", f["c_flat"], i64(0)))  # fmt: skip
            c = t.select(direct, self.p.element_at(t, into, first), c)
            c_row = t.select(direct, f["c_row"], c_row)
        if spec.r == "place":
            number = t.add(t.mul(which, len(widths)), width_at)
        else:
            number = t.add(which, t.select(tallest, width_at, i64(len(widths) - 1)))
        tile = t.load("ptr", t.at(Value("ptr", "@tiles"), "ptr", number), 8)
        first, first_row = t.select(self.resume, c, Value("ptr", "@zeros")), t.select(self.resume, c_row, i64(0))
        args = (self.steps, *l, r, r_step, first, first_row, c, c_row)
        t.emit(f"call void {tile.name}({', '.join(map(str, args))})")
        with t.when(t.op("xor", direct, YES)):
            with t.when(self.last):
                call(t, "void", "finish", c, self.c, i.step, j.step, rows_c, cols_c)
            with t.when(t.compare("icmp ne", f["depth_blocks"], i64(1))):
                size = spec.tile.heights[0] * self.panel_bytes
                self.slot.set(t.at(c, "i8", size))


def _choose(t: Text, left: Value, sizes: tuple[int, ...]) -> tuple[Value, Value]:
    """The first of `sizes` (descending, the last 1) that is not more than `left`: its number, and itself."""
    number, size = i64(len(sizes) - 1), i64(sizes[-1])
    for n in reversed(range(len(sizes) - 1)):
        fits = t.compare("icmp sge", left, i64(sizes[n]))
        number, size = t.select(fits, i64(n), number), t.select(fits, i64(sizes[n]), size)
    return number, size


def _choose_cover(t: Text, need: Value, sizes: tuple[int, ...]) -> tuple[Value, Value]:
    """The last of `sizes` that is not less than `need`."""
    number, size = i64(0), i64(sizes[0])
    for n in range(1, len(sizes)):
        fits = t.compare("icmp sle", need, i64(sizes[n]))
        number, size = t.select(fits, i64(n), number), t.select(fits, i64(sizes[n]), size)
    return number, size
