"""Timing two sides of the same work, interleaved, as a ratio of medians.

Machines are shared and noisy: each round times both sides one after the other (the order
alternating), so that whatever slows one slows the other; the ratio of the medians over many rounds
is what is reported.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One line of a table: seconds per call of either side."""

    name: str
    ours: float
    theirs: float
    bar: float | None = None  # the most that the ratio may be

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    def __str__(self) -> str:
        verdict = (
            ""
            if self.bar is None
            else "  ok"
            if self.ratio <= self.bar
            else f"  ABOVE {self.bar:g}"
        )
        times = f"{_time(self.ours):>10s} {_time(self.theirs):>10s}"
        return f"{self.name:36s} {times} {self.ratio:8.2f}{verdict}"


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def compare(
    name: str, ours: Work, theirs: Work, *, budget: float = 0.6, bar: float | None = None
) -> Row:
    """Median seconds per call of both sides, over at least 15 interleaved rounds within about
    `budget` seconds.
    """
    for _ in range(3):
        ours(), theirs()
    once = max(_seconds(ours, 1), _seconds(theirs, 1), 1e-7)
    repeats = max(1, int(budget / 60 / once))
    rounds = max(15, min(60, int(budget / (2 * once * repeats))))
    times: tuple[list[float], list[float]] = ([], [])
    was_on = gc.isenabled()
    gc.disable()
    try:
        for n in range(rounds):
            for side in (0, 1) if n % 2 else (1, 0):
                times[side].append(_seconds((ours, theirs)[side], repeats) / repeats)
    finally:
        if was_on:
            gc.enable()
    return Row(name, statistics.median(times[0]), statistics.median(times[1]), bar)


def _seconds(work: Work, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    return time.perf_counter() - start


def heading(title: str, ours: str, theirs: str) -> str:
    return f"\n{title}\n{'':36s} {ours:>10s} {theirs:>10s} {'ratio':>8s}"
