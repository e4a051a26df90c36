"""The end of a tile: from scratch memory to the results, rounded to their dtypes, or through an
epilogue, in vectors along the columns.

With an epilogue, a row of a tile is cut into runs of columns that are neighbours in all operands
that have such; operands whose elements lie apart go through a vector in stack memory.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.codegen import verbs
from weft.codegen.contract_index import (
    MEMORY,
    NO,
    Frame,
    arg,
    at,
    call,
    equal,
    function,
    get,
    invert,
    leave,
    memory,
    rem,
    walk,
)
from weft.codegen.contract_pack import (
    Packing,
    as_mask,
    low_bits,
    masked,
    masked_load,
    masked_store,
    shuffle,
    turn,
)
from weft.codegen.contract_tile import prefetch
from weft.codegen.text import Text, Value, i64
from weft.ops.scalar import Scalar
from weft.schedule.contract_spec import OPERANDS, ContractSpec, Ending
from weft.types.dtype import DType, bool_


def finish_function(spec: ContractSpec) -> Text:
    """finish(tile, c, height, count, rows, cols): from a tile in scratch memory to the result,
    rounded to its dtype; `rows` and `cols` are offsets.
    """
    words = {"height": "i64", "count": "i64", "rows": "ptr", "cols": "ptr"}
    t = function("finish", "void", tile="ptr", c="ptr", **words)
    p, count, cols = Packing(spec), arg("count"), arg("cols", "ptr")

    def narrow(x: Value) -> Value:
        return verbs.cast(t, x, p.acc, spec.dtype)

    first, last = get(t, cols, 0), get(t, cols, t.sub(count, 1))
    near = equal(t, t.sub(last, first), t.sub(count, 1))
    whole = count if masked(spec) else t.sub(count, rem(t, count, i64(spec.lanes)))
    vectors = t.select(near, whole, i64(0))
    evens = NO
    if masked(spec):
        said = t.variable(NO)
        with t.when(invert(t, near)):
            said.set(_are_evens(t, cols, count))
        evens = said.get()
    with t.loop(0, arg("height")) as i:
        from_ = t.at(arg("tile", "ptr"), p.one, t.mul(i, pitch(spec)))
        into = p.element_at(t, arg("c", "ptr"), get(t, arg("rows", "ptr"), i))
        with t.loop(0, vectors, spec.lanes) as j:
            x = narrow(t.load(p.many, t.at(from_, p.one, j), p.wide))
            to = p.element_at(t, into, t.add(first, j))
            if masked(spec):
                bits = low_bits(t, t.min(t.sub(count, j), spec.lanes))
                masked_store(t, x, to, p.align, as_mask(t, bits, spec.lanes))
            else:
                t.store(x, to, p.align)
        done = t.select(evens, count, vectors) if masked(spec) else vectors
        with t.loop(done, count) as j:
            x = narrow(t.load(p.one, t.at(from_, p.one, j), p.wide))
            t.store(x, p.element_at(t, into, get(t, cols, j)), p.align)
        if masked(spec):
            with t.when(evens), t.loop(0, count, spec.lanes) as j:
                x = narrow(t.load(p.many, t.at(from_, p.one, j), p.wide))
                to = p.element_at(t, into, t.add(first, t.mul(j, 2)))
                _store_evens(t, p, x, to, t.sub(count, j))
    t.emit("ret void")
    return t


def _are_evens(t: Text, cols: Value, count: Value) -> Value:
    """Whether so many offsets are those of every second element."""
    wrong, first = t.variable(i64(0)), get(t, cols, 0)
    with t.loop(0, count) as j:
        there = t.sub(t.sub(get(t, cols, j), first), t.mul(j, 2))
        wrong.set(t.op("or", wrong.get(), there))
    return equal(t, wrong.get(), 0)


def _store_evens(t: Text, p: Packing, x: Value, to: Value, count: Value) -> None:
    """Write the first `count` lanes to every second place; what lies between is not touched."""
    half, evens = p.lanes // 2, sum(1 << n for n in range(0, p.lanes, 2))
    for begin in (0, half):
        left = t.sub(count, begin)
        with t.when(t.lt(i64(0), left)):
            bits = t.op("and", low_bits(t, t.mul(t.min(left, half), 2)), i64(evens))
            wide = shuffle(t, x, x, [begin + n // 2 for n in range(p.lanes)])
            here = p.element_at(t, to, 2 * begin)
            masked_store(t, wide, here, p.align, as_mask(t, bits, p.lanes))


def finish_turned_function(spec: ContractSpec) -> Text:
    """finish_turned(MEMORY, tile, c, height, count, rows, cols): the same of a tile that is not
    transposed yet. Where `cols` are neighbours it never is, in memory.
    """
    words = {"height": "i64", "count": "i64", "rows": "ptr", "cols": "ptr"}
    t = function("finish_turned", "void", **MEMORY, tile="ptr", c="ptr", **words)
    p, some, count = Packing(spec), spec.lanes, arg("count")
    tile, c, rows, cols = (arg(name, "ptr") for name in ("tile", "c", "rows", "cols"))
    first, last = get(t, cols, 0), get(t, cols, t.sub(count, 1))
    near = equal(t, t.sub(last, first), t.sub(count, 1))
    with t.when(invert(t, near)):
        turned = call(t, "ptr", "turn", *memory(), tile)
        call(t, "void", "finish", turned, c, arg("height"), count, rows, cols)
        leave(t)
    with t.loop(0, count, some) as i, t.loop(0, arg("height"), some) as j:
        from_ = t.at(tile, p.one, t.add(t.mul(i, spec.panel), j))
        lines = [t.load(p.many, t.at(from_, p.one, k * spec.panel), p.wide) for k in range(some)]
        xs = [verbs.cast(t, x, p.acc, spec.dtype) for x in turn(t, lines)]
        here, left = p.element_at(t, c, t.add(first, i)), t.sub(arg("height"), j)
        n = t.min(t.sub(count, i), some)
        mask = as_mask(t, low_bits(t, n), some)
        for k, x in enumerate(xs):
            with t.when(t.lt(i64(k), left)):
                to = p.element_at(t, here, get(t, rows, t.add(j, k)))
                masked_store(t, x, to, p.align, mask)
    t.emit("ret void")
    return t


def pitch(spec: ContractSpec) -> int:
    """How many elements the rows of a tile are apart, once it is transposed if need be."""
    return spec.l_panel if spec.turned else spec.panel


def finish_name(spec: ContractSpec) -> str:
    """What ends a tile where there is no epilogue."""
    return "finish_turned" if spec.turned and masked(spec) else "finish"


def turn_function(spec: ContractSpec) -> Text:
    """turn(MEMORY, tile): the tile transposed, in scratch memory, and where. A square of a vector's
    lanes at a time, so that what is read next are whole vectors that were stored as such.
    """
    t = function("turn", "ptr", **MEMORY, tile="ptr")
    p, f, some = Packing(spec), Frame(t, spec), spec.lanes
    out = f.part("turned")
    with t.loop(0, spec.l_panel, some) as i, t.loop(0, spec.panel, some) as j:
        from_ = t.at(arg("tile", "ptr"), p.one, t.add(t.mul(i, spec.panel), j))
        lines = [t.load(p.many, t.at(from_, p.one, k * spec.panel), p.wide) for k in range(some)]
        to = t.at(out, p.one, t.add(t.mul(j, spec.l_panel), i))
        for k, x in enumerate(turn(t, lines)):
            t.store(x, t.at(to, p.one, k * spec.l_panel), p.wide)
    t.emit(f"ret {out}")
    return t


def end_function(spec: ContractSpec, ending: Ending) -> Text:
    """end(MEMORY, skips, tile, row, col, height, count, position): the epilogue of a tile whose
    first row and column are numbers `row` and `col` of the block; that column is `position` into a
    run. `skips` are where the batch element begins, in the results and the extra operands.
    """
    pointers = {**MEMORY, "skips": "ptr", "tile": "ptr"}
    words = dict.fromkeys(("row", "col", "height", "count", "position"), "i64")
    return _End(function("end", "void", **pointers, **words), spec, ending).emit()


def foresee_function(spec: ContractSpec, ending: Ending) -> Text:
    """foresee(MEMORY, skips, row, col, height): bring near what the epilogue of a tile reads and
    writes, while the tile is computed.
    """
    pointers = {**MEMORY, "skips": "ptr"}
    words = dict.fromkeys(("row", "col", "height"), "i64")
    return _End(function("foresee", "void", **pointers, **words), spec, ending).foresee()


class _Operand:
    """A result or an extra operand: where its elements are, and a vector of them in stack memory
    unless none is needed.
    """

    def __init__(self, end: _End, name: str, word: int, dtype: DType, mode: str) -> None:
        t, self.t, self.dtype, self.mode = end.t, end.t, dtype, mode
        number = end.spec.operands.index(name) - 2
        base = t.pointer(end.f.address, word)
        skip = get(t, arg("skips", "ptr"), number)
        self.base = t.at(base, verbs.memory(dtype), skip)
        across, along = end.spec.across
        self.rows = at(t, end.f.part(f"{across}_{name}"), arg("row"))
        self.cols = at(t, end.f.part(f"{along}_{name}"), arg("col"))
        self.lanes, self.masked = end.spec.lanes, masked(end.spec)
        self.width = end.spec.tile.heights[0] if end.spec.turned else end.spec.panel
        self.many = verbs.memory(dtype, self.lanes)
        if mode == "s" or (mode == "c" and not self.masked):
            self.stage = t.scratch(self.many)

    def start(self, i: Value) -> None:
        """Go to row `i` of the tile."""
        t = self.t
        self.row = self._at(self.base, get(t, self.rows, i))
        if self.mode == "b":
            one = t.load(verbs.memory(self.dtype), self.row, self.dtype.itemsize)
            self.all = t.splat(one, self.lanes)

    def load(self, j: Value, n: Value) -> Value:
        """The elements of `n` columns from `j` on, others anything."""
        x = self._load(j, n)
        if self.dtype is not bool_:
            return x
        return self.t.compare("icmp ne", x, Value(x.type, "zeroinitializer"))

    def _load(self, j: Value, n: Value) -> Value:
        t, size = self.t, self.dtype.itemsize
        if self.mode == "b":
            return self.all
        if self.mode == "c" and self.masked:
            here = self._at(self.row, get(t, self.cols, j))
            return masked_load(t, self.many, here, size, as_mask(t, low_bits(t, n), self.lanes))
        if self.mode == "c":
            here, some = self._at(self.row, get(t, self.cols, j)), t.lt(n, self.lanes)
            with t.when(some):
                self._move(n, lambda k: self._at(here, k), into_stage=True)
            return t.load(self.many, t.select(some, self.stage, here), size)
        self._move(n, lambda k: self._at(self.row, get(t, self.cols, t.add(j, k))), True)
        return t.load(self.many, self.stage, size)

    def store(self, x: Value, j: Value, n: Value) -> None:
        """Write the first `n` lanes to the columns from `j` on."""
        t, size = self.t, self.dtype.itemsize
        if self.dtype is bool_:
            x = t.convert("zext", x, self.many)
        if self.mode == "c":
            here = self._at(self.row, get(t, self.cols, j))
            some = t.lt(n, self.lanes)
            if self.masked:  # whole vectors apart: stores with a mask are slow
                with t.when(some):
                    masked_store(t, x, here, size, as_mask(t, low_bits(t, n), self.lanes))
                with t.when(invert(t, some)):
                    t.store(x, here, size)
                return
            t.store(x, t.select(some, self.stage, here), size)
            with t.when(some):
                self._move(n, lambda k: self._at(here, k), into_stage=False)
            return
        t.store(x, self.stage, size)
        self._move(n, lambda k: self._at(self.row, get(t, self.cols, t.add(j, k))), False)

    def foresee(self, write: bool) -> None:
        """Bring the row's first columns near, if they are neighbours."""
        t, size = self.t, self.width * self.dtype.itemsize
        if self.mode == "c":
            here = self._at(self.row, get(t, self.cols, 0))
            for byte in (*range(0, size - 1, 64), size - 1):
                prefetch(t, t.at(here, "i8", byte), write)

    def _at(self, pointer: Value, offset: Value) -> Value:
        return self.t.at(pointer, verbs.memory(self.dtype), offset)

    def _move(self, n: Value, place: Callable[[Value], Value], into_stage: bool) -> None:
        """Copy `n` elements between their places and the stage, one by one."""
        t, size = self.t, self.dtype.itemsize
        with t.loop(0, n) as k:
            ends = place(k), self._at(self.stage, k)
            from_, to = ends if into_stage else ends[::-1]
            t.store(t.load(verbs.memory(self.dtype), from_, size), to, size)


