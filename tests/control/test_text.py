"""Branches and loops have a text form that is read again to the same graph, and runs."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.capture.evaluate import evaluate
from weft.errors import ProgramError
from weft.ir import to_text
from weft.ops.language import parse, verify

LOOP = """\
fn halved(%x: f32[n], %limit: f32[]) -> f32[n] {
  %y, _ = while %x, %limit
    fn test(%x: f32[n], %limit: f32[]) -> bool[] {
      %s = sum %x {axes = (0,), keepdims = false}
      %p = greater %s, %limit
      return %p
    }
    fn body(%x: f32[n], %limit: f32[]) -> (f32[n], f32[]) {
      %h = multiply %x, 0.5
      return %h, %limit
    }
  return %y
}
"""


def settle(x):
    steps = 0
    while (x * x).sum() > 1.0:
        x = x * 0.5
        steps += 1
    return (x + 1 if x.mean() > 0 else x - 1), steps


def test_a_captured_graph_is_read_again():
    x = wf.tensor([3.0, -40.0])
    compiled = wf.compile(settle, fallback=False)
    graph = compiled.graph(x)
    verify(graph)
    again = parse(to_text(graph)).entry
    assert again == graph
    (y, steps), (want, count) = evaluate(again, x), compiled(x)
    assert y.numpy().tobytes() == want.numpy().tobytes()
    assert steps.item() == count


def test_a_loop_written_as_text_runs():
    (y,) = evaluate(parse(LOOP).entry, wf.full((4,), 8.0), wf.tensor(5.0))
    assert np.array_equal(y.numpy(), np.ones(4))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("-> bool[]", "-> f32[n]", "bool"),
        ("return %h, %limit", "return %limit, %limit", "f32"),
    ],
)
def test_regions_that_do_not_fit(old, new, said):
    with pytest.raises(ProgramError, match=said):
        parse(LOOP.replace(old, new))
