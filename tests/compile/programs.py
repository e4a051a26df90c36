"""Random programs: ops of every kind on tensors of many shapes and dtypes, values used again,
several results, state that is written, random numbers, gradients.

A program is a list of steps, each a function of earlier values. It is the same for the same seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import weft as wf
from tests import extremes
from tests.compile.maker import Maker, Step


@dataclass
class Plan:
    """Inputs, steps, what is returned, and what is done with the gradient."""

    arrays: list[tuple[np.ndarray, Any]]
    steps: list[Step]
    results: list[int]
    trainable: list[int]  # inputs that are parameters instead of arguments
    cells: list[tuple[int, int]]  # (input that is state, value it is given)
    gradient: str  # "", "vjp", "backward", "outside"

    def __str__(self) -> str:
        lines = [f"%{i} = {d.name}{list(a.shape)}" for i, (a, d) in enumerate(self.arrays)]
        n = len(self.arrays)
        lines += [f"%{n + i} = {s}" for i, s in enumerate(self.steps)]
        lines += [f"state %{i} := %{v}" for i, v in self.cells]
        return "\n".join(
            [
                *lines,
                f"return {self.results}; parameters {self.trainable}; gradient {self.gradient}",
            ]
        )


def make(seed: int) -> Plan:
    """The program of a seed."""
    m = Maker(seed)
    wf.manual_seed(seed)
    for _ in range(m.one([1, 2, 2, 3, 3, 4])):
        m.input()
    for _ in range(m.one([0, 1])):  # another of a shape that is there, as weights and biases are
        m.input(m.values[0].shape, m.values[0].dtype)
    if m.values[0].ndim >= 1 and m.values[0].dtype.is_float:
        m.input((m.values[0].shape[-1], m.one([1, 3, 8])), m.values[0].dtype)
    for _ in range(m.one([3, 5, 8, 12, 20])):
        m.step()
    n = len(m.arrays)
    last = len(m.values) - 1
    count = m.one([1, 1, 2, 3])
    results = sorted({last, *(int(m.rng.integers(0, last + 1)) for _ in range(count - 1))})
    trainable = [i for i in range(n) if m.arrays[i][1].is_float and m.chance(0.4)]
    cells = []
    for i in range(n):
        fitting = [
            j
            for j, v in enumerate(m.values[n:], n)
            if v.shape == m.values[i].shape and v.dtype is m.values[i].dtype
        ]
        if i not in trainable and fitting and m.chance(0.5):
            cells.append((i, m.one(fitting)))
    gradient = m.one(["", "", "vjp", "backward", "outside"])
    if gradient == "outside":
        # what is used inside and outside adds its gradients up in another order
        results = [r for r in results if r not in trainable] or [last]
    return Plan(m.arrays, m.steps, results, trainable, cells, gradient)


class Run:
    """A program with state of its own: call it, then compare `state()`."""

    def __init__(self, plan: Plan, compiled: bool) -> None:
        self.plan = plan
        self.held: dict[int, wf.Tensor] = {}
        for i, (array, _) in enumerate(plan.arrays):
            if i in plan.trainable:
                self.held[i] = wf.nn.Parameter(wf.asarray(array))
            elif any(i == c for c, _ in plan.cells):
                self.held[i] = wf.asarray(array)
        self.f = wf.compile(self.body, fallback=False) if compiled else self.body

    def body(self, *given: Any) -> Any:
        plan = self.plan
        parameters = [self.held[i] for i in plan.trainable]
        if plan.gradient != "vjp" or not parameters:
            values = self.computed(given, {})
            results = [values[i] for i in plan.results]
            if plan.gradient == "backward" and parameters:
                loss = total(results)
                if loss is not None and loss.requires_grad:
                    loss.backward()
        else:
            values = []

            def inner(*own: Any) -> Any:
                found = self.computed(given, dict(zip(plan.trainable, own, strict=True)))
                values[:] = [v.detach() for v in found]
                return total([found[i] for i in plan.results]) + 0 * sum(p.sum() for p in own)

            y, pull = wf.vjp(inner, *(p.detach() for p in parameters))
            results = [y, *pull(wf.ones_like(y))]
        with wf.no_grad():
            new = [values[v].detach() for _, v in plan.cells]
            for (i, _), v in zip(plan.cells, new, strict=True):
                self.held[i].assign(v)
        return results

    def computed(self, given: Any, own: dict[int, Any]) -> list[Any]:
        left = iter(given)
        values: list[Any] = []
        for i, _ in enumerate(self.plan.arrays):
            values.append(own[i] if i in own else self.held[i] if i in self.held else next(left))
        for s in self.plan.steps:
            values.append(s.f(*(values[i] for i in s.operands), **s.attrs))
        return values

    def __call__(self, layout: int = 0) -> list[Any]:
        given = [laid(a, layout) for i, (a, _) in enumerate(self.plan.arrays) if i not in self.held]
        out = self.f(*given)
        if self.plan.gradient == "outside":
            loss = total(out)
            if loss is not None and loss.requires_grad:
                loss.backward()
        return out

    def state(self) -> list[Any]:
        grads = [self.held[i].grad for i in self.plan.trainable]
        return [*self.held.values(), *grads]


def laid(array: np.ndarray, layout: int) -> wf.Tensor:
    """A tensor of these values; another layout is a transpose, back to front."""
    x = wf.asarray(array)
    if layout and x.ndim:
        axes = tuple(reversed(range(x.ndim)))
        copied = wf.permute_dims(
            wf.permute_dims(x, axes) + 0 if x.dtype is not wf.bool else x, axes
        )
        return copied if x.dtype is not wf.bool else x
    return x


def total(xs: list[Any]) -> Any:
    floats = [x for x in xs if x.dtype.is_float]
    if not floats:
        return wf.tensor(0.0)
    out = None
    for x in floats:
        part = (x.astype(wf.float32) * 0.5).sum()
        out = part if out is None else out + part
    return out


def bits(xs: list[Any]) -> list[Any]:
    return [x if x is None else (x.dtype.name, x.shape, extremes.bits(x.numpy())) for x in xs]


@cache
def functions(seed: int) -> list[Any]:
    """The graphs that the program of a seed is planned from."""
    run = Run(make(seed), True)
    given = [wf.asarray(a) for i, (a, _) in enumerate(run.plan.arrays) if i not in run.held]
    run.f.graph(*given)
    (programs,) = run.f.programs.values()
    natives = (programs[0].forward, programs[0].gradient)
    return [n.function for n in natives if n is not None]
