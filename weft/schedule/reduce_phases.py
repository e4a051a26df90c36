"""Which primitives a reduction takes: forms, tasks, and what they leave in scratch memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

from weft.buffer import Layout
from weft.ops.monoids import PLACES
from weft.ops.scalar import Scalar
from weft.schedule.collapse import Nest, collapse
from weft.schedule.launch import Phase
from weft.schedule.reduce_spec import (
    CHUNK,
    CHUNK_ROWS,
    LANES,
    SHORT,
    TOGETHER,
    ReduceSpec,
    width_limit,
)
from weft.types import DType, TensorType
from weft.types.dtype import int64
from weft.types.record import dataclass

#: elements a task works on, about
TASK = 1 << 16
#: reduced extent above which chunks run side by side even if positions abound, so that no task
#: takes long
LONG = 1 << 20


@dataclass(frozen=True)
class Source:
    """What a primitive reads: operands through a rule, or accumulators `at` bytes of scratch."""

    dtypes: tuple[DType, ...]
    rule: Scalar | None
    strides: list[tuple[int, ...]]
    at: tuple[int, ...] = ()


@dataclass
class Phases:
    """The phases of one reduction, as they are made."""

    monoid: str
    acc: DType
    operands: int
    threads: int
    heavy: bool
    numbers: tuple[int, ...]
    phases: list[Phase] = field(default_factory=list)
    params: list[int] = field(default_factory=list)
    scratch: int = 0

    @property
    def states(self) -> tuple[DType, ...]:
        return (self.acc, int64) if self.monoid in PLACES else (self.acc,)

    @property
    def ordered(self) -> bool:
        """Whether the order of joining shows: not for integers, nor where an index settles ties."""
        return self.acc.is_float and self.monoid not in PLACES

    def hold(self, count: int) -> tuple[int, ...]:
        """Scratch memory for `count` accumulators."""
        at = []
        for d in self.states:
            at.append(self.scratch)
            self.scratch += -(-count * d.itemsize // 64) * 64
        return tuple(at)

    def reduce(
        self,
        source: Source,
        sizes: Sequence[int],
        axes: Sequence[int],
        *,
        last: bool,
        epilogue: Scalar | None,
    ) -> Source:
        """Reduce `axes`, one run, to accumulators that lie densely: the next step's source."""
        kept_sizes = [1 if a in axes else n for a, n in enumerate(sizes)]
        out = Layout.dense(TensorType(tuple(kept_sizes), self.acc)).strides
        kept = collapse(
            kept_sizes,
            [*source.strides, [0 if n == 1 else s for n, s in zip(kept_sizes, out, strict=True)]],
        )
        reduced = collapse([sizes[a] for a in axes], [[s[a] for a in axes] for s in source.strides])
        lanes = LANES if axes and all(n == 1 for n in sizes[axes[-1] + 1 :]) else 1
        positions, count = math.prod(kept.sizes), math.prod(reduced.sizes)
        form = _choose(source, kept, reduced, lanes, self.ordered)
        chunk = CHUNK if lanes == LANES else CHUNK_ROWS
        splits = self._splits(form, positions, count, chunk)
        if splits == 1:
            at = () if last else self.hold(positions)
            self._emit(source, form, kept, reduced, chunk, 1, epilogue, at)
            return Source(self.states, None, [], at)
        parts = self.hold(splits * positions)
        self._emit(source, form, kept, reduced, chunk, splits, None, parts)
        at = () if last else self.hold(positions)
        each = Nest((positions,), ((1,),) * (len(self.states) + 1))
        across = Nest((splits,), ((positions,),) * len(self.states))
        rest = Source(self.states, None, [], parts)
        in_order = _choose(rest, each, across, 1, self.ordered)
        self._emit(rest, in_order, each, across, splits, 1, epilogue, at)
        return Source(self.states, None, [], at)

    def _splits(self, form: Form, positions: int, count: int, chunk: int) -> int:
        """How many tasks share a position's reduction: one, or one per chunk."""
        if not self.heavy or count <= chunk:
            return 1
        wide = form.vector.size if form.vector else 1
        tasks = positions // wide * -(-wide // 4096)
        apart = tasks < 4 * self.threads or count > LONG // min(wide, 256)
        return -(-count // chunk) if apart else 1

    def _emit(
        self,
        source: Source,
        form: Form,
        kept: Nest,
        reduced: Nest,
        chunk: int,
        splits: int,
        epilogue: Scalar | None,
        to: tuple[int, ...],
    ) -> None:
        n, v, count = len(source.dtypes), form.vector, math.prod(reduced.sizes)
        spec = ReduceSpec(
            form.name, self.monoid, self.acc, form.lanes, source.dtypes, source.rule, epilogue,
            bool(source.at), form.moving, len(form.kept), len(reduced.sizes), self.operands,
            len(self.params), len(self.numbers), form.name == "rows" and count <= SHORT,
        )  # fmt: skip
        positions = math.prod(kept.sizes)
        share = chunk if splits > 1 else max(count, 1)
        values = {"count": count, "share": share, "chunk": chunk, "hop": positions}
        values |= {f"from{i}": at for i, at in enumerate(source.at)}
        values |= {f"to{i}": at for i, at in enumerate(to)}
        values |= {f"n{i}": x for i, x in enumerate(self.numbers)}
        work, column_blocks = max(1, min(share, count)), 1
        if v is not None:
            positions //= v.size
            threads = self.threads if self.heavy else 1
            width = _width(v.size, splits * positions, threads, width_limit(form.lanes, self.acc))
            column_blocks = -(-v.size // width)
            values |= {"columns": v.size, "width": width, "columns.out": v.strides[-1]}
            values["column_blocks"] = column_blocks
            work *= width
        block = positions
        if self.heavy:
            block = max(1, min(TASK // work, -(-positions // (4 * self.threads))))
        if form.name == "chains":
            block = min(positions, -(-block // TOGETHER) * TOGETHER)
        blocks = -(-positions // block)
        values |= {"positions": positions, "block": block, "blocks": blocks}
        for name, axes in (("k", form.kept), ("r", _axes(reduced))):
            for i, axis in enumerate(axes):
                values[f"{name}{i}"] = axis.size
                values |= {f"{name}{i}.{j}": axis.strides[j] for j in range(n)}
                values[f"{name}{i}.out"] = axis.strides[-1]
        self.params += [values[w] for w in spec.words()]
        tasks = splits * blocks * column_blocks
        grain = max(1, min(TASK // (block * work), tasks // (4 * self.threads)))
        self.phases.append(Phase(spec, tasks, grain))


@dataclass(frozen=True)
class Axis:
    size: int
    strides: tuple[int, ...]  # inputs', and for kept axes the result's behind them


@dataclass(frozen=True)
class Form:
    name: str
    lanes: int
    kept: list[Axis]
    moving: tuple[bool, ...]
    vector: Axis | None = None


def _axes(nest: Nest) -> list[Axis]:
    return [Axis(n, tuple(s[i] for s in nest.strides)) for i, n in enumerate(nest.sizes)]


def _choose(source: Source, kept: Nest, reduced: Nest, lanes: int, ordered: bool) -> Form:
    """Vectors along whatever lies side by side in memory."""
    n, axes, inner = len(source.dtypes), _axes(kept), _axes(reduced)

    def side_by_side(axis: Axis) -> bool:
        return set(axis.strides[:n]) <= {0, 1} and 1 in axis.strides[:n]

    if lanes == LANES and len(inner) == 1 and side_by_side(inner[0]):
        return Form("rows", lanes, axes, tuple(s == 1 for s in inner[0].strides[:n]))
    if not ordered:
        lanes = 1
    if lanes == LANES and inner and side_by_side(inner[-1]) and inner[-1].size >= 8:
        return Form("staged", lanes, axes, tuple(s == 1 for s in inner[-1].strides[:n]))
    vectors = [a for a in axes if side_by_side(a) and a.size > 1]
    if vectors and (lanes == 1 or len(inner) <= 1):
        v = max(vectors, key=lambda a: a.size)
        return Form(
            "columns",
            lanes,
            [a for a in axes if a is not v],
            tuple(s == 1 for s in v.strides[:n]),
            v,
        )
    return Form("chains", lanes, axes, (True,) * n)


def _width(columns: int, others: int, threads: int, limit: int) -> int:
    """Columns a task works on, a multiple of 64: all, or fewer where the `others` (blocks, splits)
    alone are too few tasks.
    """
    width = min(limit, -(-columns // 64) * 64)
    while threads > 1 and width > 512 and others * -(-columns // width) < 2 * threads:
        width = -(-width // 128) * 64
    return width
