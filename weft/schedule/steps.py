"""What a planned program is: steps on places in memory."""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum
from typing import Any

from weft.buffer import Layout
from weft.ir import Function, Node
from weft.schedule.launch import Launch
from weft.types import DType
from weft.types.record import dataclass

#: bases that a place may count from; inputs and then outputs follow. Inputs that are packed ahead
#: have bases of their own, from PACKED down
ARENA, ABSOLUTE, OPERANDS = 0, 1, 2
PACKED = -1


@dataclass(eq=False)
class Block:
    """Memory of the arena, from the step that writes it to the last that reads it."""

    size: int
    birth: int
    death: int
    place: int = 0  # in the arena, or in the block whose memory it takes over
    over: Block | None = None

    @property
    def offset(self) -> int:
        return self.place if self.over is None else self.over.offset + self.place

    @property
    def whole(self) -> Block:
        """The first of the blocks that lie in the same place one after the other."""
        return self if self.over is None else self.over.whole


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a value lies: a layout from a base on. `base` is ABSOLUTE, an operand's, or ARENA with
    its block.
    """

    base: int
    offset: int  # bytes
    layout: Layout | DType  # a bare dtype: a Python number, in memory of that dtype
    block: Block | None = None


class When(IntEnum):
    """What a jump is: when one within a function is taken; else see `weft.schedule.call`."""

    ALWAYS = 0
    IF_TRUE = 1
    IF_FALSE = 2
    CALL = 3
    RETURN = 4
    KEEP = 5
    BACK = 6
    FORGET = 7


@dataclass(eq=False)
class Jump:
    """To another step: always, or as a bool says. See `weft.schedule.control`."""

    when: int
    target: int = -1


@dataclass(eq=False)
class Routine:
    """A function of the program that calls lead to, planned once: its steps count places from
    memory that every call has of its own, and from what it is given.
    """

    name: str
    keeps: int = 0  # bytes of a record that every call writes
    plan: ProgramPlan | None = None  # None while it is being planned


@dataclass(eq=False)
class Enter(Jump):
    """To the start of a routine; at its end, back behind here. See `weft.schedule.call`."""

    routine: Routine | None = None
    record: Record | None = None


@dataclass(frozen=True, eq=False)
class Record:
    """Memory that a routine gets, or got, besides its own: where its address is written or found.
    If it gets it, how many bytes, and where the list of all such memory is, or, `indirect`, where
    the address of that is.
    """

    slot: Spot
    bytes: int = 0
    head: Spot | None = None
    indirect: bool = False


@dataclass(frozen=True, eq=False)
class Step:
    """One launch on places in memory, or a jump (whose condition is its operand)."""

    launch: Launch
    operands: tuple[Spot, ...]  # inputs, then results
    scratch: Block | None
    nodes: tuple[Node, ...]
    jump: Jump | None = None


@dataclass(frozen=True)
class Packed:
    """A further input of a program: what another one holds in a layout from an offset on (bytes),
    densely copied.
    """

    source: int
    offset: int
    layout: Layout


@dataclass(frozen=True, eq=False)
class ProgramPlan:
    """Everything the engine needs to run a function."""

    function: Function
    steps: tuple[Step, ...]
    arena: int  # bytes
    outs: tuple[Layout, ...]
    threads: int
    keep: tuple[Any, ...] = field(default=())  # owners of the constants
    stacks: tuple[Spot, ...] = ()  # handles that are zero at the start and freed at the end
    chains: tuple[Spot, ...] = ()  # likewise, lists of records
    together: tuple[int, ...] = ()  # of each step: how many run with it, see `beside`
    packed: tuple[Packed, ...] = ()  # inputs behind those of the function
    routines: tuple[Routine, ...] = ()

    @property
    def parts(self) -> tuple[ProgramPlan, ...]:
        """The plan itself, then those of its routines."""
        return (self, *(r.plan for r in self.routines if r.plan is not None))

    @property
    def heavy(self) -> bool:
        return max(self.together, default=1) > 1 or any(
            s.launch.heavy or (s.jump is not None and s.jump.target <= i)  # may go on for long
            for i, s in enumerate(self.steps)
        )
