"""Compiled equals eager, to the bit, for programs that nobody wrote."""

from __future__ import annotations

import os

import pytest

import weft as wf
from tests.compile.programs import Run, bits, make
from weft.schedule import recompute, relieve

COUNT = int(os.environ.get("WEFT_RANDOM_PROGRAMS", "150"))
FIRST = int(os.environ.get("WEFT_RANDOM_FIRST", "0"))
PART = 25


@pytest.fixture(autouse=True)
def restore():
    n = wf.get_num_threads()
    yield
    wf.set_num_threads(n)


def outcome(plan, compiled):
    """What two calls give and leave behind, the second on arguments that lie otherwise."""
    wf.manual_seed(1)
    run = Run(plan, compiled)
    out = [bits(run(layout)) for layout in (0, 1)]
    return out, bits(run.state()), wf.get_rng_state()


def check(seed, monkeypatch):
    plan = make(seed)
    if seed % 2:  # small values are computed again too, and products whatever it costs
        monkeypatch.setattr(recompute, "LEAST", 1)
        monkeypatch.setattr(recompute, "NEAR", 1)
        monkeypatch.setattr(relieve, "LARGE", 1)
        monkeypatch.setattr(relieve, "WORK", 1e9)
        monkeypatch.setattr(relieve, "GAIN", -1e9)
        monkeypatch.setattr(relieve, "NEAR", 0)
    want = outcome(plan, False)
    for threads in (1, 2, 3):
        wf.set_num_threads(threads)
        got = outcome(plan, True)
        assert got == want, f"seed {seed}, {threads} threads\n{plan}"


@pytest.mark.parametrize("part", range(-(-COUNT // PART)))
def test_random_programs(part, monkeypatch):
    failures = []
    for seed in range(FIRST + part * PART, FIRST + min((part + 1) * PART, COUNT)):
        with monkeypatch.context() as m:
            try:
                check(seed, m)
            except Exception as e:
                text = str(e) if isinstance(e, AssertionError) else f"{type(e).__name__}: {e}"
                failures.append(f"seed {seed}: {text.split('assert ')[0]}")
    assert not failures, f"{len(failures)} failed\n" + "\n".join(failures[:5])
