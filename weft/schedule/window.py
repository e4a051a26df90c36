"""Adding every element to all places of its window: the transpose of window sums.

Requires a dense operand. Contributions to a place add up in the order of the windows' rows, of the
rows within a window, and of the taps within a row.
"""

from __future__ import annotations

import math

from weft.buffer import Layout
from weft.schedule.extern import POLL, pieces, require_dense, rows_per_task
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.types import DType, TensorType
from weft.types.record import dataclass

Ints = tuple[int, ...]


@dataclass(frozen=True)
class WindowSpread:
    """out[p, o * stride + t - offset] += g[p, o] over planes p, windows o and taps t; two axes.

    Operands g, out. Params: planes, planes of a task, window rows and columns, rows and columns of
    the result, taps down and across, strides, offsets, window rows between polls. Task = a block of
    planes.
    """

    dtype: DType

    def key(self) -> str:
        return f"window spread {self.dtype.short}"


def plan_window_spread(g: Layout, kernel: Ints, stride: Ints, offset: Ints, sizes: Ints) -> Launch:
    """`g` [..., windows] onto zeros of [..., sizes]; one or two axes of windows."""
    require_dense("window_spread", g)
    rank = len(kernel)
    shape: Ints = g.type.shape  # type: ignore[assignment]
    lead, windows = shape[: len(shape) - rank], shape[len(shape) - rank :]
    out = Layout.dense(TensorType((*lead, *sizes), g.type.dtype))
    if out.type.size == 0:
        return Launch((out,))

    def both(given: Ints, single: int) -> Ints:
        return given if rank == 2 else (single, *given)

    planes, (down, across) = math.prod(lead), both(windows, 1)
    taps = both(kernel, 1)
    work = math.prod(sizes) + down * across * math.prod(taps)
    block = rows_per_task(planes, work)
    every = max(1, POLL // max(1, across * math.prod(taps)))
    steps, edges = both(stride, 1), both(offset, 0)
    params = (planes, block, down, across, *both(sizes, 1), *taps, *steps, *edges, every)
    phase = Phase(WindowSpread(g.type.dtype), pieces(planes, block))
    return Launch((out,), (phase,), params, heavy=planes * work >= HEAVY)
