"""The attention kernel: see `weft.schedule.attention` for what it computes and WORDS for its params.

A task has a matrix, or some of its rows. It packs the keys for the tiles of a contraction, then goes
block by block: scaled queries, scores, weights, results.
"""

from __future__ import annotations

from weft.codegen.attention_parts import (
    behind_function,
    bring_function,
    line_function,
    tiles,
    transpose_function,
)
from weft.codegen.attention_rows import mask_dtype, softmax_function
from weft.codegen.contract_index import NO, both, call, down, equal, function, arg, get
from weft.codegen.contract_pack import Packing
from weft.codegen.extern import Kernel
from weft.codegen.registers import literal, memory
from weft.codegen.text import Text, Value, i64, module
from weft.codegen.verbs import cast
from weft.schedule.attention import WORDS, Attention
from weft.types.dtype import float64


def lower(spec: Attention) -> str:
    p = Packing(spec.products)
    globals_, parts = tiles(spec.products)
    parts += [p.any(), p.from_depth(), bring_function(spec.products)]
    parts += [transpose_function(spec.products), scale_function(spec), softmax_function(spec)]
    parts += [store_function(spec)]
    if spec.mask:
        parts.append(line_function(mask_dtype(spec)))
    if spec.skips:
        parts.append(behind_function(spec.products))
    return globals_ + module(*parts, _kernel(spec))


def scale_function(spec: Attention) -> Text:
    """scale(at, count, by): so many numbers, in place, whole vectors of them."""
    p = Packing(spec.products)
    t = function("scale", "void", at="ptr", count="i64", by="double")
    by = cast(t, cast(t, arg("by", "double"), float64, spec.dtype), spec.dtype, p.acc)
    spread = t.splat(by, p.lanes)
    with t.loop(0, arg("count"), p.lanes) as i:
        here = t.at(arg("at", "ptr"), p.one, i)
        x = t.op("fmul", t.load(p.many, here, p.wide), spread)
        t.store(settled(t, spec, x), here, p.wide)
    t.emit("ret void")
    return t


def settled(t: Text, spec: Attention, x: Value) -> Value:
    """Rounded to the operands' dtype, as the end of an op does."""
    d, acc = spec.dtype, spec.dtype.compute
    return x if d is acc else cast(t, cast(t, x, acc, d), d, acc)


def store_function(spec: Attention) -> Text:
    """store(out, source, pitch, rows, cols): rows of sums as a dense result."""
    p = Packing(spec.products)
    words = {"pitch": "i64", "rows": "i64", "cols": "i64"}
    t = function("store", "void", out="ptr", source="ptr", **words)
    cols = arg("cols")
    whole = t.op("and", cols, i64(-p.lanes))

    def move(to: Value, from_: Value, type_: str) -> None:
        x = cast(t, t.load(type_, from_, p.wide), p.acc, spec.dtype)
        t.store(x, to, p.align)

    with t.loop(0, arg("rows")) as i:
        to = p.element_at(t, arg("out", "ptr"), t.mul(i, cols))
        from_ = t.at(arg("source", "ptr"), p.one, t.mul(i, arg("pitch")))
        with t.loop(0, whole, p.lanes) as j:
            move(p.element_at(t, to, j), t.at(from_, p.one, j), p.many)
        with t.loop(whole, cols) as j:
            move(p.element_at(t, to, j), t.at(from_, p.one, j), p.one)
    t.emit("ret void")
    return t


class Task:
    """What the code of a task refers to: params by name, operands, parts of scratch memory."""

    def __init__(self, t: Kernel, spec: Attention, task: Value, words: tuple[str, ...]) -> None:
        self.t, self.spec, self.p = t, spec, Packing(spec.products)
        self.names, self.first = words, 3 + t.operands
        self.slice = t.at(
            t.scratch_memory(), "i8", t.mul(Value("i64", "%worker"), self["slice"])
        )
        self.matrix, self.part = t.divmod(task, self["parts"])

    def __getitem__(self, name: str) -> Value:
        return self.t.word(self.t.frame, self.first + self.names.index(name))

    def room(self, name: str) -> Value:
        return self.t.at(self.slice, "i8", self[f"at_{name}"])

    def bytes(self, name: str) -> Value:
        return self.t.mul(self[name], self.p.wide)

    def operand(self, n: int, element: str) -> Value:
        """Where the task's matrix of an operand begins."""
        t = self.t
        axes, tail = self["axes"], t.at(t.frame, "i64", self.first + len(self.names))
        left, total = t.variable(self.matrix), t.variable(i64(0))
        with down(t, axes) as a:
            q, own = t.divmod(left.get(), get(t, tail, a))
            stride = get(t, tail, t.add(t.mul(axes, n + 1), a))
            total.set(t.add(total.get(), t.mul(own, stride)))
            left.set(q)
        return t.at(t.operand(n), element, total.get())

    def result(self, n: int, rows: Value, cols: Value) -> Value:
        """Where the task's matrix of a result, which has so many rows and columns, begins."""
        size = self.t.mul(self.t.mul(rows, cols), self.matrix)
        return self.p.element_at(self.t, self.t.operand(n), size)


def _kernel(spec: Attention) -> Kernel:
    t = Kernel(spec.inputs + 1)
    with t.tasks() as task:
        _task(Task(t, spec, task, WORDS))
    t.ret()
    return t


