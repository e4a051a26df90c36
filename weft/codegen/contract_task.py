"""One task of a contraction: a block of rows by a block of columns of one batch element, for the
whole depth.

Depth is taken in blocks. What a task does once is apart from the tiles of a block: it may be slower
for being compiled sooner. Sums go on from what the block before left, in the result itself or,
where that cannot hold them (half types, scattered elements), in the worker's scratch memory.
"""

from __future__ import annotations

from weft.codegen.contract_feed import pack_vector
from weft.codegen.contract_finish import finish_name
from weft.codegen.contract_index import (
    CODE,
    MEMORY,
    NO,
    Cursor,
    Frame,
    arg,
    at,
    both,
    call,
    div,
    equal,
    fits,
    function,
    get,
    invert,
    memory,
    put,
    rem,
    walk,
)
from weft.codegen.contract_pack import LINE, Packing
from weft.codegen.contract_tile import largest, prefetch, tile_height
from weft.codegen.text import Text, Value, Variable, i64
from weft.schedule.contract_spec import ContractSpec

Strided = tuple[Value, ...]  # l: where, and the strides of rows and depth in bytes


class Task:
    """The code of a task. `before` holds the block that the worker's tables are for."""

    def __init__(self, t: Text, spec: ContractSpec, task: Value, before: Variable) -> None:
        self.t, self.spec, self.f, self.p = t, spec, Frame(t, spec), Packing(spec)
        f = self.f
        self.block = div(t, task, f["row_blocks"])  # of columns, counted through the batch
        row_block = t.sub(task, t.mul(self.block, f["row_blocks"]))
        self.batch = div(t, self.block, f["col_blocks"])
        col_block = t.sub(self.block, t.mul(self.batch, f["col_blocks"]))
        self.row, self.height = f.block(row_block, "row")
        self.col, self.width = f.block(col_block, "col")
        place = t.add(t.mul(col_block, f["row_blocks"]), row_block)
        with t.when(invert(t, equal(t, place, before.get()))):
            rows, cols = f.group("rows", "c"), f.group("cols", "c")
            call(t, "void", "table", f.part("rows_c"), self.row, self.height, *rows)
            call(t, "void", "table", f.part("cols_c"), self.col, self.width, *cols)
            if spec.r == "turn":
                self._lanes()
            if spec.ending:
                self._extras()
            before.set(place)

    def emit(self) -> None:
        t, f, spec = self.t, self.f, self.spec
        if spec.ending:
            with t.loop(0, t.add(f["extras"], 1)) as n:  # of the results, then the extra operands
                group = f.group("batch", t.add(n, 2))
                put(t, call(t, "i64", "offset", self.batch, *group), arg("skips", "ptr"), n)
        else:
            self.c = self._element(spec.result, "c")
        if spec.l == "place":
            self.l = t.at(self._element(f["l_word"], "l"), "i8", t.mul(self.row, f["l_row"]))
        if spec.r in ("place", "turn"):
            self.r = self._element(f["r_word"], "r")
        with t.loop(0, f["depth_blocks"]) as number:
            self._poll(number)
            depth = t.mul(number, f["depth_block"])
            steps = t.min(f["depth_block"], t.sub(f["depth"], depth))
            if spec.r in ("place", "turn"):
                r, panel = self.r, i64(0)
            else:
                r, panel = self._columns(depth, steps)
            if spec.l != "place":
                block = (self.batch, self.row, self.height, depth, steps)
                self.l = call(t, "ptr", "prepare_l", *memory(), *block)
            own = (arg("code", "ptr"), arg("skips", "ptr"))
            lies = (self.row, self.height, self.col, self.width, number, depth, steps)
            result = () if spec.ending else (self.c,)
            call(t, "void", "tiles", *memory(), *own, *lies, self.l, r, panel, *result)

    def _element(self, word: int | Value, operand: str) -> Value:
        """Where this batch element of an operand begins."""
        t = self.t
        skip = call(t, "i64", "offset", self.batch, *self.f.group("batch", operand))
        return self.p.element_at(t, t.pointer(self.f.address, word), skip)

    def _lanes(self) -> None:
        """The offsets of columns that are read through a table, up to a whole vector."""
        t, table = self.t, self.f.part("cols_r")
        call(t, "void", "table", table, self.col, self.width, *self.f.group("cols", "r"))
        with t.loop(0, self.spec.lanes) as i:  # lanes behind the last repeat the first
            put(t, get(t, table, 0), table, t.add(self.width, i))

    def _extras(self) -> None:
        """The tables of the extra operands."""
        t, f = self.t, self.f
        first = self.spec.header.index("extras") + 1
        with t.loop(0, f["extras"]) as n:
            places = at(t, f.params, t.add(t.mul(n, 2), first))
            blocks = (("rows", self.row, self.height), ("cols", self.col, self.width))
            for k, (name, start, count) in enumerate(blocks):
                table = t.at(arg("slice", "ptr"), "i8", get(t, places, k))
                group = f.group(name, t.add(n, 3))
                call(t, "void", "table", table, start, count, *group)

    def _poll(self, number: Value) -> None:
        """Stop if the launch is to stop."""
        t, f = self.t, self.f
        due = equal(t, rem(t, number, f["poll"]), 0)
        with t.when(both(t, due, t.lt(i64(0), number))):
            poll = t.pointer(f.address, 1)
            asked = t.pointer(f.address, 0) if self.spec.parts else f.address
            stop = t.let("i64", f"call i64 {poll.name}({asked}, {arg('worker')})")
            with t.when(invert(t, equal(t, stop, 0))):
                t.ret(2)
                t.label(t.fresh("dead"))

    def _columns(self, depth: Value, steps: Value) -> tuple[Value, Value]:
        """Where this block's packed columns are, packed now unless they were before; and the bytes
        from panel to panel.
        """
        t, f = self.t, self.f
        if self.spec.shared:
            return shared_panels(t, self.spec, self.block, depth)
        if self.spec.r == "panels":
            before = t.mul(div(t, self.col, i64(self.spec.panel)), f["depth"])
            first = t.mul(t.add(before, depth), self.p.panel_bytes)
            panel = t.mul(f["depth"], self.p.panel_bytes)
            return t.at(t.pointer(f.address, f["r_word"]), "i8", first), panel
        out, panel = f.part("packed_r"), t.mul(f["depth_block"], self.p.panel_bytes)
        block = (self.batch, self.col, self.width, depth, steps)
        _call(t, "pack_columns", *memory(), *block, out, panel)
        return out, panel


