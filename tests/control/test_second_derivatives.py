"""Gradients of gradients through control flow, in one program: the bits of eager code, and what
central differences measure (both modes would share a wrong formula).
"""

import numpy as np
import pytest
from control_lab import bits

import weft as wf

W = wf.tensor(np.random.default_rng(0).standard_normal((4, 4)))
X = wf.tensor(np.random.default_rng(1).standard_normal((3, 4)))


def one_branch(x, w):
    if x.sum() > 0:
        h = (x @ w).tanh()
        y = (h * h * w[0]).exp() * h
    else:
        y = (x * x * x).sin() @ w
    return (y * y).mean()


def branch_in_a_branch(x, w):
    y = x * 0.5
    if x.sum() > 0:
        y = (y @ w).tanh()
        if y.sum() > 0.1:
            y = y * x.exp() * y
        else:
            y = y.sin() * w[1]
    return one_branch(y, w) * y.mean()


def results_read_by_their_gradients(x, w):
    y, z = x.tanh(), x * 0.5
    if x.sum() > 0:
        y = (y * w[0]).tanh()
        z = y.exp() * y
    return (y * z).mean()


def gradient_in_a_branch(x, w):
    slope = x * 1.5
    if x.sum() > 0:
        slope = wf.grad(lambda x: (x @ w).tanh().mean())(x)
    return (slope * slope * x).mean()


FUNCTIONS = [
    one_branch,
    branch_in_a_branch,
    results_read_by_their_gradients,
    gradient_in_a_branch,
]


def second(f):
    """A gradient of a number made of gradients, by both arguments."""

    def number(x, w):
        by_x, by_w = wf.grad(f, (0, 1))(x, w)
        return (by_x.sin() * by_x).sum() + (by_w * by_w * w).sum() + f(x, w)

    return wf.grad(number, (0, 1))


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("order", [2, 3])
def test_gradients_of_gradients_have_the_bits_of_eager_code(f, order):
    run = second(f)
    if order == 3:
        run = wf.grad(lambda x, w: sum((g.cos() * g).sum() for g in second(f)(x, w)), (0, 1))
    program = wf.compile(run, fallback=False)
    for x, w in ((X, W), (-X, W), (X, -W), (X * 0.1, W)):
        x, w = x.astype(wf.float32), w.astype(wf.float32)
        assert bits(program(x, w), signed_zeros=False) == bits(run(x, w), signed_zeros=False)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_they_are_what_central_differences_measure(f):
    program = wf.compile(wf.grad(f, (0, 1)), fallback=False)
    twice = wf.compile(lambda x, w, *v: wf.vjp(wf.grad(f, (0, 1)), x, w)[1](v), fallback=False)
    eps = 1e-6
    for x, w in ((X, W), (-X, W)):
        v = (x.cos(), w.sin())
        got = twice(x, w, *v)
        up = program(x + eps * v[0], w + eps * v[1])
        down = program(x - eps * v[0], w - eps * v[1])
        for g, a, b in zip(got, up, down, strict=True):
            np.testing.assert_allclose(g, (a - b) / (2 * eps), rtol=1e-5, atol=1e-7)


def test_a_penalty_on_the_gradient_trains():
    def step(x, w):
        slope = wf.grad(lambda x: one_branch(x, w))(x)
        loss = one_branch(x, w) + (slope * slope).sum()
        loss.backward()
        g, w.grad = w.grad, None
        return loss.detach(), g

    w = wf.tensor(W.numpy(), requires_grad=True)
    assert bits(wf.compile(step, fallback=False)(X, w)) == bits(step(X, w))


def test_every_row_of_a_hessian():
    hessian = wf.hessian(lambda x: branch_in_a_branch(x, W))
    assert bits(wf.compile(hessian, fallback=False)(X)) == bits(hessian(X))


def test_transforms_made_outside_take_functions_and_methods():
    class Energy:
        def __init__(self, w):
            self.w = w

        def __call__(self, x):
            return one_branch(x, self.w)

        def of(self, x):
            return one_branch(x, self.w)

    e = Energy(W)
    force = wf.grad(e.of)
    for f in (force, lambda x: force(x) * 2, lambda x: wf.grad(e.of)(x), lambda x: wf.grad(e)(x)):
        program = wf.compile(f, fallback=False)
        assert [bits(program(x)) for x in (X, -X)] == [bits(f(x)) for x in (X, -X)]
