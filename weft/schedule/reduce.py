"""Reductions: which kernels run, over which loops. `docs/numerics.md` states the order of the additions; the plan may choose
anything else, so nothing here (blocks, splits, forms) changes a bit.

One primitive reduces some axes of a nest into accumulators, one per position of the kept axes. It has four forms, by what
lies side by side in memory: "rows" (vectors along the reduced axis), "staged" (along the innermost of several reduced axes),
"columns" (vectors across positions) and "chains" (none of these: scalars). Long reductions are cut in chunks; where positions are few, chunks run side by side, leave their
accumulators in scratch memory, and a second primitive combines these in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from weft.buffer import Layout
from weft.ops.scalar import Scalar, input_, text
from weft.schedule.collapse import Nest, broadcast_strides, collapse
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.types import DType, TensorType, broadcast_shapes
from weft.types.dtype import bool_, int64, uint8

#: lanes a last axis is dealt to; 64 are four 512-bit accumulators of float32, enough to hide the latency of an addition
LANES = 64
#: elements of a last axis that make a chunk; a multiple of LANES
CHUNK = 16384
#: rows of any other axis that make a chunk; few, so that tasks can stream whole rows and still be many
CHUNK_ROWS = 256

#: elements a task works on, about
TASK = 1 << 16
#: reduced extent above which chunks run side by side even if positions abound, so that no task takes long
LONG = 1 << 20

OPERANDS = 3  # frame word of the first operand


@dataclass(frozen=True)
class ReduceSpec:
    """One primitive reduction. `words` names its params in order.

    `epilogue` is None where accumulators are left in scratch memory for a later phase; `resumed` where they are what is
    read. `moving` says which inputs advance along the vectors (not in "chains"); the others hold one element for all.
    """

    form: str
    monoid: str
    acc: DType
    lanes: int
    inputs: tuple[DType, ...]
    rule: Scalar | None = field(compare=False)
    epilogue: Scalar | None = field(compare=False)
    resumed: bool
    moving: tuple[bool, ...]
    kept: int  # loops over positions; "columns" has one more, the vectors'
    reduced: int  # loops over what is reduced
    operands: int  # pointers in the frame
    first: int  # of the phase's params, counted from the launch's first
    numbers: int  # params of rule and epilogue themselves
    said: str = field(init=False)

    def __post_init__(self) -> None:
        rules = [r for r in (self.rule, self.epilogue) if r is not None]
        shape = (self.resumed, self.epilogue is None, self.moving, self.kept, self.reduced)
        fields = (
            self.form,
            self.monoid,
            self.acc.short,
            self.lanes,
            [d.short for d in self.inputs],
            *shape,
        )
        frame = (self.operands, self.first, self.numbers)
        object.__setattr__(self, "said", f"reduce {fields} {frame}\n{text(*rules)}")

    def key(self) -> str:
        return self.said

    @property
    def states(self) -> tuple[DType, ...]:
        """What an accumulator consists of: a value, for arg-reductions also its index."""
        return (self.acc, int64) if self.monoid.startswith("arg") else (self.acc,)

    def words(self) -> tuple[str, ...]:
        """The phase's params: task decoding, extents, places in scratch memory (bytes), then sizes and strides."""
        out = ["blocks", "block", "positions", "count", "share", "chunk", "hop"]
        if self.form == "columns":
            out += ["columns", "width", "column_blocks", "columns.out"]
        out += [f"from{i}" for i in range(len(self.inputs)) if self.resumed]
        out += [f"to{i}" for i in range(len(self.states)) if self.epilogue is None]
        for name, depth in (("k", self.kept), ("r", self.reduced)):
            for axis in range(depth):
                out += [f"{name}{axis}", *(f"{name}{axis}.{i}" for i in range(len(self.inputs)))]
                out += [f"k{axis}.out"] * (name == "k")
        return (*out, *(f"n{i}" for i in range(self.numbers)))


def plan_reduce(
    monoid: str, x: Layout, axes: tuple[int, ...], keepdims: bool, out_dtype: DType, threads: int
) -> Launch:
    """Reduce `axes` of one operand. Monoids: sum prod max min any all, and argmax argmin over one axis or all."""
    return plan_fold(monoid, [x], input_(0, x.type.dtype), axes, keepdims, out_dtype, threads)


