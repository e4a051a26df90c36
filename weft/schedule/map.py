"""Maps: every element of the results from elements of the operands, one loop nest.

The kernel walks rows (all loops but the innermost, flattened) and, along a row, vectors. A task is
a block of rows, or a piece of one row where rows are long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

from weft.buffer import Layout
from weft.ops.scalar import Scalar, text, walk
from weft.schedule.collapse import Nest, broadcast_strides, collapse
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.schedule.transpose import plan_transpose
from weft.types import DType, TensorType
from weft.types.record import dataclass

#: elements a task works on, about
TASK = 1 << 15
#: estimated scalar operations above which a launch is worth threads that are awake
AWAKE = 1 << 15


@dataclass(frozen=True)
class MapSpec:
    """`roots` over operands of `dtypes`. `modes` says how each operand is read along the innermost
    loop: "c" as a vector, "b" one element for all, "r" as a vector backwards, "s" with a stride.
    `outer` loops surround it.

    Params: rows per task, tasks per row, elements per task along the row, rows, sizes of the loops
    (innermost last), then the strides of every operand along them.
    """

    roots: tuple[Scalar, ...] = field(compare=False)
    dtypes: tuple[DType, ...] = field(compare=False)
    modes: str = field(compare=False)
    outer: int = field(compare=False)
    said: str = field(init=False)
    weight: int = field(init=False, compare=False)  # of an element, beside those of cheap rules

    def __post_init__(self) -> None:
        dtypes = " ".join(d.short for d in self.dtypes)
        said = f"map {self.modes} {self.outer} {dtypes}\n{text(*self.roots)}"
        object.__setattr__(self, "said", said)
        object.__setattr__(self, "weight", 1 + len(walk(self.roots)) // 8)

    def key(self) -> str:
        return self.said


def plan_map(
    roots: Sequence[Scalar], ins: Sequence[Layout | DType], out_type: TensorType
) -> Launch:
    """Run `roots` over operands broadcast to the shape of `out_type`; a bare DType stands for a
    scalar operand.
    """
    layouts = tuple(Layout.dense(TensorType(out_type.shape, r.dtype)) for r in roots)
    shape: tuple[int, ...] = out_type.shape  # type: ignore[assignment]
    ndim = len(shape)
    strides = [broadcast_strides(i, ndim) if isinstance(i, Layout) else (0,) * ndim for i in ins]
    nest = collapse(shape, [*strides, *(o.strides for o in layouts)])
    dtypes = tuple(i.type.dtype if isinstance(i, Layout) else i for i in ins)
    if len(ins) == len(roots) == 1 and roots[0].verb == "input":
        turned = plan_transpose(nest, layouts[0])
        if turned is not None:
            return turned
    return launch_nest(roots, dtypes, nest, layouts, shape)


def cut(launch: Launch, threads: int) -> Launch:
    """The same for threads that are awake, for which less work is worth it."""
    (phase,) = launch.phases
    spec: Any = phase.spec
    rows, sizes = launch.params[3], launch.params[4 : 5 + spec.outer]
    work = rows * sizes[-1] * spec.weight
    if phase.tasks > 1 or work < AWAKE:
        return launch
    each, inner = -(-rows // threads), sizes[-1]
    piece = inner if rows > 1 else -(-inner // (64 * threads)) * 64
    per_row = -(-inner // piece)
    params = (each if rows > 1 else 1, per_row, piece, *launch.params[3:])
    tasks = Phase(spec, -(-rows // each) * per_row)
    return replace(launch, phases=(tasks,), params=params, heavy=True)


def launch_nest(
    roots: Sequence[Scalar],
    dtypes: tuple[DType, ...],
    nest: Nest,
    outs: tuple[Layout, ...],
    shape: Sequence[int],
) -> Launch:
    size = math.prod(shape)
    if size == 0:
        return Launch(outs)
    inner = nest.sizes[-1] if nest.sizes else 1
    sizes = nest.sizes or (1,)
    strides = nest.strides if nest.sizes else tuple((0,) for _ in nest.strides)
    modes = "".join({0: "b", 1: "c", -1: "r"}.get(s[-1], "s") for s in strides[: len(dtypes)])
    spec = MapSpec(tuple(roots), dtypes, modes, len(sizes) - 1)
    rows = size // inner
    per_row = -(-inner // TASK)
    piece = -(-inner // per_row) if per_row > 1 else inner
    piece = -(-piece // 64) * 64 if per_row > 1 else piece
    per_row = -(-inner // piece)
    rows_per_task = max(1, TASK // inner) if per_row == 1 else 1
    tasks = -(-rows // rows_per_task) * per_row
    params = (rows_per_task, per_row, piece, rows, *sizes, *(s for o in strides for s in o))
    heavy = size * spec.weight >= HEAVY and tasks > 1
    return Launch(outs, (Phase(spec, tasks),), params, heavy=heavy)
