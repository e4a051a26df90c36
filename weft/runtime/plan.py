"""A scheduled op as the native engine reads it: words in memory.

The engine's sources (native/*.ll) name every word as `{{plan_n_in}}` and the like; the numbers are
those of the enums here.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from weft.autodiff.pullback import OUTPUT
from weft.buffer import Layout
from weft.errors import ShapeError
from weft.ir import Location, Node
from weft.schedule.launch import Launch
from weft.types import DTYPES, DType

#: bit of the keep mask that asks for the result
KEEP_OUTPUT = 1 << OUTPUT
#: the engine builds a frame on the stack
MAX_WORDS = 16384
#: chunks of a phase that threads claim: the engine counts them in 16 bits
MAX_CHUNKS = 65535


class Word(IntEnum):
    """What the words of a plan mean. Those called pointers point into the same memory."""

    N_IN = 0
    N_OUT = 1
    KIND = 2  # 0 kernel, 1 view of the first argument
    VIEW_OFFSET = 3  # bytes
    SCRATCH = 4  # bytes, shared by all threads
    N_PARAMS = 5
    PARAMS = 6  # pointer
    N_PHASES = 7
    PHASES = 8  # pointer
    KEEP = 9  # bit i: backward wants input i; bit OUTPUT: the result; -1: not worked out yet
    HEAVY = 10
    KINDS = 11  # pointer: per argument 0 for a tensor, else 1 + index in DTYPES of a number's dtype
    SIZES = 12  # pointer: bytes of each result
    DIFFERENTIABLE = 13
    WORKER_SCRATCH = 14  # bytes for each thread, behind the shared ones
    STEP_WORDS = 15  # of the longest step's frame, if this is a program; else 0
    THREADS = 16  # that scratch memory was planned for
    LAYOUTS = 17  # pointer: the Layout of every input, or the very Buffer, of a program; else 0
    STACKS = 18  # pointer: how many growing stacks, where in the arena they are; chains; or 0
    FAILED = 19  # pointer: the phase of a program that an error came from


class PhaseWord(IntEnum):
    """What the words of each phase mean."""

    FUNCTION = 0  # 0: a jump
    TASKS = 1  # of a jump: to which phase
    GRAIN = 2  # of a jump: a `When`
    # pointer: how to write the frame of the step that begins here, or 0; of a jump: base and offset
    # of its condition; of a call: see calls.ll
    RECIPE = 3


class Status(IntEnum):
    """Why a launch failed: what kernels return, and what the engine adds."""

    RAISED = -1  # Python has raised already
    INDEX = 1  # out of range; the detail is the index
    INTERRUPTED = 2
    MEMORY = 3  # the detail is how many bytes were asked for
    SCALAR = 4  # a Python number that its dtype cannot hold; the detail is which argument
    ARGUMENT = 5  # an argument of the wrong type; likewise
    COUNT = 6  # another number of arguments than the plan takes; the detail is the number
    DEPTH = 8  # too many calls inside each other; the detail is how many
    LAYOUT = 7  # an argument that lies in memory otherwise than planned; the detail is which


class Plan:
    """One op for inputs of given layouts, ready to launch."""

    __slots__ = ("address", "call", "layouts", "memory")

    def __init__(
        self, memory: tuple[array[int], Any], call: Any, layouts: tuple[Layout, ...]
    ) -> None:
        self.memory, self.call, self.layouts = memory, call, layouts
        self.address: int = memory[0].buffer_info()[0]

    @property
    def place(self) -> str:
        """Where an error came from: the op, and in a program the user's line."""
        node = self._failed()
        if node is not None:
            return node.op.name if node.loc is None else f"{node.op.name} at {node.loc}"
        return str(getattr(getattr(self.call, "op", None), "name", "launch"))

    @property
    def location(self) -> Location | None:
        """The user's line that an error in a program came from."""
        node = self._failed()
        return None if node is None else node.loc

    @property
    def reach(self) -> int | None:
        """How long the axis is that an op of a program indexes."""
        node = self._failed()
        axis = None if node is None else dict(node.attrs).get("axis")
        shape = getattr(node.inputs[0].type, "shape", ()) if node is not None else ()
        return shape[axis] if isinstance(axis, int) and axis < len(shape) else None

    def _failed(self) -> Node | None:
        words = self.memory[0]
        if not words[Word.FAILED]:
            return None
        phase = (words[Word.FAILED] - words[Word.PHASES]) // (8 * len(PhaseWord))
        found: Node | None = self.call.node(phase)
        return found

    @property
    def keep(self) -> int:
        """The keep mask: -1 while it is not known, see `Word.KEEP`."""
        return self.memory[0][Word.KEEP]

    @keep.setter
    def keep(self, mask: int) -> None:
        self.memory[0][Word.KEEP] = mask

    def expect(self, i: int, buffer: Any) -> None:
        """Of a program: take no other buffer than this as input `i`; None: nothing."""
        words = self.memory[0]
        at = (words[Word.LAYOUTS] - self.address) // 8 + i
        words[at] = 0 if buffer is None else id(buffer)

    def kind(self, i: int) -> int:
        """The kind of argument `i`, see `Word.KINDS`."""
        words = self.memory[0]
        return words[(words[Word.KINDS] - self.address) // 8 + i]


def kind_of(dtype: DType | None) -> int:
    """The kind of an argument: a tensor (None), or a Python number that becomes a `dtype`."""
    return 0 if dtype is None else 1 + DTYPES.index(dtype)


def make_plan(
    launch: Launch,
    call: Any,
    addresses: Sequence[int],
    arg_kinds: Sequence[int],
    differentiable: bool,
    keep_alive: Any = None,
) -> Plan:
    """The plan of a launch.

    `addresses`: where each phase's function starts; `keep_alive`: what owns that code.
    """
    kinds, sizes = tuple(arg_kinds), [layout.type.nbytes for layout in launch.outs]
    if len(launch.params) + 3 * len(kinds) + 2 * len(sizes) > MAX_WORDS:
        expected = f"at most {MAX_WORDS // 4} operands"
        raise ShapeError("launch", expected=expected, got=str(len(kinds)))
    phases: list[int] = []
    for phase, at in zip(launch.phases, addresses, strict=True):
        phases += at, phase.tasks, max(phase.grain, -(-phase.tasks // MAX_CHUNKS), 1), 0
    memory = array("q", bytes(8 * len(Word)))
    memory[Word.N_IN] = len(kinds)
    memory[Word.N_OUT] = len(sizes)
    memory[Word.KIND] = launch.view_offset is not None
    memory[Word.VIEW_OFFSET] = launch.view_offset or 0
    memory[Word.SCRATCH] = launch.scratch
    memory[Word.N_PARAMS] = len(launch.params)
    memory[Word.N_PHASES] = len(launch.phases)
    memory[Word.KEEP] = -1
    memory[Word.HEAVY] = launch.heavy
    memory[Word.DIFFERENTIABLE] = differentiable
    memory[Word.WORKER_SCRATCH] = launch.worker_scratch
    memory[Word.THREADS] = 1 << 30  # scratch memory is measured by the pool
    memory.extend((*launch.params, *phases, *kinds, *sizes))
    # extended for the last time: from here on it stays where it is
    params = memory.buffer_info()[0] + 8 * len(Word)
    memory[Word.PARAMS] = params
    memory[Word.PHASES] = params + 8 * len(launch.params)
    memory[Word.KINDS] = memory[Word.PHASES] + 8 * len(phases)
    memory[Word.SIZES] = memory[Word.KINDS] + 8 * len(kinds)
    return Plan((memory, keep_alive), call, launch.outs)
