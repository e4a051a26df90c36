"""Parts that are put each in its place among zeros, and added up, are joined.

This is what the gradient of a tensor is that is split: `add(unslice(a), unslice(b))` is the
concatenation of a and b. To be exact of a + 0.0 and b + 0.0, since what is added is no zero of
negative sign.
"""

from __future__ import annotations

from typing import Any

from weft.ir import Function, Node, rewrite
from weft.ir.rewrite import uses
from weft.ops.define import constant
from weft.ops.elementwise import add
from weft.ops.joining import concat
from weft.ops.movement import unslice
from weft.types import TensorType

_ZERO = Node(constant, (), (("value", 0.0), ("type", float)), float)  # type: ignore[arg-type]


def join(f: Function) -> Function:
    """`f` with sums of parts that make a whole joined."""
    readers = uses(f)
    inside = {
        i
        for n in f.order
        if n.op is add
        for i in n.inputs
        if i.op is add and len(readers[i]) == 1 and i not in f.results
    }

    def rule(n: Node, inputs: tuple[Node, ...]) -> Node | None:
        if n.op is not add or n in inside or not isinstance(n.type, TensorType):
            return None
        parts = _parts(n, inputs, inside) if n.type.dtype.is_float else None
        if parts is None:
            return None
        axis, values = parts
        whole = [Node(add, (x, _ZERO), (), x.type, n.loc) for x in values]
        return Node(concat, tuple(whole), (("axis", axis),), n.type, n.loc)

    return rewrite(f, rule)


def _parts(n: Node, inputs: tuple[Node, ...], inside: set[Node]) -> tuple[int, list[Node]] | None:
    """What is added up, along one axis from first to last; None if it leaves gaps or lies over each
    other, or if there is anything else.
    """
    found: list[tuple[tuple[int, ...], Node]] = []
    stack = list(zip(n.inputs, inputs, strict=True))
    while stack:
        was, i = stack.pop()
        if was in inside and i.op is add:
            stack += zip(was.inputs, i.inputs, strict=True)
        elif i.op is unslice and i.type is n.type and set(i.attr("steps")) == {1}:
            found.append((i.attr("starts"), i.inputs[0]))
        else:
            return None
    shape = n.type.shape
    axes = {a for _, x in found for a, size in enumerate(x.type.shape) if size != shape[a]}
    if len(axes) != 1:
        return None
    (axis,) = axes
    found.sort(key=lambda part: part[0][axis])
    end: Any = 0
    for starts, x in found:
        if starts[axis] != end:
            return None
        end += x.type.shape[axis]
    return (axis, [x for _, x in found]) if end == shape[axis] else None