def plan_fold(
    monoid: str,
    inputs: Sequence[Layout],
    rule: Scalar,
    axes: tuple[int, ...],
    keepdims: bool,
    out_dtype: DType,
    threads: int,
    epilogue: Scalar | None = None,
    numbers: tuple[int, ...] = (),
) -> Launch:
    """Reduce `axes` of `rule` over operands that broadcast together, then apply `epilogue` to each result.

    The epilogue reads the result as input 0, in the dtype it was accumulated in (`accumulator`); both may read `numbers`
    as params. Everything is rounded to `out_dtype` once, at the end.
    """
    shape: tuple[int, ...] = broadcast_shapes(*(i.type.shape for i in inputs))  # type: ignore[assignment]
    kept_shape = tuple(
        1 if a in axes else n for a, n in enumerate(shape) if keepdims or a not in axes
    )
    out = Layout.dense(TensorType(kept_shape, out_dtype))
    acc = accumulator(monoid, rule.dtype, out_dtype)
    if epilogue is None:
        epilogue = input_(0, int64 if monoid.startswith("arg") else acc)
    if out.type.size == 0:
        return Launch((out,))
    strides = [broadcast_strides(i, len(shape)) for i in inputs]
    plan = _Plan(monoid, acc, len(inputs) + 1, threads, math.prod(shape) >= HEAVY, numbers)
    source = _Source(tuple(i.type.dtype for i in inputs), rule.cast(acc), strides)
    sizes, runs = list(shape), _runs(shape, axes)
    while len(runs) > 1 and math.prod(
        shape
    ):  # an empty reduction is the identity, whatever the order
        run = runs.pop()
        source = plan.reduce(source, sizes, run, last=False, epilogue=None)
        sizes = [1 if a in run else n for a, n in enumerate(sizes)]
        source = replace(
            source,
            strides=[broadcast_strides(Layout.dense(TensorType(tuple(sizes), acc)), len(sizes))],
        )
    plan.reduce(
        source, sizes, [a for r in runs for a in r], last=True, epilogue=epilogue.cast(out_dtype)
    )
    return Launch((out,), tuple(plan.phases), tuple(plan.params), plan.scratch, plan.heavy)


def accumulator(monoid: str, value: DType, out: DType) -> DType:
    """The dtype a reduction of `value`s accumulates in; half types in float32."""
    if monoid in ("sum", "prod"):
        return out.compute
    if monoid in ("any", "all"):
        return bool_
    return uint8 if value is bool_ and monoid.startswith("arg") else value.compute


def _runs(shape: Sequence[int], axes: Sequence[int]) -> list[list[int]]:
    """Reduced axes of more than one element, adjacent ones together (axes of one element don't part them)."""
    runs: list[list[int]] = []
    parted = True
    for a, n in enumerate(shape):
        if n == 1:
            continue
        if a in axes:
            if parted:
                runs.append([])
            runs[-1].append(a)
        parted = a not in axes
    return runs


@dataclass(frozen=True)
class _Source:
    """What a primitive reads: operands through a rule, or accumulators at these bytes of the scratch memory."""

    dtypes: tuple[DType, ...]
    rule: Scalar | None
    strides: list[tuple[int, ...]]
    at: tuple[int, ...] = ()


