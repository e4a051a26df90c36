"""The source that a program is written as, captured again, is the program."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from control_lab import compiled, outcome, slopes
from control_programs import CASES
from python_lab import again, captured, check, defined, same

import weft as wf
from tests.compile.programs import functions
from tests.laws.lab import as_tuple, good, records, tensors
from weft.capture.evaluate import evaluate
from weft.capture.trace import Trace
from weft.ops.define import Value, as_node, installed
from weft.ops.language import parse
from weft.types import TensorType

tiny = pytest.mark.tiny


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_control_flow_is_statements_that_give_the_graph_again(case):
    source = check(compiled(case.function, *case.arguments[0]).captured.function)
    for args in case.arguments:
        captured = compiled(case.function, *args).captured
        graph = captured.function
        _, other = again(graph)
        given = [a for a in args if isinstance(a, Value)]
        given += [cell.value() for cell in captured.inputs.cells]
        want = outcome(lambda f=graph, given=given: evaluate(f, *given))
        assert outcome(lambda f=other, given=given: evaluate(f, *given)) == want, source


@pytest.mark.parametrize("case", [c for c in CASES if c.gradient], ids=lambda c: c.name)
def test_gradients_of_control_flow_give_their_graph_again(case):
    args = case.arguments[0]
    places = [i for i, a in enumerate(args) if isinstance(a, Value) and a.dtype.is_float]
    check(compiled(slopes(case.function, places), *args).captured.function)


@pytest.mark.parametrize("op", records(), ids=lambda op: op.name)
def test_every_op_can_be_said(op):
    for case in good(op)[:12]:
        check(_graph(case))


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_after_all_passes(seed):
    for f in functions(seed):
        check(f)


def _graph(case):
    """The graph of one call of an op."""
    trace = Trace()
    with trace:
        try:
            xs = [
                installed.tensor(trace.parameter(x.type)) if isinstance(x, Value) else x
                for x in tensors(case.sample)
            ]
            outs = as_tuple(case.op(*xs, **case.sample.attrs))
            nodes = [as_node(o) for o in outs]
        finally:
            trace.restore()
    return trace.function("f", nodes)


def _bits(xs):
    return [(x.dtype.name, x.shape, x.numpy().tobytes()) for x in xs]


@tiny
def test_sources_that_differ_are_told_apart():
    def program(body):
        x = TensorType((3,), wf.float32)
        return captured(defined(f"import weft as wf\ndef f(x, y):\n{body}"), [x, x])

    branch = " if x.sum() > {}:\n  z = {}\n else:\n  z = {}\n return z"
    loop = " while x.sum() > {}:\n  x, y = {}, {}\n return x"
    one = program(branch.format(0, "x * y", "x + y"))
    for other in (
        branch.format(1, "x * y", "x + y"),
        branch.format(0, "x + y", "x * y"),
        branch.format(0, "x * y", "y + x"),
        branch.format(0, "x * x", "x + y"),
    ):
        assert same(one, program(branch.format(0, "x * y", "x + y")))
        assert not same(one, program(other))
    one = program(loop.format(0, "x * y", "y + 1"))
    for other in (
        loop.format(0, "x * y", "y + 2"),
        loop.format(0, "y * x", "y + 1"),
        loop.format(1, "x * y", "y + 1"),
        loop.format(0, "x * y", "x + 1"),
    ):
        assert same(one, program(loop.format(0, "x * y", "y + 1")))
        assert not same(one, program(other))


@tiny
def test_the_source_is_what_a_person_would_write():
    def settle(x, n):
        h = x * 2
        if h.mean() > 0:
            y = h.exp()
        elif h.max() < -1:
            y = h - 1
        else:
            y = wf.nn.functional.softmax(h, dim=-1)
        total = y.sum()
        for i in range(n):
            total = total + y[i % 3] * i
        while total > 1:
            total = total / 2
        return total, y[1:]

    program = wf.script(settle)(wf.zeros((4,)), wf.tensor(3))
    assert (
        program.to_python()
        == """\
import weft as wf
import weft.nn.functional as F


def settle(x: "f32[4]", n: "i64[]"):
    h = x * 2
    if wf.mean(h) > 0:
        y = wf.exp(h)
    elif wf.max(h) < -1:
        y = h - 1
    else:
        y = F.softmax(h)
    total = wf.sum(y)
    for i in range(n):
        total = total + wf.take(y, i % wf.tensor(3)) * i.astype(wf.float32)
    while total > 1:
        total = total / 2
    return total, y[1:]
"""
    )


@tiny
def test_traced_built_and_compiled_programs():
    def f(x, y):
        return x @ y + 1

    x, y = wf.rand((2, 3)), wf.rand((3, 2))
    sources = [wf.trace(f, x, y).to_python(), wf.compile(f).graph(x, y).to_python()]
    p, q = wf.placeholder("p", (2, 3)), wf.placeholder("q", (3, 2))
    sources.append(wf.build([p, q], p @ q + 1).to_python())
    for source in sources:
        assert "@" in source
        again = wf.script(defined(source))(x, y)
        assert _bits((again(x, y),)) == _bits((f(x, y),))
        assert same(again.graph, wf.trace(f, x, y).graph)


@tiny
def test_a_training_step_with_its_weights_as_parameters():
    wf.manual_seed(0)
    net = wf.nn.Linear(3, 1)
    opt = wf.optim.SGD(net.parameters(), lr=0.1)

    def step(x, y):
        loss = ((net(x) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss

    x, y = wf.rand((4, 3)), wf.rand((4, 1))
    program = wf.trace(step, x, y)
    source = program.to_python()
    check(program.graph)
    assert all(said in source for said in ("def step(", "weight_2:", "The last 5 results")), source
    before = [p.detach().clone() for p in net.parameters()]
    steps = wf.tensor(0)
    written = defined(source)(x, y, *before, steps, 0.1)
    loss = step(x, y)
    got = {w.numpy().tobytes() for w in written}
    assert {v.numpy().tobytes() for v in (loss, *net.parameters())} <= got


@tiny
def test_sizes_that_are_open_are_read_of_the_arguments():
    batch = TensorType((wf.Dim("batch", min=1), 4), wf.float32)

    def f(x, y):
        return wf.concat([x, y * 2]).reshape(-1, 2) * x.shape[0]

    program = wf.trace(f, batch, batch)
    source = program.to_python()
    assert "batch = x.shape[0]" in source
    made = wf.trace(defined(source), batch, batch)
    assert same(program.graph, made.graph), source


@tiny
def test_constants_and_numbers_to_the_bit():
    ones = base64.b64encode(np.linspace(0, 1, 20).astype("f").tobytes()).decode()
    text = f"""
    fn f(%x: f32[3], %r: float) -> (f32[3], f32[3], bf16[2], f32[20], f64[]) {{
      %a = multiply %x, %r
      %c = constant [nan, -0.0, inf] : f32[3]
      %b = add %a, %c
      %d = constant [0.1, 3.0] : bf16[2]
      %e = constant data(0) : f32[20]
      %g = constant nan:0x7ff8000000000001 : f64[]
      return %a, %b, %d, %e, %g
    }}
    data 0 = "{ones}"
    """
    check(parse(text).entry)
