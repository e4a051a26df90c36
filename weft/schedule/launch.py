"""The result of scheduling one eager op: kernels to run one after the other, with their
run-time numbers.
"""

from __future__ import annotations

from dataclasses import field
from typing import Protocol

from weft.buffer import Layout
from weft.types.record import dataclass


class KernelSpec(Protocol):
    """What a kernel is, free of shapes. Equal specs are one kernel; `key` is its canonical
    text, hashed by the disk cache.
    """

    def key(self) -> str: ...


@dataclass(frozen=True)
class Phase:
    """`tasks` independent pieces of one kernel, handed to threads `grain` at a time. Phases run
    in order.
    """

    spec: KernelSpec
    tasks: int
    grain: int = 1
    function: str = "kernel"


@dataclass(frozen=True)
class Launch:
    """Everything the native call needs besides the operands' addresses."""

    outs: tuple[Layout, ...]
    phases: tuple[Phase, ...] = ()
    params: tuple[int, ...] = field(default=())
    scratch: int = 0
    heavy: bool = False  # worth the thread pool and giving up the GIL
    view_offset: int | None = (
        None  # bytes; the result shares the first operand's memory, no kernel runs
    )
    worker_scratch: int = 0  # bytes for each thread, behind `scratch`: worker w's slice is number w
    slices: tuple[int, ...] = ()  # params that say how far apart slices are; they may be further
    #: an operand that is not taken as it is, and the layout of it that is taken densely copied
    ahead: tuple[int, Layout] | None = None


#: estimated scalar operations above which a launch is worth waking the pool for
HEAVY = 1 << 17


@dataclass(frozen=True)
class Machine:
    """What a plan may suit itself to. No bit of a result depends on it."""

    threads: int
    vector: int = 64  # bytes of a register
    awake: bool = False  # whether threads are, as in loops: less work is worth them then
