"""Time in which this machine was running: it may be stopped for seconds, and those say nothing of
what is measured.
"""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from typing import Self

TICK = 0.01  # seconds
#: between two ticks no more than this is counted: a busy machine is seldom later
LATE = 0.1


class Awake:
    """Ticks while it is open, on a thread of its own.

    >>> with Awake() as awake:
    ...     began = time.monotonic()
    ...     time.sleep(0.05)
    >>> 0.04 < awake.between(began, time.monotonic()) < 10
    True
    """

    def __init__(self) -> None:
        self._ticks: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def _tick(self) -> None:
        while not self._over.wait(TICK):
            self._ticks.append(time.monotonic())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def between(self, start: float, end: float) -> float:
        """Seconds from one reading of `time.monotonic` to another, stops left out."""
        ticks = [start, *(t for t in self._ticks if start < t < end), end]
        return sum(min(b - a, LATE) for a, b in pairwise(ticks))
