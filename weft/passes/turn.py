"""A contraction whose result is transposed gives it transposed: the order of its axes is free."""

from __future__ import annotations

from dataclasses import replace

from weft.ir import Function, Node, rewrite
from weft.ir.rewrite import uses
from weft.ops.define import Op
from weft.ops.linalg import contract
from weft.ops.movement import permute_dims


def turn(f: Function) -> Function:
    """`f` with transposes of contractions that nobody else reads taken into them."""
    readers = uses(f)

    def rule(n: Node, inputs: tuple[Node, ...]) -> Node | None:
        if n.op is not permute_dims or n.inputs[0] in f.results or len(readers[n.inputs[0]]) > 1:
            return None
        of = inputs[0]
        op: Op = of.op  # type: ignore[assignment]
        if op.contract is None:
            return None
        spec = op.contract(*(i.type for i in of.inputs), **dict(of.attrs))
        turned = replace(spec, out=tuple(spec.out[a] for a in n.attr("axes")))
        return Node(contract, of.inputs, (("spec", turned),), n.type, of.loc)

    return rewrite(f, rule)
