"""A program run node by node is what its ops are, called one by one."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.laws.lab import as_tuple, each, forward, good, records, same_bits, tensors
from weft.capture.evaluate import evaluate
from weft.errors import GuardError, IndexRangeError
from weft.ops.define import types_of
from weft.ops.language import parse
from weft.ops.record import record


def test_every_op_gives_the_same_bits():
    def check(case):
        xs = tensors(case.sample)
        f = record(case.op.name, case.op, types_of(tuple(xs)), case.sample.attrs)
        same_bits([np.array(r.numpy()) for r in evaluate(f, *xs)], forward(case))

    assert each((c for op in records() for c in good(op)[:2]), check) > 200


TEXT = """
dim B in (1, 4)
fn f(%x: f32[B, 3], %y: f32[B], %by: float) -> (f32[B, 3], float) {
  %z = reshape %y {shape = (B, 1)}
  %s = multiply %x, %z
  %t = multiply %s, %by
  return %t, %by
}
"""


@pytest.mark.tiny
def test_sizes_are_those_of_the_arguments():
    f = parse(TEXT).entry
    for n in (1, 4):
        x, y = wf.ones((n, 3)), wf.ones(n)
        t, by = evaluate(f, x, y, 2)
        assert t.tolist() == [[2.0] * 3] * n and by == 2.0


@pytest.mark.tiny
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((wf.ones((2, 3)), wf.ones(3), 1.0), r"y: expected f32\[B\], got f32\[3\]; B = 2"),
        ((wf.ones((5, 3)), wf.ones(5), 1.0), "x: expected B within its bounds"),
        ((wf.ones((2, 4)), wf.ones(2), 1.0), r"x: expected f32\[B, 3\]"),
        ((wf.ones((2, 3), dtype=wf.float64), wf.ones(2), 1.0), r"got f64\[2, 3\]"),
        ((wf.ones((2, 3)), wf.ones(2), True), "by: expected a Python float, got a Python bool"),
        ((wf.ones((2, 3)), wf.ones(2)), "expected 3 arguments, got 2"),
    ],
)
def test_arguments_that_do_not_fit(values, said):
    with pytest.raises(GuardError, match=said):
        evaluate(parse(TEXT).entry, *values)


@pytest.mark.tiny
def test_an_error_inside_names_the_users_line():
    text = """
    fn f(%x: f32[3], %i: i64[1]) -> f32[1] {
      %y = take %x, %i {axis = 0} @ "model.py":7:5 "x[i]"
      return %y
    }"""
    f = parse(text).entry
    assert as_tuple(evaluate(f, wf.ones(3), wf.tensor([2])))
    with pytest.raises(IndexRangeError, match=r'at "model.py":7:5'):
        evaluate(f, wf.ones(3), wf.tensor([5]))
