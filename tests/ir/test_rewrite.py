"""Rewriting: what passes are made of."""

from __future__ import annotations

import time

import pytest

from weft.ir import Function, Node, rewrite as rewriting
from weft.ir.rewrite import reached, replace, rewrite, uses
from weft.ops.define import OPS
from weft.types import TensorType
from weft.types.dtype import float32

pytestmark = pytest.mark.tiny

T = TensorType((2,), float32)


def param(i):
    return Node(OPS["parameter"], (), (("position", i), ("type", T)), T)


def op(name, *inputs):
    return Node(OPS[name], inputs, (), T)


def test_a_rule_that_never_applies_gives_the_function_itself():
    x = param(0)
    f = Function("f", (x,), (op("exp", op("relu", x)),))
    assert rewrite(f, lambda n, inputs: None) is f
    assert replace(f, {}) is f


def test_rules_see_operands_already_rewritten():
    x = param(0)
    f = Function("f", (x,), (op("negative", op("negative", op("negative", op("exp", x)))),))

    def twice(n, inputs):
        if n.op.name == "negative" and inputs[0].op.name == "negative":
            return inputs[0].inputs[0]
        return None

    g = rewrite(f, twice)
    assert [n.op.name for n in g.order] == ["exp", "negative"] and g.params == f.params
    assert g.order[0] is f.order[0]  # what does not change is kept


def test_replacing_nodes_and_params():
    x, y = param(0), param(0)
    a = op("exp", x)
    f = Function("f", (x,), (op("add", a, op("relu", a)),))
    g = replace(f, {x: y})
    assert g.params == (y,) and g == f and g is not f
    h = replace(f, {a: op("tanh", x)})
    assert [n.op.name for n in h.order] == ["tanh", "relu", "add"]


def test_uses_and_what_is_reached():
    x, y = param(0), param(1)
    a, b = op("exp", x), op("exp", y)
    c = op("add", a, a)
    f = Function("f", (x, y), (c, b))
    assert uses(f) == {x: [a], y: [b], a: [c, c], b: [], c: []}
    assert reached(f, x) == [a, c]


def test_depth_does_not_matter_and_size_costs_little():
    x = param(0)
    n = x
    for i in range(20_000):
        n = op("add", n, x) if i % 2 else op("exp", n)
    start = time.process_time()
    f = Function("f", (x,), (n,))
    g = rewrite(f, lambda n, inputs: op("tanh", *inputs) if n.op.name == "exp" else None)
    assert len(g.order) == 20_000 and len(uses(g)) == 20_001
    assert f != g and f == Function("f", (x,), (n,))
    assert time.process_time() - start < 5
    assert rewriting is rewrite
