"""Printed and parsed, a program is the same: the law of the text form."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import weft as wf
from tests.ir.toy import TOY, modules
from tests.laws.lab import each, function, good, records, tensors
from weft.ir import Function, Location, Module, Node, to_text
from weft.ir.parser import parse as parse_with
from weft.ir.verify import verify as verify_with
from weft.nn import functional as F
from weft.ops.define import OPS, types_of
from weft.ops.language import parse, verify
from weft.ops.record import expanded, record
from weft.types import Dim, TensorType
from weft.types.dtype import float32

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
QUIET = {
    "suppress_health_check": list(HealthCheck),
    "phases": (Phase.explicit, Phase.generate),
}


def holds(f: Function) -> None:
    text = to_text(f)
    again = parse(text).entry
    assert again == f, f"parsed again it is\n{again}\nand was\n{text}"
    assert to_text(again) == text
    verify(f)


def pullback(op, xs, attrs):
    """The graph of the gradient of an op by its floating operands, and their types."""
    f, floating = function(op, xs, attrs)

    def g(*given):
        y, pull = wf.vjp(f, *given)
        return tuple(pull(*(wf.ones_like(o) for o in (y if isinstance(y, tuple) else (y,)))))

    return record(f"{op.name}_gradient", g, types_of(tuple(floating)), {})


def test_every_op():
    def check(case):
        holds(
            record(case.op.name, case.op, types_of(tuple(tensors(case.sample))), case.sample.attrs)
        )

    assert each((c for op in records() for c in good(op)), check) > 1000


def test_every_body_to_the_bottom():
    def check(case):
        types = types_of(tuple(tensors(case.sample)))
        holds(expanded(case.op.name, case.op, types, case.sample.attrs))

    assert each((c for op in records() if op.body for c in good(op)[:4]), check) > 100


def test_every_gradient():
    def check(case):
        xs = tensors(case.sample)
        floating = any(isinstance(x, wf.Tensor) and x.dtype.is_float for x in xs)
        outs = case.op(*xs, **case.sample.attrs)
        outs = outs if isinstance(outs, tuple) else (outs,)
        if floating and any(o.dtype.is_float for o in outs):
            holds(pullback(case.op, xs, case.sample.attrs))

    assert each((c for op in records() if op.vjp for c in good(op)[:3]), check) > 300


@settings(max_examples=100, **QUIET)
@given(modules)
def test_random_programs(m):
    text = to_text(m)
    again = parse_with(text, TOY)
    assert again == m, f"parsed again it is\n{again}\nand was\n{text}"
    assert to_text(again) == text
    text.encode()
    for f in m.functions:
        hash(f)


@settings(max_examples=25, **QUIET)
@given(modules, modules)
def test_programs_that_print_differently_differ(a, b):
    assert (a == b) == (to_text(a) == to_text(b))


def model(x, w, lr):
    y = x @ w
    z = F.gelu(y) * lr
    best, where = wf.topk(z, 2)
    total = 0.0
    for i in range(2):
        total = total + best[:, i] * wf.asarray(np.float32(0.1))
    return total, where, z + wf.asarray(np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5))


def captured() -> Function:
    """A function as capture sees it, with the place of this file left out."""
    lr = Node(OPS["parameter"], (), (("position", 2), ("type", float)), float, Location(name="lr"))

    def f(x, w):
        return model(x, w, wf.Tensor(lr))

    made = record("model", f, (TensorType((4, 3), float32), TensorType((3, 5), float32)), {})
    found: dict[Node, Node] = {lr: lr}
    for p, name in zip(made.params, ("x", "w"), strict=True):
        found[p] = Node(p.op, (), p.attrs, p.type, Location(name=name))
    for n in made.order:
        loc = n.loc and replace(
            n.loc, file="model.py", line=n.loc.line - model.__code__.co_firstlineno
        )
        found.setdefault(n, Node(n.op, tuple(found[i] for i in n.inputs), n.attrs, n.type, loc))
    params = (*(found[p] for p in made.params), lr)
    return Function("model", params, tuple(found[r] for r in made.results))


@pytest.mark.tiny
def test_a_captured_model_reads_well(golden):
    f = captured()
    golden(HERE / "captured.wir", to_text(f))
    holds(f)


@pytest.mark.tiny
@pytest.mark.parametrize("file", sorted(HERE.glob("*.wir")), ids=lambda p: p.name)
def test_golden_texts_print_as_they_are(file):
    text = file.read_text(encoding="utf-8")
    assert to_text(parse(text, file.name)) == text


@pytest.mark.tiny
def test_what_is_left_out_is_filled_in():
    text = """
        fn model(%x: f32[B, 784], %w: f32[784, 512], %b: f32[512]) -> f32[B, 512] {
          %y = matmul %x, %w            @ "model.py":12:9 "x @ self.w"
          %z = add %y, %b               @ "model.py":12:9
          %unused = add %z, 1
          %r = relu %z                  @ "model.py":13:12
          return %r                     # and this is a comment
        }"""
    f = parse(text).entry
    assert [n.op.name for n in f.order] == ["matmul", "add", "relu"]
    assert f.order[0].type is TensorType((Dim("B"), 512), float32)
    assert f.order[0].loc == Location("model.py", 12, 9, 0, "y", "x @ self.w")


@pytest.mark.tiny
def test_regions_are_functions_in_place():
    text = """
        fn f(%x: f32[2]) -> f32[2] {
          %y = twist %x {gives = f32[2]} : f32[2]  @ "a.py":1
            fn then(%x: f32[2]) -> f32[2] {
              return %x
            }
            fn otherwise() -> () {
              return
            }
          return %y
        }"""
    m = parse_with(text, TOY)
    (node,) = m.entry.order
    assert [r.name for r in node.regions] == ["then", "otherwise"]
    assert parse_with(to_text(m), TOY) == m
    verify_with(m, TOY)


@pytest.mark.tiny
def test_two_picks_of_one_result_are_one_value():
    t = TensorType((2,), float32)
    node = Node(OPS["topk"], (p := Node(OPS["parameter"], (), (("position", 0), ("type", t)), t),),
                (("k", 2), ("largest", True)), t)  # fmt: skip
    first, second = (
        Node(OPS["result"], (node,), (("position", 0), ("type", t)), t) for _ in range(2)
    )
    twice, once = (Function("f", (p,), r) for r in ((first, second), (first, first)))
    assert twice == once and parse(to_text(twice)).entry == twice


@pytest.mark.tiny
def test_equality_sees_every_difference():
    t = TensorType((2,), float32)
    p = Node(OPS["parameter"], (), (("position", 0), ("type", t)), t)

    def f(**new):
        said = {"op": OPS["relu"], "inputs": (p,), "attrs": (), "type": t, "loc": None} | new
        return Function(new.pop("name", "f"), (p,), (Node(**said),))

    for other in (
        {"op": OPS["exp"]}, {"attrs": (("a", 1),)}, {"loc": Location("a", 1)},
        {"type": TensorType((3,), float32)}, {"regions": (f(),)}, {"inputs": ()},
    ):  # fmt: skip
        assert f() != f(**other) and f(**other) == f(**other)
    assert f(attrs=(("a", 0.0),)) != f(attrs=(("a", -0.0),))
    assert f(attrs=(("a", 1),)) != f(attrs=(("a", True),))
    assert f(attrs=(("a", float("nan")),)) == f(attrs=(("a", float("nan")),))
    assert Module((f(),)) == Module((f(),)) and len({f(), f()}) == 1
    assert f() != "f" and f() == f()


def test_gradients_are_read_by_a_process_that_never_made_them(tmp_path):
    """Ops that gradients derive are named in texts; they are made when they are asked for."""
    x = wf.asarray(np.linspace(0.1, 1, 6, dtype=np.float32).reshape(2, 3))

    def second(f):
        return lambda v: wf.grad(lambda u: (wf.grad(lambda t: f(t).sum())(u) * u).sum())(v)

    texts = []
    for f in (wf.tanh, F.gelu, lambda t: F.softmax(t, -1), wf.log1p, F.silu, lambda t: t.std()):
        for g in (lambda v, f=f: wf.grad(lambda t: f(t).sum())(v), second(f)):
            texts.append(to_text(record("g", g, types_of((x,)), {})))
    assert any("_vjp" in t for t in texts) and any("_vjp_vjp" in t for t in texts)
    for i, t in enumerate(texts):
        (tmp_path / f"{i}.wir").write_text(t, encoding="utf-8")
    child = (
        "import sys, pathlib, weft\n"
        "from weft.ops.language import parse\n"
        "from weft.ir import to_text\n"
        "for p in sorted(pathlib.Path(sys.argv[1]).glob('*.wir')):\n"
        "    text = p.read_text(encoding='utf-8')\n"
        "    assert to_text(parse(text)) == text, p\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", child, str(tmp_path)], capture_output=True, text=True, cwd=ROOT,
        timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_node_and_a_function_are_shown_in_a_line():
    """Of a value that is read twice by what is read twice, and so on."""
    f = parse(
        "fn f(%x: f32[2]) -> f32[2] { "
        + " ".join(f"%x{i + 1} = add %x{i or ''}, %x{i or ''}" for i in range(40))
        + " return %x40 }"
    ).entry
    assert repr(f) == "<Function f: 1 params, 40 nodes, 1 results>"
    assert repr(f.results[0]) == "<Node add(add, add) : f32[2]>"
