"""Graphs made by hand."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from tests.compile.lab import random, same
from weft import nn
from weft.errors import CaptureError, DTypeError, GuardError
from weft.ops.define import capturing

pytestmark = pytest.mark.tiny


@pytest.fixture(autouse=True)
def closed():
    yield
    assert capturing.now is None


def test_inputs_and_outputs():
    x = wf.placeholder("x", (2, 3))
    y = wf.placeholder("y", (3,))
    z = x * y + 1
    program = wf.build([x, y], {"z": z, "sum": z.sum()})
    a, b = random(2, 3), random(3)
    out = program(x=a, y=b)
    same(out, {"z": a * b + 1, "sum": (a * b + 1).sum()})
    same(program(a, b), out)


def test_sizes_left_open():
    x = wf.placeholder("x", (None, 4))
    w = wf.placeholder("w", (4, wf.Dim("n", max=8)))
    program = wf.build([x, w], (x @ w).relu())
    for m, n in ((1, 2), (5, 8), (3, 2)):
        a, b = random(m, 4), random(4, n)
        same(program(a, b), (a @ b).relu())
    with pytest.raises(GuardError):
        program(random(2, 4), random(4, 9))
    with pytest.raises(GuardError):
        program(random(2, 5), random(4, 2))


def test_a_training_step():
    def made():
        wf.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
        return net, wf.optim.Adam(net.parameters(), 0.1)

    net, opt = made()
    x, y = wf.placeholder("x", (6, 4)), wf.placeholder("y", (6,), wf.int64)
    opt.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    program = wf.build([x, y], loss)
    other, other_opt = made()
    same(list(net.parameters()), list(other.parameters()))
    rng = np.random.default_rng(0)
    for _ in range(5):
        a = wf.tensor(rng.standard_normal((6, 4)).astype(np.float32))
        b = wf.tensor(rng.integers(0, 3, 6))
        other_opt.zero_grad()
        want = F.cross_entropy(other(a), b)
        want.backward()
        other_opt.step()
        same(program(x=a, y=b).detach(), want.detach())
    same(list(net.parameters()), list(other.parameters()))


def test_real_tensors_stay_real_while_a_graph_is_made():
    x = wf.placeholder("x", (3,))
    real = wf.ones(3) * 2
    assert real.tolist() == [2, 2, 2]
    program = wf.build(x, x + real)
    assert program(wf.ones(3)).tolist() == [3, 3, 3]


def test_elements_are_not_known():
    x = wf.placeholder("x", (3,))
    with pytest.raises(CaptureError):
        bool(x.sum() > 0)
    wf.build([x], x)


def test_what_build_refuses():
    x, y = wf.placeholder("x", (3,)), wf.placeholder("y", (3,))
    with pytest.raises(CaptureError, match="'y'"):
        wf.build([x], x + y)
    assert capturing.now is None
    with pytest.raises(CaptureError, match="placeholder"):
        wf.build([wf.ones(3)], wf.ones(3))
    with pytest.raises(DTypeError):
        wf.placeholder("no name", (3,))


@pytest.mark.parametrize("said", [("x y", (2,)), ("x", (2.5,)), ("x", (-1,)), ("x", (2,), "f33")])
def test_a_placeholder_that_is_refused_begins_nothing(said):
    with pytest.raises(wf.errors.WeftError):
        wf.placeholder(*said)
    assert (wf.ones(2) + 1).tolist() == [2, 2]


def test_a_placeholder_has_no_place_in_a_captured_function():
    with pytest.raises(CaptureError):
        wf.trace(lambda x: wf.placeholder("y", (3,)), wf.ones(3))
