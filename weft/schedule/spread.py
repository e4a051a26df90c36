"""Elements put among zeros, regularly spaced: what the gradient of a view with steps is.

Two functions run one after the other: "fill" makes the result zero, "kernel" writes each element of
the operand to its place. Elements are moved as bytes, so kernels depend on their width alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.buffer import Layout
from weft.schedule.collapse import collapse
from weft.schedule.extern import TASK, pieces, rows_per_task
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.types import TensorType
from weft.types.record import dataclass

#: bytes that one task fills
FILL = 1 << 17


@dataclass(frozen=True)
class Spread:
    """Elements of `width` bytes, a nest of `dims` loops.

    Operands x, out. Params: bytes of the result, bytes of a fill task, offset of the first element,
    rows, rows of a task, sizes of the loops (innermost last), strides of x, strides of the result.
    """

    width: int
    dims: int

    def key(self) -> str:
        return f"spread {self.width} {self.dims}"


def plan_spread(x: Layout, shape: Sequence[int], strides: Sequence[int], offset: int) -> Launch:
    """Zeros of `shape` with x's element i at offset + i · strides, in elements of the result."""
    out = Layout.dense(TensorType(shape, x.type.dtype))
    if out.type.size == 0:
        return Launch((out,))
    nest = collapse(x.type.shape, [x.strides, strides])  # type: ignore[arg-type]
    sizes = nest.sizes or (1,)
    own, theirs = nest.strides if nest.sizes else ((0,), (0,))
    spec = Spread(x.type.dtype.itemsize, len(sizes))
    size = out.type.nbytes
    rows = x.type.size // sizes[-1] if x.type.size else 0
    block = rows_per_task(rows, sizes[-1], TASK)
    phases = [Phase(spec, pieces(size, FILL), function="fill")]
    if rows:
        phases.append(Phase(spec, pieces(rows, block)))
    params = (size, FILL, offset, rows, block, *sizes, *own, *theirs)
    return Launch((out,), tuple(phases), params, heavy=out.type.size >= HEAVY)
