"""Values computed again: never more than elementwise work, never a different bit, less memory."""

import pytest

import weft as wf
import weft.nn.functional as F
from tests.compile.programs import functions
from weft import nn
from weft.ops.language import verify
from weft.schedule import program, recompute as recomputing
from weft.schedule.recompute import recompute


def test_only_elementwise_work_is_done_twice(monkeypatch):
    monkeypatch.setattr(recomputing, "LEAST", 1)
    monkeypatch.setattr(recomputing, "NEAR", 0)
    changed = 0
    for seed in range(1000, 1040):
        for f in functions(seed):
            g = recompute(f)
            changed += g is not f
            verify(g)
            assert g.params == f.params and [r.type for r in g.results] == [
                r.type for r in f.results
            ]
            added = len(g.order) - len(f.order)
            cheap = [n for n in g.order if n.op.scalar is not None or n.op.view is not None]
            before = [n for n in f.order if n.op.scalar is not None or n.op.view is not None]
            others = len(g.order) - len(cheap) - (len(f.order) - len(before))
            assert others == 0 and added >= 0
            random = [n.op.name for n in g.order].count("random_bits")
            assert random == [n.op.name for n in f.order].count("random_bits")
    assert changed > 5


def test_training_takes_less_memory_for_it(monkeypatch):
    wf.manual_seed(0)
    net = nn.Sequential(
        *(m for _ in range(6) for m in (nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)))
    )

    def step(x):
        for p in net.parameters():
            p.grad = None
        loss = F.mse_loss(net(x), x)
        loss.backward()
        return loss

    x = wf.rand((512, 64))

    def peak():
        return wf.compile(step, fallback=False).explain(x).arena

    less = peak()
    monkeypatch.setattr(program, "recompute", lambda f: f)
    more = peak()
    print(f"\n{less:,} bytes instead of {more:,}")
    assert less < 0.8 * more


@pytest.mark.tiny
def test_near_uses_are_left_alone():
    f = lambda x: ((x.exp() + 1).sum(axis=0), (x.exp() * 2).sum(axis=0))
    c = wf.compile(f, fallback=False)
    c(wf.ones((300, 300)))
    (programs,) = c.programs.values()
    g = programs[0].forward.function
    assert recompute(g) is g
