"""Reading a graph as scalar rules: what the kernels that fuse ops have in common."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from weft.buffer import Buffer
from weft.buffer.interchange import to_numpy
from weft.ir import Node
from weft.ops.define import Op, constant
from weft.ops.elementwise import copy
from weft.ops.movement import alias, broadcast_to, reshape
from weft.ops.scalar import Scalar, const, param
from weft.types import DType, TensorType, result_dtype
from weft.types.dtype import float64


class Unreadable(Exception):
    """The graph says something that no single kernel of this kind does."""


class Weak(NamedTuple):
    """A Python number that is known when the kernel runs: it takes the dtype it meets."""

    scalar: Scalar
    kind: type


def op_of(n: Node) -> Op:
    return n.op  # type: ignore[return-value]


def literal(n: Node) -> Any:
    """The number a constant node stands for."""
    value = n.attr("value")
    if isinstance(value, Buffer):
        layout = value.layout
        if any(s for s, size in zip(layout.strides, layout.type.shape, strict=True) if size != 1):
            raise Unreadable("a constant array")
        return to_numpy(value).reshape(-1)[0].item() if layout.type.size else 0
    return value


def applied(n: Node, args: list[Any], number: Callable[[Any, DType], Scalar] = const) -> Scalar:
    """The rule of an elementwise op on scalars; Python numbers become what they meet, by
    `number`.
    """
    meet = result_dtype(*[_meets(a) for a in args])
    ready = []
    for a in args:
        if isinstance(a, Weak):
            ready.append(a.scalar.cast(meet))
        else:
            ready.append(a if isinstance(a, Scalar) else number(a, meet))
    out: Scalar = op_of(n).scalar(*ready, **dict(n.attrs))  # type: ignore[misc]
    return out


def _meets(a: Any) -> Any:
    return a.dtype if isinstance(a, Scalar) else a.kind if isinstance(a, Weak) else type(a)


def elementwise(n: Node, env: dict[Node, Any]) -> Any:
    """The scalar of a node that computes element by element, of those of its operands."""
    op = op_of(n)
    if op is constant:
        value = literal(n)
        return const(value, n.type.dtype) if isinstance(n.type, TensorType) else value
    if op.scalar is not None:
        return applied(n, [env[i] for i in n.inputs])
    if op in (alias, copy, broadcast_to) or (op is reshape and n.type.size == 1):
        return env[n.inputs[0]]  # operands are broadcast to the result anyway
    raise Unreadable(op.name)


class Numbers:
    """Python numbers as run-time params of a kernel: a length of a row must not be compiled in."""

    def __init__(self) -> None:
        self.words: list[int] = []

    def __call__(self, value: Any, dtype: DType) -> Scalar:
        real = isinstance(value, float)
        word = struct.unpack("<q", struct.pack("<d", value))[0] if real else int(value)
        self.words.append(word)
        held = param(len(self.words) - 1)
        return (held.bitcast(float64) if real else held).cast(dtype)
