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
#: rows of windows whose columns are kept at once; those of a task
ROWS, BLOCK = 4, 8


@dataclass(frozen=True)
class WindowMax:
    """Windows of `kernel` elements down and across, `step` of them from one to the next across.

    Operands x, out. Params: channels (planes of an image), those of a task; rows of windows of a
    plane, those of a task; windows of a row; rows and columns of a plane of x; step down; rows
    above and columns before the first element; elements that columns are kept in; bytes of a
    worker's scratch memory. Task = (image * blocks of rows + block of rows) * blocks of channels +
    block of channels: threads meet the rows that convolutions before and behind give them.
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
    images, channels = math.prod(shape[:-3]), math.prod(shape[-3:-2])
    work, block = columns * tall, min(down, BLOCK)
    group = max(1, TASK // (work * block))
    tasks = images * pieces(down, block) * pieces(channels, group)
    room = ROWS * kept * d.itemsize
    sizes = (channels, group, down, block, across, rows, columns)
    params = (*sizes, by, above, before, kept, room)
    heavy = images * channels * down * work >= HEAVY and tasks > 1
    phase = Phase(WindowMax(d, tuple(kernel), step), tasks)
    slices = (len(params) - 1,)
    return Launch((out,), (phase,), params, heavy=heavy, worker_scratch=room, slices=slices)
