"""Casts behind views: the elements that a view picks are cast, by the kernel that reads them."""

from __future__ import annotations

from weft.ir import Function, Node, rewrite
from weft.ir.rewrite import uses
from weft.ops.define import Op
from weft.ops.elementwise import astype
from weft.types import TensorType


def sink(f: Function) -> Function:
    """`f` with casts that only one view reads made after it, unless that has more elements."""
    readers = uses(f)

    def rule(n: Node, inputs: tuple[Node, ...]) -> Node | None:
        op: Op = n.op  # type: ignore[assignment]
        if op.view is None or len(inputs) != 1 or inputs[0].op is not astype:
            return None
        cast = inputs[0]
        if (
            n.inputs[0] in f.results
            or len(readers[n.inputs[0]]) > 1
            or n.type.size > cast.type.size
        ):
            return None
        of = cast.inputs[0]
        seen = Node(op, (of,), n.attrs, TensorType(n.type.shape, of.type.dtype), n.loc)
        return Node(astype, (seen,), cast.attrs, n.type, cast.loc)

    return rewrite(f, rule)
