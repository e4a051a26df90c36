"""Invariant values out of loops that Python wrote."""

from __future__ import annotations

import pytest

import weft as wf
from weft.passes.hoist import hoist

pytestmark = pytest.mark.tiny


def _ops(f):
    return [n.op.name for n in f.order]


def _converge(x, w):
    while x.sum() < 100.0:
        x = x + wf.exp(w @ w).sum()
    return x


def test_what_a_loop_computes_the_same_way_is_computed_before_it():
    compiled = wf.compile(_converge, fallback=False)
    x, w = wf.rand(4), wf.rand(8, 8)
    captured = compiled.graph(x, w)
    after = hoist(captured)
    (loop,) = [n for n in after.order if n.op.name == "while"]
    assert "matmul" in _ops(after) and "matmul" not in _ops(loop.regions[1])
    assert compiled(x, w).tolist() == _converge(x, w).tolist()


def test_an_op_that_can_fail_stays_in_the_loop():
    def walk(x, table, i):
        while x.sum() < 10.0:
            x = x + wf.take(table, i, axis=0).sum()
        return x

    compiled = wf.compile(walk, fallback=False)
    x, table = wf.full((2,), 50.0), wf.rand(3, 2)
    assert compiled(x, table, wf.tensor([9])).tolist() == [50.0, 50.0]  # the loop never runs
    after = hoist(compiled.graph(x, table, wf.tensor([9])))
    assert "take" not in _ops(after)
