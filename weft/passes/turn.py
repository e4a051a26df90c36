"""A contraction whose result is transposed gives it transposed: the order of its axes is free."""

from __future__ import annotations

from dataclasses import replace

from weft.ir import Function, Node
from weft.ops.define import Op
from weft.ops.linalg import contract
from weft.ops.movement import permute_dims


def turn(f: Function) -> Function:
    """`f` with transposes of contractions that nobody else reads taken into them."""
    uses: dict[Node, int] = {}
    for n in f.order:
        for i in n.inputs:
            uses[i] = uses.get(i, 0) + 1
    for r in f.results:
        uses[r] = uses.get(r, 0) + 1
    env: dict[Node, Node] = {p: p for p in f.params}
    for n in f.order:
        inputs = tuple([env[i] for i in n.inputs])
        of = inputs[0] if inputs else None
        if n.op is permute_dims and of is not None and _alone(n, of, uses):
            op: Op = of.op  # type: ignore[assignment]
            spec = op.contract(*(i.type for i in of.inputs), **dict(of.attrs))  # type: ignore[misc]
            out = tuple(spec.out[a] for a in n.attr("axes"))
            turned = replace(spec, out=out)
            env[n] = Node(contract, of.inputs, (("spec", turned),), n.type, of.loc)
        elif all(a is b for a, b in zip(inputs, n.inputs, strict=True)):
            env[n] = n
        else:
            env[n] = Node(n.op, inputs, n.attrs, n.type, n.loc, n.regions)
    return Function(f.name, f.params, tuple([env[r] for r in f.results]))


def _alone(n: Node, of: Node, uses: dict[Node, int]) -> bool:
    return getattr(of.op, "contract", None) is not None and uses.get(n.inputs[0], 0) == 1
