"""Nodes that give their operand back are their operand; equal nodes are one node.

Only what keeps every bit: copies and aliases, casts to the same dtype, reshapes and broadcasts to
the same shape, views of views.
"""

from __future__ import annotations

from typing import Any

from weft.ir import Function, Node, rewrite
from weft.ir.node import exact
from weft.ir.rewrite import with_inputs
from weft.ops.elementwise import astype, copy, positive
from weft.ops.movement import alias, broadcast_to, permute_dims, reshape


def simplify(f: Function) -> Function:
    """`f` with every node said once, and none that does nothing."""
    known: dict[Any, Node] = {}

    def rule(n: Node, inputs: tuple[Node, ...]) -> Node:
        made = _same(n, inputs)
        if made is not None:
            return made
        key = (n.op, inputs, exact(n.attrs), n.type, tuple(map(id, n.regions)))
        return known.setdefault(key, with_inputs(n, inputs))

    return rewrite(f, rule)


def _same(n: Node, inputs: tuple[Node, ...]) -> Node | None:
    """An earlier node with the same value, if the op moves nothing."""
    op = n.op
    if op is copy or op is alias or op is positive:
        return inputs[0]
    if op in (astype, reshape, broadcast_to):
        first = inputs[0]
        if first.type is n.type:
            return first
        if op is reshape and first.op is reshape:
            return Node(reshape, first.inputs, n.attrs, n.type, n.loc)
    if op is permute_dims and n.attr("axes") == tuple(range(len(n.attr("axes")))):
        return inputs[0]
    return None