@dataclass
class _Plan:
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
        return (self.acc, int64) if self.monoid.startswith("arg") else (self.acc,)

    @property
    def ordered(self) -> bool:
        """Whether the order of joining shows in the result: not for integers, nor where an index settles ties."""
        return self.acc.is_float and not self.monoid.startswith("arg")

    def hold(self, count: int) -> tuple[int, ...]:
        """Scratch memory for `count` accumulators."""
        at = []
        for d in self.states:
            at.append(self.scratch)
            self.scratch += -(-count * d.itemsize // 64) * 64
        return tuple(at)

    def reduce(
        self,
        source: _Source,
        sizes: Sequence[int],
        axes: Sequence[int],
        *,
        last: bool,
        epilogue: Scalar | None,
    ) -> _Source:
        """Reduce `axes` of one run; the accumulators are the result's, densely, unless this is the last step."""
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
            return _Source(self.states, None, [], at)
        parts = self.hold(splits * positions)
        self._emit(source, form, kept, reduced, chunk, splits, None, parts)
        at = () if last else self.hold(positions)
        each = (
            Nest((positions,), ((1,), (1,)))
            if len(self.states) == 1
            else Nest((positions,), ((1,), (1,), (1,)))
        )
        across = Nest((splits,), ((positions,),) * len(self.states))
        rest = _Source(self.states, None, [], parts)
        in_order = _choose(rest, each, across, 1, self.ordered)
        self._emit(rest, in_order, each, across, splits, 1, epilogue, at)
        return _Source(self.states, None, [], at)

    def _splits(self, form: _Form, positions: int, count: int, chunk: int) -> int:
        """How many tasks share a position's reduction: one, or one per chunk."""
        if not self.heavy or count <= chunk:
            return 1
        wide = form.vector.size if form.vector else 1
        tasks = positions // wide * -(-wide // 4096)
        return (
            -(-count // chunk) if tasks < 4 * self.threads or count > LONG // min(wide, 64) else 1
        )

    def _emit(
        self,
        source: _Source,
        form: _Form,
        kept: Nest,
        reduced: Nest,
        chunk: int,
        splits: int,
        epilogue: Scalar | None,
        to: tuple[int, ...],
    ) -> None:
        n = len(source.dtypes)
        axes = form.kept
        spec = ReduceSpec(
            form.name,
            self.monoid,
            self.acc,
            form.lanes,
            source.dtypes,
            source.rule,
            epilogue,
            bool(source.at),
            form.moving,
            len(axes),
            len(reduced.sizes),
            self.operands,
            len(self.params),
            len(self.numbers),
        )
        positions, count = math.prod(kept.sizes), math.prod(reduced.sizes)
        share = chunk if splits > 1 else max(count, 1)
        values = {
            "positions": positions,
            "count": count,
            "share": share,
            "chunk": chunk,
            "hop": positions,
        }
        values |= {f"from{i}": at for i, at in enumerate(source.at)} | {
            f"to{i}": at for i, at in enumerate(to)
        }
        values |= {f"n{i}": x for i, x in enumerate(self.numbers)}
        column_blocks = 1
        if form.vector:
            v = form.vector
            limit = width_limit(form.lanes, self.acc)
            width = _width(
                v.size, splits * positions // v.size, self.threads if self.heavy else 1, limit
            )
            column_blocks = -(-v.size // width)
            values |= {
                "columns": v.size,
                "width": width,
                "column_blocks": column_blocks,
                "columns.out": v.strides[-1],
            }
            values["positions"] = positions = positions // v.size
            work = width * min(share, count)
        else:
            work = min(share, count)
        block = (
            max(1, min(TASK // max(work, 1), -(-positions // (4 * self.threads))))
            if self.heavy
            else positions
        )
        blocks = -(-positions // block)
        values |= {"block": block, "blocks": blocks}
        for name, nest in (("k", axes), ("r", _axes(reduced))):
            for i, axis in enumerate(nest):
                values |= {f"{name}{i}": axis.size} | {
                    f"{name}{i}.{j}": axis.strides[j] for j in range(n)
                }
                values |= {f"k{i}.out": axis.strides[-1]} if name == "k" else {}
        self.params += [values[w] for w in spec.words()]
        tasks = splits * blocks * column_blocks
        self.phases.append(
            Phase(
                spec, tasks, max(1, min(TASK // max(block * work, 1), tasks // (4 * self.threads)))
            )
        )


@dataclass(frozen=True)
class _Axis:
    size: int
    strides: tuple[int, ...]  # inputs', and for kept axes the result's behind them


@dataclass(frozen=True)
class _Form:
    name: str
    lanes: int
    kept: list[_Axis]
    moving: tuple[bool, ...]
    vector: _Axis | None = None


def _axes(nest: Nest) -> list[_Axis]:
    return [_Axis(n, tuple(s[i] for s in nest.strides)) for i, n in enumerate(nest.sizes)]


def _choose(source: _Source, kept: Nest, reduced: Nest, lanes: int, ordered: bool) -> _Form:
    """Vectors along whatever lies side by side in memory."""
    n, axes, inner = len(source.dtypes), _axes(kept), _axes(reduced)

    def side_by_side(axis: _Axis) -> bool:
        return set(axis.strides[:n]) <= {0, 1} and 1 in axis.strides[:n]

    if lanes == LANES and len(inner) == 1 and side_by_side(inner[0]):
        return _Form("rows", lanes, axes, tuple(s == 1 for s in inner[0].strides[:n]))
    if not ordered:
        lanes = 1
    if lanes == LANES and inner and side_by_side(inner[-1]) and inner[-1].size >= 8:
        return _Form("staged", lanes, axes, tuple(s == 1 for s in inner[-1].strides[:n]))
    vectors = [a for a in axes if side_by_side(a)]
    if vectors and (lanes == 1 or len(inner) <= 1):
        v = max(vectors, key=lambda a: a.size)
        return _Form(
            "columns",
            lanes,
            [a for a in axes if a is not v],
            tuple(s == 1 for s in v.strides[:n]),
            v,
        )
    return _Form("chains", lanes, axes, (True,) * n)


def _width(columns: int, others: int, threads: int, limit: int) -> int:
    """Columns a task works on, a multiple of 64: all, or fewer where the `others` (blocks, splits) alone are too few tasks."""
    width = min(limit, -(-columns // 64) * 64)
    while threads > 1 and width > 512 and others * -(-columns // width) < 2 * threads:
        width = -(-width // 128) * 64
    return width


def width_limit(lanes: int, acc: DType) -> int:
    """The most columns one task of form "columns" may have: their accumulators (times lanes) stay in a near cache."""
    return (16384 if lanes == 1 else 1024) // acc.itemsize
