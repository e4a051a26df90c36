"""Normalisation."""

from __future__ import annotations

import math
from typing import Any

from weft.errors import ShapeError
from weft.ops import normalization as ops
from weft.ops.batch_norm import batch_norm as batch_norm_op
from weft.ops.batch_norm import batch_norm_apply
from weft.ops.define import Value, installed
from weft.ops.elementwise import abs as absolute
from weft.ops.elementwise import maximum, pow, sqrt
from weft.ops.movement import reshape
from weft.ops.reduction import max as largest
from weft.ops.reduction import narrowed, widened
from weft.ops.reduction import sum as total
from weft.tensor.arguments import floating, sizes
from weft.tensor.dtypes import finfo
from weft.types import broadcast_shapes, normalize_axis


def _params(place: str, weight: Any, bias: Any, like: Value, shape: tuple[int, ...], size: int) -> list[Value]:
    """The parameters that are given, flat. A bias without a weight is given a weight of ones."""
    if weight is None and bias is None:
        return []
    if weight is None:
        weight = like.data and installed.lift(1.0)
    out = []
    for p in (weight, bias):
        if p is not None:
            v = floating(p, place)
            if v.type.shape != shape and v.type.ndim:
                raise ShapeError(place, expected=f"parameters of shape {shape}", got=str(v.type))
            out.append(v if v.type.ndim == 1 else reshape(v, shape=(size,)))
    return out
