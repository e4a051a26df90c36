"""Every pass: a program before and after it, in words, and the same bits from both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import weft as wf
from tests import extremes
from weft.capture.evaluate import evaluate
from weft.errors import IndexRangeError
from weft.ir import Function, to_text
from weft.ops.language import parse, verify
from weft.passes.absent import without
from weft.passes.fold import fold
from weft.passes.hasten import hasten
from weft.passes.hoist import hoist
from weft.passes.inline import inline
from weft.passes.join import join
from weft.passes.simplify import simplify
from weft.passes.sink import sink
from weft.passes.split import split
from weft.passes.turn import turn
from weft.schedule import recompute as recomputing, relieve as relieving

pytestmark = pytest.mark.tiny
GOLDEN = Path(__file__).parent / "golden"

#: by pass: programs that show what it does and, as important, what it leaves alone
INLINE = {
    "a composite": """
fn f(%x: f32[4, 8], %w: f32[8]) -> f32[4, 8] {
  %y = layer_norm %x, %w, %w {eps = 1e-05} @ "model.py":3:5 "F.layer_norm(x, w, w)"
  return %y
}""",
    "composites of composites, one of them twice": """
fn f(%x: f32[4, 8]) -> (f32[4, 8], f32[4, 8]) {
  %a = log_softmax %x {axis = 1}
  %b = softmax %a {axis = 1}
  %c = softmax %x {axis = 0}
  return %b, %c
}""",
    "no composite": """
fn f(%x: f32[4]) -> f32[4] {
  %y = exp %x
  return %y
}""",
}
FOLD = {
    "what depends on no input": """
fn f(%x: f32[3]) -> f32[3] {
  %n = constant 2.0 : float
  %a = full %n {shape = (3,), dtype = f32}
  %b = exp %a
  %y = add %x, %b
  return %y
}""",
    "what is too large to carry about": """
fn f(%x: f32[200, 100]) -> f32[200, 100] {
  %n = constant 2.0 : float
  %a = full %n {shape = (200, 100), dtype = f32}
  %y = add %x, %a
  return %y
}""",
    "a result that is constant": """
fn f(%x: f32[3]) -> (f32[2], f32[3]) {
  %n = constant -0.0 : float
  %a = full %n {shape = (2,), dtype = f32}
  %s = sqrt %a
  return %s, %x
}""",
}
SIMPLIFY = {
    "nodes that do nothing": """
fn f(%x: f32[2, 3]) -> f32[2, 3] {
  %a = astype %x {dtype = f32}
  %b = reshape %a {shape = (2, 3)}
  %c = permute_dims %b {axes = (0, 1)}
  %d = broadcast_to %c {shape = (2, 3)}
  %e = positive %d
  %g = copy %e
  %y = exp %g
  return %y
}""",
    "a reshape of a reshape": """
fn f(%x: f32[2, 3]) -> f32[3, 2] {
  %a = reshape %x {shape = (6,)}
  %b = reshape %a {shape = (3, 2)}
  return %b
}""",
    "a value said twice": """
fn f(%x: f32[3], %y: f32[3]) -> f32[3] {
  %a = multiply %x, %y
  %b = multiply %x, %y
  %c = multiply %y, %x
  %d = add %a, %b
  %e = add %d, %c
  return %e
}""",
    "numbers that are equal and not the same": """
fn f(%x: f32[3]) -> (f32[3], f32[3], f32[3], f32[3]) {
  %p = constant 0.0 : float
  %m = constant -0.0 : float
  %i = constant 1 : int
  %o = constant 1.0 : float
  %a = multiply %x, %p
  %b = multiply %x, %m
  %c = multiply %x, %i
  %d = multiply %x, %o
  return %a, %b, %c, %d
}""",
    "a cast there and back, which may round": """
fn f(%x: f32[3]) -> f32[3] {
  %a = astype %x {dtype = f16}
  %b = astype %a {dtype = f32}
  return %b
}""",
    "an argument given back": """
fn f(%x: f32[3]) -> (f32[3], f32[3]) {
  %a = copy %x
  %b = exp %a
  return %a, %b
}""",
}
TURN = {
    "a product that is transposed": """
fn f(%x: f32[2, 3], %w: f32[3, 4]) -> f32[4, 2] {
  %a = matmul %x, %w
  %b = permute_dims %a {axes = (1, 0)}
  return %b
}""",
    "a product that someone else reads": """
fn f(%x: f32[2, 3], %w: f32[3, 4]) -> (f32[4, 2], f32[2, 4]) {
  %a = matmul %x, %w
  %b = permute_dims %a {axes = (1, 0)}
  return %b, %a
}""",
    "products of stacks, heads made rows": """
