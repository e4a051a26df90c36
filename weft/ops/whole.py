"""Composites that have a kernel of their own, and are not taken apart where it serves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.types import TensorType
from weft.types.dtype import bool_

#: queries below which packing keys costs more than it gives, unless there is little to pack
FEW, LITTLE = 6, 1 << 15
#: matrices from which a task each is enough for attention's gradient, if it has more than so many
#: products
MATRICES, PRODUCTS = 4, 1 << 20


def whole(name: str, types: Sequence[Any], attrs: dict[str, Any]) -> bool:
    """Whether a call of a composite is one launch, however its operands lie in memory."""
    if name not in ("attention", "attention_vjp"):
        return False
    if not all(isinstance(t, TensorType) for t in types) or type(attrs["scale"]) is not float:
        return False
    if not all(isinstance(n, int) for t in types for n in t.shape):
        return False
    if name == "attention":
        return _attention(*types)
    g, q, k, v, *mask = types
    added = any(m.dtype.is_float for m in mask)  # it has a cotangent, too
    spread = not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]  # then cotangents are summed up
    matrices = math.prod(q.shape[:-2])
    products = matrices * q.shape[-2] * k.shape[-2] * (q.shape[-1] + v.shape[-1])
    few = matrices < MATRICES and products > PRODUCTS
    return _attention(q, k, v, *mask) and g.dtype is q.dtype and not (added or spread or few)


def _attention(q: TensorType, k: TensorType, v: TensorType, *mask: TensorType) -> bool:
    d = q.dtype
    same = d.is_float and k.dtype is d and v.dtype is d and all(m.dtype in (bool_, d) for m in mask)
    if not same or len(mask) > 1 or min(t.ndim for t in (q, k, v)) < 2:
        return False
    return bool(q.shape[-2] >= FEW or k.shape[-2] * (q.shape[-1] + v.shape[-1]) <= LITTLE)
