"""Bad arguments to everything that can be called: a named error each time, no signal, no hang, and
nothing broken for the next call.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.robustness.targets import names

COUNT = 200  # calls of each


@pytest.mark.parametrize("family", sorted(names()))
def test_bad_arguments_raise_named_errors(family, tmp_path):
    targets = names()[family]
    place = tmp_path / "place"
    place.touch()
    child = subprocess.run(
        [sys.executable, "-m", "tests.robustness.bad_calls", str(COUNT), str(place), *targets],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert child.returncode == 0, f"died at {place.read_text()}\n{child.stderr[-3000:]}"
    found = [json.loads(line) for line in child.stdout.splitlines()]
    assert [f["target"] for f in found] == targets
    failures = [f for r in found for f in r["failures"]]
    calls, slowest = sum(r["calls"] for r in found), max(r["slowest"] for r in found)
    print(f"\n{family}: {calls} bad calls of {len(targets)}, the slowest {slowest:.2f} s")
    assert not failures, f"{len(failures)} of {calls}:\n" + "\n".join(failures[:15])