fn f(%x: f32[2, 5, 3, 4], %w: f32[2, 5, 4, 6]) -> f32[2, 3, 5, 6] {
  %a = matmul %x, %w
  %b = permute_dims %a {axes = (0, 2, 1, 3)}
  return %b
}""",
    "turned twice": """
fn f(%x: f32[2, 3], %w: f32[3, 4]) -> f32[2, 4] {
  %a = matmul %x, %w
  %b = permute_dims %a {axes = (1, 0)}
  %c = permute_dims %b {axes = (1, 0)}
  return %c
}""",
}

SINK = {
    "a cast read by a view": """
fn f(%x: f32[8, 4]) -> f16[4, 8] {
  %h = astype %x {dtype = f16}
  %t = permute_dims %h {axes = (1, 0)}
  return %t
}""",
    "a view with more elements": """
fn f(%x: f32[4]) -> f16[8, 4] {
  %h = astype %x {dtype = f16}
  %t = broadcast_to %h {shape = (8, 4)}
  return %t
}""",
    "a cast that someone else reads": """
fn f(%x: f32[8, 4]) -> (f16[4, 8], f16[8, 4]) {
  %h = astype %x {dtype = f16}
  %t = permute_dims %h {axes = (1, 0)}
  return %t, %h
}""",
}
JOIN = {
    "parts that make a whole, as the gradient of a split adds them up": """
fn f(%a: f32[2, 3], %b: f32[2, 1], %c: f32[2, 2]) -> f32[2, 6] {
  %u = unslice %c {shape = (2, 6), starts = (0, 4), steps = (1, 1)}
  %v = unslice %a {shape = (2, 6), starts = (0, 0), steps = (1, 1)}
  %w = unslice %b {shape = (2, 6), starts = (0, 3), steps = (1, 1)}
  %s = add %u, %v
  %t = add %s, %w
  return %t
}""",
    "a gap": """
fn f(%a: f32[2, 3], %b: f32[2, 2]) -> f32[2, 6] {
  %v = unslice %a {shape = (2, 6), starts = (0, 0), steps = (1, 1)}
  %w = unslice %b {shape = (2, 6), starts = (0, 4), steps = (1, 1)}
  %s = add %v, %w
  return %s
}""",
    "parts over each other": """
fn f(%a: f32[2, 4], %b: f32[2, 4]) -> f32[2, 6] {
  %v = unslice %a {shape = (2, 6), starts = (0, 0), steps = (1, 1)}
  %w = unslice %b {shape = (2, 6), starts = (0, 2), steps = (1, 1)}
  %s = add %v, %w
  return %s
}""",
    "a sum on the way that is read": """
fn f(%a: f32[3], %b: f32[3]) -> (f32[9], f32[9]) {
  %v = unslice %a {shape = (9,), starts = (0,), steps = (1,)}
  %w = unslice %b {shape = (9,), starts = (3,), steps = (1,)}
  %u = unslice %b {shape = (9,), starts = (6,), steps = (1,)}
  %s = add %v, %w
  %t = add %s, %u
  return %s, %t
}""",
    "every second place": """
fn f(%a: f32[3], %b: f32[3]) -> f32[6] {
  %v = unslice %a {shape = (6,), starts = (0,), steps = (2,)}
  %w = unslice %b {shape = (6,), starts = (1,), steps = (2,)}
  %s = add %v, %w
  return %s
}""",
}
HOIST = {
    "a product that no step changes": """
fn f(%x: f32[4], %w: f32[8, 8]) -> f32[4] {
  %r = while %x, %w : (f32[4])
    fn test(%a: f32[4], %b: f32[8, 8]) -> bool[] {
      %s = sum %a {axes = (0,), keepdims = false}
      %c = less %s, 100.0
      return %c
    }
    fn body(%a: f32[4], %b: f32[8, 8]) -> f32[4] {
      %p = matmul %b, %b
      %e = exp %p
      %s = sum %e {axes = (0, 1), keepdims = false}
      %n = add %a, %s
      return %n
    }
  return %r
}""",
    "an op that can fail: the loop may not run": """
