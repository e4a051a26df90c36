"""The order of reductions as docs/numerics.md states it, word for word, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.schedule.reduce_spec import CHUNK, CHUNK_ROWS, LANES

Array = np.ndarray[Any, Any]


def _max(a: Array, b: Array) -> Array:
    return np.where(np.isnan(a), a, np.where(a > b, a, b))


def _min(a: Array, b: Array) -> Array:
    return np.where(np.isnan(a), a, np.where(a < b, a, b))


JOIN: dict[str, tuple[Callable[[Array, Array], Array], float]] = {
    "sum": (np.add, 0.0), "prod": (np.multiply, 1.0), "max": (_max, -np.inf), "min": (_min, np.inf),
}  # fmt: skip


def reduce(monoid: str, x: Array, axes: Sequence[int], out: Any, keepdims: bool = False) -> Array:
    """A floating reduction. Half types in float32, rounded once at the end."""
    acc = np.float32 if np.dtype(out).itemsize == 2 else np.dtype(out)
    shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape) if keepdims or a not in axes)
    sizes = [n for n in x.shape if n != 1]
    reduced = [a in axes for a, n in enumerate(x.shape) if n != 1]
    v = x.astype(acc).reshape(sizes)
    with np.errstate(all="ignore"):
        while any(reduced):
            stop = max(i for i, r in enumerate(reduced) if r) + 1
            start = stop
            while start and reduced[start - 1]:
                start -= 1
            outer, inner = sizes[:start], sizes[stop:]
            n, k = int(np.prod(outer, dtype=int)), int(np.prod(inner, dtype=int))
            r = int(np.prod(sizes[start:stop], dtype=int))
            v = (_last if not inner else _ordered)(monoid, v.reshape(n, r, k))
            sizes, reduced = [*outer, *inner], reduced[:start] + reduced[stop:]
        v = v.reshape(shape)
        if monoid in ("sum", "prod"):
            v = np.where(np.isnan(v), np.asarray(np.nan, acc), v)
            if not [n for a, n in enumerate(x.shape) if a in axes and n != 1]:
                v = JOIN[monoid][0](
                    v, np.asarray(JOIN[monoid][1], acc)
                )  # one element is added to the identity too
        return v.astype(out)


def _last(monoid: str, v: Array) -> Array:
    join, identity = JOIN[monoid]
    n, r, _ = v.shape
    total = np.full(n, identity, v.dtype)
    for start in range(0, r, CHUNK):
        chunk = v[:, start : start + CHUNK, 0]
        lanes = np.full((n, LANES), identity, v.dtype)
        for step in range(0, chunk.shape[1], LANES):
            part = chunk[:, step : step + LANES]
            lanes[:, : part.shape[1]] = join(lanes[:, : part.shape[1]], part)
        half = LANES
        while half > 1:
            half //= 2
            lanes = join(lanes[:, :half], lanes[:, half:])
        total = join(total, lanes[:, 0])
    return total


def _ordered(monoid: str, v: Array) -> Array:
    join, identity = JOIN[monoid]
    n, r, k = v.shape
    total = np.full((n, k), identity, v.dtype)
    for start in range(0, r, CHUNK_ROWS):
        part = np.full((n, k), identity, v.dtype)
        for row in range(start, min(start + CHUNK_ROWS, r)):
            part = join(part, v[:, row])
        total = join(total, part)
    return total
