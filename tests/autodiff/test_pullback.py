"""Gradients that are launched without asking the op's vjp: which are, that they are the same, and
that they hold no memory.
"""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import weft as wf
from weft.autodiff import tape
from weft.errors import GradError
from weft.runtime.start import engine


@pytest.fixture
def asked(monkeypatch):
    """The ops whose vjp was asked while a gradient was walked."""
    names, ask = [], tape._cotangents

    def cotangents(n, g):
        names.append(n.call.op.name)
        return ask(n, g)

    monkeypatch.setattr(tape, "_cotangents", cotangents)
    return names


def normal(*shape, seed=0, grad=True):
    x = np.random.default_rng(seed).standard_normal(shape).astype("f")
    return wf.tensor(x, requires_grad=grad)


def test_a_network_of_planned_calls_is_launched(asked):
    x, w, b, v = normal(5, 7, grad=False), normal(7, 3, seed=1), normal(3, seed=2), normal(3, 2)
    seen = []
    for options in ({}, {}, {"create_graph": True}):
        for p in (w, b, v):
            p.grad = None
        y = (x @ w + b).tanh() @ v
        (y * y).mean().backward(**options)
        seen.append([p.grad.numpy().tobytes() for p in (w, b, v)])
        if not options:
            assert asked == []
    assert seen[0] == seen[1] == seen[2]
    assert asked[:4] == ["mean", "multiply", "matmul", "tanh"]


def test_numbers_among_the_operands_are_looked_at_every_time(asked):
    for n in (1.5, 3.0, 0.5):
        x = wf.tensor([4.0], requires_grad=True)
        (x**n).sum().backward()
        assert x.grad.item() == pytest.approx(n * 4.0 ** (n - 1.0))
    assert asked == ["pow"] * 3


def test_each_choice_of_operands_has_launches_of_its_own():
    for _ in range(2):
        for p, q in [(True, True), (True, False), (False, True)]:
            a, b = normal(4, 3, grad=p), normal(3, seed=1, grad=q)
            (a * b).sum().backward()
            if p:
                assert (a.grad.numpy() == np.broadcast_to(b.numpy(), (4, 3))).all()
            if q:
                np.testing.assert_allclose(b.grad.numpy(), a.numpy().sum(0), rtol=1e-5)
            assert (a.grad is None, b.grad is None) == (not p, not q)


def test_cotangents_may_lie_in_any_way():
    seeds = normal(6, 4, grad=False)
    wanted = []
    for _ in range(2):
        for g in (seeds.T, wf.tensor(seeds.numpy().T.copy())):
            a, b = normal(4, 5), normal(5, 6, seed=1)
            (a @ b).tanh().backward(g)
            wanted.append((a.grad.numpy().tobytes(), b.grad.numpy().tobytes()))
    assert len(set(wanted)) == 1


def test_gradients_onto_a_few_values_go_no_further():
    for _ in range(2):
        x, w = normal(3), normal(3, seed=1)
        slope = wf.grad(lambda v, w=w: (v * w).exp().sum())(x)
        assert slope.numpy().tobytes() == (w * (x * w).exp()).numpy().tobytes()
        assert w.grad is None


def test_a_used_graph_says_so_the_second_time_too():
    for _ in range(2):
        x = normal(3)
        y = x.exp()
        y.sum().backward()
        with pytest.raises(GradError, match="already used"):
            y.sum().backward()


def test_memory_is_freed_and_nothing_goes_round_in_circles():
    w = wf.tensor(np.full(250_000, 0.5, "f"))
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            x = wf.tensor(np.ones(250_000, "f"), requires_grad=True)
            before, seen = engine().memory_stats().used, weakref.ref(x)
            y = x
            for _ in range(20):
                y = y.exp() * w
            loss = y.sum()
            held = engine().memory_stats().used
            loss.backward()
            del y
            x.grad = None
            assert held - before > 20_000_000 > 10 * (engine().memory_stats().used - before)
            del x, loss
            assert seen() is None
    finally:
        gc.enable()
