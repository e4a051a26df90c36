"""Adding up what is on a stack: products of small operands to a sum as large as a weight.

Entry after entry is added, each a contraction that is rounded as one of its own would be, so the
bits are those of adding them one by one as they come. But the sum is gone through once.
"""

from __future__ import annotations

from weft.buffer import Layout
from weft.schedule.launch import HEAVY, Launch, Phase
from weft.types import DType, TensorType
from weft.types.record import dataclass

#: bytes of a sum from which on its terms are worth a stack
LEAST = 1 << 14
#: bytes of a stack at which it is drained, so that it stays in the cache
MOST = 1 << 19
#: columns of a task, in vectors, and rows that are computed side by side
COLUMNS, ROWS = 3, 4
#: products of an element from which on its sum may wait in memory while they are added up
DEEP = 8


@dataclass(frozen=True)
class Drain:
    """A kernel: `sum[k, j] += sum over i of p[i, k] * q[i, j]` for all entries (p, q) of a stack,
    in order. Operands: handle, sum. Params: bytes of an entry, where q begins in it, sizes of i, k
    and j.

    `listed`, it is a list: how many, then the addresses of each p and q. Operands: list, sum,
    result. Params: sizes of i, k and j.

    `deep`, sums are in registers for no longer than an entry takes, which leaves these to more
    rows, so that q is read less often.
    """

    dtype: DType
    vector: int  # bytes
    listed: bool = False
    deep: bool = False

    @property
    def rows(self) -> int:
        return 2 * ROWS if self.deep and self.vector == 64 else ROWS

    def key(self) -> str:
        return f"drain {self.dtype.short} {self.vector} {self.listed} {self.deep}"


def most(entry: int) -> int:
    """How many entries a stack has when it is drained."""
    return max(1, MOST // entry)


def plan_drain(p: Layout, q: Layout, entry: int, behind: int, vector: int) -> Launch:
    """Add the entries of a stack, each a `p` and `behind` bytes further a `q`."""
    i, k, j, tasks = _sizes(p, q, vector)
    heavy = i * k * j * most(entry) >= HEAVY
    phase = Phase(Drain(p.type.dtype, vector, deep=i >= DEEP), tasks)
    return Launch((), (phase,), (entry, behind, i, k, j), heavy=heavy)


def plan_list(p: Layout, q: Layout, vector: int) -> Launch:
    """A sum and the products of a list of many such operands."""
    i, k, j, tasks = _sizes(p, q, vector)
    phase = Phase(Drain(p.type.dtype, vector, True), tasks)
    out = Layout.dense(TensorType((k, j), p.type.dtype))
    return Launch((out,), (phase,), (i, k, j), heavy=8 * i * k * j >= HEAVY)


def _sizes(p: Layout, q: Layout, vector: int) -> tuple[int, int, int, int]:
    (i, k), j = p.type.sizes, q.type.sizes[1]
    wide = COLUMNS * vector // p.type.dtype.itemsize
    return i, k, j, -(-j // wide)
