"""Looking at every launch: what a sample makes run, its gradients and the ops of an unfused body
included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from launches import Array

from tests.laws.lab import as_tuple, forget_plans
from weft.buffer import Layout
from weft.ops.define import Value, installed
from weft.runtime import eager, start
from weft.runtime.plan import PhaseWord, Plan, Word
from weft.schedule.launch import Launch
from weft.types import DTYPES, TensorType


@dataclass(frozen=True)
class Seen:
    """A launch that ran: what was launched, the operands' places and layouts, and the results."""

    plan: Plan
    launch: Launch
    operands: list[tuple[int, Layout]]
    results: list[Array]
    numbers: list[Any]  # what Python numbers were passed in

    @property
    def functions(self) -> list[int]:
        words = self.plan.memory[0]
        at = (words[Word.PHASES] - self.plan.address) // 8
        count = len(self.launch.phases)
        return [words[at + i * len(PhaseWord) + PhaseWord.FUNCTION] for i in range(count)]


@contextmanager
def watching(look: Callable[[Seen], None]) -> Iterator[None]:
    """Call `look` after every launch that ran a kernel."""
    start.engine()
    launched, make = installed.launch, eager.make_plan
    launches: dict[int, tuple[Plan, Launch]] = {}

    def make_plan(launch: Launch, *args: Any, **kwargs: Any) -> Plan:
        plan = make(launch, *args, **kwargs)
        launches[plan.address] = (plan, launch)
        return plan

    def launch_seen(plan: Plan, *xs: Any) -> Any:
        out = launched(plan, *xs)
        launch = launches[plan.address][1]
        if launch.view_offset is None:
            numbers: list[Any] = []
            operands = [_operand(plan, i, x, numbers) for i, x in enumerate(xs)]
            look(
                Seen(plan, launch, operands, [np.array(o.numpy()) for o in as_tuple(out)], numbers)
            )
        return out

    forget_plans()
    installed.launch, eager.make_plan = launch_seen, make_plan
    try:
        yield
    finally:
        installed.launch, eager.make_plan = launched, make
        forget_plans()


def _operand(plan: Plan, i: int, x: Any, numbers: list[Any]) -> tuple[int, Layout]:
    if isinstance(x, Value):
        return x.data.address, x.data.layout  # type: ignore[union-attr]
    dtype = DTYPES[plan.kind(i) - 1]
    numbers.append(np.asarray(x, dtype.np))
    return numbers[-1].ctypes.data, Layout.dense(TensorType((), dtype))
