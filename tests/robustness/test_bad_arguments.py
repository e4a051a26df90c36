"""Whatever is passed to an op or a function: a result, or an error of Weft's that names the place.

Calls are made in processes of their own, so that a crash or a hang is one finding among others, and
under a limit of memory, so that an absurd allocation is one, too.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from tests.robustness.targets import names
from weft.errors import AllocationError, DTypeError, NumericsError, ShapeError

ROOT = Path(__file__).parents[2]
CALLS = int(os.environ.get("WEFT_BAD_CALLS", "200"))  # of each


def child(targets, place):
    """Start bad calls of these targets, which say in the file `place` what they are at."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    command = [sys.executable, "-m", "tests.robustness.bad_calls", str(CALLS), place, *targets]
    given = {**os.environ, "PYTHONPATH": path, "WEFT_NUM_THREADS": "2"}
    return subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=600)


def reports(targets):
    """What became of every target; one that ends its process is one failure, and the rest goes on
    in another.
    """
    out = []
    while targets:
        with tempfile.NamedTemporaryFile("r", prefix="weft-bad-calls-") as place:
            done = child(targets, place.name)
            found = [json.loads(line) for line in done.stdout.splitlines()]
            out += found
            targets = targets[len(found) :]
            if done.returncode:
                said = f"ended with {done.returncode} at {place.read()}\n{done.stderr[-1500:]}"
                out.append({"calls": 0, "outcomes": {}, "failures": [said], "slowest": 0.0})
                targets = targets[1:]
    return out


@pytest.mark.parametrize("family", list(names()))
def test_bad_arguments_raise_named_errors(family):
    targets = names()[family]
    with ThreadPoolExecutor(2) as pool:
        found = [r for part in pool.map(reports, (targets[::2], targets[1::2])) for r in part]
    outcomes = sum((Counter(r["outcomes"]) for r in found), Counter())
    failures = [f for r in found for f in r["failures"]]
    calls = sum(r["calls"] for r in found)
    returned = outcomes.pop("returned", 0)
    print(
        f"\n{family}: {len(targets)} targets, {calls:,} bad calls: {returned:,} returned, "
        f"{outcomes.total():,} raised ({dict(outcomes.most_common())}), "
        f"{len(failures)} otherwise; slowest {max(r['slowest'] for r in found):.2f} s"
    )
    assert not failures, f"{len(failures)} of {calls}:\n" + "\n".join(failures[:20])
    assert calls == CALLS * len(targets)


HUGE = [2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, 2**100]


@pytest.mark.parametrize("n", HUGE)
def test_size_products_do_not_overflow(n):
    """Sizes whose product is 0 or small modulo 2**64 are no less too large."""
    for shape in [(n, 2**33), (n, n), (n, 2**32, 2**32), (2**33, n, 3)]:
        for make in (wf.zeros, wf.empty, wf.rand, lambda s: wf.full(s, 1.5)):
            with pytest.raises((AllocationError, ShapeError)):
                make(shape)
        with pytest.raises((AllocationError, ShapeError)):
            wf.broadcast_to(wf.ones(1), shape) + 1.0
        with pytest.raises((AllocationError, ShapeError)):
            wf.tile(wf.ones((2, 2)), shape)
    with pytest.raises((AllocationError, ShapeError)):
        wf.repeat(wf.broadcast_to(wf.ones(1), (2**40,)), n)
    with pytest.raises((AllocationError, ShapeError)):
        wf.nn.functional.pad(wf.ones((2, 2)), (n, n, n, n))
    with pytest.raises((AllocationError, ShapeError)):
        wf.concat([wf.broadcast_to(wf.ones(1), (2**60,))] * 8)
    assert wf.zeros((0, n)).size == 0 if n < 2**60 else True


def test_what_is_no_tensor_is_named():
    with pytest.raises(DTypeError, match=r"wf\.tensor"):
        wf.Tensor([1.0])
    with pytest.raises(NumericsError, match="int64"):
        wf.sum(2**63)
    nested = 1.0
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises((ShapeError, DTypeError)):
        wf.tensor(nested)
    assert wf.sum(np.ones(3, np.float16)).item() == 3.0
