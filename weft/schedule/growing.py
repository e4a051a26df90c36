"""Rows written to a place and read from one, as runs of bytes.

A launch of `put` whose result lies where its operand does copies nothing else: the kernel looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.buffer import Layout
from weft.schedule.extern import require_dense
from weft.schedule.launch import Launch, Phase
from weft.types import TensorType
from weft.types.record import dataclass


@dataclass(frozen=True)
class Rows:
    """`put`: operands x, place, values, out. Params: rows of x, bytes of a row, rows of each value.
    `get`: operands x, place, out. Params: rows of x, bytes of a row, rows of out. One task.
    """

    what: str
    count: int = 0  # values

    def key(self) -> str:
        return f"{self.what} rows {self.count}"


def plan_put_rows(xs: Sequence[Layout]) -> Launch:
    """x with the values in place of rows of it."""
    require_dense("put_rows", *xs)
    x, _, *values = xs
    out = Layout.dense(x.type)
    if out.type.size == 0:
        return Launch((out,))
    rows = [1 if v.type.ndim < x.type.ndim else v.type.sizes[0] for v in values]
    params = (x.type.sizes[0], _row(x.type), *rows)
    return Launch((out,), (Phase(Rows("put", len(values)), 1),), params)


def plan_get_rows(x: Layout, at: Layout, rows: Sequence[int]) -> Launch:
    """Rows of x."""
    require_dense("get_rows", x, at)
    out = Layout.dense(TensorType((*rows, *x.type.shape[1:]), x.type.dtype))
    if out.type.size == 0:
        return Launch((out,))
    params = (x.type.sizes[0], _row(x.type), *(rows or (1,)))
    return Launch((out,), (Phase(Rows("get"), 1),), params)


def _row(x: TensorType) -> int:
    return math.prod(x.sizes[1:]) * x.dtype.itemsize
