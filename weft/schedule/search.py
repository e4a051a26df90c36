"""Finding places: positions in a sorted array, and the positions of nonzero elements.

Positions of nonzero elements take two launches, since how many there are must be known before the
result can be had: `plan_count_nonzero` gives, for each block of the operand, how many come before
it, and after the last how many there are in all; `plan_nonzero` then writes them, in order. Both
require dense operands.
"""

from __future__ import annotations

from weft.buffer import Layout
from weft.errors import DTypeError, ShapeError
from weft.schedule.extern import TASK, pieces, require_dense
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.types import DType, TensorType
from weft.types.dtype import int64
from weft.types.record import dataclass

#: elements of a block of `plan_count_nonzero`
BLOCK = 1 << 14


@dataclass(frozen=True)
class SearchSorted:
    """Operands sorted [n], values, int64 out. Params: n, values, values of a task."""

    dtype: DType
    right: bool

    def key(self) -> str:
        return f"searchsorted {self.dtype.short} {'right' if self.right else 'left'}"


@dataclass(frozen=True)
class Nonzero:
    """Functions "count" and then "sum" (one task), operands x, int64 starts [blocks + 1]; or
    "fill", operands x, starts, int64 positions. Params: elements, elements of a block, blocks, and
    for "fill" how many positions there is room for. A task is a block.
    """

    dtype: DType

    def key(self) -> str:
        return f"nonzero {self.dtype.short}"


def plan_searchsorted(ordered: Layout, values: Layout, *, right: bool = False) -> Launch:
    """For each value the first place in the ascending `ordered` where it could be put: before its
    equals, or behind with `right`.

    Order is that of sorting: zeros are equal, NaNs are equal and come last.
    """
    require_dense("searchsorted", ordered, values)
    if ordered.type.ndim != 1:
        raise ShapeError(
            "searchsorted", expected="a sorted array of one axis", got=repr(ordered.type)
        )
    if ordered.type.dtype is not values.type.dtype:
        raise DTypeError(
            "searchsorted", expected="one dtype", got=f"{ordered.type} and {values.type}"
        )
    out = Layout.dense(TensorType(values.type.shape, int64))
    n, many = ordered.type.size, values.type.size
    block = TASK >> 4  # each value takes some twenty steps
    phases = (Phase(SearchSorted(ordered.type.dtype, right), pieces(many, block)),) if many else ()
    return Launch((out,), phases, (n, many, block), heavy=many * max(1, n.bit_length()) >= HEAVY)


def plan_count_nonzero(x: Layout) -> Launch:
    """int64 [blocks + 1]: how many elements of the flat operand aren't zero before each block, and
    in all.
    """
    require_dense("nonzero", x)
    size, blocks = x.type.size, pieces(x.type.size, BLOCK)
    out = Layout.dense(TensorType((blocks + 1,), int64))
    spec = Nonzero(x.type.dtype)
    count = (Phase(spec, blocks, function="count"),) if blocks else ()
    return Launch(
        (out,), (*count, Phase(spec, 1, function="sum")), (size, BLOCK, blocks), heavy=size >= HEAVY
    )


def plan_nonzero(x: Layout, starts: Layout, many: int) -> Launch:
    """int64 [many]: flat positions of what isn't zero, ascending. `starts` is what
    plan_count_nonzero gave, `many` its last.
    """
    require_dense("nonzero", x, starts)
    size, blocks = x.type.size, pieces(x.type.size, BLOCK)
    out = Layout.dense(TensorType((many,), int64))
    phases = (Phase(Nonzero(x.type.dtype), blocks, function="fill"),) if many else ()
    return Launch((out,), phases, (size, BLOCK, blocks, many), heavy=size >= HEAVY)
