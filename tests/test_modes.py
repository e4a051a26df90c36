"""Dynamic and static mode, functions marked for it, and scripts."""

from __future__ import annotations

import pytest

import weft as wf
from weft.errors import CaptureError

pytestmark = pytest.mark.tiny


def flip(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = -x
    return y


def test_static_mode_compiles_marked_functions():
    marked = wf.function(flip)
    x = wf.tensor([1.0, -3.0])
    assert marked(x).tolist() == [-1.0, 3.0] and marked.compiled.captures == 0
    with wf.mode("static"):
        assert marked(x).tolist() == [-1.0, 3.0]
        assert marked(-x).tolist() == [-2.0, 6.0]
    assert marked.compiled.captures == 1


def test_static_mode_compiles_modules_and_ends():
    model = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.ReLU(), wf.nn.Linear(4, 1))
    x = wf.rand(2, 3)
    want = model(x)
    with wf.mode("static"), wf.mode("dynamic"):
        assert model(x).tolist() == want.tolist()
    wf.set_mode("static")
    try:
        y = model(x)
    finally:
        wf.set_mode("dynamic")
    assert y.tolist() == want.tolist()
    y.sum().backward()
    grads = [p.grad.tolist() for p in model.parameters()]
    for p in model.parameters():
        p.grad = None
    want.sum().backward()
    assert grads == [p.grad.tolist() for p in model.parameters()]


def test_a_mode_that_is_none():
    with pytest.raises(ValueError, match='expected "dynamic" or "static"'):
        wf.set_mode("eager")


def test_a_script_has_both_branches_a_trace_refuses():
    program = wf.script(flip)(wf.zeros((2,)))
    assert program(wf.tensor([1.0, 1.0])).tolist() == [2.0, 2.0]
    assert program(wf.tensor([-1.0, -1.0])).tolist() == [1.0, 1.0]
    assert "if_" in wf.script(flip).code
    with pytest.raises(CaptureError, match=r"test_modes\.py"):
        wf.trace(flip, wf.zeros((2,)))
