"""What the code of a task refers to: params by name, operands, parts of scratch memory; and the
steps that attention and its gradient share.
"""

from __future__ import annotations

from weft.codegen.attention_rows import mask_dtype
from weft.codegen.contract_index import NO, both, call, down, equal, get, invert
from weft.codegen.contract_pack import Packing
from weft.codegen.extern import Kernel
from weft.codegen.registers import literal, memory
from weft.codegen.text import Value, i64
from weft.schedule.attention import WORDS, Attention

Matrix = tuple[Value, Value, Value]  # an operand of a product: where, and the bytes of its strides


class Task:
    """The task being written."""

    def __init__(self, t: Kernel, spec: Attention, task: Value) -> None:
        self.t, self.spec, self.p = t, spec, Packing(spec.products)
        self.first = 3 + t.operands
        self.slice = t.at(t.scratch_memory(), "i8", t.mul(t.worker, self["slice"]))
        self.matrix, self.part = t.divmod(task, self["parts"])
        self.wide = i64(self.p.wide)

    def __getitem__(self, name: str) -> Value:
        return self.t.word(self.t.frame, self.first + WORDS.index(name))

    def room(self, name: str) -> Value:
        return self.t.at(self.slice, "i8", self[f"at_{name}"])

    def bytes(self, name: str) -> Value:
        return self.t.mul(self[name], self.wide)

    def block_bytes(self, pitch: str) -> Value:
        return self.t.mul(self["block"], self.bytes(pitch))

    def sides(self, letter: str) -> tuple[Value, Value]:
        """An operand's strides."""
        return self[f"{letter}_row"], self[f"{letter}_col"]

    def operand(self, n: int) -> Value:
        """Where the task's matrix of an operand begins."""
        t, spec = self.t, self.spec
        is_mask = spec.mask and n == spec.inputs - 1
        element = memory(mask_dtype(spec)) if is_mask else self.p.element
        axes, tail = self["axes"], t.at(t.frame, "i64", self.first + len(WORDS))
        left, total = t.variable(self.matrix), t.variable(i64(0))
        with down(t, axes) as a:
            q, own = t.divmod(left.get(), get(t, tail, a))
            stride = get(t, tail, t.add(t.mul(axes, n + 1), a))
            total.set(t.add(total.get(), t.mul(own, stride)))
            left.set(q)
        return t.at(t.operand(n), element, total.get())

    def result(self, n: int, rows: str, cols: str) -> Value:
        """Where the task's matrix of a result begins."""
        t = self.t
        size = t.mul(t.mul(self[rows], self[cols]), self.matrix)
        return self.p.element_at(t, t.operand(self.spec.inputs + n), size)

    # matrices

    def product(
        self, rows: Value, cols: Value, steps: Value, l: Matrix, r: Matrix, c: str, pitch: str,
        go_on: Value = NO,
    ) -> None:  # fmt: skip
        """c = l r, or c += l r. `r` is where, bytes of a step, and of a panel of columns."""
        into = (self.room(c), self.bytes(pitch), go_on)
        call(self.t, "void", "product", rows, cols, steps, *l, *r, *into)

    def block(self, name: str, pitch: str) -> Matrix:
        """A block as the left operand of a product."""
        return self.room(name), self.bytes(pitch), self.wide

    def across(self, name: str, pitch: str) -> Matrix:
        """The same, transposed."""
        return self.room(name), self.wide, self.bytes(pitch)

    def near(self, where: Value, row: Value) -> Matrix:
        """A matrix as the right operand, its columns being neighbours."""
        return where, row, i64(self.p.panel_bytes)

    def packed(self, name: str, steps: Value) -> Matrix:
        """The same, packed."""
        size = i64(self.p.panel_bytes)
        return self.room(name), size, self.t.mul(steps, size)

    def pack(self, to: str, source: Value, letter: str, cols: str) -> None:
        """Rows of an operand as columns for products."""
        sides = (*self.sides(letter), self["keys"], self[cols])
        call(self.t, "void", "transpose", self.room(to), source, *sides, self.room("table"))

    def bring(
        self, to: str, pitch: str, source: Value, letter: str, rows: Value, cols: str
    ) -> None:
        sides = (*self.sides(letter), rows, self[cols])
        call(self.t, "void", "bring", self.room(to), self[pitch], source, *sides)

    def from_row(self, source: Value, letter: str, row: Value) -> Value:
        return self.p.element_at(self.t, source, self.t.mul(row, self[f"{letter}_row"]))

    def in_place(
        self, source: Value, letter: str, cols: str, to: str, pitch: str
    ) -> tuple[Value, Value]:
        """Where an operand of keys is read row by row, and how many bytes apart rows are: in place,
        where that is in whole panels.
        """
        t, p = self.t, self.p
        row, col = self.sides(letter)
        place = NO
        if self.spec.dtype is p.acc:
            place = both(t, equal(t, col, 1), equal(t, self[cols], self[pitch]))
        with t.when(invert(t, place)):
            self.bring(to, pitch, source, letter, self["keys"], cols)
        apart = t.mul(t.select(place, row, self[pitch]), self.wide)
        return t.select(place, source, self.room(to)), apart

    # steps

    def scale(self, name: str, rows: Value) -> None:
        """Times the scale."""
        by = self.t.convert("bitcast", self["scale"], "double")
        count = self.t.mul(rows, self["depth_pitch"])
        call(self.t, "void", "scale", self.room(name), count, by)

    def weigh(self, q: Value, mask: Value | None, first: Value, rows: Value, limit: Value) -> None:
        """The weights of the queries from `first` on, of keys below `limit`."""
        source = self.from_row(q, "q", first)
        self.bring("queries", "depth_pitch", source, "q", rows, "depth")
        self.scale("queries", rows)
        l, r = self.block("queries", "depth_pitch"), self.packed("keys", self["depth"])
        self.product(rows, limit, self["depth"], l, r, "scores", "pitch")
        call(self.t, "void", "softmax", *self.rows(first, rows, limit), *self.masked(mask))

    def rows(self, first: Value, rows: Value, limit: Value) -> tuple[Value, ...]:
        return self.room("scores"), rows, first, limit, self["keys"], self["pitch"]

    def masked(self, mask: Value | None) -> tuple[Value, ...]:
        return () if mask is None else (mask, *self.sides("m"), self.room("mask"))

    # keys left out

    def behind(self, rows: Value, row: Value, low: Value, high: Value, pitch: str) -> None:
        """For each block from `low` to `high`, what the keys left out add to its sums: from the
        last block back. `rows` of what is summed are `row` bytes apart.
        """
        t, p, size, block = self.t, self.p, self[pitch], self["block"]
        minus = literal(-0.0, p.acc, p.lanes)
        count = t.op("udiv", t.sub(t.add(t.sub(high, low), block), 1), block)
        last = t.at(self.room("behind"), p.one, t.mul(t.sub(count, 1), size))
        before, end = t.variable(last), t.variable(self["keys"])
        with t.when(t.lt(i64(0), count)), t.loop(0, size, p.lanes) as j:
            t.store(minus, t.at(last, p.one, j), p.wide)
        with down(t, count) as n:
            to = t.at(self.room("behind"), p.one, t.mul(n, size))
            limit = t.min(t.add(low, t.mul(t.add(n, 1), block)), high)
            limit = t.min(limit, self["keys"])
            call(t, "void", "behind", to, before.get(), rows, row, limit, end.get(), size)
            before.set(to)
            end.set(limit)

    def add_behind(self, number: Value, rows: Value, pitch: str) -> None:
        """That, to every row of a block of results."""
        t, p, size = self.t, self.p, self[pitch]
        ends, to = t.at(self.room("behind"), p.one, t.mul(number, size)), self.room("out")
        with t.loop(0, size, p.lanes) as j:
            x = t.load(p.many, t.at(ends, p.one, j), p.wide)
            with t.loop(0, rows) as i:
                here = t.at(to, p.one, t.add(t.mul(i, size), j))
                t.store(t.op("fadd", t.load(p.many, here, p.wide), x), here, p.wide)
