"""A composite as one kernel: its body read as a map, or as a program over rows.

What it cannot read (a fold over other axes, a gather, a product of matrices) makes it give up, and
the composite is run op by op: the same bits, only slower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.buffer import Layout
from weft.ir import Function, Node
from weft.ops.define import Op, constant, result
from weft.ops.elementwise import copy
from weft.ops.monoids import MONOIDS, PLACES, accumulator
from weft.ops.movement import alias, broadcast_to, reshape
from weft.ops.record import expanded
from weft.ops.scalar import Scalar, input_
from weft.ops.whole import whole
from weft.schedule.attention import plan_attention
from weft.schedule.fuse_contract import plan_contraction
from weft.schedule.fuse_fold import FoldBody
from weft.schedule.launch import Launch, Machine
from weft.schedule.map import plan_map
from weft.schedule.read import Numbers, Unreadable, Weak, applied, elementwise, literal, op_of
from weft.schedule.rows import Fold, Map, RowProgram, plan_rows
from weft.types import DType, TensorType
from weft.types.record import dataclass


@dataclass(frozen=True)
class RowValue:
    """A value of the program: its number, or the Python number it is; and whether it lost its
    folded axes.
    """

    number: int
    shape: tuple[Any, ...]
    literal: Any = None
    squeezed: bool = False


def plan_composite(
    op: Op,
    types: tuple[Any, ...],
    layouts: tuple[Layout | None, ...],
    attrs: dict[str, Any],
    machine: Machine,
) -> Launch | None:
    """The composite on operands of these layouts as one launch, or None."""
    if any(x is None for x in layouts):
        return None
    if whole(op.name, types, attrs):
        return plan_attention(op.name, layouts, attrs, machine)  # type: ignore[arg-type]
    f = expanded(op.name, op.body, types, attrs)  # type: ignore[arg-type]
    try:
        return _plan_maps_and_folds(f, [x for x in layouts if x is not None], machine)
    except Unreadable:
        return None


Fused = tuple[Launch, tuple[int, ...]]


def plan_function(
    f: Function, layouts: Sequence[Any], machine: Machine, fixed: frozenset[int] = frozenset()
) -> Fused | None:
    """A function of ops that have kernels of their own as one launch, and which of its operands the
    launch takes, in order; None where it can't be one. Of `fixed` operands, see `Launch.ahead`.
    """
    try:
        if any(op_of(n).contract for n in f.order):
            return plan_contraction(f, layouts, machine, fixed)
        launch = _plan_maps_and_folds(f, layouts, machine)
        return None if launch is None else (launch, tuple(range(len(f.params))))
    except Unreadable:
        return None


def _plan_maps_and_folds(f: Function, layouts: Sequence[Any], machine: Machine) -> Launch | None:
    if not any(op_of(n).fold for n in f.order):
        return _as_map(f, layouts)
    if any(not isinstance(p.type, TensorType) for p in f.params):
        raise Unreadable("a number read when it runs")
    one = FoldBody(f)
    if one.readable:
        return one.plan(layouts, machine.threads)
    return _Rows(f).plan(layouts, machine.threads)


def _as_map(f: Function, layouts: Sequence[Any]) -> Launch:
    """Elementwise ops only: compose their rules."""
    env: dict[Node, Any] = {}
    for i, (p, layout) in enumerate(zip(f.params, layouts, strict=True)):
        weak = not isinstance(p.type, TensorType)
        env[p] = Weak(input_(i, layout), p.type) if weak else input_(i, p.type.dtype)  # type: ignore[arg-type]
    for n in f.order:
        env[n] = elementwise(n, env)
    outs = [env[r] for r in f.results]
    shapes = {r.type.shape for r in f.results}
    if len(shapes) != 1 or any(r in f.params for r in f.results):
        raise Unreadable("results of several shapes")
    return plan_map(outs, layouts, TensorType(shapes.pop(), outs[0].dtype))


class _Rows:
    """A body as steps over rows of a [*rows, n] space."""

    def __init__(self, f: Function) -> None:
        self.f = f
        folds = [n for n in f.order if op_of(n).fold]
        self.full = folds[0].inputs[0].type.shape
        counts = {len(n.attr("axes")) for n in folds}
        if len(counts) > 1 or not self.full:
            raise Unreadable("folds over different axes")
        self.folded = counts.pop()
        self.trailing = tuple(range(len(self.full) - self.folded, len(self.full)))
        self.rows: tuple[int, ...] = self.full[: -self.folded]  # type: ignore[assignment]
        self.n: int = math.prod(self.full[-self.folded :])  # type: ignore[arg-type]
        self.kept: tuple[int, ...] = self.rows + (1,) * self.folded
        self.inputs: list[tuple[str, DType]] = []
        self.steps: list[Map | Fold] = []
        self.numbers = Numbers()
        self.env: dict[Node, RowValue] = {}
        for p in f.params:
            self.env[p] = self._param(p)
        for n in f.order:
            self.env[n] = self._read(n)

    def plan(self, layouts: Sequence[Layout], threads: int) -> Launch | None:
        operands = [
            self._operand(kind, x) for (kind, _), x in zip(self.inputs, layouts, strict=True)
        ]
        outputs = []
        for r in self.f.results:
            v = self.env[r]
            if (
                v.literal is not None
                or r in self.f.params
                or r.type.shape not in (self.full, self.kept, self.rows)
            ):
                raise Unreadable("a result that is no row and no fold")
            outputs.append(v.number)
        program = RowProgram(
            tuple(self.inputs), tuple(self.steps), tuple(outputs), len(self.numbers.words)
        )
        for r, number in zip(self.f.results, outputs, strict=True):
            is_row = program.kinds[number] == "row"
            if is_row != (r.type.shape == self.full and self.n_matters(r)):
                raise Unreadable("a result spread over the row")
        outs = [r.type for r in self.f.results]
        return plan_rows(
            program, operands, self.rows, self.n, outs, threads, tuple(self.numbers.words)
        )

    def n_matters(self, r: Node) -> bool:
        """Whether a result of the full shape is a row: with one element per row both readings
        are right.
        """
        return self.n != 1 or self.env[r].shape == self.full

    def _param(self, p: Node) -> RowValue:
        shape = p.type.shape
        lead = shape[: len(shape) - self.folded] if len(shape) > self.folded else ()
        tail = shape[-self.folded :]
        squeezed = shape == self.rows and self._only_restored(p)
        if squeezed or (len(tail) == self.folded and math.prod(tail) == 1 and self.n != 1):
            kind = "one" if math.prod(shape) == 1 and not squeezed else "each"
        elif tail == self.full[-self.folded :]:
            kind = "column" if math.prod(lead) == 1 else "row"
        elif math.prod(shape) == 1:
            kind = "one"
        else:
            raise Unreadable("an operand that lies across the row")
        self.inputs.append((kind, p.type.dtype))
        return RowValue(len(self.inputs) - 1, shape, squeezed=squeezed)

    def _only_restored(self, p: Node) -> bool:
        """Whether every use of an operand gives it its folded axes back (or works on others
        without them).
        """
        users = [n for n in self.f.order if p in n.inputs]
        return bool(users) and all(
            n.type.shape in (self.kept, self.rows)
            and (op_of(n) is reshape or op_of(n).scalar is not None)
            for n in users
        )

    def _operand(self, kind: str, x: Layout) -> Layout:
        """The operand with its folded axes joined to one."""
        shape = x.type.shape
        if kind == "one":
            return x
        if kind == "each":
            return x if shape == self.rows else self._joined(x, shape[: -self.folded])
        return self._joined(x, (*shape[: -self.folded], self.n))

    def _joined(self, x: Layout, shape: tuple[Any, ...]) -> Layout:
        viewed = reshape.view(x, shape=shape)  # type: ignore[misc]
        if viewed is None:
            raise Unreadable("folded axes that do not lie in a row")
        return viewed[0]  # type: ignore[no-any-return]

    def _add(self, step: Map | Fold, shape: tuple[Any, ...], squeezed: bool = False) -> RowValue:
        self.steps.append(step)
        return RowValue(len(self.f.params) + len(self.steps) - 1, shape, squeezed=squeezed)

    def _dtype(self, number: int) -> DType:
        if number < len(self.inputs):
            return self.inputs[number][1]
        step = self.steps[number - len(self.inputs)]
        return step.dtype if isinstance(step, Fold) else step.rule.dtype

    def _scalar(self, v: RowValue) -> Scalar | Any:
        return v.literal if v.literal is not None else input_(v.number, self._dtype(v.number))

    def _read(self, n: Node) -> RowValue:
        op, shape = op_of(n), getattr(n.type, "shape", ())
        if op is constant:
            value = literal(n)
            floating = isinstance(n.type, TensorType) and n.type.dtype.is_float
            return RowValue(-1, (), literal=float(value) if floating else value)
        args = [self.env[i] for i in n.inputs]
        if op.scalar is not None:
            return self._map(n, args)
        first = args[0]
        if op.fold and first.literal is None:
            return self._fold(n, first)
        if op in (alias, copy):
            return first
        if op is reshape and {first.shape, shape} <= {self.rows, self.kept}:
            return RowValue(
                first.number, shape, first.literal, squeezed=shape == self.rows != self.kept
            )
        if op is broadcast_to and shape == self.full and not first.squeezed:
            return RowValue(first.number, shape, first.literal)
        if op is broadcast_to and shape == self.kept and first.shape == self.kept:
            return first
        raise Unreadable(op.name if op is not result else "several results")

    def _map(self, n: Node, args: list[RowValue]) -> RowValue:
        shape = n.type.shape
        squeezed = any(a.squeezed for a in args)
        if squeezed and shape != self.rows:
            raise Unreadable("a fold without its axes beside a row")
        if not squeezed and shape not in (self.full, self.kept) and math.prod(shape) != 1:
            tail = shape[-self.folded :]
            if tail != self.full[-self.folded :]:
                raise Unreadable("a value that lies across the row")
        rule = applied(n, [self._scalar(a) for a in args], self.numbers)
        return self._add(Map(rule), shape, squeezed)

    def _fold(self, n: Node, x: RowValue) -> RowValue:
        op = op_of(n)
        assert op.fold is not None, op.name
        if n.attr("axes") != self.trailing or x.shape != self.full or op.fold in PLACES:
            raise Unreadable("a fold over other axes")
        if self._dtype(x.number) is not n.type.dtype and MONOIDS[op.fold].computes:
            raise Unreadable("a fold that changes the dtype")
        value = x.number
        if accumulator(op.fold, self._dtype(value), n.type.dtype) is not n.type.dtype:
            raise Unreadable("a fold of a half type")
        if self._spread(value):
            raise Unreadable("a fold of one number per row")
        squeezed = not n.attr("keepdims")
        fold = Fold(op.fold, value, n.type.dtype)
        return self._add(fold, self.rows if squeezed else self.kept, squeezed)

    def _spread(self, number: int) -> bool:
        program = RowProgram(tuple(self.inputs), tuple(self.steps), ())
        return program.kinds[number] != "row"
