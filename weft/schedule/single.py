"""One op on operands of given layouts -> a launch: what the eager mode runs."""

from __future__ import annotations

from typing import Any

from weft.buffer import Layout
from weft.ops.define import Op, Types
from weft.ops.scalar import Scalar, input_
from weft.schedule.at import plan_at
from weft.schedule.contract import plan_contract
from weft.schedule.extern_table import EXTERNS
from weft.schedule.fuse import plan_composite
from weft.schedule.labels import broadcast_labels
from weft.schedule.launch import Launch, Machine
from weft.schedule.map import plan_map
from weft.schedule.reduce import plan_reduce
from weft.types import DType, TensorType, result_dtype
from weft.types.dtype import float64

Operand = Layout | DType  # a bare dtype: a Python scalar passed in memory of that dtype


def plan_single(
    op: Op,
    types: tuple[Any, ...],
    layouts: tuple[Layout | None, ...],
    attrs: dict[str, Any],
    out: Types,
    machine: Machine,
    fixed: frozenset[int] = frozenset(),
) -> Launch | None:
    """The launch of `op`, or None where it has to be run as its body. `layouts` has None for
    Python scalars. Of `fixed` operands, see `Launch.ahead`.
    """
    if op.view is not None:
        viewed = op.view(layouts[0], **attrs)
        if viewed is None:
            return None
        layout, offset = viewed
        return Launch((layout,), view_offset=offset * layout.type.dtype.itemsize)
    if op.scalar is not None and isinstance(out, TensorType):
        operands, inputs = scalar_operands(types, layouts)
        return plan_map([op.scalar(*inputs, **attrs)], operands, out)
    if op.at is not None and isinstance(out, TensorType):
        return plan_at(op.at, loaded_operands(types, layouts), attrs, out)
    if op.extern is not None:
        return EXTERNS[op.extern](layouts, attrs, out, machine.threads)
    if op.fold is not None and isinstance(out, TensorType):
        x = layouts[0]
        assert x is not None, op.name
        return plan_reduce(op.fold, x, attrs["axes"], attrs["keepdims"], out.dtype, machine.threads)
    if op.contract is not None:
        spec = op.contract(*types, **attrs)
        a, b = (
            broadcast_labels(spec, o, types) for o in ((spec.a, layouts[0]), (spec.b, layouts[1]))
        )
        return plan_contract(
            a, b, spec, machine.threads, machine.vector, fixed=fixed, awake=machine.awake
        )
    return plan_composite(op, types, layouts, attrs, machine)


def scalar_operands(
    types: tuple[Any, ...], layouts: tuple[Layout | None, ...]
) -> tuple[list[Operand], list[Scalar]]:
    """How a map reads each operand. Python scalars travel as float64 or in the integer dtype they
    become, and are rounded to the dtype they meet the tensors in.
    """
    meet = result_dtype(*(t.dtype if isinstance(t, TensorType) else t for t in types))
    operands: list[Operand] = []
    inputs: list[Scalar] = []
    for i, (t, layout) in enumerate(zip(types, layouts, strict=True)):
        if layout is not None:
            operands.append(layout)
            inputs.append(input_(i, t.dtype))
        else:
            travels = weak_dtype(meet)
            operands.append(travels)
            inputs.append(input_(i, travels).cast(meet))
    return operands, inputs


def loaded_operands(types: tuple[Any, ...], layouts: tuple[Layout | None, ...]) -> list[Operand]:
    """How an index function reads each operand. Python scalars come as they travel; the rule
    casts them.
    """
    weak = None in layouts
    travels = (
        weak_dtype(result_dtype(*(t.dtype if isinstance(t, TensorType) else t for t in types)))
        if weak
        else float64
    )
    return [travels if x is None else x for x in layouts]


def weak_dtype(meet: DType) -> DType:
    return float64 if meet.is_float else meet
