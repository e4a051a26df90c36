"""A planned program as the native engine reads it: a plan of many steps."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from weft.buffer import Layout
from weft.errors import ShapeError
from weft.ir import Node
from weft.runtime import kernels
from weft.runtime.plan import MAX_CHUNKS, MAX_WORDS, Plan, Word, kind_of
from weft.schedule.program import ProgramPlan, Spot, Step
from weft.types import DType


class Places:
    """Which op each phase of a program comes from."""

    __slots__ = ("begins", "steps")

    def __init__(self, steps: Sequence[Step], begins: Sequence[int]) -> None:
        self.steps, self.begins = steps, begins

    def node(self, phase: int) -> Node | None:
        """The op that a phase computes, the last of those fused into it."""
        nodes = self.steps[bisect_right(self.begins, phase) - 1].nodes
        return nodes[-1] if nodes else None


def make_program(plan: ProgramPlan, inputs: Sequence[Any]) -> Plan:
    """The plan the engine runs: `launch(plan, *inputs)` gives the results in order.

    `inputs` are the layouts or, for Python numbers, dtypes that it takes.
    """
    held = kernels.codes([p.spec for s in plan.steps for p in s.launch.phases])
    phases: list[int] = []
    recipes: list[int] = []
    recipe_of: list[int] = []  # of each phase: where its recipe starts, or -1
    longest = 1
    begins: list[int] = []  # of each step: its first phase
    leaps: list[int] = []  # phases that are jumps, to steps not yet placed
    for step in plan.steps:
        start = len(recipes)
        begins.append(len(recipe_of))
        if step.jump is not None:
            for spot in step.operands:
                recipes += (spot.base, _offset(spot))
            leaps.append(len(recipe_of))
            phases += (0, step.jump.target, step.jump.when, 0)
            recipe_of.append(start)
            continue
        recipes += (step.scratch.offset if step.scratch else 0, len(step.operands))
        for spot in step.operands:
            recipes += (spot.base, _offset(spot))
        recipes += (len(step.launch.params), *step.launch.params)
        longest = max(longest, len(step.operands) + len(step.launch.params))
        for i, phase in enumerate(step.launch.phases):
            at = kernels.address(phase.spec, phase.function)
            grain = max(phase.grain, -(-phase.tasks // MAX_CHUNKS), 1)
            if not step.launch.heavy:
                grain = max(phase.tasks, 1)
            phases += (at, phase.tasks, grain, 0)
            recipe_of.append(-1 if i else start)
    begins.append(len(recipe_of))
    for i in leaps:
        phases[4 * i + 1] = begins[phases[4 * i + 1]]
    stacks = [len(plan.stacks), *(_offset(s) for s in plan.stacks)]
    kinds = [kind_of(x if isinstance(x, DType) else None) for x in inputs]
    sizes = [layout.type.nbytes for layout in plan.outs]
    if longest + 3 * len(kinds) + 3 * len(sizes) > MAX_WORDS:
        most, got = f"at most {MAX_WORDS} words of frame", str(longest + 3 * len(kinds))
        raise ShapeError("program", expected=most, got=got)
    memory = array("q", bytes(8 * len(Word)))
    memory[Word.N_IN] = len(kinds)
    memory[Word.N_OUT] = len(sizes)
    memory[Word.SCRATCH] = plan.arena
    memory[Word.N_PHASES] = len(recipe_of)
    memory[Word.KEEP] = 0
    memory[Word.HEAVY] = plan.heavy
    memory[Word.STEP_WORDS] = longest
    memory[Word.THREADS] = plan.threads
    expected = [id(x) if isinstance(x, Layout) else 0 for x in inputs]
    memory.extend((*phases, *kinds, *sizes, *recipes, *expected, *stacks))
    # extended for the last time: from here on it stays where it is
    start = memory.buffer_info()[0] + 8 * len(Word)
    memory[Word.PARAMS] = memory[Word.PHASES] = start
    memory[Word.KINDS] = start + 8 * len(phases)
    memory[Word.SIZES] = memory[Word.KINDS] + 8 * len(kinds)
    recipes_at = memory[Word.SIZES] + 8 * len(sizes)
    memory[Word.LAYOUTS] = recipes_at + 8 * len(recipes)
    memory[Word.STACKS] = memory[Word.LAYOUTS] + 8 * len(expected) if plan.stacks else 0
    for i, offset in enumerate(recipe_of):
        if offset >= 0:
            memory[len(Word) + 4 * i + 3] = recipes_at + 8 * offset
    call = Places(plan.steps, begins[:-1])
    return Plan((memory, (held, plan, tuple(inputs))), call, plan.outs)


def _offset(spot: Spot) -> int:
    return spot.offset + (spot.block.offset if spot.block else 0)
