"""What the planners of hand-written kernels share: folding shapes, cutting work into tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.buffer import Layout
from weft.errors import ShapeError

#: elements of work a task should have: tens of microseconds, so that claiming it costs nothing
#: beside
TASK = 1 << 15
#: elements of work between two polls inside a task that may be long: about a millisecond
POLL = 1 << 19


def require_dense(place: str, *layouts: Layout) -> None:
    """Hand-written kernels read row-major operands without gaps; the op level copies what isn't."""
    for x in layouts:
        if not x.is_dense:
            raise ShapeError(place, expected="dense operands", got=repr(x))


def fold(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """A shape as [outer, n, inner] around one axis.

    >>> fold((2, 3, 4, 5), 1)
    (2, 3, 20)
    """
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def pieces(total: int, size: int) -> int:
    """How many pieces of at most `size` make `total`.

    >>> pieces(10, 4)
    3
    """
    return -(-total // size)


def rows_per_task(rows: int, work: int, task: int = TASK) -> int:
    """How many rows of `work` elements each make one task."""
    return max(1, min(rows, task // max(work, 1)))
