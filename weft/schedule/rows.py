"""Fused rows: several reductions over the last axis with maps between them (softmax, layer_norm, their gradients), one pass over
memory.

A program works on a [rows, n] space. A fold needs the whole row, so the program falls into levels, one loop over the row
each: level k holds what can be computed once the folds of the levels below are known. Values of a lower level are computed
again where that is cheap and kept in a row of scratch memory where it isn't. Folds add up in the order of any reduction of a
last axis (`weft.schedule.reduce`), so fusing changes no bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from weft.buffer import Layout
from weft.ops.scalar import Scalar, substitute, text, walk
from weft.schedule.collapse import broadcast_strides, collapse
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.schedule.reduce import LANES
from weft.types import DType, TensorType

#: longest row: above it, kept rows would leave the near caches
LONGEST = 1 << 16
#: work of recomputing a value above which it is kept instead
KEEP = 6
#: elements a task works on, about
TASK = 1 << 15
#: rows that go through the levels together (one's latency hides behind the others'), at most, and bytes of them
BATCH, BATCH_BYTES = 16, 16384

#: what a value is, from one for the whole program to one per element
KINDS = ("one", "each", "column", "row")

_WORK = {
    "div": 8,
    "sqrt": 8,
    "max": 3,
    "min": 3,
    "const": 0,
    "input": 0,
    "param": 0,
    "mod": 20,
    "floordiv": 20,
}


@dataclass(frozen=True)
class Map:
    """A rule over earlier values: `input` positions count the program's inputs, then its steps."""

    rule: Scalar


@dataclass(frozen=True)
class Fold:
    """A value reduced along the row, to one of `dtype` per row. Monoids: sum prod max min any all."""

    monoid: str
    value: int
    dtype: DType


