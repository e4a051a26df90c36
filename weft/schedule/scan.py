"""Running sums, products, maxima and minima along an axis.

Order: one chain along the axis, y[0] = x[0], y[i] = y[i - 1] op x[i] (from the far end with
`reverse`). Half types run the chain in float32 and round each stored element once from the
unrounded running value. A running maximum keeps what it has unless the new element is larger or the
first NaN, so its value is always an element and its index the first (in scan order) that attains
it.

Requires a dense operand.
"""

from __future__ import annotations

from weft.buffer import Layout
from weft.errors import DTypeError
from weft.schedule.extern import POLL, TASK, fold, pieces, require_dense, rows_per_task
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.types import DType, TensorType
from weft.types.dtype import bool_, int64
from weft.types.record import dataclass

#: columns that one task carries along at most
COLUMNS = 1024


@dataclass(frozen=True)
class Scan:
    """`op` is add, mul, max or min; elements are cast to `result` first. With `rows` the scanned
    axis is the last one.

    Operands x, values[, int64 indices]. Params with `rows`: rows, length, rows of a task, elements
    between polls. Without: outer, length, inner, outer of a task, segments of a row, columns of a
    segment, steps between polls.
    """

    op: str
    source: DType
    result: DType
    rows: bool
    reverse: bool = False
    indices: bool = False

    def key(self) -> str:
        flags = " reverse" * self.reverse + " indices" * self.indices
        along = "rows" if self.rows else "columns"
        return f"scan {self.op} {self.source.short} {self.result.short} {along}{flags}"


def plan_scan(
    x: Layout,
    axis: int,
    op: str,
    *,
    dtype: DType | None = None,
    reverse: bool = False,
    indices: bool = False,
    threads: int = 8,
) -> Launch:
    """Values of dtype `dtype` (by default the operand's) and, with `indices`, where each maximum or
    minimum is. Columns are cut no finer than `threads` need.
    """
    place = {"add": "cumulative_sum", "mul": "cumulative_prod"}.get(op, f"cumulative_{op}")
    require_dense(place, x)
    result = dtype or x.type.dtype
    if op in ("add", "mul") and (indices or result is bool_):
        raise DTypeError(
            place,
            expected="a numeric dtype and no indices",
            got=f"{result.name}, indices={indices}",
        )
    outer, length, inner = fold(x.type.shape, axis)  # type: ignore[arg-type]
    outs = tuple(
        Layout.dense(TensorType(x.type.shape, d))
        for d in ((result, int64) if indices else (result,))
    )
    size = x.type.size
    if size == 0:
        return Launch(outs)
    spec = Scan(op, x.type.dtype, result, inner == 1, reverse, indices)
    if inner == 1:
        block = max(4, rows_per_task(outer, length))  # four rows go side by side
        params: tuple[int, ...] = (outer, length, block, POLL // 4)
        return Launch(outs, (Phase(spec, pieces(outer, block)),), params, heavy=size >= HEAVY)
    share = pieces(inner, max(1, min(threads // outer, size // TASK)))  # wide rows suit memory
    columns = min(inner, COLUMNS, pieces(share, 64) * 64)
    segments, block = pieces(inner, columns), rows_per_task(outer, length * columns)
    params = (outer, length, inner, block, segments, columns, pieces(POLL, columns))
    return Launch(
        outs, (Phase(spec, pieces(outer, block) * segments),), params, heavy=size >= HEAVY
    )
