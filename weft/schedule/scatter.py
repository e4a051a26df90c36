"""Writing by index: out = base (or zeros); then, in index order, out[.., index[i], ..] op=
source[.., i, ..].

`op` is add, assign (the last write wins), max or min (NaN wins, the earlier of equals stays). Sums
of half types accumulate in float32, starting from the base, and round once. Tasks own disjoint
parts of the result and each runs through the indices in order, so bits don't depend on how many
there are.

Requires dense operands. Indices may be of any integer dtype; negative ones of a signed dtype count
from the end; one out of range makes the kernel return 1 with that index in the frame.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.buffer import Layout
from weft.errors import DTypeError
from weft.schedule.extern import POLL, TASK, fold, pieces, require_dense, rows_per_task
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.types import DType, TensorType
from weft.types.dtype import bool_
from weft.types.record import dataclass

#: bytes of a row below which it isn't cut: two cache lines
NARROW = 128
#: elements that one task fills or rounds
FILL = 1 << 16


@dataclass(frozen=True)
class Scatter:
    """Base [outer, n, inner], source [outer, k, inner].

    Operands [base if `based`,] index, source, out. Functions, run in this order: "fill" (the result
    is the base, or zeros), "kernel", and "finish" where sums were kept in float32. Params: elements
    of the result, elements of a fill or finish task, n, then by `style`

    - rows (index [k]): outer, k, inner, outer of a task, ranges, rows of a range, index rows
      between polls. Task = outer block * ranges + range of destinations that it owns.
    - along (index [outer, k, inner]): outer, k, inner, outer of a task, segments, columns of a
      segment, index rows between polls. Task = outer block * segments + segment of the columns.
    - single (inner is 1): rows, length of a row, index stride of a row, result stride of a row,
      result stride of an element, rows of a task, segments, length of a segment, elements between
      polls. Task = row block * segments + segment. Rows are cut only where every element has its
      own destinations.
    """

    op: str
    dtype: DType
    index: DType
    style: str
    based: bool

    def key(self) -> str:
        said = (self.op, self.dtype.short, self.index.short, self.style)
        return f"scatter {' '.join(said)}{' based' * self.based}"

    @property
    def widened(self) -> bool:
        """Whether sums are kept in scratch memory, in float32, until the end."""
        return self.op == "add" and self.dtype.compute is not self.dtype


def plan_scatter(
    shape: tuple[int, ...],
    index: Layout,
    source: Layout,
    axis: int,
    op: str,
    *,
    base: Layout | None = None,
    threads: int = 8,
) -> Launch:
    """Like `base`, of shape `shape`, or on zeros where there is none.

    A 1-D `index` names rows along `axis` (embedding gradients); one of the source's shape names
    each element's place along it. Cutting the work finer than there are threads only costs.
    """
    place = "scatter" if op == "assign" else f"scatter_{op}"
    require_dense(place, index, source, *([base] if base else []))
    dtype = source.type.dtype
    if op == "add" and dtype is bool_:
        raise DTypeError(place, expected="a numeric dtype", got="bool")
    outer, n, inner = fold(shape, axis)
    k: int = source.type.shape[axis]  # type: ignore[assignment]
    out = Layout.dense(TensorType(shape, dtype))
    size, along = out.type.size, index.type.ndim != 1
    style = "single" if inner == 1 else "along" if along else "rows"
    spec = Scatter(op, dtype, index.type.dtype, style, base is not None)
    block = max(1, min(size, FILL))
    phases = [Phase(spec, pieces(size, block), function="fill")]
    params: tuple[int, ...] = (size, block, n)
    if source.type.size:
        problem = _Problem(outer, n, k, inner, along, dtype.itemsize, threads)
        tasks, *more = _STYLES[style](problem)
        phases.append(Phase(spec, tasks))
        params = (*params, *more)
    if spec.widened:
        phases.append(Phase(spec, pieces(size, block), function="finish"))
    scratch = 4 * size if spec.widened else 0
    heavy = size + source.type.size >= HEAVY
    return Launch((out,), tuple(p for p in phases if p.tasks), params, scratch, heavy)


class _Problem(NamedTuple):
    outer: int
    n: int
    k: int
    inner: int
    along: bool
    itemsize: int
    threads: int

    @property
    def block(self) -> int:
        """Outer positions of a task."""
        return rows_per_task(self.outer, self.k * self.inner)

    @property
    def cuts(self) -> int:
        """How many tasks should share an outer position: as many as have nothing else to do."""
        others = pieces(self.outer, self.block)
        return max(1, min(self.k * self.inner // TASK, self.threads // others))


def _rows(p: _Problem) -> tuple[int, ...]:
    # narrow rows aren't worth running through the indices again
    ranges = max(1, min(p.cuts, p.inner * p.itemsize // NARROW))
    height = pieces(max(p.n, 1), ranges)
    ranges, every = pieces(max(p.n, 1), height), max(1, POLL // p.inner)
    tasks = pieces(p.outer, p.block) * ranges
    return tasks, p.outer, p.k, p.inner, p.block, ranges, height, every


def _along(p: _Problem) -> tuple[int, ...]:
    narrow = NARROW // p.itemsize
    columns = min(p.inner, pieces(pieces(p.inner, p.cuts), narrow) * narrow)
    segments, every = pieces(p.inner, columns), max(1, POLL // columns)
    tasks = pieces(p.outer, p.block) * segments
    return tasks, p.outer, p.k, p.inner, p.block, segments, columns, every


def _single(p: _Problem) -> tuple[int, ...]:
    if p.k == 1 and p.along:  # an element of each row: one row whose destinations move along
        segment = min(p.outer, TASK)
        segments = pieces(p.outer, segment)
        return segments, 1, p.outer, p.outer, 0, p.n, 1, segments, segment, POLL
    stride = p.k if p.along else 0
    return pieces(p.outer, p.block), p.outer, p.k, stride, p.n, 0, p.block, 1, p.k, POLL


_STYLES = {"single": _single, "along": _along, "rows": _rows}