@dataclass(frozen=True, eq=False)
class RowProgram:
    """`inputs` are (kind, dtype); "row" is [rows, n], "each" [rows], "column" [n], "one" a single element. `outputs` number values:
    inputs first, then steps. Rules may read run-time numbers as params.

    >>> from weft.ops.scalar import input_
    >>> from weft.types.dtype import float32
    >>> x = input_(0, float32)
    >>> centred = RowProgram((("row", float32),), (Fold("sum", 0, float32), Map(x - input_(1, float32))), (2,))
    >>> centred.kinds, centred.levels
    (('row', 'each', 'row'), (0, 1, 1))
    """

    inputs: tuple[tuple[str, DType], ...]
    steps: tuple[Map | Fold, ...]
    outputs: tuple[int, ...]
    numbers: int = 0  # params the rules read

    @cached_property
    def said(self) -> str:
        lines = [f"{kind} {d.short}" for kind, d in self.inputs]
        for s in self.steps:
            lines.append(
                f"fold {s.monoid} {s.value} {s.dtype.short}"
                if isinstance(s, Fold)
                else f"map\n{text(s.rule)}"
            )
        return "\n".join([*lines, f"outputs {self.outputs} numbers {self.numbers}"])

    def step(self, value: int) -> Map | Fold | None:
        return self.steps[value - len(self.inputs)] if value >= len(self.inputs) else None

    def dtype(self, value: int) -> DType:
        step = self.step(value)
        if step is None:
            return self.inputs[value][1]
        return step.dtype if isinstance(step, Fold) else step.rule.dtype

    def reads(self, value: int) -> tuple[int, ...]:
        """The values a step is made of."""
        step = self.step(value)
        if step is None:
            return ()
        return (step.value,) if isinstance(step, Fold) else reads(step.rule)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        out = [kind for kind, _ in self.inputs]
        for v in range(len(out), len(out) + len(self.steps)):
            if isinstance(self.step(v), Fold):
                out.append("each")
            else:
                kind = max((out[a] for a in self.reads(v)), key=KINDS.index, default="one")
                out.append("row" if kind == "column" else kind)
        return tuple(out)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The loop in (or, for one number per row, before) which a value is first known."""
        out = [0] * len(self.inputs)
        for v in range(len(out), len(out) + len(self.steps)):
            below = max((out[a] for a in self.reads(v)), default=0)
            out.append(below + isinstance(self.step(v), Fold))
        return tuple(out)

    def work(self, value: int) -> int:
        """What the rule of a step costs, about, in instructions."""
        step = self.step(value)
        if not isinstance(step, Map):
            return 0
        return sum(_half(n) or _WORK.get(n.verb, 1) for n in walk([step.rule]))


def reads(rule: Scalar) -> tuple[int, ...]:
    return tuple(dict.fromkeys(n.value for n in walk([rule]) if n.verb == "input"))


def _half(n: Scalar) -> int:
    return 4 if n.verb == "cast" and n.dtype.is_float and n.dtype.bits == 16 else 0


@dataclass(frozen=True)
class Level:
    """One loop over the row."""

    folds: tuple[int, ...]  # steps that reduce here
    stores: tuple[int, ...]  # positions in `outputs` written here
    keeps: tuple[int, ...]  # values computed here and read again by later levels
    computes: tuple[int, ...]  # row steps whose rules run here
    work: int


def arrange(program: RowProgram) -> tuple[Level, ...]:
    """The loops of a program, and which values are kept between them."""
    levels, kinds = program.levels, program.kinds
    depth = 1 + max(
        [levels[v] for v in range(len(levels)) if kinds[v] in ("row", "column")], default=-1
    )
    depth = max(
        [1, depth, *(levels[v] for v in range(len(levels)) if isinstance(program.step(v), Fold))]
    )
    kept: set[int] = set()
    first: dict[int, int] = {}  # value -> level that computes it first
    needed: list[list[int]] = []
    for level in range(depth):
        folds = [
            v
            for v in range(len(levels))
            if isinstance(program.step(v), Fold) and levels[v] == level + 1
        ]
        stores = [
            o for o in program.outputs if kinds[o] in ("row", "column") and levels[o] == level
        ]
        wanted: list[int] = []
        pending = [a for v in folds for a in program.reads(v)] + stores
        while pending:
            v = pending.pop()
            if v in wanted or not isinstance(program.step(v), Map) or kinds[v] != "row":
                continue
            if first.get(v, level) < level and _again(program, v, kept) > KEEP:
                kept.add(v)
            if v in kept and first[v] < level:
                continue
            wanted.append(v)
            first.setdefault(v, level)
            pending += program.reads(v)
        needed.append(sorted(wanted))
    out = []
    for level, computes in enumerate(needed):
        folds = [
            v
            for v in range(len(levels))
            if isinstance(program.step(v), Fold) and levels[v] == level + 1
        ]
        places = [
            i
            for i, o in enumerate(program.outputs)
            if kinds[o] in ("row", "column") and levels[o] == level
        ]
        keeps = [v for v in computes if v in kept and first[v] == level]
        work = sum(program.work(v) for v in computes) + len(folds) + len(places)
        out.append(Level(tuple(folds), tuple(places), tuple(keeps), tuple(computes), work))
    return tuple(out)


def _again(program: RowProgram, value: int, kept: set[int]) -> int:
    """The work of computing a row value a second time."""
    below = [a for a in program.reads(value) if program.kinds[a] == "row" and a not in kept]
    return program.work(value) + sum(_again(program, a, kept) for a in below)


def _first(*found: Scalar | None) -> Scalar:
    return next(s for s in found if s is not None)


def lift(program: RowProgram) -> RowProgram:
    """The same program with what a row's rules compute from one value per row (or less) made steps of their own."""
    steps: list[Map | Fold] = []
    number = {v: v for v in range(len(program.inputs))}
    known: dict[str, int] = {}

    def renumbered(n: Scalar) -> Scalar | None:
        return Scalar("input", (), n.dtype, number[n.value]) if n.verb == "input" else None

    def apart(rule: Scalar) -> Scalar:
        said = text(rule)
        if said not in known:
            steps.append(Map(substitute(rule, renumbered)))
            known[said] = len(program.inputs) + len(steps) - 1
        return Scalar("input", (), rule.dtype, known[said])

    for v, step in enumerate(program.steps, len(program.inputs)):
        if isinstance(step, Fold):
            steps.append(Fold(step.monoid, number[step.value], step.dtype))
        elif program.kinds[v] != "row":
            steps.append(Map(substitute(step.rule, renumbered)))
        else:
            steps.append(Map(_parted(program, step.rule, apart, renumbered)))
        number[v] = len(program.inputs) + len(steps) - 1
    return RowProgram(
        program.inputs, tuple(steps), tuple(number[v] for v in program.outputs), program.numbers
    )