class _End:
    """The code of an epilogue."""

    def __init__(self, t: Text, spec: ContractSpec, ending: Ending) -> None:
        self.t, self.spec, self.ending, self.f = t, spec, ending, Frame(t, spec)
        extras = zip(ending.extras, ending.dtypes, ending.modes[1:], strict=True)
        self.extras = [
            _Operand(self, name, OPERANDS + 2 + i, dtype, mode)
            for i, (name, dtype, mode) in enumerate(extras)
        ]
        self.outs = [
            _Operand(self, "c", spec.result + i, rule.dtype, ending.modes[0])
            for i, rule in enumerate(ending.rules)
        ]
        self.numbers = [t.splat(self.f[f"n{k}"], spec.lanes) for k in range(ending.numbers)]

    def emit(self) -> Text:
        t, spec, count = self.t, self.spec, arg("count")
        p = Packing(spec)
        position = t.variable(arg("position"))
        with walk(t, 0, count) as run:
            run.step = t.min(t.sub(self.f["run"], position.get()), t.sub(count, run.now))
            position.set(i64(0))
            stop = t.add(run.now, run.step)
            with t.loop(0, arg("height")) as i:
                from_ = t.at(arg("tile", "ptr"), p.one, t.mul(i, pitch(spec)))
                for operand in (*self.extras, *self.outs):
                    operand.start(i)
                with t.loop(run.now, stop, spec.lanes) as j:
                    x = t.load(p.many, t.at(from_, p.one, j), p.wide)
                    x = verbs.cast(t, x, p.acc, spec.dtype)
                    self._vector(x, j, t.min(t.sub(stop, j), spec.lanes))
        t.emit("ret void")
        return t

    def foresee(self) -> Text:
        with self.t.loop(0, arg("height")) as i:
            for operand in (*self.extras, *self.outs):
                operand.start(i)
                operand.foresee(write=operand in self.outs)
        self.t.emit("ret void")
        return self.t

    def _vector(self, x: Value, j: Value, n: Value) -> None:
        def leaf(s: Scalar, args: list[Value]) -> Value:
            if s.verb == "param":
                return self.numbers[s.value]
            return self.extras[s.value - 1].load(j, n) if s.value else x

        results = verbs.emit(self.t, self.ending.rules, self.spec.lanes, leaf)
        for out, value in zip(self.outs, results, strict=True):
            out.store(value, j, n)
