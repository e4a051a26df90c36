"""The child's side of a comparison: one long-lived process that runs one peer's cases.

    python -m benchmarks.worker MODULE MODE

MODULE has `cases(mode)`: a dictionary from a case's name to the function that sets it up. Messages
are pickles: (verb, *arguments) on standard input, ("ok", answer) or ("error", text) on standard
output.
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

THREADS = 2
SETUP_CALLS = 6  # the first and five more


@dataclass(frozen=True)
class Case:
    """Work that is ready to be timed: `run` ends when its result is there."""

    run: Callable[[], Any]
    numpy: Callable[[Any], Any] = np.asarray  # a result of `run` as an array


class Worker:
    """Answers the parent's questions about one case at a time."""

    def __init__(self, cases: dict[str, Callable[[], Case]]) -> None:
        self.cases = cases
        self.case: Case | None = None
        self.repeats = 1

    def names(self) -> list[str]:
        return list(self.cases)

    def start(self, name: str) -> tuple[float, list[np.ndarray]]:
        """Sets a case up; seconds of its first call, and what the first calls gave (the last only,
        unless they are single numbers).
        """
        self.case = None
        gc.collect()
        case = self.case = self.cases[name]()
        begin = time.perf_counter()
        result = case.run()
        first = time.perf_counter() - begin
        results = [np.array(case.numpy(result))]
        for _ in range(SETUP_CALLS - 1):
            results.append(np.array(case.numpy(case.run())))
        once = min(_seconds(case.run, 1) for _ in range(3))
        self.repeats = max(1, int(2e-4 / max(once, 1e-8)))  # what is timed lasts 200 us at least
        return first, results if results[0].size == 1 else results[-1:]

    def time(self, budget: float) -> list[float]:
        """Seconds per call, again and again for `budget` seconds."""
        assert self.case is not None
        run, repeats = self.case.run, self.repeats
        times = []
        gc.collect()
        gc.disable()
        try:
            run()  # wakes the threads
            end = time.perf_counter() + budget
            while not times or time.perf_counter() < end:
                times.append(_seconds(run, repeats) / repeats)
        finally:
            gc.enable()
        return times

    def memory(self, name: str) -> tuple[int, int]:
        """Bytes a fresh process grows by: in the first call, and at the peak of the third."""
        case = self.case = self.cases[name]()
        gc.collect()
        before, peak = _status("VmRSS"), _max_rss()
        case.run()
        growth = _max_rss() - peak
        case.run()
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the peak starts again from here
        case.run()
        return growth, _status("VmHWM") - before


def _seconds(work: Callable[[], Any], repeats: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeats):
        work()
    return time.perf_counter() - begin


def _max_rss() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _status(field: str) -> int:
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    worker: Worker | None = None
    while True:
        try:
            verb, *arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            if worker is None:
                worker = Worker(importlib.import_module(sys.argv[1]).cases(sys.argv[2]))
            answer = ("ok", getattr(worker, verb)(*arguments))
        except Exception as error:
            answer = ("error", f"{type(error).__name__}: {error}".splitlines()[0])
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    # the one module, not a second copy of it as __main__
    importlib.import_module("benchmarks.worker").main()
