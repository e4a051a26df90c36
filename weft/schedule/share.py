"""Results in the place of operands: memory that is read for the last time is written over."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from weft.buffer import Layout
from weft.schedule.launch import Launch
from weft.schedule.map import MapSpec
from weft.schedule.rows import RowSpec, arrange
from weft.schedule.steps import Spot, Step


def share(steps: Sequence[Step], counts: Sequence[int]) -> None:
    """Let results take the place of operands that are read for the last time, where the kernel
    reads an element before it writes it.
    """
    for i, step in enumerate(steps):
        if counts[i] != 1:
            continue
        count = len(step.launch.outs)
        dying = [s for s in step.operands[:-count] if _dies(s, i, step)]
        for made in step.operands[-count:]:
            if made.block is None or made.block.over is not None or made.block.birth != i:
                continue
            for s in dying:
                if (
                    s.block is not None
                    and s.block.size == made.block.size
                    and s.layout is made.layout
                ):
                    made.block.over = s.block.whole
                    made.block.whole.death = max(made.block.whole.death, made.block.death)
                    dying.remove(s)
                    break


def without_copies(
    steps: Sequence[Step], counts: Sequence[int]
) -> tuple[tuple[Step, ...], tuple[int, ...]]:
    """The steps, and how many run with each, but for copies of what lies where it is copied to:
    results in the place of operands.
    """
    left = [i for i, step in enumerate(steps) if not _stays(step)]
    if len(left) < len(steps):
        for step in steps:
            if step.jump is not None and step.jump.target >= 0:
                step.jump.target = bisect_left(left, step.jump.target)
    return tuple([steps[i] for i in left]), tuple([counts[i] for i in left])


def _stays(step: Step) -> bool:
    """Whether a step copies a value onto itself."""
    if step.nodes or step.jump is not None or len(step.operands) != 2:
        return False
    (spec,) = [p.spec for p in step.launch.phases] if len(step.launch.phases) == 1 else [None]
    if not isinstance(spec, MapSpec) or spec.roots[0].verb != "input":
        return False
    value, made = step.operands
    if value.block is None or made.block is None or made.block.over is not value.block.whole:
        return False
    return value.layout is made.layout and value.offset == made.offset == 0


def _dies(spot: Spot, i: int, step: Step) -> bool:
    block = spot.block
    return (
        block is not None
        and block.whole.death == i
        and spot.offset == 0
        and isinstance(spot.layout, Layout)
        and spot.layout.is_dense
        and block.size == spot.layout.type.nbytes
        and sum(o.block is not None and o.block.whole is block.whole for o in step.operands) == 1
        and _in_place(step.launch)
    )


def _in_place(launch: Launch) -> bool:
    """Whether a kernel goes over operands and results element by element, reading before it
    writes.
    """
    if len(launch.phases) != 1:
        return False
    spec = launch.phases[0].spec
    if isinstance(spec, RowSpec):
        *early, _ = arrange(spec.program)
        return not any(level.stores for level in early)
    return isinstance(spec, MapSpec)
