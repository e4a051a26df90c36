"""Every length of a vector and its tail: 1 to 70 elements of rows, columns and folds.

What an element, a row or a column gives must not depend on how many others there are; so each
length is compared with the part of the longest that it is.
"""

from __future__ import annotations

import numpy as np

from tests.laws.lab import Array, as_tuple, good
from weft.ops.define import OPS, Op
from weft.ops.samples import array
from weft.types.dtype import float16, float32, int8

LONGEST = 70
LENGTHS = range(1, LONGEST + 1)
ROWS = 3
Results = list[Array]


def pointwise() -> list[Op]:
    """Ops that compute each element from the elements beside it, without attributes."""
    return [op for op in OPS.values() if op.scalar and op.samples and not good(op)[0].sample.attrs]


def elements(op: Op, n: int) -> Results:
    """The op on the first n elements of its operands, for a dtype of each width it takes."""
    out = []
    for dtype in ("float32", "float16", "int8"):
        of_dtype = [
            c.sample.args
            for c in good(op)
            if c.sample.args[-1].dtype.name == dtype and c.sample.args[-1].shape == (7,)
        ]
        for args in of_dtype:
            xs = [np.resize(a, LONGEST)[:n] for a in args]
            out += [np.array(y.numpy()) for y in as_tuple(op(*xs))]
    return out


def columns(op: str, n: int) -> Results:
    """A fold of 5 rows of n elements, for each element by itself."""
    fold = OPS[op]
    return [
        np.array(fold(_matrix(5, dtype)[:, :n].copy(), axes=(0,), keepdims=False).numpy())
        for dtype in (float32, float16, int8)
    ]


def rows(op: str, n: int, many: int = ROWS) -> Results:
    """An op over the last axis of rows of n elements."""
    xs = [_matrix(ROWS, dtype)[:many, :n].copy() for dtype in (float32, float16)]
    return [np.array(y.numpy()) for x in xs for y in as_tuple(OPS[op](x, **ROWWISE[op]))]


def _matrix(rows: int, dtype: object) -> Array:
    return array((rows, LONGEST), dtype, (0.5, 2.0), 11)  # type: ignore[arg-type,no-any-return]


FOLDS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")
ROWWISE = {
    **{op: {"axes": (1,), "keepdims": False} for op in (*FOLDS, "logsumexp", "mean")},
    **{op: {"axes": (1,), "keepdims": True, "correction": 0.0} for op in ("var", "std")},
    **{op: {"axis": 1} for op in ("softmax", "log_softmax", "cumulative_max")},
    **{op: {"eps": 1e-5} for op in ("layer_norm", "rms_norm")},
    **{op: {"descending": True} for op in ("sort", "argsort")},
}


def every_tail() -> dict[str, Results]:
    """All of them, by name: what has to be the same on every target."""
    found = {f"{op.name} of {n} elements": elements(op, n) for op in pointwise() for n in LENGTHS}
    found |= {f"{op} of {n} columns": columns(op, n) for op in FOLDS for n in LENGTHS}
    return found | {f"{op} of rows of {n}": rows(op, n) for op in ROWWISE for n in LENGTHS}
