"""What a program with a backward() in it keeps from the way there for the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.buffer import Layout
from weft.ir import Function, Node
from weft.schedule.stack import entry
from weft.schedule.steps import ARENA, ProgramPlan, Spot, Step

Kept = tuple[Node, int]  # the value, and its bytes in memory


def saved_within(plan: ProgramPlan, outputs: Sequence[int]) -> list[Kept]:
    """What steps leave in the arena that lead to the results `outputs`, of which others read later.

    A kernel that computes something of both ways counts as part of the way back.
    """
    there = _leading_to([plan.function.results[i] for i in outputs])
    ahead = [bool(s.nodes) and all(n in there for n in s.nodes) for s in plan.steps]
    out: list[Kept] = []
    last = {
        id(spot.block): j
        for j, step in enumerate(plan.steps)
        for spot in step.operands[: len(step.operands) - len(step.launch.outs)]
        if spot.block is not None
    }
    for i, step in enumerate(plan.steps):
        if not ahead[i] or step.jump is not None:
            continue
        for spot in step.operands[-len(step.launch.outs) :]:
            reader = last.get(id(spot.block), i)
            if spot.base == ARENA and spot.block is not None and not ahead[reader]:
                out.append((_written(plan, step, spot), spot.block.size))
    return out


def loops_within(f: Function) -> list[tuple[Node, int, int]]:
    """The loops that keep states to go back through them: a node to know each by, bytes of a
    state, and how many states at most (0: all).
    """
    out = []
    for n in f.order:
        if n.op.name == "while_grad":
            kept: Any = n.inputs[: n.attr("state")]
            size = entry([Layout.dense(i.type) for i in kept])
            named = n.inputs[-1] if n.inputs[-1].loc is not None else n
            out.append((named, size, int(n.attr("checkpoint"))))
        for r in n.regions:
            out += loops_within(r)
    return out


def _written(plan: ProgramPlan, step: Step, spot: Spot) -> Node:
    """The node of a step whose value lies there: of that type, and read by others."""
    of_type = [n for n in step.nodes if n.type is getattr(spot.layout, "type", None)]
    own = set(step.nodes)
    read = {i for n in plan.function.order if n not in own for i in n.inputs}
    return ([n for n in of_type if n in read] or of_type or list(step.nodes))[-1]


def _leading_to(results: Sequence[Node]) -> set[Node]:
    found: set[Node] = set()
    stack = list(results)
    while stack:
        n = stack.pop()
        if n not in found:
            found.add(n)
            stack.extend(n.inputs)
    return found
