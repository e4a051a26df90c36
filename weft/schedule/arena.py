"""One piece of memory for all the intermediate values of a program: offsets from lifetimes."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence

ALIGN = 64
#: how much larger than need be an arena may be before another way to place its blocks is tried
GAPS = 1.01


def place(
    sizes: Sequence[int], births: Sequence[int], deaths: Sequence[int]
) -> tuple[list[int], int]:
    """Offsets for blocks that live from step `births[i]` to step `deaths[i]`, both included, and
    the bytes of the whole. Blocks whose lives overlap never share a byte.

    >>> place([64, 64, 128], [0, 1, 2], [1, 2, 3])
    ([0, 128, 0], 192)
    >>> place([64, 64, 64], [0, 1, 2], [1, 2, 3])
    ([0, 64, 0], 128)
    """
    offsets, top = _in_time(sizes, births, deaths)
    if top > _least(sizes, births, deaths) * GAPS:
        others, other_top = _by_size(sizes, births, deaths)
        if other_top < top:
            return others, other_top
    return offsets, top


def _least(sizes: Sequence[int], births: Sequence[int], deaths: Sequence[int]) -> int:
    """The bytes of all blocks that live at once, at most: no arena is smaller."""
    change: dict[int, int] = {}
    for size, birth, death in zip(sizes, births, deaths, strict=True):
        change[birth] = change.get(birth, 0) + _up(size)
        change[death + 1] = change.get(death + 1, 0) - _up(size)
    return max(itertools.accumulate(change[at] for at in sorted(change)), default=0)


def _by_size(
    sizes: Sequence[int], births: Sequence[int], deaths: Sequence[int]
) -> tuple[list[int], int]:
    """The largest first, each in the lowest gap left by those that live at the same time."""
    offsets = [0] * len(sizes)
    placed: list[tuple[int, int, int, int]] = []  # (offset, end, birth, death), sorted
    for i in sorted(range(len(sizes)), key=lambda i: (-sizes[i], births[i])):
        size, at = _up(sizes[i]), 0
        if not size:
            continue
        for begin, end, birth, death in placed:
            if birth <= deaths[i] and births[i] <= death:
                if begin - at >= size:
                    break
                at = max(at, end)
        offsets[i] = at
        bisect.insort(placed, (at, at + size, births[i], deaths[i]))
    return offsets, max((end for _, end, _, _ in placed), default=0)


def _in_time(
    sizes: Sequence[int], births: Sequence[int], deaths: Sequence[int]
) -> tuple[list[int], int]:
    """In the order in which they are made, each in the smallest gap that is free then."""
    free: list[tuple[int, int]] = []  # (offset, size), sorted, never adjacent
    offsets = [0] * len(sizes)
    top = 0
    starting = sorted(range(len(sizes)), key=lambda i: (births[i], -sizes[i]))
    ending = sorted(range(len(sizes)), key=lambda i: deaths[i])
    done = 0
    for i in starting:
        while done < len(ending) and deaths[ending[done]] < births[i]:
            j = ending[done]
            _release(free, offsets[j], _up(sizes[j]))
            done += 1
        size = _up(sizes[i])
        fitting = [(n, at) for at, n in free if n >= size]
        if fitting:
            n, at = min(fitting)
            free.remove((at, n))
            if n > size:
                bisect.insort(free, (at + size, n - size))
        else:
            at = top
            if free and free[-1][0] + free[-1][1] == top:  # grow the last gap
                at = free.pop()[0]
            top = at + size
        offsets[i] = at
    return offsets, top


def _release(free: list[tuple[int, int]], at: int, size: int) -> None:
    if not size:
        return
    k = bisect.bisect(free, (at, size))
    if k < len(free) and free[k][0] == at + size:
        size += free.pop(k)[1]
    if k and free[k - 1][0] + free[k - 1][1] == at:
        at, size = free[k - 1][0], free.pop(k - 1)[1] + size
    bisect.insort(free, (at, size))


def _up(n: int) -> int:
    return -(-n // ALIGN) * ALIGN
