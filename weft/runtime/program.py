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
from weft.runtime.plan import MAX_CHUNKS, MAX_WORDS, PhaseWord, Plan, Word, kind_of
from weft.schedule.host import HostCall
from weft.schedule.launch import Launch
from weft.schedule.steps import (
    ABSOLUTE,
    OPERANDS,
    PACKED,
    Enter,
    ProgramPlan,
    Spot,
    Step,
    When,
)
from weft.types import DType

PHASE = len(PhaseWord)  # words of a phase
_END = -1


class Places:
    """Which op each phase of a program comes from."""

    __slots__ = ("begins", "steps")

    def __init__(self, steps: Sequence[Step], begins: Sequence[int]) -> None:
        self.steps, self.begins = steps, begins

    def node(self, phase: int) -> Node | None:
        """The op that a phase computes, the last of those fused into it."""
        nodes = self.steps[bisect_right(self.begins, phase) - 1].nodes
        return nodes[-1] if nodes else None


#: where the engine's `side_by_side` starts; put here when it is loaded
side_by_side: list[int] = []
#: likewise `host_call`
host_call: list[int] = []


def make_program(plan: ProgramPlan, inputs: Sequence[Any], ahead: kernels.Ahead) -> Plan:
    """The plan the engine runs: `launch(plan, *inputs)` gives the results in order.

    `inputs` are the layouts or, for Python numbers, dtypes that it takes; behind them come those
    that are packed ahead. `ahead` has begun the kernels.
    """
    inputs = (*inputs, *(Layout.dense(x.layout.type) for x in plan.packed))
    specs = [p.spec for part in plan.parts for s in part.steps for p in s.launch.phases]
    held = [ahead.code(s) for s in specs if not isinstance(s, HostCall)]
    code = _Code(plan)
    kinds = [kind_of(x if isinstance(x, DType) else None) for x in inputs]
    sizes = [layout.type.nbytes for layout in plan.outs]
    if code.longest + 3 * len(kinds) + 3 * len(sizes) > MAX_WORDS:
        most, got = f"at most {MAX_WORDS} words of frame", str(code.longest + 3 * len(kinds))
        raise ShapeError("program", expected=most, got=got)
    expected = [id(x) if isinstance(x, Layout) else 0 for x in inputs]
    stacks = _handles(plan)
    memory = array("q", bytes(8 * len(Word)))
    memory[Word.N_IN] = len(kinds)
    memory[Word.N_OUT] = len(sizes)
    memory[Word.SCRATCH] = plan.arena
    memory[Word.N_PHASES] = len(code.recipe_of)
    memory[Word.KEEP] = 0
    memory[Word.HEAVY] = plan.heavy
    memory[Word.STEP_WORDS] = code.longest
    memory[Word.THREADS] = plan.threads
    memory.extend((*code.phases, *kinds, *sizes, *code.recipes, *expected, *stacks, *code.tables))
    # extended for the last time: from here on it stays where it is
    start = memory.buffer_info()[0] + 8 * len(Word)
    memory[Word.PARAMS] = memory[Word.PHASES] = start
    memory[Word.KINDS] = start + 8 * len(code.phases)
    memory[Word.SIZES] = memory[Word.KINDS] + 8 * len(kinds)
    recipes = memory[Word.SIZES] + 8 * len(sizes)
    memory[Word.LAYOUTS] = recipes + 8 * len(code.recipes)
    if plan.stacks or plan.chains:
        memory[Word.STACKS] = memory[Word.LAYOUTS] + 8 * len(expected)
    tables = memory[Word.LAYOUTS] + 8 * (len(expected) + len(stacks))
    first = memory.buffer_info()[0]
    for i, offset in enumerate(code.recipe_of):
        if offset >= 0:
            memory[len(Word) + PHASE * i + PhaseWord.RECIPE] = recipes + 8 * offset
    for at, table in code.operands:
        memory[(recipes - first) // 8 + at] = tables + 8 * table
    for at in code.addresses:
        word = (tables - first) // 8 + at
        memory[word] = start + 8 * PHASE * memory[word]
    call = Places(code.steps, code.begins[:-1])
    return Plan((memory, (held, plan, tuple(inputs))), call, plan.outs)


class _Code:
    """Phases and the recipes of their frames, before it is known where they will lie."""

    def __init__(self, plan: ProgramPlan) -> None:
        self.phases: list[int] = []
        self.recipes: list[int] = []
        self.recipe_of: list[int] = []  # of each phase: where its recipe starts, or -1
        self.longest = 1  # frame
        self.begins: list[int] = []  # of each step: its first phase, that of its group included
        self.own: list[int] = []  # of each step: the first phase that is its own
        self.tables: list[int] = []  # of steps that run together
        self.operands: list[tuple[int, int]] = []  # words of recipes that point to those
        self.addresses: list[int] = []  # words of tables that are phases
        self.steps: list[Step] = []  # of the program, then of its routines
        self.leaps: list[tuple[int, int]] = []  # jumps: phase, step
        self.starts: dict[int, int] = {}  # of routines by id: their first steps
        self.enters: list[tuple[int, int]] = []  # phase, id of a routine
        self._part(plan)
        ends = [(len(self.recipe_of), _END)] if plan.routines else []
        if ends:
            self._end(When.ALWAYS)
        for r in plan.routines:
            assert r.plan is not None
            self.starts[id(r)] = len(self.steps)
            self._part(r.plan)
            self._end(When.RETURN)
        self.begins.append(len(self.recipe_of))
        self.leaps += [(phase, self.starts[routine]) for phase, routine in self.enters]
        for phase, target in self.leaps + ends:
            self.phases[PHASE * phase + PhaseWord.TASKS] = self.begins[target]
        self._fill_tables()

    def _part(self, plan: ProgramPlan) -> None:
        """The steps of the program, or of a routine."""
        first = len(self.steps)
        self.packed = OPERANDS + len(plan.function.params), len(plan.packed)
        counts = plan.together or (1,) * len(plan.steps)
        for i, (step, count) in enumerate(zip(plan.steps, counts, strict=True), first):
            self._begin(step)
            if count > 1:
                self.leaps.append((self._together(count, i), i + count))
            self.own.append(len(self.recipe_of))
            if isinstance(step.jump, Enter):
                self._enter(step, step.jump)
            elif step.jump is not None and step.jump.when == When.FORGET:
                self._phase(0, 0, step.jump.when, len(self.recipes))
                self._places(step.operands)
            elif step.jump is not None:
                self.leaps.append((len(self.recipe_of), first + step.jump.target))
                self._phase(0, 0, step.jump.when, len(self.recipes))
                self._places(step.operands)
            else:
                self._step(step)

    def _begin(self, step: Step) -> None:
        self.steps.append(step)
        self.begins.append(len(self.recipe_of))

    def _end(self, when: int) -> None:
        """A jump behind the last step: of a routine, back to where it was called."""
        self._begin(Step(Launch(()), (), None, ()))
        self.own.append(len(self.recipe_of))
        self._phase(0, 0, when, -1)

    def _enter(self, step: Step, jump: Enter) -> None:
        """A call: bytes of the routine's arena, its operands, handles in its arena, its record."""
        routine = jump.routine
        assert routine is not None and routine.plan is not None
        self.enters.append((len(self.recipe_of), id(routine)))
        self._phase(0, 0, jump.when, len(self.recipes))
        self.recipes += (routine.plan.arena, len(step.operands))
        self._places(step.operands)
        self.recipes += _handles(routine.plan)
        if jump.record is not None:
            self._places((jump.record.slot, jump.record.head or jump.record.slot))
            self.recipes += (int(jump.record.indirect), jump.record.bytes)

    def _phase(self, function: int, tasks: int, grain: int, recipe: int) -> None:
        self.phases += (function, tasks, grain, 0)
        self.recipe_of.append(recipe)

    def _places(self, spots: Sequence[Spot]) -> None:
        for spot in spots:
            self.recipes += (self._base(spot.base), _offset(spot))

    def _base(self, base: int) -> int:
        """The number of a base, once it is known how many inputs are packed ahead."""
        start, count = self.packed
        if base <= PACKED:
            return start + PACKED - base
        return base + count if base >= start else base

    def _step(self, step: Step) -> None:
        recipe, launch = len(self.recipes), step.launch
        self.recipes += (step.scratch.offset if step.scratch else 0, len(step.operands))
        self._places(step.operands)
        self.recipes += (len(launch.params), *launch.params)
        self.longest = max(self.longest, len(step.operands) + len(launch.params))
        for phase in launch.phases:
            own = isinstance(phase.spec, HostCall)
            at = host_call[0] if own else kernels.address(phase.spec, phase.function)
            grain = max(phase.grain, -(-phase.tasks // MAX_CHUNKS), 1)
            self._phase(at, phase.tasks, grain if launch.heavy else max(phase.tasks, 1), recipe)
            recipe = -1

    def _together(self, count: int, i: int) -> int:
        """A phase whose tasks are the next `count` steps, and a jump over them, whose number it
        gives.
        """
        self._phase(side_by_side[0], count, 1, len(self.recipes))
        self.operands.append((len(self.recipes) + 3, len(self.tables)))
        self.recipes += (0, 1, ABSOLUTE, 0, 0)
        self.tables += (0, i, count)
        self._phase(0, 0, 0, -1)
        return len(self.recipe_of) - 1

    def _fill_tables(self) -> None:
        """Tables were begun as (0, first step, count); now it is known where steps begin."""
        begun, self.tables = self.tables, []
        moved: dict[int, int] = {}
        for at in range(0, len(begun), 3):
            first, count = begun[at + 1], begun[at + 2]
            moved[at] = len(self.tables)
            self.tables.append(self.longest)
            for i in range(first, first + count):
                self.addresses.append(len(self.tables))
                self.tables += (self.own[i], self.begins[i + 1] - self.own[i])
        self.operands = [(word, moved[table]) for word, table in self.operands]


def _handles(plan: ProgramPlan) -> list[int]:
    """Where in an arena stacks and chains have their handles."""
    return [n for spots in (plan.stacks, plan.chains) for n in (len(spots), *map(_offset, spots))]


def _offset(spot: Spot) -> int:
    return spot.offset + (spot.block.offset if spot.block else 0)
