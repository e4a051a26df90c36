"""Operands of contractions as their labels say."""

from __future__ import annotations

from typing import Any

from weft.buffer import Layout
from weft.ops.contraction import Contraction, Window, label_sizes
from weft.types import TensorType


def broadcast_labels(spec: Contraction, operand: tuple[Any, Any], types: tuple[Any, ...]) -> Layout:
    """An operand of a contraction with its axes of one element spread to the size of their
    label.
    """
    axes, layout = operand
    a, b = types
    sizes = label_sizes(spec, a, b, "contract")
    shape = [
        n if isinstance(x, Window) else sizes[x]
        for x, n in zip(axes, layout.type.shape, strict=True)
    ]
    strides = [
        0 if n != m else s for n, m, s in zip(shape, layout.type.shape, layout.strides, strict=True)
    ]
    return Layout(TensorType(shape, layout.type.dtype), strides)
