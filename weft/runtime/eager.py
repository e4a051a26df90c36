"""The eager mode: calls on real data, one launch each.

The first call on operands of new layouts is planned here (types, kernels, params); the plan is kept
on the op's record, where the door finds it the next time without coming here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.autodiff.custom import run_noted
from weft.autodiff.mode import no_grad
from weft.autodiff.tape import note
from weft.errors import DTypeError
from weft.ops.define import Call, Op, Value, inferred, installed, types_of
from weft.ops.elementwise import copy
from weft.runtime import kernels
from weft.runtime.plan import kind_of, make_plan
from weft.schedule.launch import Machine
from weft.schedule.single import plan_single, weak_dtype
from weft.types import TensorType, result_dtype

#: plans kept per op; shapes that change every call must not fill the memory
PLANS = 4096


class EagerMode:
    """Installed as what calls on real data mean."""

    def __init__(self, machine: Callable[[], Machine]) -> None:
        self.machine = machine
        #: plans with several results; where a body is run, the attributes, which were checked once
        self.known: dict[tuple[Any, ...], Any] = {}

    def first(self, op: Op, xs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Plan a call, remember the plan, run it."""
        key = _key(op, xs, attrs)
        known = self.known.get(key)
        if known is not None:
            if isinstance(known, dict):
                return self.unfused(op, xs, known)
            return self.run_several(known, xs)
        types = types_of(xs)
        out = inferred(op, types, attrs)
        if op.dense and not all(is_dense(x) for x in xs):
            return op(*(dense(x) for x in xs), **attrs)
        layouts = tuple(x.data.layout if isinstance(x, Value) else None for x in xs)
        launch = plan_single(op, types, layouts, attrs, out, self.machine())
        if launch is None:
            self._remember(self.known, key, attrs)
            return self.unfused(op, xs, attrs)
        call = Call(op, types, attrs, out)
        meet = (
            result_dtype(*(t.dtype if isinstance(t, TensorType) else t for t in types))
            if None in layouts
            else None
        )
        kinds = tuple(kind_of(None if x is not None else weak_dtype(meet)) for x in layouts)  # type: ignore[arg-type]
        addresses = [kernels.address(p.spec, p.function) for p in launch.phases]
        held = [kernels.code(p.spec) for p in launch.phases]
        differentiable = op.vjp is not None and isinstance(out, TensorType) and out.dtype.is_float
        plan = make_plan(launch, call, addresses, kinds, differentiable, held)
        if isinstance(out, tuple):
            self._remember(self.known, key, plan)
            return self.run_several(plan, xs)
        self._remember(op.plans, key[2:], plan)
        return installed.launch(plan, *xs)

    @staticmethod
    def _remember(where: dict[Any, Any], key: Any, what: Any) -> None:
        if len(where) >= PLANS:
            where.clear()
        where[key] = what

    def run_several(self, plan: Any, xs: tuple[Any, ...]) -> tuple[Value, ...]:
        """Ops with several results are noted from Python; the native path notes one result."""
        outs: tuple[Value, ...] = installed.launch(plan, *xs)
        note(plan.call, xs, outs)
        return outs

    def unfused(self, op: Op, xs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """An op that no single launch can do: a view that needs its operand dense, or a
        composite run as its body.
        """
        if op.view is not None:
            return op(dense(xs[0]), **attrs)
        assert op.body is not None, op.name
        if getattr(op.vjp, "derived", False):
            return run_noted(op, xs, attrs)
        with no_grad():
            out = op.body(*xs, **attrs)
        note(Call(op, types_of(xs), attrs), xs, out if isinstance(out, tuple) else (out,))
        return out


def _key(op: Op, xs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[Any, ...]:
    """What a plan depends on; behind the op and the number of operands as the door spells it."""
    key = (
        op,
        len(xs),
        *(x.data.layout if isinstance(x, Value) else x.__class__ for x in xs),
        *attrs.values(),
    )
    try:
        hash(key)
    except TypeError:
        raise DTypeError(
            op.name, expected="attributes that can be compared", got=str(attrs)
        ) from None
    return key


def is_dense(x: Any) -> bool:
    return not isinstance(x, Value) or x.data.layout.is_dense


def dense(x: Any) -> Any:
    """The same value laid out row-major without gaps."""
    return x if is_dense(x) else copy(x)
