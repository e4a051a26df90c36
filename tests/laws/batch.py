"""Rows of a result that depend on one row of the operands each: found by trying, then held to the
bit.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

import weft as wf
from tests.laws.lab import (
    TOLERANCE,
    Array,
    Case,
    as_tuple,
    cotangent,
    differentiable,
    forward,
    gradients,
    same_bits,
    tensors,
)
from weft.errors import WeftError

Rows = tuple[int, ...]  # the operands whose first axis is the result's


def rows_of(case: Case) -> Rows | None:
    """The operands that the first axis of the results runs along, where the results' rows follow
    from theirs.
    """
    want = forward(case)
    sizes = {w.shape[0] if w.ndim else 0 for w in want}
    n = sizes.pop()
    if sizes or n < 2:
        return None
    args = case.sample.args
    candidates = [
        i for i, a in enumerate(args) if isinstance(a, np.ndarray) and a.ndim and len(a) == n
    ]
    for count in range(len(candidates), 0, -1):
        for rows in combinations(candidates, count):
            if _follows(case, rows, want, n):
                return rows
    return None


def _follows(case: Case, rows: Rows, want: list[Array], n: int) -> bool:
    """Whether each row alone gives about the row of the whole."""
    for i in _some(n):
        try:
            got = _one(case, rows, i)
        except (WeftError, ValueError):
            return False
        for g, w in zip(got, want, strict=True):
            if g.shape != (1, *w.shape[1:]) or g.dtype != w.dtype or not _about(g, w[i : i + 1]):
                return False
    return True


def _about(a: Array, b: Array) -> bool:
    rtol, atol = TOLERANCE.get(a.dtype.name, (0.0, 0.0))
    return bool(np.allclose(a.astype(np.float64), b.astype(np.float64), rtol, atol, equal_nan=True))


def _some(n: int) -> list[int]:
    return sorted({0, 1, n // 2, n - 1})


def _alone(case: Case, rows: Rows, i: int) -> list[Any]:
    return [x[i : i + 1] if k in rows else x for k, x in enumerate(tensors(case.sample))]


def _one(case: Case, rows: Rows, i: int) -> list[Array]:
    out = case.op(*_alone(case, rows, i), **case.sample.attrs)
    return [np.array(o.numpy()) for o in as_tuple(out)]


def check(case: Case, rows: Rows) -> None:
    """Results and gradients of one row at a time, bit for bit those of the batch."""
    want = forward(case)
    n = want[0].shape[0]
    for i in _some(n):
        same_bits(_one(case, rows, i), [w[i : i + 1] for w in want], f"row {i} alone")
    if not differentiable(case):
        return
    xs = tensors(case.sample)
    floating = [k for k, x in enumerate(xs) if isinstance(x, wf.Tensor) and x.dtype.is_float]
    seeds = [
        cotangent(w.shape, w.dtype)
        for w in want
        if w.dtype.kind == "f" or w.dtype.name == "bfloat16"
    ]
    whole = dict(zip(floating, gradients(case.op, xs, case.sample.attrs, seeds), strict=True))
    for i in _some(n):
        part = [s[i : i + 1] for s in seeds]
        alone = gradients(case.op, _alone(case, rows, i), case.sample.attrs, part)
        for k, g in zip(floating, alone, strict=True):
            if k in rows:
                same_bits([g], [whole[k][i : i + 1]], f"gradient of operand {k}, row {i} alone,")
