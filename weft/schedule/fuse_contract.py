"""A contraction and what goes on with its results, as one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.buffer import Layout
from weft.ir import Function, Node
from weft.ops.scalar import input_
from weft.schedule.collapse import broadcast_strides
from weft.schedule.contract import plan_contract
from weft.schedule.contract_spec import Epilogue
from weft.schedule.labels import broadcast_labels
from weft.schedule.launch import Launch, Machine
from weft.schedule.read import Unreadable, elementwise, op_of
from weft.types import TensorType


def plan_contraction(
    f: Function, layouts: Sequence[Any], machine: Machine, fixed: frozenset[int] = frozenset()
) -> tuple[Launch, tuple[int, ...]]:
    """The launch of a function with one contraction and elementwise ops behind it, and which of the
    function's operands the launch takes, in order; of `fixed` ones, see `Launch.ahead`.
    """
    (c,) = [n for n in f.order if op_of(n).contract is not None]
    position = {p: i for i, p in enumerate(f.params)}
    if any(i not in position for i in c.inputs) or any(
        r.type.shape != c.type.shape for r in f.results
    ):
        raise Unreadable("a contraction of values made here")
    env: dict[Node, Any] = {c: input_(0, c.type.dtype)}
    extras: list[int] = []
    for n in f.order:
        for i in n.inputs if n is not c else ():
            if i in position and i not in env:
                if not isinstance(i.type, TensorType):
                    raise Unreadable("a number read when it runs")
                extras.append(position[i])
                env[i] = input_(len(extras), i.type.dtype)
        if n is not c:
            env[n] = elementwise(n, env)
    shape: Any = c.type.shape
    spread = [
        Layout(TensorType(shape, layouts[e].type.dtype), broadcast_strides(layouts[e], len(shape)))
        for e in extras
    ]
    types = tuple(i.type for i in c.inputs)
    spec = op_of(c).contract(*types, **dict(c.attrs))  # type: ignore[misc]
    first, second = (position[i] for i in c.inputs)
    a, b = (
        broadcast_labels(spec, o, types)
        for o in ((spec.a, layouts[first]), (spec.b, layouts[second]))
    )
    epilogue = Epilogue(tuple(env[r] for r in f.results), tuple(spread))
    early = frozenset(i for i, place in enumerate((first, second)) if place in fixed)
    launch = plan_contract(
        a, b, spec, machine.threads, machine.vector, epilogue, early, machine.awake
    )
    return launch, (first, second, *extras)
