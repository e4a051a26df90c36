"""A function as native plans, one for each way its inputs can lie in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

from weft.buffer import Layout
from weft.ir import Function
from weft.ops.define import Value, installed
from weft.runtime.engine import LayoutChange
from weft.runtime.kernels import Ahead
from weft.runtime.plan import Plan
from weft.runtime.program import make_program
from weft.schedule.launch import Machine
from weft.schedule.program import plan_program
from weft.schedule.single import weak_dtype
from weft.schedule.steps import ProgramPlan
from weft.types import TensorType, result_dtype

#: plans kept per program; layouts that change every call must not fill the memory
PLANS = 64

everyone: WeakSet[Native] = WeakSet()


class Native:
    """A function, compiled when it is first called and again only for inputs that lie otherwise."""

    def __init__(self, function: Function, machine: Callable[[], Machine]) -> None:
        self.function, self.machine = function, machine
        self.plans: dict[Any, Plan] = {}
        everyone.add(self)
        self.latest: Plan | None = None
        self.last: ProgramPlan | None = None

    def run(self, xs: Sequence[Any]) -> tuple[Any, ...]:
        """The results on these inputs: tensors, and Python numbers where it takes those."""
        if not self.function.results:
            return ()
        if self.latest is not None:
            try:
                outs = installed.launch(self.latest, *xs)
                return outs if outs.__class__ is tuple else (outs,)
            except LayoutChange:
                pass
        key = tuple([x.data.layout if isinstance(x, Value) else None for x in xs])
        plan = self.plans.get(key)
        if plan is None:
            plan = self.prepare(key)
        self.latest = plan
        outs = installed.launch(plan, *xs)
        return outs if outs.__class__ is tuple else (outs,)

    def forget(self) -> None:
        """Plan anew: the number of threads has changed."""
        self.plans.clear()
        self.latest = None

    def prepare_dense(self) -> Plan:
        """Compile for inputs laid out densely."""
        return self.prepare(
            tuple(
                Layout.dense(p.type) if isinstance(p.type, TensorType) else None
                for p in self.function.params
            )
        )

    def prepare(self, key: tuple[Any, ...]) -> Plan:
        """Compile for inputs of these layouts."""
        layouts = tuple(
            x if x is not None else weak_dtype(result_dtype(p.type))  # type: ignore[arg-type]
            for x, p in zip(key, self.function.params, strict=True)
        )
        with Ahead() as ahead:
            self.last = plan_program(self.function, layouts, self.machine(), ahead.begin)
            plan = make_program(self.last, layouts, ahead)
        if len(self.plans) >= PLANS:
            self.plans.clear()
        self.plans[key] = plan
        return plan
