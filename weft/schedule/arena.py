"""One piece of memory for all the intermediate values of a program: offsets from lifetimes."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

ALIGN = 64


def place(
    sizes: Sequence[int], births: Sequence[int], deaths: Sequence[int]
) -> tuple[list[int], int]:
    """Offsets for blocks that live from step `births[i]` to step `deaths[i]`, both included, and
    the bytes of the whole. Blocks whose lives overlap never share a byte.

    >>> place([64, 64, 128], [0, 1, 2], [1, 2, 3])
    ([0, 64, 128], 256)
    >>> place([64, 64, 64], [0, 1, 2], [1, 2, 3])
    ([0, 64, 0], 128)
    """
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
