"""What depends on nothing is computed once, while compiling, by the kernels that would have run."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.autodiff.mode import no_grad
from weft.buffer import Buffer
from weft.buffer.interchange import copy_from_numpy
from weft.control.nodes import Control
from weft.ir import Function, Node, rewrite
from weft.ops.creation import arange
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
    values = [_value(i) for i in inputs]
    if op is arange and n.type.dtype.is_int and all(type(v) is int for v in values):
        made = counted(values[0], values[1], n.type)
    else:
        with no_grad():
            out = op(*values, **dict(n.attrs))
        if not isinstance(out, Value) or not isinstance(out.data, Buffer):
            return None
        made = out.data
    return Node(constant, (), (("value", made), ("type", n.type)), n.type, n.loc)


def counted(start: int, step: int, t: TensorType) -> Buffer:
    """A range of integers, which losses have in them: made here, for it takes a hundredth of the
    time that making its kernel does.
    """
    numbers = np.arange(t.size, dtype=np.int64)
    ends = np.array([start, step], np.int64)
    return copy_from_numpy((numbers * ends[1] + ends[0]).astype(t.dtype.np))


def _value(n: Node) -> Any:
    value = n.attr("value")
    return installed.tensor(value) if isinstance(value, Buffer) else value
