"""What a kernel of fused rows holds, and the code of one row: its levels, its vectors."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.reduce_frame import Axis
from weft.codegen.reduce_monoid import Lanes, Monoid, group_of, read, upto, write
from weft.codegen.registers import memory
from weft.codegen.text import Text, Value, i64
from weft.codegen.verbs import Leaf, cast, emit
from weft.ops.monoids import accumulator
from weft.ops.scalar import Scalar, walk
from weft.schedule.reduce_spec import CHUNK, LANES, OPERANDS
from weft.schedule.rows import BATCH, Fold, Level, Map, RowSpec, arrange
from weft.types import DType

#: work of a level above which it is written for one vector at a time
HEAVY_LEVEL = 16

Env = dict[int, Value]  # value number -> what holds it


class _Fold:
    """A fold under way: lanes in registers, a table of the same on the stack, and the total over
    chunks.
    """

    def __init__(self, t: Text, monoid: str, value: DType, out: DType, group: int) -> None:
        self.value, self.out, self.acc = value, out, accumulator(monoid, value, out)
        self.monoid = Monoid(t, monoid, self.acc)
        self.lanes = Lanes(t, self.monoid, group)
        self.table = t.scratch(memory(self.acc), LANES)
        self.total = t.variable(self.monoid.neutral(1))


class Kernel:
    """The function being written: params, operands, folds, and where values wait between levels."""

    def __init__(self, spec: RowSpec) -> None:
        self.spec, self.program = spec, spec.program
        self.t = t = Text("i64 @kernel(ptr %frame, i64 %lo, i64 %hi, i64 %worker)")
        frame, p = Value("ptr", "%frame"), spec.program
        operands = len(p.inputs) + len(p.outputs)
        pointers = [t.pointer(frame, OPERANDS + i) for i in range(operands)]
        self.inputs, self.outputs = pointers[: len(p.inputs)], pointers[len(p.inputs) :]
        words = {
            name: t.word(frame, OPERANDS + operands + i) for i, name in enumerate(spec.words())
        }
        self.words, self.n = words, words["n"]
        n_in = range(len(p.inputs))
        self.axes = [
            Axis(words[f"k{a}"], [words[f"k{a}.{i}"] for i in n_in]) for a in range(spec.outer)
        ]
        self.levels = arrange(p)
        self.group = group_of(*_dtypes(spec))
        held = t.at(t.pointer(frame, 2), "i8", t.mul(Value("i64", "%worker"), words["slice"]))
        self.kept: Env = {}
        for v in (v for level in self.levels for v in level.keeps):
            self.kept[v] = held
            held = t.at(held, memory(p.dtype(v)), t.mul(words["pitch"], words["batch"]))
        self.noted: Env = {}  # one value per row, of the rows of a batch
        for v in (v for v, kind in enumerate(p.kinds) if kind == "each"):
            self.noted[v] = t.scratch(memory(p.dtype(v)), BATCH)
            t.store(Value(memory(p.dtype(v), BATCH), "zeroinitializer"), self.noted[v], 64)
        self.once: Env = {}  # one value for all rows
        for v, kind in enumerate(p.kinds):
            step = p.step(v)
            if kind == "one" and step is None:
                self.once[v] = read(t, p.dtype(v), self.inputs[v], 1)
            elif kind == "one" and isinstance(step, Map):
                (self.once[v],) = emit(t, [step.rule], 1, self.leaf(self.once, 1))
        self.folds: dict[int, _Fold] = {}
        for level in self.levels:
            for v in level.folds:
                fold = p.step(v)
                assert isinstance(fold, Fold)
                self.folds[v] = _Fold(t, fold.monoid, p.dtype(fold.value), fold.dtype, self.group)

    def leaf(self, known: Env, lanes: int) -> Leaf:
        def leaf(n: Scalar, _: list[Value]) -> Value:
            if n.verb == "param":
                return self.t.splat(self.words[f"n{n.value}"], lanes)
            return known[n.value]

        return leaf

    def wide(self, v: int) -> bool:
        return self.program.kinds[v] in ("row", "column")

    def note(self, v: int, b: Value, value: Value) -> None:
        d = self.program.dtype(v)
        write(self.t, value, d, self.t.at(self.noted[v], memory(d), b))

    def noted_at(self, v: int, b: Value) -> Value:
        d = self.program.dtype(v)
        return read(self.t, d, self.t.at(self.noted[v], memory(d), b), 1)


class Row:
    """The code of one row. `each` holds what there is one of per row, as it becomes known."""

    def __init__(self, k: Kernel, bases: list[Value], outs: list[Value], each: Env) -> None:
        self.k, self.t, self.p = k, k.t, k.program
        self.bases, self.outs, self.each = bases, outs, each
        self.spread: Env = {}
        self.kept: Env = {}  # rows of scratch memory; none where all stays in registers

    def short(self, mask: Value) -> None:
        """The whole row, which is one vector."""
        k = self.k
        env: Env = {}
        self._scalars(0)
        for number, level in enumerate(k.levels):
            for v in level.folds:
                k.folds[v].lanes.clear(1)
            self._vector(level, number, i64(0), mask, 0, env)
            for v in level.folds:
                f = k.folds[v]
                self._known(v, f.monoid.join([f.monoid.neutral(1)], f.lanes.finish(1, i64(0)))[0])
            self._scalars(number + 1)
        self.store_scalars()

    def level(self, number: int, b: Value, kept: Env) -> None:
        """One level of a longer row, number `b` of its batch."""
        k = self.k
        self.kept = kept
        for v in k.noted:
            if self.p.levels[v] <= number:
                self.each[v] = k.noted_at(v, b)
        self._spread()
        if k.levels[number].folds:
            self._reduce(k.levels[number], number)
        else:
            self._through(k.levels[number], number, i64(0), k.n, ())
        for v in k.levels[number].folds:
            k.note(v, b, self.each[v])

    def store_scalars(self) -> None:
        for v, out in zip(self.p.outputs, self.outs, strict=True):
            if v in self.each:
                write(self.t, self.each[v], self.p.dtype(v), out)

    def _known(self, v: int, state: Value) -> None:
        """A fold is done: round it to its dtype."""
        f = self.k.folds[v]
        self.each[v] = cast(self.t, f.monoid.finish([state]), f.acc, f.out)

    def _scalars(self, level: int) -> None:
        """Steps that give one value per row, once the folds below `level` are known."""
        for v, (kind, at) in enumerate(zip(self.p.kinds, self.p.levels, strict=True)):
            step = self.p.step(v)
            if kind == "each" and at == level and isinstance(step, Map):
                (self.each[v],) = emit(self.t, [step.rule], 1, self.k.leaf(self.each, 1))
        self._spread()

    def _spread(self) -> None:
        for v, value in self.each.items():
            if v not in self.spread:
                self.spread[v] = self.t.splat(value, self.k.group)

    def _reduce(self, level: Level, number: int) -> None:
        """A level with folds: chunk by chunk."""
        t, k = self.t, self.k
        folds = [k.folds[v] for v in level.folds]
        for f in folds:
            f.total.set(f.monoid.neutral(1))
        groups = LANES // k.group
        with t.loop(0, k.n, CHUNK) as start:
            stop = t.min(t.add(start, CHUNK), k.n)
            for f in folds:
                f.lanes.clear(groups)
            self._through(level, number, start, stop, folds)
            for f in folds:
                joined = f.monoid.join([f.total.get()], f.lanes.finish(groups, start))
                f.total.set(joined[0])
        for v in level.folds:
            self._known(v, k.folds[v].total.get())

    def _through(
        self, level: Level, number: int, start: Value, stop: Value, folds: Sequence[_Fold]
    ) -> None:
        """Elements start..stop-1 of the row."""
        t, group = self.t, self.k.group
        if level.work <= HEAVY_LEVEL:
            done = t.add(start, t.op("and", t.sub(stop, start), i64(-LANES)))
            with t.loop(start, done, LANES) as r:
                for g in range(LANES // group):
                    self._vector(level, number, t.add(r, g * group), None, g, {})
            with t.when(t.lt(done, stop)):
                self._to_stack(folds)
                self._masked(level, number, done, stop)
                self._from_stack(folds)
            return
        self._to_stack(folds)
        whole = t.add(start, t.op("and", t.sub(stop, start), i64(-group)))
        with t.loop(start, whole, group) as r:
            self._vector(level, number, r, None, r, {})
        self._masked(level, number, whole, stop)
        self._from_stack(folds)

    def _masked(self, level: Level, number: int, start: Value, stop: Value) -> None:
        """What is left of a row, vector by vector."""
        t, group = self.t, self.k.group
        with t.loop(start, stop, group) as r:
            self._vector(level, number, r, upto(t, t.sub(stop, r), group), r, {})

    def _to_stack(self, folds: Sequence[_Fold]) -> None:
        for f in folds:
            for g, (slot,) in enumerate(f.lanes.slots):
                write(self.t, slot.get(), f.acc, self._cell(f, i64(g * self.k.group)))

    def _from_stack(self, folds: Sequence[_Fold]) -> None:
        for f in folds:
            for g, (slot,) in enumerate(f.lanes.slots):
                slot.set(read(self.t, f.acc, self._cell(f, i64(g * self.k.group)), self.k.group))

    def _cell(self, f: _Fold, lane: Value) -> Value:
        return self.t.at(f.table, memory(f.acc), lane)

    def _vector(
        self, level: Level, number: int, at: Value, mask: Value | None, lanes: int | Value, env: Env
    ) -> None:
        """One vector of the row: compute, reduce, store. `lanes`: a group of the registers, or a
        place in the table.
        """
        t, k, p = self.t, self.k, self.p
        for v in level.folds:
            f = k.folds[v]
            value = cast(t, self._value(p.reads(v)[0], number, at, mask, env), f.value, f.acc)
            if isinstance(lanes, int):
                f.lanes.take(lanes, value, None, mask)
            else:
                cell = self._cell(f, t.op("and", lanes, i64(LANES - 1)))
                if mask is not None:
                    value = t.select(mask, value, f.lanes.starts[0])
                state = [read(t, f.acc, cell, k.group)]
                write(t, f.monoid.join(state, [value])[0], f.acc, cell)
        # all are known before the first is written: a result may lie where an operand did
        found = [self._value(p.outputs[i], number, at, mask, env) for i in level.stores]
        for position, value in zip(level.stores, found, strict=True):
            d = p.dtype(p.outputs[position])
            write(t, value, d, t.at(self.outs[position], memory(d), at), mask)
        for v, place in self.kept.items():
            if v in level.keeps:
                d = p.dtype(v)
                write(t, self._value(v, number, at, mask, env), d, t.at(place, memory(d), at))

    def _value(self, v: int, number: int, at: Value, mask: Value | None, env: Env) -> Value:
        """A vector of value `v`: known already, read, or computed here."""
        if v in self.spread:
            return self.spread[v]
        if v in env:
            return env[v]
        t, k, step = self.t, self.k, self.p.step(v)
        if step is None:
            d = self.p.dtype(v)
            base = k.inputs[v] if self.p.kinds[v] == "column" else self.bases[v]
            env[v] = read(t, d, t.at(base, memory(d), at), k.group, mask)
        elif v in self.kept and v not in k.levels[number].computes:
            d = self.p.dtype(v)
            env[v] = read(t, d, t.at(self.kept[v], memory(d), at), k.group)
        else:
            assert isinstance(step, Map)
            for a in self.p.reads(v):
                self._value(a, number, at, mask, env)
            (env[v],) = emit(t, [step.rule], k.group, self.k.leaf(self.spread | env, k.group))
        return env[v]


def _dtypes(spec: RowSpec) -> list[DType]:
    """Everything that is computed with along the row."""
    p = spec.program
    wide = [v for v, kind in enumerate(p.kinds) if kind in ("row", "column")]
    out = [p.dtype(v).compute for v in wide]
    for v in wide:
        step = p.step(v)
        if isinstance(step, Map):
            out += [n.dtype.compute for n in walk([step.rule]) if n.verb not in ("param", "const")]
    for v, step in enumerate(p.steps, len(p.inputs)):
        if isinstance(step, Fold):
            out.append(accumulator(step.monoid, p.dtype(p.reads(v)[0]), step.dtype))
    return out
