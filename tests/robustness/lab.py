"""What these tests share: programs in processes of their own, and how much memory this one has."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from weft.ops.define import OPS, installed
from weft.runtime import kernels

ROOT = Path(__file__).parents[2]


def run(program: str, *args: str, timeout: float = 600, **environment: str) -> str:
    """What a Python program printed; the test fails if it failed or was ended by a signal."""
    done = start(program, *args, timeout=timeout, **environment)
    if done.returncode:
        said = f"{done.stdout}\n{done.stderr}".strip()
        pytest.fail(f"ended with {done.returncode}\n{said}", pytrace=False)
    return done.stdout.strip()


def start(
    program: str, *args: str, timeout: float = 600, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a Python program to its end, whatever that is."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    given = {**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "1", **environment}
    command = [sys.executable, "-c", textwrap.dedent(program), *args]
    return subprocess.run(
        command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=timeout
    )


def forget() -> None:
    """Kernels and their plans: as a new process finds it, but for the engine and the functions that
    kernels have in common.
    """
    for op in OPS.values():
        op.plans.clear()
    installed.eager.known.clear()  # type: ignore[attr-defined]
    kernels._pinned.clear()
    kernels._live.clear()


def resident() -> int:
    """Bytes of memory this process occupies; not those of files, which come and go as the system
    likes.
    """
    kib = Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]
    return int(kib) << 10


def mapped() -> int:
    """Bytes of address space this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
