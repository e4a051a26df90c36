"""A composite with one reduction, over any axes, as one launch with the elementwise work around it.

Means, losses, the sums in gradients of normalisation. The order of additions is that of the
reduction alone, so fusing changes no bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.buffer import Layout
from weft.ir import Function, Node
from weft.ops.define import constant
from weft.ops.elementwise import copy
from weft.ops.monoids import PLACES, accumulator
from weft.ops.movement import alias, reshape
from weft.ops.scalar import Scalar, const, input_
from weft.schedule.launch import Launch
from weft.schedule.read import Numbers, applied, literal, op_of
from weft.schedule.reduce import plan_fold
from weft.types import TensorType, broadcast_shapes


class FoldBody:
    """A body read as rule, fold, epilogue; `readable` says whether that was all there is."""

    def __init__(self, f: Function) -> None:
        self.f = f
        folds = [n for n in f.order if op_of(n).fold]
        self.readable = len(folds) == 1 == len(f.results)
        if not self.readable:
            return
        (self.fold,) = folds
        self.numbers = Numbers()
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
        source, monoid = self.fold.inputs[0], str(op_of(self.fold).fold)
        held = accumulator(monoid, source.type.dtype, self.fold.type.dtype)
        around = {i for n in behind if n is not self.fold for i in n.inputs if i not in behind}
        shapes = [p.type.shape for p in f.params]
        return (
            all(op_of(n) is constant for n in around)
            and out.type.size == self.fold.type.size
            and _unit_free(out.type.shape) == _unit_free(self.fold.type.shape)
            and broadcast_shapes(*shapes) == source.type.shape
            and isinstance(self.env[source], Scalar)
            and held is accumulator(monoid, source.type.dtype, out.type.dtype)
            and monoid not in PLACES
        )

    def _read(self, n: Node, after: bool) -> bool:
        op = op_of(n)
        if op is constant:
            value = literal(n)
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
            self.env[n] = applied(n, args, self.numbers)
            return True
        if op in (alias, copy) or (op is reshape and after):
            self.env[n] = args[0]
            return True
        return False

    def plan(self, layouts: Sequence[Layout], threads: int) -> Launch:
        """The launch on operands of these layouts."""
        out = self.f.results[0].type
        rule, epilogue = self.env[self.fold.inputs[0]], self.env[self.f.results[0]]
        axes, keepdims = self.fold.attr("axes"), self.fold.attr("keepdims")
        monoid: str = op_of(self.fold).fold  # type: ignore[assignment]
        made = plan_fold(
            monoid,
            layouts,
            rule,
            axes,
            keepdims,
            out.dtype,
            threads,
            epilogue,
            tuple(self.numbers.words),
        )
        return Launch(
            (Layout.dense(TensorType(out.shape, out.dtype)),),
            made.phases, made.params, made.scratch, made.heavy,
        )  # fmt: skip


def _unit_free(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(n for n in shape if n != 1)
