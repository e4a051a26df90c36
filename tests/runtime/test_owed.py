"""Gradients of weights from many calls in eager code: added up at the end, never another bit."""

import numpy as np
import pytest
from control_lab import bits

import weft as wf
from weft.runtime import owed

RNG = np.random.default_rng(0)


def weight(*shape, scale=0.1):
    return wf.tensor((RNG.standard_normal(shape) * scale).astype(np.float32), requires_grad=True)


def gradients(run, *weights):
    """What backward() gives with functions compiled, and without."""
    found = []
    for ready in (lambda f: f, lambda f: wf.compile(f, fallback=False)):
        run(ready).backward()
        found.append([w.grad for w in weights])
        for w in weights:
            w.grad = None
    return found


@pytest.fixture
def listed(monkeypatch):
    """How many products were added at a time."""
    counts = []
    whole = owed.Owed.whole
    monkeypatch.setattr(
        owed.Owed, "whole", lambda self: (counts.append(len(self.pairs)), whole(self))[1]
    )
    return counts


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("calls", [1, 2, 63, 64, 65, 150])
def test_products(calls, rows, listed):
    w, b = weight(64, 67), weight(67)
    x = wf.tensor(RNG.standard_normal((rows, 64)).astype(np.float32))

    def run(ready):
        cell = ready(lambda h: ((h @ w + b)[:, :64]).tanh())
        h = x
        for _ in range(calls):
            h = cell(h)
        return h.sum()

    eager, compiled = gradients(run, w, b)
    assert bits(compiled) == bits(eager)
    assert sum(listed) == calls and max(listed) <= owed.MOST


def test_rows_of_a_table_some_of_them_twice(listed):
    table, w = weight(200, 40), weight(40, 40)

    def run(ready):
        look = ready(lambda i: (table[i].reshape(1, -1) @ w).tanh())
        words = [wf.tensor(i) for i in (3, 199, 3, 0, -1, 3)]
        return sum((look(i) * (n - 2) for n, i in enumerate(words)), wf.tensor(0.0)).sum()

    eager, compiled = gradients(run, table, w)
    assert bits(compiled) == bits(eager)
    assert 6 in listed


def test_what_else_is_added_comes_in_its_turn(listed):
    """Other uses of a weight between the calls, other functions, two products in one call."""
    w, v = weight(64, 64), weight(64, 64)
    x = wf.tensor(RNG.standard_normal((1, 64)).astype(np.float32))

    def run(ready):
        one = ready(lambda h: (h @ w).tanh())
        two = ready(lambda h: ((h @ w).tanh() @ v + h @ v).tanh())
        three = ready(lambda h: (wf.concat([h, h * 2]) @ w).sum(axis=0, keepdims=True).tanh())
        h = x
        for _ in range(4):
            h = three(two(one(one(h)))) + (h * w.sum()).tanh()
        return h.sum() + (w * w).sum()

    eager, compiled = gradients(run, w, v)
    assert bits(compiled) == bits(eager)
    assert listed


def test_rows_after_something_else_was_added():
    table = weight(200, 40)

    def run(ready):
        look = ready(lambda i: table[i].tanh())
        return (look(wf.tensor(3)) + look(wf.tensor(5))).sum() + (table * -0.0).sum()

    eager, compiled = gradients(run, table)
    assert bits(compiled) == bits(eager)


def test_a_gradient_that_is_there_already_and_backward_twice(listed):
    w = weight(64, 64)
    x = wf.tensor(RNG.standard_normal((1, 64)).astype(np.float32))
    found = []
    for ready in (lambda f: f, lambda f: wf.compile(f, fallback=False)):
        cell = ready(lambda h: (h @ w).tanh())
        y = cell(cell(x)).sum()
        y.backward(retain_graph=True)
        y.backward()
        found.append(w.grad)
        w.grad = None
    assert bits(found[0]) == bits(found[1])
    assert listed == [2, 2]


def test_by_the_transforms():
    w = weight(64, 64)
    x = wf.tensor(RNG.standard_normal((1, 64)).astype(np.float32))

    def loss(ready):
        def f(w):
            cell = ready(lambda h, w: (h @ w).tanh())
            return cell(cell(x, w), w).sum()

        return f

    eager = wf.grad(loss(lambda f: f))(w)
    assert bits(wf.grad(loss(lambda f: wf.compile(f, fallback=False)))(w)) == bits(eager)


def test_a_weight_that_is_computed():
    """Not a leaf: what its gradient comes to is needed on the way."""
    w = weight(64, 64)
    x = wf.tensor(RNG.standard_normal((1, 64)).astype(np.float32))

    def run(ready):
        cell = ready(lambda h, v: (h @ v).tanh())
        v = w * 1.5
        return cell(cell(cell(x, v), v), w).sum()

    eager, compiled = gradients(run, w)
    assert bits(compiled) == bits(eager)
