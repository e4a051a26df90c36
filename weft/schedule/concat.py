"""Joining along an axis: runs of bytes copied one behind the other.

The result is cut into blocks of bytes without regard to where operands end, so threads share the
work evenly whatever the shapes are. Requires dense operands.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.buffer import Layout
from weft.schedule.extern import fold, pieces, require_dense
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.types import TensorType
from weft.types.record import dataclass

#: bytes of the result that one task copies
BLOCK = 1 << 17


@dataclass(frozen=True)
class Concat:
    """Operands x0 .. x(count-1), out. Params: bytes of the result, of a row of it, of a block; then
    for each operand that is not empty its number, where its run begins in a row and where it ends;
    then -1. Task = block.
    """

    count: int

    def key(self) -> str:
        return f"concat {self.count}"


def plan_stack(xs: Sequence[Layout], axis: int) -> Launch:
    """x0, x1, … of one shape behind each other along a new axis."""
    first = xs[0].type
    shape = (*first.shape[:axis], 1, *first.shape[axis:])
    with_axis = Layout.dense(TensorType(shape, first.dtype))
    require_dense("stack", *xs)
    return plan_concat([with_axis] * len(xs), axis)


def plan_concat(xs: Sequence[Layout], axis: int) -> Launch:
    """x0, x1, … behind each other along `axis`; dtypes and other sizes agree."""
    require_dense("concat", *xs)
    first = xs[0].type
    total = sum(x.type.shape[axis] for x in xs)
    out = Layout.dense(
        TensorType((*first.shape[:axis], total, *first.shape[axis + 1 :]), first.dtype)
    )
    if out.type.size == 0:
        return Launch((out,))
    table: list[int] = []
    end = 0
    for number, x in enumerate(xs):
        _, n, inner = fold(x.type.shape, axis)  # type: ignore[arg-type]
        run = n * inner * first.dtype.itemsize
        if run:
            table += [number, end, end + run]
            end += run
    size = out.type.nbytes
    block = min(size, BLOCK)
    tasks = pieces(size, block)
    return Launch(
        (out,),
        (Phase(Concat(len(xs)), tasks),),
        (size, end, block, *table, -1),
        heavy=size >= 4 * HEAVY and tasks > 1,
    )
