"""Laws that run in a process of their own, because a failure may end it."""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PLACE = "WEFT_LAW_PLACE"  # names the file that says what a child is at


class Child:
    """`python -m module *args`, started once; others wait for what it printed."""

    def __init__(self, module: str, *args: str, timeout: float = 900, **environment: str) -> None:
        self.command = [sys.executable, "-m", module, *args]
        self.environment, self.timeout = environment, timeout
        self.done: subprocess.CompletedProcess[str] | None = None
        self.place = ""

    def run(self) -> None:
        """Run it now, unless it has been run."""
        if self.done is not None:
            return
        with tempfile.NamedTemporaryFile("r", prefix="weft-law-") as place:
            path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
            given = {**os.environ, "PYTHONPATH": path, PLACE: place.name, **self.environment}
            self.done = subprocess.run(
                self.command,
                cwd=ROOT,
                env=given,
                capture_output=True,
                text=True,
                timeout=self.timeout,
            )
            self.place = place.read()

    def output(self) -> str:
        """What it printed; a failure of the test if it failed or was ended by a signal."""
        self.run()
        assert self.done is not None
        if self.done.returncode:
            said = f"{self.done.stdout}\n{self.done.stderr}".strip()
            ended = f"ended with {self.done.returncode}, last at: {self.place}"
            pytest.fail(f"{' '.join(self.command[1:])} {ended}\n{said}", pytrace=False)
        return self.done.stdout.strip()


_place: list[int] = []


def at(what: Any) -> None:
    """In a child: say what is about to be done."""
    if not _place:
        faulthandler.enable()
        _place.append(
            os.open(os.environ[PLACE], os.O_WRONLY | os.O_TRUNC) if PLACE in os.environ else -1
        )
    if _place[0] >= 0:
        said = str(what).encode()
        os.ftruncate(_place[0], len(said))
        os.pwrite(_place[0], said, 0)
