"""The tape: what is noted, what is kept, when it is freed, and in which order cotangents meet."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import weft as wf
from weft.autodiff.tape import keep_mask
from weft.errors import GradError, ShapeError
from weft.ops.define import Call
from weft.ops.elementwise import add, exp, multiply
from weft.runtime.start import engine
from weft.types import TensorType
from weft.types.dtype import float32


def leaf(*values):
    return wf.tensor(list(values), requires_grad=True)


def test_backward_adds_to_the_leaves():
    x = leaf(1.0, 2.0, 3.0)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    (x * 2.0).sum().backward()
    assert x.grad.tolist() == [4.0, 6.0, 8.0]


def test_a_value_used_twice_gets_both_cotangents():
    x = leaf(3.0)
    y = x * x
    (y * y).backward()
    assert x.grad.item() == 4 * 27.0


def test_broadcast_operands_get_their_own_shape_back():
    x, b = wf.tensor(np.ones((4, 3), "f"), requires_grad=True), leaf(1.0, 2.0, 3.0)
    (x * b).sum().backward()
    assert x.grad.shape == (4, 3) and b.grad.tolist() == [4.0, 4.0, 4.0]


def test_mixed_dtypes_get_gradients_of_their_own_dtype():
    x = wf.tensor([1.0, 2.0], dtype=wf.float64, requires_grad=True)
    y = wf.tensor([3.0, 4.0], dtype=wf.float16, requires_grad=True)
    (x * y).sum().backward()
    assert (x.grad.dtype, y.grad.dtype) == (wf.float64, wf.float16)


def test_backward_of_many_elements_needs_a_gradient():
    x = leaf(1.0, 2.0)
    with pytest.raises(ShapeError, match="one element to differentiate"):
        (x * 2.0).backward()
    (x * 2.0).backward(wf.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 20.0]


def test_backward_without_history_says_so():
    with pytest.raises(GradError, match="requires_grad=True"):
        wf.tensor([1.0]).sum().backward()


def test_integers_take_no_gradient():
    with pytest.raises(GradError, match="floating"):
        wf.tensor([1, 2], requires_grad=True)


def test_a_used_graph_says_so():
    x = leaf(1.0)
    y = x.exp()
    y.backward()
    with pytest.raises(GradError, match="retain_graph=True"):
        y.backward()


def test_retain_graph_keeps_it():
    x = leaf(1.0)
    y = (x * x).exp()
    y.backward(retain_graph=True)
    first = x.grad.item()
    y.backward()
    assert x.grad.item() == 2 * first


def test_create_graph_gives_second_derivatives():
    x = leaf(2.0)
    (x * x * x).backward(create_graph=True)
    g = x.grad
    x.grad = None
    g.backward()
    assert x.grad.item() == pytest.approx(12.0)


def test_no_grad_notes_nothing_and_nests():
    x = leaf(1.0)
    with wf.no_grad():
        assert not (x * 2.0).requires_grad
        with wf.enable_grad():
            assert (x * 2.0).requires_grad
        assert not (x * 2.0).requires_grad
    assert (x * 2.0).requires_grad

    @wf.no_grad()
    def f(x):
        return x * 2.0

    assert not f(x).requires_grad


def test_detach_cuts_history():
    x = leaf(2.0)
    y = x * x.detach()
    y.backward()
    assert x.grad.item() == 2.0


def test_assignment_leaves_noted_values_alone():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1.0
    z = (y * y).sum()
    y[0] = 100.0
    z.backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_assignment_to_a_leaf_keeps_its_gradient_reachable():
    x = leaf(1.0, 2.0, 3.0)
    x[0] = 5.0
    (x * x).sum().backward()
    assert x.grad.tolist() == [0.0, 4.0, 6.0]


def test_updates_under_no_grad_keep_a_leaf_a_leaf():
    x = leaf(1.0, 2.0)
    for _ in range(3):
        (x * x).sum().backward()
        with wf.no_grad():
            x -= 0.25 * x.grad
        x.grad = None
        assert x.is_leaf and x.requires_grad
    assert x.tolist() == [0.125, 0.25]


def test_only_what_the_gradient_reads_is_kept():
    t = TensorType((3,), float32)
    assert keep_mask(Call(add, (t, t), {})) == 0
    assert keep_mask(Call(multiply, (t, t), {})) == 0b11
    assert keep_mask(Call(exp, (t,), {})) == 1 << 62


def test_an_add_keeps_no_operand_alive():
    x = leaf(*map(float, range(1000)))
    y = x * 1.0
    owner = weakref.ref(y)
    z = (y + 1.0).sum()
    del y
    assert owner() is None
    z.backward()
    assert x.grad.tolist() == [1.0] * 1000


def test_tensors_and_notes_make_no_cycles():
    gc.collect()
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        seen = weakref.ref(x)
        y = ((x * x).exp() + x).sum()
        y.backward()
        del x, y
        assert seen() is None
    finally:
        gc.enable()


def test_memory_is_freed_as_backward_walks():
    x = wf.tensor(np.ones(250_000, "f"), requires_grad=True)
    y = x
    for _ in range(20):
        y = y.exp() * 0.1
    loss = y.sum()
    held = engine().memory_stats().used
    loss.backward()
    del y
    x.grad = None
    assert held > 20 * 1_000_000 > 10 * engine().memory_stats().used


def test_ten_thousand_steps_hold_memory_flat():
    w = wf.tensor(np.full((8, 8), 0.1, "f"), requires_grad=True)
    x = wf.tensor(np.ones((4, 8), "f"))

    def step():
        loss = ((x @ w).tanh() * 0.5).sum()
        loss.backward()
        with wf.no_grad():
            w.assign(w - 0.001 * w.grad)
        w.grad = None

    for _ in range(500):
        step()
    before = engine().memory_stats().used
    for _ in range(9_500):
        step()
    assert engine().memory_stats().used <= before


def test_long_chains_are_no_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(50_000):
        y = y + 0.0
    y.backward()
    assert x.grad.item() == 1.0
    z = x
    for _ in range(50_000):
        z = z * 1.0
    del z  # dropped without backward


def test_results_of_several_are_noted_apart():
    x = leaf(3.0, 1.0, 2.0)
    values, indices = wf.topk(x, 2)
    assert indices.tolist() == [0, 2] and not indices.requires_grad
    (values * wf.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 10.0]