def _parted(
    program: RowProgram,
    rule: Scalar,
    apart: Callable[[Scalar], Scalar],
    renumbered: Callable[[Scalar], Scalar | None],
) -> Scalar:
    """`rule` with its largest parts that don't change along the row replaced by what `apart` makes of them."""
    fixed: dict[int, bool] = {}
    done: dict[int, Scalar] = {}
    for n in walk([rule]):
        if n.verb == "input":
            fixed[id(n)] = program.kinds[n.value] in ("one", "each")
        else:
            fixed[id(n)] = all(fixed[id(a)] for a in n.args)
        if not fixed[id(n)]:
            args = tuple(
                apart(a)
                if fixed[id(a)] and (a.args or a.verb == "param")
                else _first(done.get(id(a)), renumbered(a), a)
                for a in n.args
            )
            done[id(n)] = _first(renumbered(n), Scalar(n.verb, args, n.dtype, n.value))
    return done[id(rule)]


@dataclass(frozen=True)
class RowSpec:
    """The kernel of a program over rows that are enumerated by `outer` loops. `words` names its params in order."""

    program: RowProgram = field(compare=False)
    outer: int
    said: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "said", f"rows {self.outer}\n{self.program.said}")

    def key(self) -> str:
        return self.said

    def words(self) -> tuple[str, ...]:
        out = ["rows", "block", "n", "batch", "slice", "pitch"]
        for axis in range(self.outer):
            out += [f"k{axis}", *(f"k{axis}.{i}" for i in range(len(self.program.inputs)))]
        return (*out, *(f"n{i}" for i in range(self.program.numbers)))


def plan_rows(
    program: RowProgram,
    inputs: Sequence[Layout | DType],
    rows: Sequence[int],
    n: int,
    outs: Sequence[TensorType],
    threads: int,
    numbers: tuple[int, ...] = (),
) -> Launch | None:
    """Run a program over `rows` (any number of axes) of `n` elements, or None where it can't be one kernel.

    Row operands have the shape [*rows, n] or broadcast to it, "each" operands [*rows] or [*rows, 1]; a bare DType is a single
    element. Results are dense, of the types `outs`.
    """
    if not 0 < n <= LONGEST or any(
        isinstance(s, Fold) and s.monoid.startswith("arg") for s in program.steps
    ):
        return None
    layouts = tuple(Layout.dense(o) for o in outs)
    if math.prod(rows) == 0:
        return Launch(layouts)
    strides = []
    for (kind, _), x in zip(program.inputs, inputs, strict=True):
        found = _strides(kind, x, rows, n)
        if found is None:
            return None
        strides.append(found)
    nest = collapse(rows, strides)
    program = lift(program)
    spec = RowSpec(program, len(nest.sizes))
    levels = arrange(program)
    pitch = -(-n // LANES) * LANES
    kept = [program.dtype(v) for level in levels for v in level.keeps]
    count = math.prod(rows)
    work = n * (2 + sum(level.work for level in levels) // 8)
    heavy = count * work >= HEAVY
    block = max(1, min(TASK // work, -(-count // (4 * threads)))) if heavy else count
    wide = [d for kind, d in program.inputs if kind == "row"] + kept
    batch = max(1, min(BATCH, BATCH_BYTES // (n * sum(d.itemsize for d in wide) + 1)))
    held = sum(batch * pitch * d.itemsize for d in kept)
    values = {"rows": count, "block": block, "n": n, "batch": batch, "slice": held, "pitch": pitch}
    values |= {f"n{i}": x for i, x in enumerate(numbers)}
    for axis, size in enumerate(nest.sizes):
        values |= {f"k{axis}": size} | {f"k{axis}.{i}": s[axis] for i, s in enumerate(nest.strides)}
    tasks = -(-count // block)
    params = tuple(values[w] for w in spec.words())
    return Launch(layouts, (Phase(spec, tasks),), params, heavy=heavy, worker_scratch=held)


def _strides(kind: str, x: Layout | DType, rows: Sequence[int], n: int) -> tuple[int, ...] | None:
    """An operand's strides over the rows; None if its elements don't lie side by side along a row."""
    if kind == "one" or isinstance(x, DType):
        return (0,) * len(rows)
    if kind == "each":
        shape = x.type.shape
        if len(shape) == len(rows) + 1 and shape[-1] == 1:
            return broadcast_strides(x, len(rows) + 1)[:-1]
        return broadcast_strides(x, len(rows))
    strides = broadcast_strides(x, len(rows) + 1)
    if n > 1 and strides[-1] != 1:
        return None
    return (0,) * len(rows) if kind == "column" else strides[:-1]
