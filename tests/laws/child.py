"""Laws that run in a process of their own, because a failure may end it.

They start when the first law is tried and run one after another beside the others, which leave one
of two cores idle; where tests are shared among processes already, each starts when it is asked for.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PLACE = "WEFT_LAW_PLACE"  # names the directory where a child says what it is at and what it found
PATIENCE = 1200  # seconds


class Child:
    """`python -m module`, which says `at` and `found`."""

    def __init__(self, module: str, **environment: str) -> None:
        self.module, self.environment = module, environment
        self.ended, self.stopped = threading.Event(), False
        self.process: subprocess.Popen[str] | None = None
        self.said = ("", "")
        self.place, self.result = "", b""

    def run(self) -> None:
        with tempfile.TemporaryDirectory(prefix="weft-law-") as place:
            path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
            given = {**os.environ, "PYTHONPATH": path, PLACE: place, **self.environment}
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.module], cwd=ROOT, env=given, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            self.said = self.process.communicate()
            self.place = _read(place, "at").decode()
            self.result = _read(place, "found")
        self.ended.set()

    def outcome(self) -> tuple[str, Any]:
        """What it printed and what it found; a failure if it failed or a signal ended it."""
        if self.process is None and "PYTEST_XDIST_WORKER" in os.environ:
            self.run()
        if not self.ended.wait(PATIENCE):
            pytest.fail(f"{self.module} is still running", pytrace=False)
        assert self.process is not None
        if self.process.returncode:
            how = f"{self.module} {self.environment} ended with {self.process.returncode}"
            pytest.fail(f"{how}, last at: {self.place}\n{''.join(self.said)}", pytrace=False)
        return self.said[0].strip(), pickle.loads(self.result) if self.result else None


def _read(place: str, name: str) -> bytes:
    path = Path(place, name)
    return path.read_bytes() if path.exists() else b""


class Row:
    """Children run one by one in the background."""

    def __init__(self, children: list[Child]) -> None:
        self.children, self.stopped = children, False
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        for child in self.children:
            if not self.stopped:
                child.run()

    def stop(self) -> None:
        """End what is still running."""
        self.stopped = True
        for child in self.children:
            if child.process is not None and child.process.poll() is None:
                child.process.kill()


# what a child says

_place: list[int] = []


def at(what: Any) -> None:
    """What is about to be done."""
    if PLACE not in os.environ:
        return
    if not _place:
        faulthandler.enable()
        path = Path(os.environ[PLACE], "at")
        _place.append(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
    said = str(what).encode()
    os.ftruncate(_place[0], len(said))
    os.pwrite(_place[0], said, 0)


def found(what: Any) -> None:
    """What came of it."""
    Path(os.environ[PLACE], "found").write_bytes(pickle.dumps(what))
