"""Fused rows: several reductions over the last axis with maps between them (softmax, layer_norm,
their gradients), one pass over memory.

A program works on a [rows, n] space. A fold needs the whole row, so the program falls into levels,
one loop over the row each: level k holds what can be computed once the folds of the levels below
are known. Values of a lower level are computed again where that is cheap and kept in a row of
scratch memory where it isn't. Folds add up in the order of any reduction of a last axis
(`weft.schedule.reduce`), so fusing changes no bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace

from weft.buffer import Layout
from weft.ops.monoids import PLACES
from weft.schedule.collapse import broadcast_strides, collapse
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.schedule.reduce_spec import LANES, SHORT, ReduceSpec
from weft.schedule.rows_program import Fold as Fold, Map as Map, RowProgram as RowProgram, lift
from weft.types import DType, TensorType
from weft.types.record import dataclass

#: longest row: above it, kept rows would leave the near caches
LONGEST = 1 << 16
#: work of recomputing a value above which it is kept instead
KEEP = 6
#: elements a task works on, about
TASK = 1 << 15
#: rows that go through the levels together (one's latency hides behind the others'), at most, and
#: bytes of them
BATCH, BATCH_BYTES = 16, 4096


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
    levels, kinds, values = program.levels, program.kinds, range(len(program.levels))
    folds = [v for v in values if isinstance(program.step(v), Fold)]
    wide = [v for v in values if kinds[v] in ("row", "column")]
    depth = max([1, *(levels[v] + 1 for v in wide), *(levels[v] for v in folds)])
    kept: set[int] = set()
    first: dict[int, int] = {}  # value -> level that computes it first
    out: list[Level] = []
    for level in range(depth):
        ends = [v for v in folds if levels[v] == level + 1]
        places = [i for i, o in enumerate(program.outputs) if o in wide and levels[o] == level]
        computes: list[int] = []
        pending = [a for v in ends for a in program.reads(v)]
        pending += [program.outputs[i] for i in places]
        while pending:
            v = pending.pop()
            if v in computes or not isinstance(program.step(v), Map) or kinds[v] != "row":
                continue
            if first.get(v, level) < level and _again(program, v, kept) > KEEP:
                kept.add(v)
            if v not in kept or first[v] == level:
                computes.append(v)
                first.setdefault(v, level)
                pending += program.reads(v)
        work = sum(program.work(v) for v in computes) + len(ends) + len(places)
        out.append(Level(tuple(ends), tuple(places), (), tuple(sorted(computes)), work))
    return tuple(
        replace(level, keeps=tuple(v for v in level.computes if v in kept and first[v] == number))
        for number, level in enumerate(out)
    )


def _again(program: RowProgram, value: int, kept: set[int]) -> int:
    """The work of computing a row value a second time."""
    below = [a for a in program.reads(value) if program.kinds[a] == "row" and a not in kept]
    return program.work(value) + sum(_again(program, a, kept) for a in below)


@dataclass(frozen=True)
class RowSpec:
    """A program's kernel; `outer` loops enumerate the rows. `words` names its params in order."""

    program: RowProgram = field(compare=False)
    outer: int
    short: bool = field(default=False, compare=False)  # rows of at most SHORT elements
    narrow: bool = False  # whether the kernel knows rows of such a length only
    said: str = field(init=False)

    def __post_init__(self) -> None:
        kind = ("short rows" if self.short else "long rows") if self.narrow else "rows"
        object.__setattr__(self, "said", f"{kind} {self.outer}\n{self.program.said}")

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
    """Run a program over `rows` (any number of axes) of `n` elements; None: it can't be one kernel.

    Row operands have the shape [*rows, n] or broadcast to it, "each" operands [*rows] or
    [*rows, 1]; a bare DType is a single element. Results are dense, of the types `outs`.
    """
    if not 0 < n <= LONGEST or any(
        isinstance(s, Fold) and s.monoid in PLACES for s in program.steps
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
    spec = RowSpec(program, len(nest.sizes), n <= SHORT)
    levels = arrange(program)
    kept = [program.dtype(v) for level in levels for v in level.keeps]
    wide = [d for kind, d in program.inputs if kind == "row"] + kept
    batch = max(1, min(BATCH, BATCH_BYTES // (n * sum(d.itemsize for d in wide) + 1)))
    pitch = -(-n // LANES) * LANES
    held = sum(batch * pitch * d.itemsize for d in kept)
    count = math.prod(rows)
    work = n * (2 + sum(level.work for level in levels) // 8)
    heavy = count * work >= HEAVY
    block = max(1, min(TASK // work, -(-count // (4 * threads)))) if heavy else count
    values = {"rows": count, "block": block, "n": n, "batch": batch, "slice": held, "pitch": pitch}
    values |= {f"n{i}": x for i, x in enumerate(numbers)}
    for axis, size in enumerate(nest.sizes):
        values |= {f"k{axis}": size} | {f"k{axis}.{i}": s[axis] for i, s in enumerate(nest.strides)}
    params = tuple(values[w] for w in spec.words())
    phase = Phase(spec, -(-count // block))
    apart = (spec.words().index("slice"),)
    return Launch(layouts, (phase,), params, heavy=heavy, worker_scratch=held, slices=apart)


def narrowed(launch: Launch) -> Launch:
    """A launch for rows of one length, whose kernels know no others: there is less to compile. In
    eager mode another length must not compile another kernel.
    """

    phases = tuple(map(_narrowed, launch.phases))
    return launch if phases == launch.phases else replace(launch, phases=phases)


def _narrowed(phase: Phase) -> Phase:
    spec = phase.spec
    if isinstance(spec, RowSpec) or (isinstance(spec, ReduceSpec) and spec.form == "rows"):
        return replace(phase, spec=replace(spec, narrow=True))
    return phase


def _strides(kind: str, x: Layout | DType, rows: Sequence[int], n: int) -> tuple[int, ...] | None:
    """An operand's strides over the rows; None if along a row its elements lie apart."""
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