fn f(%x: f32[4], %w: f32[8], %i: i64[2]) -> f32[4] {
  %r = while %x, %w, %i : (f32[4])
    fn test(%a: f32[4], %b: f32[8], %j: i64[2]) -> bool[] {
      %s = sum %a {axes = (0,), keepdims = false}
      %c = less %s, 100.0
      return %c
    }
    fn body(%a: f32[4], %b: f32[8], %j: i64[2]) -> f32[4] {
      %p = take %b, %j {axis = 0}
      %s = sum %p {axes = (0,), keepdims = false}
      %e = exp %s
      %m = maximum %e, 1.0
      %n = add %a, %m
      return %n
    }
  return %r
}""",
}


def inputs(f: Function, part: float = 0.0) -> list[wf.Tensor]:
    """Arguments, of which a part are extreme."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(p.type.shape).astype(p.type.dtype.np) for p in f.params]
    return [wf.tensor(extremes.among(a, rng, part)) for a in arrays]


def values(f: Function, xs: list[wf.Tensor]) -> list[tuple[object, ...]]:
    try:
        return [(y.dtype, y.shape, extremes.bits(y.numpy())) for y in evaluate(f, *xs)]
    except IndexRangeError as e:  # of integers that are indices
        return [(str(e),)]


def same(f: Function, g: Function) -> bool:
    """Whether functions give the same bits, of usual values and of others."""
    parts = (0.0, 0.3, 1.0)
    return all(values(f, xs) == values(g, xs) for xs in (inputs(f, part) for part in parts))


@pytest.mark.parametrize(
    ("said", "instead", "right"),
    [
        ("add %x, 0.0", "copy %x", False),
        ("subtract 0.0, %x", "negative %x", False),
        ("multiply %x, 0.0", "subtract %x, %x", False),
        ("multiply %x, 1.0", "copy %x", True),
    ],
)
def test_a_rule_that_only_looks_right_is_found_out(said, instead, right):
    f, g = (
        parse(f"fn f(%x: f32[64]) -> f32[64] {{ %y = {op} return %y }}").entry
        for op in (said, instead)
    )
    assert same(f, g) is right


