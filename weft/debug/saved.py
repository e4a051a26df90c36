"""Values that a program with a backward() in it keeps from the way there for the way back."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Node
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
