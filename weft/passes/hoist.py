"""What a loop computes the same way every time is computed once, before it.

Only ops that cannot fail: a loop may not run at all.
"""

from __future__ import annotations

from weft.ir import Function, Node, rewrite
from weft.ir.rewrite import replace
from weft.ops.define import Op, constant, parameter
from weft.types import TensorType


def hoist(f: Function) -> Function:
    """`f` with the invariant values of its loops made further operands of them."""
    return rewrite(f, _hoisted)


def _hoisted(n: Node, inputs: tuple[Node, ...]) -> Node | None:
    if n.op.name != "while":
        return None
    test, body = n.regions
    state = len(body.results)
    fixed = set(body.params[state:])
    moved: list[Node] = []
    for v in body.order:
        if (
            v.op is not constant
            and _safe(v)
            and all(i in fixed or i.op is constant for i in v.inputs)
        ):
            fixed.add(v)
            moved.append(v)
    wanted = [v for v in moved if _leaves(v, body, fixed)]
    if not wanted:
        return None
    outside: dict[Node, Node] = dict(zip(body.params, inputs, strict=True))
    for v in moved:
        given = tuple([outside.get(i, i) for i in v.inputs])
        outside[v] = Node(v.op, given, v.attrs, v.type, v.loc)
    stands = {v: _symbol(v.type, len(body.params) + i) for i, v in enumerate(wanted)}
    inner = replace(body, stands)
    more = tuple(stands.values())
    regions = (
        Function(test.name, (*test.params, *(_symbol(s.type, 0) for s in more)), test.results),
        Function(body.name, (*inner.params, *more), inner.results),
    )
    return Node(n.op, (*inputs, *(outside[v] for v in wanted)), n.attrs, n.type, n.loc, regions)


def _safe(v: Node) -> bool:
    op: Op = v.op  # type: ignore[assignment]
    known = op.scalar or op.fold or op.contract or op.view or (op.at and not v.inputs)
    return bool(known) and not v.regions and isinstance(v.type, TensorType)


def _leaves(v: Node, body: Function, fixed: set[Node]) -> bool:
    """Whether something that changes reads the value."""
    return v in body.results or any(v in u.inputs and u not in fixed for u in body.order)


def _symbol(type_: TensorType, position: int) -> Node:
    return Node(parameter, (), (("position", position), ("type", type_)), type_)
