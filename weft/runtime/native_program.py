"""A function as native plans, one for each way its inputs can lie in memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

from weft.buffer import Layout
from weft.ir import Function
from weft.ops.define import Value, installed
from weft.runtime.engine import LayoutChange
from weft.runtime.kernels import Ahead
from weft.runtime.packed import Prepared
from weft.runtime.plan import Plan
from weft.runtime.program import make_program
from weft.schedule.launch import Machine
from weft.schedule.program import plan_program
from weft.schedule.single import weak_dtype
from weft.schedule.steps import ProgramPlan
from weft.types import TensorType, result_dtype

#: how often in a row what was packed ahead may have been for a few calls only
WASTED = 4
#: plans kept per program; layouts that change every call must not fill the memory
PLANS = 64
#: bytes of a program's own memory from which on what is free is given back before it is touched
LARGE = 64 << 20

everyone: WeakSet[Native] = WeakSet()


class Native:
    """A function, compiled when it is first called and again only for inputs that lie otherwise."""

    def __init__(
        self,
        function: Function,
        machine: Callable[[], Machine],
        fixed: frozenset[int] = frozenset(),
    ) -> None:
        self.function, self.machine = function, machine
        self.fixed = fixed  # inputs that have the same value in most calls
        self.plans: dict[Any, tuple[Plan, Prepared | None]] = {}
        everyone.add(self)
        self.latest: tuple[Plan, Prepared | None] | None = None
        self.last: ProgramPlan | None = None

    def run(self, xs: Sequence[Any]) -> tuple[Any, ...]:
        """The results on these inputs: tensors, and Python numbers where it takes those."""
        if not self.function.results:
            return ()
        while True:
            latest = self.latest
            if latest is not None:
                plan, packed = latest
                try:
                    if packed is None:
                        outs = installed.launch(plan, *xs)
                    else:
                        outs = installed.launch(plan, *xs, *packed.taken())
                    return outs if outs.__class__ is tuple else (outs,)
                except LayoutChange:
                    pass
            self.latest = self._for(xs)

    def _for(self, xs: Sequence[Any]) -> tuple[Plan, Prepared | None]:
        """The plan for these inputs as they lie now."""
        fixed = frozenset([i for i in self.fixed if not xs[i].data.shared])
        key = tuple([x.data.layout if isinstance(x, Value) else None for x in xs]), fixed
        found = self.plans.get(key)
        if found is None:
            found = self.prepare(*key)
        packed = found[1]
        if packed is not None:
            if packed.wasted >= WASTED:
                self.fixed = frozenset()
                return self._for(xs)
            packed.make(xs)
        return found

    def forget(self) -> None:
        """Plan anew: the number of threads has changed."""
        self.plans.clear()
        self.latest = None

    def prepare_dense(self) -> None:
        """Compile for inputs laid out densely."""
        layouts = [
            Layout.dense(p.type) if isinstance(p.type, TensorType) else None
            for p in self.function.params
        ]
        self.prepare(tuple(layouts), self.fixed)

    def prepare(self, lie: tuple[Any, ...], fixed: frozenset[int]) -> tuple[Plan, Prepared | None]:
        """Compile for inputs of these layouts."""
        layouts = tuple(
            x if x is not None else weak_dtype(result_dtype(p.type))  # type: ignore[arg-type]
            for x, p in zip(lie, self.function.params, strict=True)
        )
        with Ahead() as compiling:
            self.last = plan_program(self.function, layouts, self.machine(), compiling.begin, fixed)
            plan = make_program(self.last, layouts, compiling)
        if self.last.arena >= LARGE:
            _give_back()
        made = plan, Prepared(plan, self.last) if self.last.packed else None
        if len(self.plans) >= PLANS:
            self.plans.clear()
        self.plans[lie, fixed] = made
        return made


def _give_back() -> None:
    """Give the system what planning and compiling have left free: tens of megabytes, in a
    millisecond. Only the C library of GNU has a call for it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
