"""Composites by their bodies, to the bottom: what is left are ops with a kernel of their own."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from weft.autodiff.mode import no_grad
from weft.ir import Function, Node
from weft.ops.define import Op, result
from weft.ops.record import record


def inline(f: Function) -> Function:
    """`f` without composites."""
    return splice(f, {})


def splice(f: Function, given: dict[Node, Node]) -> Function:
    env: dict[Node, Any] = dict(given)
    for p in f.params:
        env.setdefault(p, p)
    for n in f.order:
        op: Op = n.op  # type: ignore[assignment]
        inputs = tuple(env[i] for i in n.inputs)
        if op is result and isinstance(inputs[0], tuple):
            env[n] = inputs[0][n.attr("position")]
        elif op.body is not None:
            outs = _called(op, inputs, n)
            several = isinstance(n.attrs, tuple) and len(outs) > 1
            env[n] = outs if several else outs[0]
        elif all(a is b for a, b in zip(inputs, n.inputs, strict=True)):
            env[n] = n
        else:
            env[n] = Node(n.op, inputs, n.attrs, n.type, n.loc, n.regions)
    return Function(f.name, f.params, tuple(env[r] for r in f.results))


def _called(op: Op, inputs: tuple[Node, ...], at: Node) -> tuple[Node, ...]:
    """The results of a composite on these inputs, its nodes placed where it was called."""
    body = _body(op, tuple(i.type for i in inputs), at.attrs)
    env: dict[Node, Node] = dict(zip(body.params, inputs, strict=True))
    for n in body.order:
        env[n] = Node(n.op, tuple(env[i] for i in n.inputs), n.attrs, n.type, at.loc, n.regions)
    return tuple(env[r] for r in body.results)


@lru_cache(4096)
def _body(op: Op, types: tuple[Any, ...], attrs: tuple[tuple[str, Any], ...]) -> Function:
    """A composite's body on operands of these types, itself without composites."""
    with no_grad():
        return inline(record(op.name, op.body, types, dict(attrs)))  # type: ignore[arg-type]
