"""Copies that turn memory around: the axis that lies side by side in the operand is not the
result's last one.

Both sides are walked in square tiles that are turned in registers, so that each is read and written
in whole vectors.
"""

from __future__ import annotations

import math

from weft.buffer import Layout
from weft.schedule.collapse import Nest
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.types.record import dataclass

#: elements on a side of the block that is a task's unit of work
BLOCK = 64


@dataclass(frozen=True)
class TransposeSpec:
    """Elements of `itemsize` bytes, within `outer` loops.

    Params: rows and columns (the operand's neighbours are a column's elements, the result's a
    row's), blocks down and across, the operand's stride between columns, the result's between rows;
    then sizes of the outer loops and both strides.
    """

    itemsize: int
    outer: int

    def key(self) -> str:
        return f"transpose {self.itemsize} {self.outer}"


def plan_transpose(nest: Nest, out: Layout) -> Launch | None:
    """The copy of an operand, laid out as `nest` says, into a dense result; None where no axis
    lies side by side.
    """
    (x, y), sizes = nest.strides, nest.sizes
    turned = next((a for a in range(len(sizes) - 1) if x[a] == 1), None)
    if turned is None or x[-1] in (0, 1) or sizes[turned] < 4 or sizes[-1] < 4:
        return None
    rows, columns = sizes[turned], sizes[-1]
    down, across = -(-rows // BLOCK), -(-columns // BLOCK)
    outer = [a for a in range(len(sizes) - 1) if a != turned]
    tasks = math.prod(sizes[a] for a in outer) * down * across
    params = (
        rows, columns, down, across, x[-1], y[turned],
        *(sizes[a] for a in outer), *(x[a] for a in outer), *(y[a] for a in outer),
    )  # fmt: skip
    spec = TransposeSpec(out.type.dtype.itemsize, len(outer))
    return Launch(
        (out,), (Phase(spec, tasks, 8),), params, heavy=out.type.size >= HEAVY and tasks > 8
    )
