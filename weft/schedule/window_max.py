"""The largest element of every window of two axes, where rows are long enough for vectors: first of
each column of elements that a row of windows meets, then of neighbouring columns.
"""

from __future__ import annotations

import math

from weft.buffer import Layout
from weft.schedule.extern import POLL, TASK, pieces
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.types import DType, TensorType
from weft.types.dtype import float32, float64
from weft.types.record import dataclass

Ints = tuple[int, ...]

#: bytes of a vector
VECTOR = 64
#: rows of windows whose columns are kept at once
ROWS = 4


@dataclass(frozen=True)
class WindowMax:
    """Windows of `kernel` elements down and across, `step` of them from one to the next across.

    Operands x, out. Params: rows of windows in all, those of a plane, of a task; windows of a row;
    rows and columns of a plane of x; step down; rows above and columns before the first element;
    elements that columns are kept in; bytes of a worker's scratch memory. Task = a block of rows of
    windows.
    """

    dtype: DType
    kernel: Ints
    step: int

    def key(self) -> str:
        return f"window max {self.dtype.short} {self.kernel} {self.step}"


def plan_window_max(
    x: Layout, kernel: Ints, stride: Ints, offset: Ints, sizes: Ints, dilation: Ints
) -> Launch | None:
    """The launch, or None for windows that this is not made for."""
    d = x.type.dtype
    shape: Ints = x.type.shape  # type: ignore[assignment]
    out = Layout.dense(TensorType((*shape[: len(shape) - len(kernel)], *sizes), d))
    if len(kernel) != 2 or d not in (float32, float64) or not x.is_dense or not out.type.size:
        return None
    lanes = VECTOR // d.itemsize
    rows, columns = shape[-2:]
    down, across = sizes
    (tall, wide), (by, step), (above, before) = kernel, stride, offset
    fits = max(dilation) == 1 and step in (1, 2) and 0 <= before <= lanes and across >= lanes
    if not fits or columns < lanes or columns * tall > POLL:
        return None
    kept = max(before + columns, (across - 1) * step + wide + step) + lanes
    kept = pieces(kept, lanes) * lanes
    planes = math.prod(shape[:-2])
    work = columns * tall
    block = max(1, TASK // work)
    tasks = pieces(planes * down, block)
    room = ROWS * kept * d.itemsize
    params = (planes * down, down, block, across, rows, columns, by, above, before, kept, room)
    heavy = planes * down * work >= HEAVY and tasks > 1
    phase = Phase(WindowMax(d, tuple(kernel), step), tasks)
    slices = (len(params) - 1,)
    return Launch((out,), (phase,), params, heavy=heavy, worker_scratch=room, slices=slices)
