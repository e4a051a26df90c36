"""Symbolic sizes: arithmetic is exact, bounds hold, the text is read again."""

from __future__ import annotations

import operator
import random

import pytest

from weft.errors import ProgramError, ShapeError
from weft.ir import Function, Location, Node, to_text
from weft.ops.define import OPS as OPS_OF
from weft.ops.language import parse, verify
from weft.types import Dim, TensorType
from weft.types.dtype import float32
from weft.types.expression import Symbol, Table
from weft.types.size import Size

pytestmark = pytest.mark.tiny

B, T, K = Dim("B", 1, 64), Dim("T", 1, 9), Dim("K", 1)
OPS = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]


def test_one_spelling():
    assert B + T == T + B and hash(B + T) == hash(T + B)
    assert (B + T) * (B - T) == B * B - T * T
    assert B - B == 0 and B * 0 == 0 and (B + T) - T is B
    assert (B * T * 6) // (2 * T) == 3 * B and (4 * B + 3) // 2 == 2 * B + 1
    assert B % 1 == 0 and (2 * B) % 2 == 0 and 2 * B != B
    assert repr(2 * B * T - 1 + (T + 1) // 2) == "2*B*T + ((T + 1)//2) - 1"


def test_arithmetic_is_that_of_numbers_and_bounds_hold():
    rng = random.Random(0)
    for _ in range(400):
        sizes = {"B": rng.randint(1, 64), "T": rng.randint(1, 9), "K": rng.randint(1, 99)}
        known = [(B, sizes["B"]), (T, sizes["T"]), (K, sizes["K"]), (rng.randint(1, 5),) * 2]
        for _ in range(6):
            (a, x), (b, y) = rng.choice(known), rng.choice(known)
            f = rng.choice(OPS)
            if f in OPS[3:] and (y == 0 or b == 0):
                continue
            out, value = f(a, b), f(x, y)
            assert (out.at(sizes) if isinstance(out, Dim) else out) == value, (f, a, b, sizes)
            if isinstance(out, Dim):
                assert out.min <= value <= (value if out.max is None else out.max), out
                assert {d.name for d in out.named()} <= set(sizes)
            known.append((out, value))


def test_an_order_is_known_from_bounds_or_refused():
    assert B > 0 and B <= 64 and B + 1 > B and T > 0 and 65 > B >= 1
    assert not B < 1
    with pytest.raises(ShapeError, match="B < T"):
        _ = B < T
    with pytest.raises(ZeroDivisionError):
        _ = B // 0


def test_types_with_computed_sizes_are_read_again():
    for n in (B, 2 * B + 1, (B + 1) // 2 * T, B // T, 3 - B, B * B, -B, (B - 7) // (T + 1)):
        text = to_text(parse(f"fn f(%x: {TensorType((n, 3), float32)}) -> () {{ return }}"))
        named = {d.name: Dim(d.name) for d in n.named()}
        again = parse(text).entry.params[0].type.shape[0]
        assert repr(again) == repr(n) and {d.name: d for d in again.named()} == named


def test_type_rules_follow():
    text = """
    dim B in (1, 64)
    fn f(%x: f32[B, 4, 3], %w: f32[3, 5]) -> f32[4*B, 5] {
      %flat = reshape %x {shape = (4*B, 3)} : f32[4*B, 3]
      %y = matmul %flat, %w : f32[B*4, 5]
      return %y
    }"""
    m = parse(text)
    verify(m)
    assert parse(to_text(m)) == m and "f32[4*B, 5]" in to_text(m)
    assert parse(text.replace("(4*B, 3)", "((B + B)*2, 3)")) == m
    for wrong in ("(5*B, 3)", "(4*B//0, 3)", "(4*B,, 3)", "(4*, 3)"):
        with pytest.raises(ProgramError):
            parse(text.replace("(4*B, 3)", wrong))


class Scope:
    """What sizes of a capture share, once it is over."""

    is_open = False

    def __init__(self):
        self.table = Table()

    def holds(self, relation, terms, value):
        return value == 0 if "==" in relation else value < 0

    def size(self, name, axis):
        return Size(self, (((self.table.number(Symbol(name, 0, axis), (0, 99)),), 1),), 5)


def test_sizes_of_a_capture_are_printed_and_read_as_named_ones():
    scope = Scope()
    n, m = scope.size("n", 0), scope.size("m", 1)
    t = TensorType((n, 2 * m + 1, n * m // 3), float32)
    attrs = (("position", 0), ("type", t))
    x = Node(OPS_OF["parameter"], (), attrs, t, Location(name="x"))
    f = Function("f", (x,), (x,))
    text = to_text(f)
    assert "%x: f32[n, 2*m + 1, (m*n)//3]" in text and "dim m in (0, 99)" in text
    assert parse(text).entry == f and to_text(parse(text)) == text
