"""Traces: one program for one kind of call, and nothing left behind."""

from __future__ import annotations

import pytest

import weft as wf
from tests.compile.lab import random, same
from weft import nn
from weft.errors import CaptureError, DTypeError, GuardError
from weft.ops.define import capturing
from weft.ops.language import parse, verify

pytestmark = pytest.mark.tiny


def test_a_program_by_position_and_by_name():
    f = lambda x, y: (x @ y).relu()
    program = wf.trace(f, random(2, 3), random(3, 4))
    x, y = random(2, 3), random(3, 4)
    want = f(x, y)
    same(program(x, y), want)
    same(program(x, y=y), want)
    same(program(y=y, x=x), want)
    same(program.eager(x, y), want)
    same(program(x.numpy(), y.numpy()), want)
    assert repr(program) == "<program <lambda>(x: f32[2, 3], y: f32[3, 4])>"


def test_the_text_of_a_program_is_the_program():
    graph = wf.trace(lambda x: (x.exp() + 1).sum(axis=0), random(2, 3)).graph
    verify(graph)
    assert parse(str(graph)).entry == graph
    assert [n.op.name for n in graph.order] == ["exp", "constant", "add", "sum"]
    assert "test_trace.py" in str(graph)


def test_other_arguments_are_refused():
    program = wf.trace(lambda x, k: x * k, random(2, 3), 2)
    with pytest.raises(GuardError, match=r"expected f32\[2, 3\] for x, got f32\[3, 3\]"):
        program(random(3, 3), 2)
    with pytest.raises(GuardError, match="expected 2"):
        program(random(2, 3), 3)
    with pytest.raises(GuardError):
        program(random(2, 3))
    with pytest.raises(DTypeError, match="z"):
        program(random(2, 3), z=2)


def test_a_branch_on_a_value_is_refused_on_its_line():
    def f(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(CaptureError, match=r"test_trace\.py"):
        wf.trace(f, random(3))
    assert capturing.now is None


@pytest.mark.parametrize("use", [float, int, bool, lambda x: x.item(), lambda x: x.numpy()])
def test_elements_are_not_known(use):
    with pytest.raises(CaptureError):
        wf.trace(lambda x: use(x.sum()), random(3))
    assert capturing.now is None


def test_a_failed_trace_leaves_nothing_behind():
    cell, p = wf.zeros(3), nn.Parameter(random(3))
    opt = wf.optim.Adam([p], 0.1)
    opt.param_groups[0]["lr"] = 0.5

    def f(x):
        opt.zero_grad()
        (p * x).sum().backward()
        opt.step()
        cell.assign(cell + x)
        wf.rand(3)
        raise RuntimeError("at the end")

    before, state = p.tolist(), wf.get_rng_state()
    with pytest.raises(RuntimeError, match="at the end"):
        wf.trace(f, random(3))
    assert capturing.now is None
    assert p.tolist() == before and p.grad is None and p.is_leaf and p.requires_grad
    assert cell.tolist() == [0, 0, 0] and wf.get_rng_state() == state
    p.grad = wf.ones(3)
    opt.step()  # its state is as if it had never been
    assert [round(v, 4) for v in (p - wf.tensor(before)).tolist()] == [-0.5] * 3


def test_state_is_read_and_updated():
    p = nn.Parameter(wf.ones(3))

    def step(x):
        p.grad = None
        loss = (p * x).sum()
        loss.backward()
        with wf.no_grad():
            p.assign(p - p.grad)
        return loss

    program = wf.trace(step, wf.zeros(3))
    assert p.tolist() == [1, 1, 1] and p.grad is None
    for i in range(3):
        assert program(wf.ones(3)).item() == 3 - 3 * i
        assert p.tolist() == [-i] * 3 and p.grad.tolist() == [1, 1, 1]


def test_gradients_where_there_were_none():
    """The program writes the gradient; with one there it would have to add."""
    p = nn.Parameter(wf.ones(3))
    program = wf.trace(lambda x: (p * x).sum().backward(), wf.ones(3))
    program(wf.ones(3))
    with pytest.raises(GuardError, match="gradient"):
        program(wf.ones(3))
    p.grad = None
    program(wf.ones(3))
    assert p.grad.tolist() == [1, 1, 1]


def test_an_example_given_twice_stands_for_two():
    x = random(3)
    program = wf.trace(lambda a, b: a - b, x, x)
    a, b = random(3), random(3)
    same(program(a, b), a - b)


def test_traces_do_not_nest_but_traced_functions_do():
    inner = wf.trace(lambda x: x * 2, random(3))
    with pytest.raises(CaptureError):
        wf.trace(lambda x: wf.trace(lambda y: y, x)(x), random(3))
    assert capturing.now is None
    x = random(3)
    same(inner(x), x * 2)
