"""Scratch memory of threads in one place, from step to step.

What a thread wrote last is in its own core's caches. Where the next step's scratch memory for it
lies somewhere else, that has to come from far away first, or from another core's caches, which
takes several microseconds each time: 3 % of a ResNet-18.
"""

from __future__ import annotations

from dataclasses import replace

from weft.schedule.arena import ALIGN
from weft.schedule.launch import Launch
from weft.schedule.steps import Block, Step

#: bytes of a thread's scratch memory, or of all threads' together, beyond which no core's own cache
#: would hold it to the next step
NEAR = 1 << 20


def settle(steps: list[Step], blocks: list[Block], threads: int) -> None:
    """Give the scratch memory of steps that use all threads one place: a block for all of them,
    which lives from the first to the last. Every thread's slice is as large as the largest; what
    threads share lies before the slices and ends where they begin.
    """
    found = [i for i, step in enumerate(steps) if _settles(step.launch)]
    if len(found) < 2:
        return
    own = [step.scratch for step in (steps[i] for i in found) if step.scratch is not None]
    slice_ = _up(max(steps[i].launch.worker_scratch for i in found))
    shared = _up(max(steps[i].launch.scratch for i in found))
    birth, death = min(b.birth for b in own), max(b.death for b in own)
    block = Block(shared + slice_ * threads, birth, death)
    blocks.append(block)
    for i, b in zip(found, own, strict=True):
        launch = steps[i].launch
        b.over, b.place, b.size = block, shared - launch.scratch, launch.scratch + slice_ * threads
        steps[i] = replace(steps[i], launch=_apart(launch, slice_))


def _settles(launch: Launch) -> bool:
    sizes = launch.worker_scratch, launch.scratch
    return launch.heavy and bool(launch.slices) and sizes[0] > 0 and max(sizes) <= NEAR


def _apart(launch: Launch, bytes_: int) -> Launch:
    """The launch with slices so many bytes apart."""
    params = list(launch.params)
    for i in launch.slices:
        params[i] = bytes_
    return replace(launch, params=tuple(params), worker_scratch=bytes_)


def _up(n: int) -> int:
    return -(-n // ALIGN) * ALIGN
