"""Reading by index: `take` (rows along an axis) and `take_along_axis`.

Both require dense operands. Indices may be of any integer dtype; negative ones of a signed dtype
count from the end; one out of range makes the kernel return 1 with that index in the frame.
Gathering moves bytes, so kernels depend on the width of an element and not on its dtype.
"""

from __future__ import annotations

from weft.buffer import Layout
from weft.schedule.extern import TASK, fold, pieces, require_dense, rows_per_task
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.types import DType, TensorType
from weft.types.record import dataclass

#: bytes of a row that one task copies at most
SEGMENT = 1 << 16


@dataclass(frozen=True)
class GatherRows:
    """Copies runs of bytes: out[o, j, :] = x[o, index[j], :].

    Operands x, index, out. Params: rows (outer * k), k, n, bytes of a run, rows of a task, segments
    of a run, bytes of a segment. Task = row block * segments + segment.
    """

    index: DType

    def key(self) -> str:
        return f"gather rows {self.index.short}"


@dataclass(frozen=True)
class GatherElements:
    """Single elements of `width` bytes: out[r, v] = x[(r // group) * base + index[r * stride + v] *
    step + v * column].

    Operands x, index, out. Params: rows, length of a row, stride, group, base, step, column, n,
    rows of a task, segments of a row, length of a segment. Task = row block * segments + segment.
    """

    width: int
    index: DType

    def key(self) -> str:
        return f"gather elements {self.width} {self.index.short}"


def plan_take(x: Layout, index: Layout, axis: int) -> Launch:
    """x.shape[:axis] + index.shape + x.shape[axis + 1:]: the rows of `x` along `axis` that `index`
    names.
    """
    require_dense("take", x, index)
    shape: tuple[int, ...] = x.type.shape  # type: ignore[assignment]
    outer, n, inner = fold(shape, axis)
    out = Layout.dense(
        TensorType((*shape[:axis], *index.type.shape, *shape[axis + 1 :]), x.type.dtype)
    )
    k, run = index.type.size, inner * x.type.dtype.itemsize
    if out.type.size == 0:
        return Launch((out,))
    if run in (1, 2, 4, 8, 16):  # a short run is one wide element
        spec = GatherElements(run, index.type.dtype)
        return _elements(spec, out, outer, k, stride=0, group=1, base=n, step=1, column=0, n=n)
    rows, segment = outer * k, min(run, SEGMENT)
    segments, block = pieces(run, segment), rows_per_task(rows, run, SEGMENT)
    phase = Phase(GatherRows(index.type.dtype), pieces(rows, block) * segments)
    return Launch((out,), (phase,), (rows, k, n, run, block, segments, segment), heavy=_heavy(out))


def plan_take_along_axis(x: Layout, index: Layout, axis: int) -> Launch:
    """index.shape: out[.., j, ..] = x[.., index[.., j, ..], ..]. Shapes agree but for `axis`."""
    require_dense("take_along_axis", x, index)
    outer, n, inner = fold(x.type.shape, axis)  # type: ignore[arg-type]
    k: int = index.type.shape[axis]  # type: ignore[assignment]
    out = Layout.dense(TensorType(index.type.shape, x.type.dtype))
    if out.type.size == 0:
        return Launch((out,))
    spec = GatherElements(x.type.dtype.itemsize, index.type.dtype)
    if inner == 1 and k == 1:  # one of each row: a single long row of picks
        return _elements(spec, out, 1, outer, stride=outer, group=1, base=0, step=1, column=n, n=n)
    if inner == 1:
        return _elements(spec, out, outer, k, stride=k, group=1, base=n, step=1, column=0, n=n)
    return _elements(
        spec,
        out,
        outer * k,
        inner,
        stride=inner,
        group=k,
        base=n * inner,
        step=inner,
        column=1,
        n=n,
    )


def _elements(
    spec: GatherElements, out: Layout, rows: int, length: int,
    *, stride: int, group: int, base: int, step: int, column: int, n: int,
) -> Launch:  # fmt: skip
    segment = min(length, TASK)
    segments, block = pieces(length, segment), rows_per_task(rows, length)
    params = (rows, length, stride, group, base, step, column, n, block, segments, segment)
    return Launch((out,), (Phase(spec, pieces(rows, block) * segments),), params, heavy=_heavy(out))


def _heavy(out: Layout) -> bool:
    return out.type.size >= HEAVY
