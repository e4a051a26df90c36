"""A composite with one reduction, over any axes, as one launch with the elementwise work around it.

Means, losses, the sums in gradients of normalisation. The order of additions is that of the
reduction alone, so fusing changes no bit.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from weft.buffer import Layout
from weft.ir import Function, Node
from weft.ops.define import Op, constant
from weft.ops.elementwise import copy
from weft.ops.movement import alias, reshape
from weft.ops.scalar import Scalar, const, input_, param
from weft.schedule.launch import Launch
from weft.schedule.reduce import accumulator, plan_fold
from weft.types import DType, TensorType, broadcast_shapes, result_dtype
from weft.types.dtype import float64


class FoldBody:
    """A body read as rule, fold, epilogue; `readable` says whether that was all there is."""

    def __init__(self, f: Function, literal: Any) -> None:
        self.f, self.literal = f, literal
        folds = [n for n in f.order if _op(n).fold]
        self.readable = len(folds) == 1 == len(f.results)
        if not self.readable:
            return
        (self.fold,) = folds
        self.numbers: list[int] = []
        self.env: dict[Node, Any] = {p: input_(i, p.type.dtype) for i, p in enumerate(f.params)}
        behind: set[Node] = {self.fold}
        for n in f.order:
            after = any(i in behind for i in n.inputs)
            if after:
                behind.add(n)
            self.readable = self.readable and self._read(n, after)
        out = f.results[0]
        self.readable = self.readable and out in behind and self._fits(f, out, behind)

    def _fits(self, f: Function, out: Node, behind: set[Node]) -> bool:
        """The epilogue sees the fold and numbers only, the rule all operands, broadcast."""
        source, monoid = self.fold.inputs[0], str(_op(self.fold).fold)
        held = accumulator(monoid, source.type.dtype, self.fold.type.dtype)
        around = {i for n in behind if n is not self.fold for i in n.inputs if i not in behind}
        shapes = [p.type.shape for p in f.params]
        return (
            all(_op(n) is constant for n in around)
            and out.type.size == self.fold.type.size
            and _unit_free(out.type.shape) == _unit_free(self.fold.type.shape)
            and broadcast_shapes(*shapes) == source.type.shape
            and isinstance(self.env[source], Scalar)
            and held is accumulator(monoid, source.type.dtype, out.type.dtype)
            and not monoid.startswith("arg")
        )

    def _read(self, n: Node, after: bool) -> bool:
        op = _op(n)
        if op is constant:
            value = self.literal(n)
            typed = isinstance(n.type, TensorType)
            self.env[n] = const(value, n.type.dtype) if typed else value
            return True
        args = [self.env.get(i) for i in n.inputs]
        if any(a is None for a in args):
            return False
        if n is self.fold:
            value = args[0]
            if not isinstance(value, Scalar):
                return False
            held = accumulator(op.fold, value.dtype, n.type.dtype)  # type: ignore[arg-type]
            self.env[n] = input_(0, held).cast(n.type.dtype)
            return True
        if op.scalar is not None:
            self.env[n] = self._apply(n, args)
            return True
        if op in (alias, copy) or (op is reshape and after):
            self.env[n] = args[0]
            return True
        return False

    def _apply(self, n: Node, args: list[Any]) -> Scalar:
        meet = result_dtype(*(a.dtype if isinstance(a, Scalar) else type(a) for a in args))
        ready = [a if isinstance(a, Scalar) else self._number(a, meet) for a in args]
        out: Scalar = _op(n).scalar(*ready, **dict(n.attrs))  # type: ignore[misc]
        return out

    def _number(self, value: Any, dtype: DType) -> Scalar:
        """A Python number as a run-time param: a count of elements must not be compiled in."""
        real = isinstance(value, float)
        word = struct.unpack("<q", struct.pack("<d", value))[0] if real else int(value)
        self.numbers.append(word)
        held = param(len(self.numbers) - 1)
        return (held.bitcast(float64) if real else held).cast(dtype)

    def plan(self, layouts: Sequence[Layout], threads: int) -> Launch:
        """The launch on operands of these layouts."""
        out = self.f.results[0].type
        rule, epilogue = self.env[self.fold.inputs[0]], self.env[self.f.results[0]]
        axes, keepdims = self.fold.attr("axes"), self.fold.attr("keepdims")
        monoid: str = _op(self.fold).fold  # type: ignore[assignment]
        made = plan_fold(
            monoid, layouts, rule, axes, keepdims, out.dtype, threads, epilogue, tuple(self.numbers)
        )
        return Launch(
            (Layout.dense(TensorType(out.shape, out.dtype)),),
            made.phases, made.params, made.scratch, made.heavy,
        )  # fmt: skip


def _op(n: Node) -> Op:
    return n.op  # type: ignore[return-value]


def _unit_free(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(n for n in shape if n != 1)
