"""Timing peers against each other: a process for each, rounds that go over all of them in turn.

Machines are shared and noisy, so what slows one has to slow the others too: a round times every
peer once (the order reversed every second round), a fraction of a second each, and the median and
the minimum over all rounds are reported. No peer runs while another is timed, and none shares a
process, so nobody's waiting threads take another's core.
"""

from __future__ import annotations

import compileall
import contextlib
import os
import pickle
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

ROUNDS = 5
BUDGET = 0.3  # seconds a peer and round
SETTLE = 0.02  # seconds between peers, in which the last one's threads go to sleep
HOME = Path(__file__).parent.parent


def install() -> None:
    """Byte code for the sources here, which installing a package writes and a checkout lacks."""
    compileall.compile_dir(HOME / "weft", quiet=2)


class PeerError(Exception):
    """A peer can't run what it was asked to."""


class Peer:
    """A worker process: `module.cases(mode)` is what it can run."""

    def __init__(
        self, name: str, module: str, mode: str, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        install()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", module, mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            cwd=HOME,
        )

    def ask(self, verb: str, *arguments: Any, limit: float | None = None) -> Any:
        """The answer; a peer that takes longer than `limit` seconds is ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            self._process.kill()

        alarm = threading.Timer(limit or 0, end)
        if limit is not None:
            alarm.start()
        try:
            pickle.dump((verb, *arguments), self._process.stdin)
            self._process.stdin.flush()
            status, answer = pickle.load(self._process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):  # the last: half an answer
            ended = self._process.wait()
            why = f"more than {limit:.0f} s" if late.is_set() else f"ended with {ended}"
            raise PeerError(f"the process {why}" if limit is None else why) from None
        finally:
            alarm.cancel()
        if status == "error":
            raise PeerError(answer)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._process:
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # what an ended worker never read
                self._process.stdin.close()  # at which a worker ends
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()


@dataclass
class Timing:
    """One peer's times for one case, in seconds per call."""

    first: float  # the first call, with everything it compiles
    results: list[np.ndarray]
    times: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def min(self) -> float:
        return min(self.times)


def present(peers: Iterable[Peer]) -> list[Peer]:
    """The peers whose packages are there; a line for each that is left out."""
    able = []
    for peer in peers:
        try:
            peer.ask("names")
            able.append(peer)
        except PeerError as error:
            print(f"{peer.name} is left out: {error}")
    return able


def measure(
    case: str,
    peers: Iterable[Peer],
    *,
    rounds: int = ROUNDS,
    budget: float = BUDGET,
    limit: float | None = None,
) -> tuple[dict[str, Timing], dict[str, str]]:
    """Times of every peer that has the case, and why others fail at it, or need more than `limit`
    seconds for their first calls.
    """
    timings: dict[str, Timing] = {}
    failures: dict[str, str] = {}
    able = []
    for peer in peers:
        if case not in peer.ask("names"):
            continue
        try:
            timings[peer.name] = Timing(*peer.ask("start", case, limit=limit))
            able.append(peer)
        except PeerError as error:
            failures[peer.name] = str(error)
    for n in range(rounds):
        for peer in able if n % 2 == 0 else reversed(able):
            time.sleep(SETTLE)
            timings[peer.name].times += peer.ask("time", budget)
    return timings, failures


def difference(timings: Mapping[str, Timing]) -> float:
    """The largest difference between any peer's results and the first's, relative to the size of
    the first's largest. What is not finite agrees with nothing.
    """
    first, *others = (t.results for t in timings.values())
    worst = 0.0
    for other in others:
        for a, b in zip(first, other, strict=True):
            if a.shape != b.shape:
                return float("inf")
            apart = np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0)
            if not np.isfinite(apart):
                return float("inf")
            worst = max(worst, float(apart / max(np.abs(a).max(initial=0), 1e-30)))
    return worst


def duration(seconds: float) -> str:
    """Seconds for reading: 1.23 ms."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"
