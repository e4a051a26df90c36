"""Sorting and the k largest or smallest, along the last axis.

Order: as numbers; -0.0 and 0.0 are equal; NaNs are equal to each other and larger than everything
else, so they come last ascending and first descending. Equal elements keep their order in both
directions, and where only the first k are wanted those of lowest index are taken. Values keep their
bits.

Method: rows of up to SHORT elements by counting, for each, how many come before it; others by
least-significant-digit radix passes over keys whose unsigned order is the wanted one, each carrying
its index where that is needed. A pass in which all digits are equal is skipped. Long rows are cut
into chunks that are counted and moved by several tasks; the result is the same, the order being
total.

Requires a dense operand [.., n] with n < 2**32.
"""

from __future__ import annotations

from weft.buffer import Layout
from weft.errors import ShapeError
from weft.schedule.extern import pieces, require_dense, rows_per_task
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.types import DType, TensorType
from weft.types.dtype import int64
from weft.types.record import dataclass

#: longest row sorted by rank
SHORT = 64
#: shortest row with digits of 11 bits instead of 8
LONG = 1 << 13
#: shortest row that several tasks share, and how many
SHARED, CHUNKS = 1 << 17, 16
#: tasks over whole rows at most; each has scratch memory for one row
MOST = 32
#: bytes of scratch memory above which fewer tasks, and no shared rows, have to do
ROOM = 1 << 28


@dataclass(frozen=True)
class Sort:
    """Operands x[, values][, int64 indices]. Params: rows, n, rows of a task, bytes of scratch
    memory of a task or shared row, offsets in it of two arrays of items, chunks, elements of a
    chunk.

    The scratch memory: 64 bytes of state, then digit counts of every chunk, then the arrays.
    Functions: "kernel" sorts whole rows. With `shared`, a row's tasks run "load"; then for every
    digit "offsets" (one task a row), "move" and, but for the last, "count"; then "store" and, where
    values of equal rank differ in bits, "restore" (one task a row).
    """

    dtype: DType
    descending: bool
    values: bool
    indices: bool
    digit: int  # bits; 0: by rank
    shared: bool = False

    def key(self) -> str:
        outs = " values" * self.values + " indices" * self.indices
        flags = " descending" * self.descending + " shared" * self.shared
        return f"sort {self.dtype.short}{outs} {self.digit}{flags}"

    @property
    def carries(self) -> bool:
        """Whether keys carry their indices."""
        return self.indices or not self.digit

    @property
    def restores(self) -> bool:
        return self.dtype.is_float and not self.carries

    @property
    def passes(self) -> int:
        return pieces(self.dtype.bits, self.digit) if self.digit else 0


@dataclass(frozen=True)
class TopK:
    """The first `k` of a row, by its order: up to `most` candidates are kept; when there are more,
    they are sorted and the first k stay, and from then on only what comes before the last of those
    is a candidate.

    Operands x, values, int64 indices. Params: rows, n, k, most, rows of a task, bytes of scratch
    memory of a task, offsets in it of two arrays of items.
    """

    dtype: DType
    descending: bool
    digit: int

    def key(self) -> str:
        return f"topk {self.dtype.short} {self.digit}{' descending' * self.descending}"


def item_bytes(dtype: DType, indices: bool) -> int:
    """Of a key, with its index or without."""
    return (8 if dtype.bits == 64 else 4) * (2 if indices else 1)


def count_bytes(digit: int) -> int:
    """Of the counts of one chunk; a cache line more than they need, so that chunks don't fall on
    each other in the cache.
    """
    return (4 << digit) + 64


def plan_sort(
    x: Layout, *, descending: bool = False, values: bool = True, indices: bool = False
) -> Launch:
    """Sorted values, their int64 indices in the operand, or both, in that order."""
    rows, n, dtype = _shape("sort", x)
    shape = x.type.shape
    outs = [TensorType(shape, dtype)] * values + [TensorType(shape, int64)] * indices
    layouts = tuple(map(Layout.dense, outs))
    if rows * n == 0:
        return Launch(layouts)
    digit = 0 if n <= SHORT else 11 if n >= LONG and dtype.bits >= 32 else 8
    items = n * item_bytes(dtype, indices or not digit)
    shared = n >= SHARED and (rows <= 4 or rows * 2 * items <= ROOM)
    spec = Sort(dtype, descending, values, indices, digit, shared)
    chunk = pieces(n, CHUNKS if shared else 1)
    chunks = pieces(n, chunk)
    a, b, slot = _memory(chunks * count_bytes(digit) if digit else 0, items)
    work = n * (spec.passes + 2)
    block = 1 if shared else _rows(rows, work, slot)
    params = (rows, n, block, slot, a, b, chunks, chunk)
    if not shared:
        tasks = pieces(rows, block)
        return Launch(layouts, (Phase(spec, tasks),), params, tasks * slot, rows * work >= HEAVY)
    names = ["load", *["offsets", "move", "count"] * spec.passes]
    names[-1:] = ["store", *["restore"] * spec.restores]  # nothing to count after the last digit
    wide = ("load", "move", "count", "store")
    phases = tuple(Phase(spec, rows * chunks if f in wide else rows, function=f) for f in names)
    return Launch(layouts, phases, params, rows * slot, heavy=True)


def plan_topk(x: Layout, k: int, *, largest: bool = True) -> Launch:
    """Values and int64 indices [.., k] of the k largest (smallest) elements, the most extreme
    first.
    """
    rows, n, dtype = _shape("topk", x)
    if not 0 <= k <= n:
        raise ShapeError("topk", expected=f"k from 0 to the axis's {n}", got=str(k))
    shape = (*x.type.shape[:-1], k)
    layouts = tuple(Layout.dense(TensorType(shape, d)) for d in (dtype, int64))
    if rows * k == 0:
        return Launch(layouts)
    most = min(n, 2 * k + 32)
    digit = 11 if most >= LONG and dtype.bits >= 32 else 8
    a, b, slot = _memory(count_bytes(digit), most * item_bytes(dtype, True))
    block = _rows(rows, 4 * n, slot)
    tasks = pieces(rows, block)
    params = (rows, n, k, most, block, slot, a, b)
    heavy = 4 * rows * n >= HEAVY
    return Launch(
        layouts, (Phase(TopK(dtype, largest, digit), tasks),), params, tasks * slot, heavy
    )


def _shape(place: str, x: Layout) -> tuple[int, int, DType]:
    require_dense(place, x)
    if x.type.ndim == 0:
        raise ShapeError(place, expected="at least one axis", got=repr(x.type))
    n: int = x.type.shape[-1]  # type: ignore[assignment]
    if n >= 1 << 32:
        raise ShapeError(place, expected="fewer than 2**32 elements along the axis", got=str(n))
    return x.type.size // max(n, 1), n, x.type.dtype


def _rows(rows: int, work: int, slot: int) -> int:
    """Of a task."""
    return max(rows_per_task(rows, work), pieces(rows, max(4, min(MOST, ROOM // slot))))


def _memory(counts: int, items: int) -> tuple[int, int, int]:
    """Offsets of the two arrays of items in a slot of scratch memory, and its size. Vectors may
    reach behind an array.
    """
    a = _aligned(64 + counts)
    b = a + _aligned(items) + 256
    return a, b, b + _aligned(items) + 256


def _aligned(n: int) -> int:
    return pieces(n, 64) * 64
