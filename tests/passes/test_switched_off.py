"""Each pass, and each decision of the schedule, switched off alone: no bit changes."""

from __future__ import annotations

import sys

import pytest

import weft as wf
from tests.compile.programs import make
from tests.compile.test_random_programs import outcome
from weft.capture.evaluate import evaluate
from weft.passes.inline import inline
from weft.schedule import partition as partitions, program

pipeline = sys.modules["weft.compile"]
SEEDS = range(2000, 2030)
OPTIONAL = [p for p in pipeline.PASSES if p is not inline]


def alone(f):
    """Every node a kernel of its own."""
    cut = partitions._Partition(f.order, f.results, "map")
    return cut.groups()


def keep(groups, results):
    return list(groups)


#: what is put where in the schedule
SCHEDULE = {
    "recompute": (program, "recompute", lambda f: f),
    "fusion": (program, "partition", alone),
    "order": (program, "arrange", keep),
    "sharing": (program, "share", lambda steps, counts: None),
    "side by side": (program, "together", lambda steps, blocks, threads: (1,) * len(steps)),
}


@pytest.fixture(scope="module")
def known():
    """What the programs give when run eagerly."""
    return {seed: (plan := make(seed), outcome(plan, False)) for seed in SEEDS}


def check(known):
    for seed, (plan, want) in known.items():
        assert outcome(plan, True) == want, f"seed {seed}\n{plan}"


@pytest.mark.parametrize("off", OPTIONAL, ids=lambda p: p.__name__)
def test_without_a_pass(off, known, monkeypatch):
    monkeypatch.setattr(pipeline, "PASSES", tuple(p for p in pipeline.PASSES if p is not off))
    check(known)


def test_without_any_pass(known, monkeypatch):
    monkeypatch.setattr(pipeline, "PASSES", (inline,))
    check(known)


@pytest.mark.parametrize("what", list(SCHEDULE))
def test_without_a_decision(what, known, monkeypatch):
    module, name, instead = SCHEDULE[what]
    monkeypatch.setattr(module, name, instead)
    check(known)


def test_without_inlining():
    """The composites' own kernels, node by node: the bits of the program without composites."""

    def f(x, w):
        y = wf.nn.functional.layer_norm(x, (8,), w, w)
        return wf.nn.functional.log_softmax(y @ y.T, dim=-1), wf.nn.functional.gelu(y)

    x, w = wf.rand((5, 8)), wf.rand((8,))
    graph = wf.trace(f, x, w).graph
    got = [y.numpy().tobytes() for y in evaluate(inline(graph), x, w)]
    assert got == [y.numpy().tobytes() for y in evaluate(graph, x, w)]
    assert got == [y.numpy().tobytes() for y in wf.compile(f, fallback=False)(x, w)]