def _task(k: Task) -> None:
    t, spec, p = k.t, k.spec, k.p
    q, key, value = (k.operand(n, p.element) for n in range(3))
    mask = k.operand(3, memory(mask_dtype(spec))) if spec.mask else None
    out = k.result(spec.inputs, k["rows"], k["width"])
    low = t.mul(k.part, k["span"])
    high = t.min(t.add(low, k["span"]), k["rows"])
    sides = (k["k_row"], k["k_col"], k["keys"], k["depth"])
    call(t, "void", "transpose", k.room("keys"), key, *sides, k.room("table"))
    values, v_row = _values(k, value)
    if spec.skips:
        _behind(k, values, v_row, low, high)
    with t.loop(low, high, k["block"]) as i:
        with t.when(t.compare("icmp ne", i, low)):
            t.poll()
        rows = t.min(k["block"], t.sub(high, i))
        limit = t.min(k["keys"], t.add(i, rows)) if spec.skips else k["keys"]
        scores(k, q, i, rows, limit)
        weigh(k, mask, i, rows, limit)
        wide, pitch = i64(p.wide), k.bytes("pitch")
        l = (k.room("scores"), pitch, wide)
        r = (values, v_row, i64(p.panel_bytes))
        c = (k.room("out"), k.bytes("width_pitch"), NO)
        call(t, "void", "product", rows, k["width"], limit, *l, *r, *c)
        if spec.skips:
            number = t.op("udiv", t.sub(i, low), k["block"])
            ends = t.at(k.room("behind"), p.one, t.mul(number, k["width_pitch"]))
            _add(k, k.room("out"), ends, rows, k["width_pitch"])
        to = p.element_at(t, out, t.mul(i, k["width"]))
        call(t, "void", "store", to, k.room("out"), k["width_pitch"], rows, k["width"])


def scores(k: Task, q: Value, first: Value, rows: Value, limit: Value) -> None:
    """Scaled queries from `first` on times the keys below `limit`."""
    t, p = k.t, k.p
    source = p.element_at(t, q, t.mul(first, k["q_row"]))
    pitch = k["depth_pitch"]
    sides = (k["q_row"], k["q_col"], rows, k["depth"])
    call(t, "void", "bring", k.room("queries"), pitch, source, *sides)
    by = t.convert("bitcast", k["scale"], "double")
    call(t, "void", "scale", k.room("queries"), t.mul(rows, pitch), by)
    l = (k.room("queries"), k.bytes("depth_pitch"), i64(p.wide))
    r = (k.room("keys"), i64(p.panel_bytes), t.mul(k["depth"], p.panel_bytes))
    c = (k.room("scores"), k.bytes("pitch"), NO)
    call(t, "void", "product", rows, limit, k["depth"], *l, *r, *c)


def weigh(k: Task, mask: Value | None, first: Value, rows: Value, limit: Value) -> None:
    """Scores become weights."""
    t = k.t
    common = (k.room("scores"), rows, first, limit, k["keys"], k["pitch"])
    given = () if mask is None else (mask, k["m_row"], k["m_col"], k.room("mask"))
    call(t, "void", "softmax", *common, *given)


def _values(k: Task, source: Value) -> tuple[Value, Value]:
    """Where values are read, and how many bytes apart rows are: in place, where that is in whole
    panels.
    """
    t, spec, p = k.t, k.spec, k.p
    to, pitch = k.room("values"), k["width_pitch"]
    place = NO
    if spec.dtype is p.acc:
        place = both(t, equal(t, k["v_col"], 1), equal(t, k["width"], pitch))
    with t.when(t.op("xor", place, Value("i1", "true"))):
        sides = (k["v_row"], k["v_col"], k["keys"], k["width"])
        call(t, "void", "bring", to, pitch, source, *sides)
    row = t.select(place, k["v_row"], pitch)
    return t.select(place, source, to), t.mul(row, p.wide)


def _behind(k: Task, values: Value, v_row: Value, low: Value, high: Value) -> None:
    """For each block, what the keys left out add to its sums: from the last block on back."""
    t, p = k.t, k.p
    before = t.variable(k.room("behind"))
    pitch, block = k["width_pitch"], k["block"]
    minus = literal(-0.0, p.acc, p.lanes)
    count = t.op("udiv", t.sub(t.add(t.sub(high, low), block), 1), block)
    last = t.at(before.get(), p.one, t.mul(t.sub(count, 1), pitch))
    with t.loop(0, pitch, p.lanes) as j:
        t.store(minus, t.at(last, p.one, j), p.wide)
    before.set(last)
    end = t.variable(k["keys"])
    with down(t, count) as n:
        to = t.at(k.room("behind"), p.one, t.mul(n, pitch))
        limit = t.min(t.add(low, t.mul(t.add(n, 1), block)), high)
        limit = t.min(limit, k["keys"])
        call(t, "void", "behind", to, before.get(), values, v_row, limit, end.get(), pitch)
        before.set(to)
        end.set(limit)


def _add(k: Task, to: Value, ends: Value, rows: Value, pitch: Value) -> None:
    """What the keys left out add, to every row."""
    t, p = k.t, k.p
    with t.loop(0, pitch, p.lanes) as j:
        x = t.load(p.many, t.at(ends, p.one, j), p.wide)
        with t.loop(0, rows) as i:
            here = t.at(to, p.one, t.add(t.mul(i, pitch), j))
            t.store(t.op("fadd", t.load(p.many, here, p.wide), x), here, p.wide)
