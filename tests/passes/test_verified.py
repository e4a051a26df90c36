"""With WEFT_VERIFY=1, which tests have on, a pass that makes no program is named."""

from __future__ import annotations

import sys

import pytest

from weft.errors import ProgramError
from weft.ir import Function, Node, rewrite
from weft.ops.define import OPS
from weft.ops.language import parse
from weft.types import TensorType
from weft.types.dtype import float64

pipeline = sys.modules["weft.compile"]
pytestmark = pytest.mark.tiny

TEXT = """
fn f(%x: f32[3]) -> f32[3] {
  %y = exp %x
  %z = tanh %y
  return %z
}
"""
LOOPED = """
fn f(%x: f32[3]) -> f32[3] {
  %y = while %x
    fn test(%x: f32[3]) -> bool[] {
      %m = max %x {axes = (0,), keepdims = false}
      %b = less %m, 3.0
      return %b
    }
    fn body(%x: f32[3]) -> f32[3] {
      %y = exp %x
      return %y
    }
  return %y
}
"""


def wider(f: Function) -> Function:
    """A value of another type in place of an exponential."""

    def rule(n, inputs):
        type_ = TensorType((3,), float64)
        attrs = (("dtype", float64),)
        return Node(OPS["astype"], inputs, attrs, type_) if n.op.name == "exp" else None

    return rewrite(f, rule)


def untyped(f: Function) -> Function:
    """A node whose type is not its op's."""

    def rule(n, inputs):
        if n.op.name != "tanh":
            return None
        return Node(n.op, inputs, n.attrs, TensorType((3,), float64), n.loc)

    return rewrite(f, rule)


def without_operand(f: Function) -> Function:
    return rewrite(f, lambda node: None)


def shorter(f: Function) -> Function:
    return Function(f.name, f.params, ())


@pytest.mark.parametrize(
    ("wrong", "text", "said"),
    [
        (wider, TEXT, "pass wider: tanh in fn f: expected f64[3], got f32[3]"),
        (wider, LOOPED, "pass wider: expected parameters and results f32[3], f32[3], got f32[3]"),
        (untyped, TEXT, "pass untyped: tanh in fn f: expected f32[3], got f64[3]"),
        (without_operand, TEXT, "pass without_operand: got TypeError: "),
        (shorter, TEXT, "pass shorter: expected parameters and results f32[3], f32[3], got f32[3]"),
    ],
)
def test_a_pass_that_makes_no_program_is_named(wrong, text, said, monkeypatch):
    monkeypatch.setattr(pipeline, "PASSES", (*pipeline.PASSES, wrong))
    with pytest.raises(ProgramError) as e:
        pipeline.optimise(parse(text).entry)
    assert str(e.value).startswith(said)


def test_it_is_off_where_nobody_asks_for_it(monkeypatch):
    monkeypatch.delenv("WEFT_VERIFY")
    monkeypatch.setattr(pipeline, "PASSES", (shorter,))
    assert pipeline.optimise(parse(TEXT).entry).results == ()
