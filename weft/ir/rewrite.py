"""What passes are made of: walk a function, give another.

Functions are frozen, so a rewrite makes the nodes that change and those that use them, and keeps
the rest. Nothing here recurses: a program may be deeper than Python's stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.ir.node import Function, Node

#: (node, its operands after rewriting) -> what stands in its place; None to leave it
Rule = Callable[[Node, tuple[Node, ...]], Node | None]


def rewrite(f: Function, rule: Rule) -> Function:
    """`f` with every node replaced as the rule says, operands first; `f` itself if none was."""
    known: dict[Node, Node] = {p: p for p in f.params}
    for n in f.order:
        inputs = tuple([known[i] for i in n.inputs])
        new = rule(n, inputs)
        known[n] = with_inputs(n, inputs) if new is None else new
    results = tuple([known[r] for r in f.results])
    return f if results == f.results else Function(f.name, f.params, results)


def replace(f: Function, new: Mapping[Node, Node]) -> Function:
    """`f` with nodes, or params, replaced by others."""
    known: dict[Node, Node] = {p: new.get(p, p) for p in f.params}
    for n in f.order:
        known[n] = new[n] if n in new else with_inputs(n, tuple([known[i] for i in n.inputs]))
    results = tuple([known[r] for r in f.results])
    params = tuple([known[p] for p in f.params])
    return f if (params, results) == (f.params, f.results) else Function(f.name, params, results)


def with_inputs(n: Node, inputs: tuple[Node, ...]) -> Node:
    """The node on other operands; itself if they are its own."""
    if inputs == n.inputs:  # nodes compare by identity
        return n
    return Node(n.op, inputs, n.attrs, n.type, n.loc, n.regions)


def uses(f: Function) -> dict[Node, list[Node]]:
    """Every node's users, in order, once per operand; a param or node without any has none."""
    out: dict[Node, list[Node]] = {n: [] for n in (*f.params, *f.order)}
    for n in f.order:
        for i in n.inputs:
            out[i].append(n)
    return out


def reached(f: Function, start: Node) -> list[Node]:
    """The nodes that depend on `start`, in order."""
    found = {start}
    out = []
    for n in f.order:
        if any(i in found for i in n.inputs):
            found.add(n)
            out.append(n)
    return out
