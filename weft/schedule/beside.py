"""Kernels that run at the same time: neighbours that don't wait for each other and are each too
small for all threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ops.define import Op
from weft.schedule.contract_spec import ContractSpec

#: products of a contraction from which on half of it is worth the call of another thread
LEAST = 1 << 18
#: and up to which it does not fill the threads by itself
MOST = 1 << 19


def products(n: Any) -> int:
    """How many products a contraction is the sum of."""
    op: Op = n.op
    types = tuple(i.type for i in n.inputs)
    spec = op.contract(*types, **dict(n.attrs))  # type: ignore[misc]
    sizes = dict(spec.sizes)
    for axes, t in ((spec.a, types[0]), (spec.b, types[1])):
        for axis, size in zip(axes, t.shape, strict=True):
            if isinstance(axis, str):
                sizes[axis] = max(sizes.get(axis, 1), size)
    total = 1
    for size in sizes.values():
        total *= size
    return total


def together(steps: Sequence[Any], blocks: Sequence[Any], threads: int) -> tuple[int, ...]:
    """For each step how many run with it, from it on: 1 alone, 0 with one before it.

    Memory that any of them reads or writes is theirs for all that time.
    """
    counts = [1] * len(steps)
    if threads < 2 or any(s.jump is not None for s in steps):
        return tuple(counts)
    i = 0
    while i < len(steps):
        end = i + 1
        if _small(steps[i]):
            while end < len(steps) and end - i < threads and _joins(steps[i:end], steps[end]):
                end += 1
        if end - i > 1:
            counts[i:end] = [end - i] + [0] * (end - i - 1)
            for b in blocks:
                if i <= b.birth < end:
                    b.birth = i
                if i <= b.death < end:
                    b.death = end - 1
        i = end
    return tuple(counts)


def _small(step: Any) -> bool:
    if step.launch.heavy or not isinstance(step.launch.phases[0].spec, ContractSpec):
        return False
    found = [products(n) for n in step.nodes if n.op.contract is not None]
    return len(found) == 1 and found[0] >= LEAST


def _joins(others: Sequence[Any], step: Any) -> bool:
    if not _small(step):
        return False
    written = {(s.base, id(s.block)) for o in others for s in o.operands[-len(o.launch.outs) :]}
    return all((s.base, id(s.block)) not in written for s in step.operands)
