"""Weights of functions that call themselves, in the order in which every call reads them.

A cotangent times a weight is a sum along the weight's rows. A program that does it once transposes
what it reads as it goes; where call after call does, it is transposed once, before the first.
"""

from __future__ import annotations

from typing import Any

from weft.buffer import Layout
from weft.ir import Function, Node
from weft.ops.linalg import contract
from weft.schedule.steps import Spot
from weft.types import TensorType

#: bytes from which on a weight is worth it
LEAST = 1 << 14


def turned(p: Any, f: Function, param: Node, spot: Any) -> Any:
    """What a function takes for a param: a copy that is transposed, if that is how it is read."""
    layout = spot.layout
    if not isinstance(layout, Layout) or len(layout.type.shape) != 2 or not layout.is_dense:
        return spot
    if layout.type.nbytes < LEAST or _readers(f, param) != {True}:
        return spot
    (k, j), dtype = layout.type.sizes, layout.type.dtype
    across = TensorType((j, k), dtype)
    room = p.room(Layout.dense(across))
    p.copy_to(Spot(spot.base, spot.offset, Layout(across, (1, j)), spot.block), room)
    return Spot(room.base, room.offset, Layout(layout.type, (1, k)), room.block)


def _readers(f: Function, param: Node) -> set[bool]:
    """Of all that reads a param, whether it is such a product."""
    found = {False} if param in f.results else set()
    for n in f.order:
        for at, x in enumerate(n.inputs):
            if x is not param:
                continue
            if n.op.name == "cond" and at > 0:
                found = found.union(*(_readers(r, r.params[at - 1]) for r in n.regions))
            else:
                found.add(n.op is contract and at == 1 and _along_rows(n))
    return found


def _along_rows(n: Node) -> bool:
    """Whether a contraction with a matrix sums along its rows."""
    spec = n.attr("spec")
    return spec.b[0] in spec.out and spec.b[1] not in spec.out
