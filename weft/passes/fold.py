"""What depends on nothing is computed once, while compiling, by the kernels that would have run."""

from __future__ import annotations

from typing import Any

from weft.autodiff.mode import no_grad
from weft.buffer import Buffer
from weft.control.nodes import Control
from weft.ir import Function, Node, rewrite
from weft.ops.define import Op, Value, constant, installed, result
from weft.types import TensorType

#: bytes of a value that a program may carry about instead of computing it
MOST = 1 << 16


def fold(f: Function) -> Function:
    """`f` with every small value that depends on no input made a constant."""
    return rewrite(f, _folded)


def _folded(n: Node, inputs: tuple[Node, ...]) -> Node | None:
    if n.op in (constant, result) or any(i.op is not constant for i in inputs):
        return None
    if not isinstance(n.type, TensorType) or n.type.nbytes > MOST:
        return None
    op: Op = n.op  # type: ignore[assignment]
    if op.effect or isinstance(op, Control):
        return None
    with no_grad():
        out = op(*(_value(i) for i in inputs), **dict(n.attrs))
    if not isinstance(out, Value) or not isinstance(out.data, Buffer):
        return None
    return Node(constant, (), (("value", out.data), ("type", n.type)), n.type, n.loc)


def _value(n: Node) -> Any:
    value = n.attr("value")
    return installed.tensor(value) if isinstance(value, Buffer) else value
