"""Arithmetic as of real numbers, where the user asks for it (`fast_math`): fewer and cheaper
operations, whose results may differ in the last bits.

A product that is added to something is rounded with the sum, once. A division by a constant, or by
a value that is spread over the dividend, is a product with the reciprocal.
"""

from __future__ import annotations

from weft.ir import Function, Node, rewrite
from weft.ir.rewrite import uses
from weft.ops.define import constant
from weft.ops.elementwise import add, divide, fma, multiply
from weft.types import TensorType
from weft.types.dtype import float32, float64


def hasten(f: Function) -> Function:
    """`f` with products and sums in one, and fewer divisions."""
    readers = uses(f)

    def rule(n: Node, inputs: tuple[Node, ...]) -> Node | None:
        if not isinstance(n.type, TensorType) or n.type.dtype not in (float32, float64):
            return None
        if n.op is divide:
            return _product(n, *inputs)
        if n.op is add:
            for i, x in enumerate(inputs):
                was = n.inputs[i]
                alone = len(readers.get(was, ())) == 1 and was not in f.results
                if alone and x.op is multiply and x.type is n.type:
                    return Node(fma, (*x.inputs, inputs[1 - i]), (), n.type, n.loc)
        return None

    return rewrite(f, rule)


def _product(n: Node, a: Node, b: Node) -> Node | None:
    """A division as a product."""
    if b.op is constant and type(b.attr("value")) in (int, float) and b.attr("value"):
        inverse = _number(1.0 / b.attr("value"))
    elif isinstance(b.type, TensorType) and b.type.dtype is n.type.dtype and _spread(n, b):
        inverse = Node(divide, (_number(1.0), b), (), b.type, n.loc)
    else:
        return None
    return Node(multiply, (a, inverse), (), n.type, n.loc)


def _spread(n: Node, b: Node) -> bool:
    return b.type.size * 4 <= n.type.size


def _number(x: float) -> Node:
    return Node(constant, (), (("value", x), ("type", float)), float)  # type: ignore[arg-type]
