"""Nodes that give their operand back are their operand; equal nodes are one node.

Only what keeps every bit: copies and aliases, casts to the same dtype, reshapes and broadcasts to
the same shape, views of views.
"""

from __future__ import annotations

from typing import Any

from weft.buffer import Buffer
from weft.ir import Function, Node
from weft.ops.elementwise import astype, copy, positive
from weft.ops.movement import alias, broadcast_to, permute_dims, reshape


def simplify(f: Function) -> Function:
    """`f` with every node said once, and none that does nothing."""
    env: dict[Node, Node] = {p: p for p in f.params}
    known: dict[Any, Node] = {}
    for n in f.order:
        inputs = tuple([env[i] for i in n.inputs])
        made = _same(n, inputs)
        if made is None:
            key = (n.op, inputs, _exact(n.attrs), n.type, n.regions)
            made = known.get(key)
            if made is None:
                unchanged = all(a is b for a, b in zip(inputs, n.inputs, strict=True))
                made = n if unchanged else Node(n.op, inputs, n.attrs, n.type, n.loc, n.regions)
                known[key] = made
        env[n] = made
    return Function(f.name, f.params, tuple([env[r] for r in f.results]))


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


def _exact(attrs: Any) -> Any:
    """Attributes such that only the same are equal: 1, 1.0 and True differ, as do 0.0 and -0.0."""
    if isinstance(attrs, tuple):
        return tuple([_exact(a) for a in attrs])
    if isinstance(attrs, float):
        return float, attrs.hex()
    if isinstance(attrs, (bool, int)):
        return type(attrs), attrs
    if isinstance(attrs, Buffer):
        return id(attrs)
    return attrs