@pytest.mark.parametrize(
    ("rewrite", "cases"),
    [
        (inline, INLINE),
        (fold, FOLD),
        (simplify, SIMPLIFY),
        (turn, TURN),
        (sink, SINK),
        (join, JOIN),
        (hoist, HOIST),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_pass(rewrite, cases, golden):
    said = []
    for name, text in cases.items():
        before = parse(text).entry
        after = rewrite(before)
        verify(after)
        assert same(before, after), name
        assert rewrite(after) == after, f"{name}: a second time it changes something"
        said += [f"# {name}\n\n{to_text(before)}\n{to_text(after)}"]
    golden(GOLDEN / f"{rewrite.__name__}.wir", "\n".join(said))


SPLIT = {
    "a product: what the gradient reads are inputs": """
fn f(%x: f32[4, 8], %w: f32[8, 2], %g: f32[4, 2]) -> (f32[4, 2], f32[8, 2]) {
  %y = matmul %x, %w
  %t = permute_dims %x {axes = (1, 0)}
  %dw = matmul %t, %g
  return %y, %dw
}""",
    "an exponential: its result is saved": """
fn f(%x: f32[4], %g: f32[4]) -> (f32[4], f32[4]) {
  %y = exp %x
  %z = sin %y
  %c = cos %y
  %d = multiply %g, %c
  %dx = multiply %d, %y
  return %z, %dx
}""",
    "a chain: the cheapest place to cut, the rest is computed again": """
fn f(%x: f32[4, 8], %w: f32[8, 1], %g: f32[4, 8]) -> (f32[4, 8], f32[4, 8]) {
  %p = matmul %x, %w
  %y = exp %p
  %e = broadcast_to %y {shape = (4, 8)}
  %s = sin %e
  %c = cos %e
  %dx = multiply %g, %c
  return %s, %dx
}""",
    "a gradient that no cotangent reaches": """
fn f(%x: f32[4], %g: f32[4]) -> (f32[4], f32[4]) {
  %n = constant 3.0 : float
  %y = multiply %x, %n
  %z = exp %x
  return %y, %z
}""",
}


def test_split(golden):
    """What runs now and what runs later are what the whole was."""
    said = []
    for name, text in SPLIT.items():
        whole = parse(text).entry
        now, later, kept = split(whole, len(whole.params) - 1, 1)
        verify(now)
        verify(later)
        xs = inputs(whole)
        outs = evaluate(now, *xs[:-1])
        assert len(outs) == 1 + kept
        slopes = evaluate(later, *xs[:-1], *outs[1:], xs[-1])
        want = evaluate(whole, *xs)
        got = (*outs[:1], *slopes)
        assert [a.numpy().tobytes() for a in got] == [b.numpy().tobytes() for b in want], name
        said += [f"# {name}\n\n{to_text(whole)}\n{to_text(now)}\n{to_text(later)}"]
    golden(GOLDEN / "split.wir", "\n".join(said))


HASTEN = """
fn f(%x: f32[4, 8], %y: f32[4, 1], %h: f16[4]) -> (f32[4, 8], f32[4, 8], f32[4, 8], f16[4]) {
  %p = multiply %x, 1.5
  %a = add %p, %y
  %b = divide %a, %y
  %c = divide %b, 3.0
  %q = multiply %x, %x
  %d = add %q, %q
  %e = multiply %h, 2.0
  %g = add %e, 1.0
  return %c, %q, %d, %g
}"""


def test_hasten(golden):
    """Only where it is asked for: what is read twice, given back or of half precision stays."""
    before = parse(HASTEN).entry
    after = hasten(before)
    verify(after)
    xs = inputs(before)
    for a, b in zip(evaluate(after, *xs), evaluate(before, *xs), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
    assert values(after, xs)[0] != values(before, xs)[0]
    assert values(after, xs)[1:] == values(before, xs)[1:]
    golden(GOLDEN / "hasten.wir", f"{to_text(before)}\n{to_text(after)}")


ABSENT = """
fn f(%x: f32[4], %g: f32[4], %h: f32[4], %s: f32[4]) -> (f32[4], f32[4]) {
  %a = multiply %g, %x
  %b = exp %x
  %c = multiply %h, %b
  %t = add %s, %a
  %u = add %t, %c
  %d = add %c, %h
  return %u, %d
}"""


def test_absent(golden):
    """A gradient without one of its cotangents, or a sum to go on from: nothing is added for it."""
    f = parse(ABSENT).entry
    _, g, h, s = f.params
    said = [to_text(f)]
    for name, gone, left in (
        ("no h", [h], (0,)),
        ("no s", [s], (0, 1)),
        ("no g, s", [g, s], (0, 1)),
    ):
        after, results = without(f, [g, h], [s], gone)
        verify(after)
        assert results == left
        xs = dict(zip(f.params, inputs(f), strict=True))
        got = values(after, [xs[p] for p in after.params])
        zero = [wf.full_like(xs[p], -0.0) if p in gone else xs[p] for p in f.params]
        assert got == [values(f, zero)[i] for i in results]
        said += [f"# {name}\n\n{to_text(after)}"]
    golden(GOLDEN / "absent.wir", "\n".join(said))


def layers(depth: int) -> str:
    """A stack of layers and the way back through them, as training runs it."""
    lines = [f"fn f(%x: f32[8, 8], %w: f32[8, 8]) -> ({', '.join(['f32[8, 8]'] * 2)}) {{"]
    lines += ["  %two = constant 2.0 : float"]
    last = "x"
    for i in range(depth):
        lines += [f"  %m{i} = matmul %{last}, %w", f"  %a{i} = exp %m{i}"]
        lines += [f"  %h{i} = multiply %a{i}, %two"]
        last = f"h{i}"
    lines += ["  %t = permute_dims %w {axes = (1, 0)}"]
    back = last
    for i in reversed(range(depth)):
        lines += [f"  %d{i} = multiply %{back}, %h{i}", f"  %e{i} = multiply %d{i}, %m{i}"]
        lines += [f"  %b{i} = matmul %e{i}, %t"]
        back = f"b{i}"
    return "\n".join([*lines, f"  return %{last}, %{back}", "}"])


def test_recompute(golden, monkeypatch):
    """Of a value read now and much later, the second reading is of a second computation, if its
    operands are there anyway.
    """
    monkeypatch.setattr(recomputing, "LEAST", 1)
    before = parse(layers(5)).entry
    after = recomputing.recompute(before)
    verify(after)
    assert values(after, inputs(before)) == values(before, inputs(before))
    ops = [n.op.name for n in after.order]
    assert ops.count("exp") > 5 and ops.count("matmul") == 10, ops
    golden(GOLDEN / "recompute.wir", f"{to_text(before)}\n{to_text(after)}")


def test_relieve(golden, monkeypatch):
    """What is kept over the peak and cost little is computed again behind it: here one product of
    those whose operands are there anyway.
    """
    monkeypatch.setattr(relieving, "LARGE", 1)
    monkeypatch.setattr(relieving, "WORK", 0.1)
    before = parse(layers(5)).entry
    after = recomputing.recompute(before)
    verify(after)
    assert values(after, inputs(before)) == values(before, inputs(before))
    ops = [n.op.name for n in after.order]
    assert ops.count("matmul") == 11 and ops.count("exp") == 5, ops
    golden(GOLDEN / "relieve.wir", f"{to_text(before)}\n{to_text(after)}")


def test_recompute_leaves_small_values_alone():
    f = parse(layers(5)).entry
    assert recomputing.recompute(f) is f