#: what a block of depth of a task is: its rows and columns, which block, where it begins and its
#: steps; where both operands are and, if columns are packed, the bytes from panel to panel
BLOCK = dict.fromkeys(("row", "height", "col", "width", "number", "depth", "steps"), "i64")
PLACES = {"l": "ptr", "r": "ptr", "panel": "i64"}


def tiles_function(spec: ContractSpec) -> Text:
    """tiles(MEMORY, code, skips, BLOCK, PLACES, c): all tiles of a block of depth of a task."""
    result = {} if spec.ending else {"c": "ptr"}
    t = function("tiles", "void", **MEMORY, code="ptr", skips="ptr", **BLOCK, **PLACES, **result)
    Tiles(t, spec).emit()
    t.emit("ret void")
    return t


class Tiles:
    """The code of the tiles of a block of depth."""

    def __init__(self, t: Text, spec: ContractSpec) -> None:
        self.t, self.spec, self.f, self.p = t, spec, Frame(t, spec), Packing(spec)
        self.row, self.height, self.col, self.width = map(arg, ("row", "height", "col", "width"))
        self.depth, self.steps, self.panel = map(arg, ("depth", "steps", "panel"))
        self.l, self.r, self.c = (arg(name, "ptr") for name in "lrc")
        self.resumed = t.lt(i64(0), arg("number"))
        self.last = equal(t, t.add(arg("number"), 1), self.f["depth_blocks"])
        self.partial = t.variable(self.f.part("partial"))

    def emit(self) -> None:
        if self.spec.l == "table" and self.spec.r not in ("place", "turn"):
            with walk(self.t, 0, self.width) as j:
                self._column_of_tiles(j)
        else:
            with walk(self.t, 0, self.height) as i:
                self._row_of_tiles(i)

    def _row_of_tiles(self, i: Cursor) -> None:
        """Tiles side by side, with rows from i.now on: as many as a tile may have and there are."""
        t, f, spec = self.t, self.f, self.spec
        which, l = self._rows(i)
        rows = at(t, f.part("rows_c"), i.now)
        with walk(t, 0, self.width) as j:
            if spec.r == "place":
                number, vectors, r, r_step = self._place(which, i, j)
            elif spec.r == "turn":
                number, vectors, r = which, i64(1), self.p.element_at(t, self.r, self.depth)
                r_step = at(t, f.part("cols_r"), j.now)
            else:
                number, vectors, r, r_step = self._packed(which, j)
            j.step = t.min(t.mul(vectors, spec.lanes), t.sub(self.width, j.now))
            self._tile(number, vectors, l, r, r_step, rows, i, j)

    def _column_of_tiles(self, j: Cursor) -> None:
        """Tiles below each other, with a panel of columns from j.now on: where l is read in place,
        the panel stays near.
        """
        t, spec = self.t, self.spec
        j.step = t.min(i64(spec.panel), t.sub(self.width, j.now))
        with walk(t, 0, self.height) as i:
            which, l = self._rows(i)
            number, vectors, r, r_step = self._packed(which, j)
            rows = at(t, self.f.part("rows_c"), i.now)
            self._tile(number, vectors, l, r, r_step, rows, i, j)

    def _rows(self, i: Cursor) -> tuple[Value, Strided]:
        """Which height the tiles have whose rows are those from i.now on, and where l is read."""
        t, f, spec = self.t, self.f, self.spec
        left = t.sub(self.height, i.now)
        if spec.l == "table":  # rows that a tile may have
            run = f["l_run"]
            left = t.min(left, t.sub(run, rem(t, t.add(self.row, i.now), run)))
        which, i.step = tile_height(t, left, spec.tile)
        if spec.l == "place":
            skip = t.add(t.mul(i.now, f["l_row"]), t.mul(self.depth, f["l_depth"]))
            l = (t.at(self.l, "i8", skip), f["l_row"], f["l_depth"])
        elif spec.l == "table":
            middle = spec.tile.heights[0] // 2
            offsets = at(t, f.part("rows_l"), i.now)
            here, there, before, over = (get(t, offsets, n) for n in (0, 1, middle - 1, middle))
            apart, over = (
                t.mul(t.sub(b, a), spec.wide) for a, b in ((here, there), (before, over))
            )
            first = self.p.element_at(t, self.l, here)
            return which, (first, apart, over, f.part("depth_l"))
        else:
            out, row = f.part("packed_l"), spec.l_panel * spec.wide
            with t.loop(0, i.step, spec.lanes) as lane:
                some, to = t.min(t.sub(i.step, lane), spec.lanes), t.at(out, self.p.one, lane)
                pack_vector(
                    t, spec, "l", to, row, self.l, t.add(i.now, lane), self.row, some, self.depth,
                    self.steps,
                )  # fmt: skip
            l = (out, i64(spec.wide), i64(row))
        return which, l

    def _place(self, which: Value, i: Cursor, j: Cursor) -> tuple[Value, Value, Value, Value]:
        """The tile's number, its vectors, and where r is read, with which stride: in place, but for
        last columns that fill no vector.
        """
        t, f, spec = self.t, self.f, self.spec
        left, widths = t.sub(self.width, j.now), spec.tile.widths
        width, vectors = largest(t, div(t, left, i64(spec.lanes)), widths)
        whole = fits(t, i64(spec.lanes), left)
        place = self.p.element_at(t, self.r, t.add(self.col, j.now))
        place = t.at(place, "i8", t.mul(self.depth, f["r_depth"]))
        packed = f.part("packed_r")
        with t.when(both(t, invert(t, whole), equal(t, i.now, 0))):
            call(t, "void", "pack_tail", packed, place, f["r_depth"], left, self.steps)
        number = t.add(t.mul(which, len(widths)), width)
        r_step = t.select(whole, f["r_depth"], i64(self.p.panel_bytes))
        return number, vectors, t.select(whole, place, packed), r_step

    def _packed(self, which: Value, j: Cursor) -> tuple[Value, Value, Value, Value]:
        """The same for packed columns. See ContractSpec.shapes for the order of tiles."""
        t, spec = self.t, self.spec
        widths = spec.tile.widths
        narrow, vectors = i64(0), i64(widths[0])
        for n, width in enumerate(widths[1:], 1):
            enough = fits(t, t.sub(self.width, j.now), width * spec.lanes)
            enough = both(t, enough, equal(t, which, 0))
            narrow = t.select(enough, i64(n), narrow)
            vectors = t.select(enough, i64(width), vectors)
        lower = t.select(equal(t, which, 0), i64(0), i64(len(widths) - 1))
        number = t.add(t.add(which, lower), narrow)
        r = t.at(self.r, "i8", t.mul(div(t, j.now, i64(spec.panel)), self.panel))
        return number, vectors, r, i64(self.p.panel_bytes)

    def _tile(
        self, number: Value, vectors: Value, l: Strided, r: Value, r_step: Value, rows: Value,
        i: Cursor, j: Cursor,
    ) -> None:  # fmt: skip
        """Call a tile's code on the result itself, or on scratch memory and bring what is there to
        the result when its sums are complete.
        """
        t, f, p = self.t, self.f, self.p
        cols = at(t, f.part("cols_c"), j.now)
        c, c_row, direct = self.partial.get(), i64(p.panel_bytes), NO
        if p.acc is self.spec.dtype and not self.spec.ending and not self.spec.turned:
            first, last = get(t, cols, 0), get(t, cols, t.sub(j.step, 1))
            whole = t.mul(vectors, self.spec.lanes)
            near = equal(t, t.sub(last, first), t.sub(whole, 1))
            direct = both(t, near, equal(t, j.step, whole), equal(t, f["c_flat"], 1))
            into = p.element_at(t, self.c, t.add(get(t, rows, 0), first))
            c, c_row = t.select(direct, into, c), t.select(direct, f["c_row"], c_row)
        with t.when(direct):
            self._foresee(t.at(c, "i8", self.p.panel_bytes), c_row, i.step)
        if self.spec.turned and not self.spec.ending:
            with t.when(self.last):
                self._foresee_turned(at(t, rows, 0), cols, j.step)
        if self.spec.ending:
            with t.when(self.last):
                across, along = (j, i) if self.spec.turned else (i, j)
                tile = (arg("skips", "ptr"), across.now, along.now, across.step)
                _call(t, "foresee", *memory(), *tile)
        start = t.select(self.resumed, c, _own(t, "zeros"))
        start_row = t.select(self.resumed, c_row, i64(0))
        ahead = self._ahead(r, i, j) if self.spec.r == "panels" else ()
        args = (self.steps, *l, r, r_step, *ahead, start, start_row, c, c_row)
        _call(t, t.add(number, len(CODE)), *args)
        with t.when(invert(t, direct)):
            with t.when(self.last):
                self._finish(c, rows, cols, i, j)
            with t.when(t.lt(i64(1), f["depth_blocks"])):
                self.partial.set(t.at(c, "i8", self.spec.tile.heights[0] * p.panel_bytes))

    def _ahead(self, r: Value, i: Cursor, j: Cursor) -> tuple[Value, Value]:
        """What a tile brings near: its share of the panel that comes next, and how much of that at
        each step. Behind the last panel comes the first of the next block of depth.
        """
        t, size = self.t, i64(self.p.panel_bytes)
        beside = t.lt(t.add(j.now, self.spec.panel), self.width)
        below = t.at(self.r, "i8", t.mul(self.steps, size))
        after = t.select(beside, t.at(r, "i8", self.panel), t.select(self.last, r, below))
        there = t.mul(div(t, t.mul(size, i.now), self.height), self.steps)
        step = div(t, t.mul(size, i.step), self.height)
        return t.at(after, "i8", there), step

    def _finish(self, tile: Value, rows: Value, cols: Value, i: Cursor, j: Cursor) -> None:
        """Bring a tile whose sums are complete to the results."""
        t, f, start = self.t, self.f, self.col
        whole = self.spec.ending is None and finish_name(self.spec) != "finish"
        if self.spec.turned:
            tile = tile if whole else call(t, "ptr", "turn", *memory(), tile)
            rows, cols, i, j, start = cols, rows, j, i, self.row
        if self.spec.ending:
            position = rem(t, t.add(start, j.now), f["run"])
            args = (arg("skips", "ptr"), tile, i.now, j.now, i.step, j.step, position)
            _call(t, "end", *memory(), *args)
        else:
            own = memory() if whole else ()
            _call(t, "end", *own, tile, self.c, i.step, j.step, rows, cols)

    def _foresee_turned(self, row: Value, cols: Value, count: Value) -> None:
        """Bring near where this tile's columns go, which are lines of their own."""
        t, size = self.t, self.spec.tile.heights[0] * self.spec.dtype.itemsize
        first = self.p.element_at(t, self.c, get(t, row, 0))
        with t.loop(0, count) as n:
            here = self.p.element_at(t, first, get(t, cols, n))
            for byte in (*range(0, size - 1, LINE), size - 1):
                prefetch(t, t.at(here, "i8", byte), write=True)

    def _foresee(self, c: Value, c_row: Value, rows: Value) -> None:
        """Bring the result's next tile near while this one is computed."""
        t = self.t
        with t.loop(0, rows) as row:
            here = t.at(c, "i8", t.mul(row, c_row))
            for v in range(self.spec.tile.widths[0]):
                prefetch(t, t.at(here, "i8", v * self.spec.tile.vector), write=True)


def _own(t: Text, what: str | Value) -> Value:
    """What this kernel has of its own: by name, or by number."""
    number = CODE.index(what) if isinstance(what, str) else what
    return t.pointer(arg("code", "ptr"), number)


def _call(t: Text, what: str | Value, *args: Value) -> None:
    code = _own(t, what)
    t.emit(f"call void {code.name}({', '.join(map(str, args))})")


def shared_panels(t: Text, spec: ContractSpec, block: Value, depth: Value) -> tuple[Value, Value]:
    """Where the columns of a block, from `depth` on, are packed for all tasks; and the bytes from
    panel to panel.
    """
    f, size = Frame(t, spec), Packing(spec).panel_bytes
    panels = div(t, t.add(f["col_block"], spec.panel - 1), i64(spec.panel))
    row = t.add(t.mul(t.mul(block, panels), f["depth"]), depth)
    return t.at(t.pointer(f.address, 2), "i8", t.mul(row, size)), t.mul(f["depth"], size)
