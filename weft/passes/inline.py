"""Composites by their bodies, to the bottom: what is left are ops with a kernel of their own, some
of them composites (`weft.ops.whole`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from weft.autodiff.mode import no_grad
from weft.ir import Function, Node
from weft.ops.define import Op, constant, result
from weft.ops.record import record
from weft.ops.whole import whole


def inline(f: Function) -> Function:
    """`f` without composites that have no kernel of their own."""
    return splice(f, {})


def splice(f: Function, given: dict[Node, Node]) -> Function:
    env: dict[Node, Node] = dict(given)
    several: dict[Node, tuple[Node, ...]] = {}  # results of composites
    for p in f.params:
        env.setdefault(p, p)
    for n in f.order:
        op: Op = n.op  # type: ignore[assignment]
        if op is result and n.inputs[0] in several:
            env[n] = several[n.inputs[0]][n.attr("position")]
            continue
        inputs = tuple([env[i] for i in n.inputs])
        if op.body is not None and not whole(op.name, [i.type for i in inputs], dict(n.attrs)):
            several[n] = _called(op, inputs, n)
            env[n] = several[n][0]
        elif all(a is b for a, b in zip(inputs, n.inputs, strict=True)):
            env[n] = n
        else:
            env[n] = Node(n.op, inputs, n.attrs, n.type, n.loc, n.regions)
    return Function(f.name, f.params, tuple([env[r] for r in f.results]))


def _called(op: Op, inputs: tuple[Node, ...], at: Node) -> tuple[Node, ...]:
    """The results of a composite on these inputs, its nodes placed where it was called."""
    numbers = tuple(_number(i) if i.op is constant else None for i in inputs)
    body = _body(op, tuple(i.type for i in inputs), numbers, at.attrs)
    tensors = [i for i, n in zip(inputs, numbers, strict=True) if n is None]
    env: dict[Node, Node] = dict(zip(body.params, tensors, strict=True))
    for n in body.order:
        env[n] = Node(n.op, tuple([env[i] for i in n.inputs]), n.attrs, n.type, at.loc, n.regions)
    return tuple([env[r] for r in body.results])


def _number(n: Node) -> tuple[type, str, Any] | None:
    """A Python number such that only the same is equal; None for a tensor."""
    value = n.attr("value")
    return (type(value), repr(value), value) if type(value) in (float, int, bool) else None


@lru_cache(4096)
def _body(
    op: Op,
    types: tuple[Any, ...],
    numbers: tuple[tuple[type, str, Any] | None, ...],
    attrs: tuple[tuple[str, Any], ...],
) -> Function:
    """A composite's body on operands of these types, some of them known numbers, itself without
    composites.
    """

    def run(*tensors: Any, **attrs: Any) -> Any:
        left = iter(tensors)
        return op.body(*(next(left) if n is None else n[2] for n in numbers), **attrs)  # type: ignore[misc]

    free = tuple(t for t, n in zip(types, numbers, strict=True) if n is None)
    with no_grad():
        return inline(record(op.name, run, free, dict(attrs)))
