"""A model with a branch, the same as placeholders, part of a dynamic program as a static operator,
and two products that do not wait for each other: one program, both kinds of graph, the same bits.
"""

from __future__ import annotations

import pytest

import weft as wf
from weft import matmul, relu
from weft.errors import CaptureError

wf.manual_seed(0)
W1, W2, b = wf.randn((8, 8)), wf.randn((8, 8)), wf.randn((8, 1))
X = wf.randn((8, 5))
FLAGS = (1, -1, 0)


def model(X, flag):
    if flag > 0:
        Y = matmul(W1, X)
    else:
        Y = matmul(W2, X)
    Y = Y + b
    Y = relu(Y)
    return Y


@wf.compile(fallback=False)
def add_and_relu(Y, b):
    Y = Y + b
    Y = relu(Y)
    return Y


def mixed(X, flag):
    if flag > 0:
        Y = matmul(W1, X)
    else:
        Y = matmul(W2, X)
    Y = add_and_relu(Y, b)
    return Y


def bits(x):
    return x.shape, x.dtype.name, x.numpy().tobytes()


def names(graph):
    """The ops of a graph, those of branches in brackets."""
    out = []
    for n in graph.order:
        if not n.is_pick and n.op.name != "constant":
            out.append([n.op.name, *map(names, n.regions)] if n.regions else n.op.name)
    return out


def test_both_branches_are_in_one_graph_and_one_capture_serves_either_flag():
    compiled = wf.compile(model, fallback=False)
    for flag in FLAGS:
        assert bits(compiled(X, wf.tensor(flag))) == bits(model(X, flag))
    assert compiled.captures == 1
    graph = compiled.graph(X, wf.tensor(1))
    assert names(graph) == ["greater", ["cond", ["matmul"], ["matmul"]], "add", "relu"]


def test_a_python_flag_is_python_s_branch_guarded():
    compiled = wf.compile(model, fallback=False)
    for flag in (*FLAGS, *FLAGS):
        assert bits(compiled(X, flag)) == bits(model(X, flag))
    assert compiled.captures <= len(FLAGS)


def test_source_transformation_and_tracing():
    scripted = wf.script(model)(X, wf.tensor(1))
    for flag in FLAGS:
        assert bits(scripted(X, wf.tensor(flag))) == bits(model(X, flag))
    assert "if_" in wf.script(model).code
    with pytest.raises(CaptureError, match=r"test_one_program\.py"):
        wf.trace(model, X, wf.tensor(1))
    traced = wf.trace(lambda X: model(X, 1), X)
    assert bits(traced(X)) == bits(model(X, 1))


def test_placeholders_and_control_said_by_hand():
    x, flag = wf.placeholder("X", (8, None)), wf.placeholder("flag", ())
    y = wf.cond(flag > 0, lambda x: matmul(W1, x), lambda x: matmul(W2, x), x)
    program = wf.build([x, flag], relu(y + b))
    for value in FLAGS:
        got = program(X=X, flag=wf.tensor(float(value)))
        assert bits(got) == bits(model(X, value))


def test_modes_are_a_switch():
    marked = wf.function(model)
    assert bits(marked(X, 1)) == bits(model(X, 1)) and marked.compiled.captures == 0
    wf.set_mode("static")
    try:
        for flag in FLAGS:
            assert bits(marked(X, wf.tensor(flag))) == bits(model(X, flag))
    finally:
        wf.set_mode("dynamic")
    assert marked.compiled.captures == 1
    with wf.mode("static"):
        assert bits(marked(X, wf.tensor(5))) == bits(model(X, 5))
    assert marked.compiled.captures == 1


def test_add_and_relu_is_one_operator_of_a_dynamic_program():
    before = add_and_relu.captures
    for flag in FLAGS:
        assert bits(mixed(X, flag)) == bits(model(X, flag))
    assert add_and_relu.captures - before <= 1
    report = add_and_relu.explain(matmul(W1, X), b)
    assert len(report.kernels) == 1, "add and relu are fused"


def test_gradients_go_through_the_static_operator():
    def slopes(f):
        x = X.detach()
        x.requires_grad = True
        f(x, 1).sum().backward()
        return x.grad

    assert bits(slopes(mixed)) == bits(slopes(model))


def test_two_products_side_by_side():
    def both(X1, X2):
        Y1 = matmul(X1, W1)
        Y2 = matmul(X2, W2)
        Y = Y1 + Y2
        output = relu(Y)
        return output

    compiled = wf.compile(both, fallback=False)
    X1, X2 = wf.randn((64, 8)), wf.randn((64, 8))
    assert bits(compiled(X1, X2)) == bits(both(X1, X2))
    report = compiled.explain(X1, X2)
    assert len(report.kernels) == 2, "add and relu are part of the second product"
    threads = wf.get_num_threads()
    try:
        for n in (1, 2):
            wf.set_num_threads(n)
            assert bits(compiled(X1, X2)) == bits(both(X1, X2))
    finally:
        wf.set_num_threads(threads)
