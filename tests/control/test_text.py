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


MISTAKES = {
    "no regions": ("%y = while %x", "while: expected 2 regions: test and body, got 0"),
    "a test that is no test": (
        """%y = while %x
           fn test(%x: f32[2]) -> f32[2] { return %x }
           fn body(%x: f32[2]) -> f32[2] { return %x }""",
        "while: expected fn test to give bool[], as a test does, got f32[2]",
    ),
    "other parameters": (
        """%y = while %x
           fn test(%b: bool[]) -> bool[] { return %b }
           fn body(%x: f32[2]) -> f32[2] { return %x }""",
        "while: expected operands bool[], as the parameters of fn test, got f32[2]",
    ),
    "more captured than there is": (
        """%y = recursion %x {captured = 2}
           fn g(%x: f32[2]) -> f32[2] { return %x }""",
        "recursion: expected functions, which capture at most 1 of the operands, got 1, 2",
    ),
    "no condition": ("%y = cond %x", "cond: expected a condition, bool[], as the first operand"),
    "an attribute of another name": (
        "%y = sum %x {axes = (0,), keepdim = false}",
        "got sum(f32[2], axes=(0,), keepdim=False); did you mean keepdims?",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_a_text_is_said(case):
    statement, said = MISTAKES[case]
    with pytest.raises(ProgramError) as e:
        parse(f"fn f(%x: f32[2]) -> f32[2] {{ {statement} return %y }}")
    assert said in str(e.value)
