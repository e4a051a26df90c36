"""Gradients of gradients through control flow, in one program: the bits of eager code, and what
central differences measure (both modes would share a wrong formula).
"""

import numpy as np
import pytest
from control_lab import bits, compiled, pulled_twice, ran, second, third

import weft as wf
from weft.errors import CaptureError, CaptureWarning

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
    else:
        y = y * 0.9
    return one_branch(y, w) * y.mean()


def results_read_by_their_gradients(x, w):
    y, z = x.tanh(), x * 0.5
    if x.sum() > 0:
        y = (y * w[0]).tanh()
        z = y.exp() * y
    else:
        y, z = y * 0.9, z * 1.1
    return (y * z).mean()


def gradient_in_a_branch(x, w):
    slope = x * 1.5
    if x.sum() > 0:
        slope = wf.grad(lambda x: (x @ w).tanh().mean())(x)
    else:
        slope = slope * 0.9
    return (slope * slope * x).mean()


def until_small(x, w):
    s, n = x * 0.9, 0
    while (s * s).sum() > 0.5 and n < 6:
        s = (s @ w).tanh() * 0.9
        n = n + 1
    return (s * s * w[0]).mean()


def never_run(x, w):
    s = x * w[0]
    while s.sum() > 1e9:
        s = s * s
    return (s * s * s).mean()


def newton(x, w):
    a = (x * x).sum(axis=0) + 1.0
    y = a
    while (y * y - a).abs().max() > 1e-3:
        y = y - (y * y - a) / (2 * y)
    return (y * w[0]).sum()


def counted(x, w):
    s = wf.fori_loop(0, 20, lambda i, s: (s @ w).tanh() + x * 0.1 + i * 0.01, x)
    return (s * s).mean()


def scanned(x, w):
    def step(s, row):
        return (s * 0.5 + row @ w).tanh(), (s * row).sum()

    s, ys = wf.scan(step, w[0], wf.concat([x] * 8, axis=0))
    return (s * s).mean() + (ys * ys).mean()


def loop_in_a_loop(x, w):
    s, n = x * 0.7, 0
    while n < 4 and (s * s).sum() < 1e6:
        m, t = 0, s * 0.5
        while m < 3 and t.sum() < 1e5:
            t = (t @ w).tanh() + t * 0.1
            m = m + 1
        s = s * 0.3 + t * w[0]
        n = n + 1
    return (s * s).mean()


def branch_in_a_loop(x, w):
    s = x * 0.7
    for _ in range(20):
        if s.sum() > 0:
            s = (s @ w).tanh() * s
        else:
            s = s.sin() * w[1] + 0.3
    return (s * s).mean()


def loop_in_a_branch(x, w):
    y = x * 0.7
    if x.sum() > 0:
        n = 0
        while n < 3 and y.sum() < 1e5:
            y = (y @ w).tanh() * y
            n = n + 1
    else:
        y = (y * y) @ w
    return (y * y).mean()


def one_loop_into_another(x, w):
    s, n = x * 0.7, 0
    while n < 3 and s.sum() < 1e6:
        s = (s @ w).tanh()
        n = n + 1
    t, m = s * x, 0
    while m < 4 and t.sum() < 1e6:
        t = (t @ w).sin() * s
        m = m + 1
    return (t * t * s).mean()


def descent(x, w):
    s, n = x * 0.7, 0
    while n < 4 and s.sum() < 1e6:
        s = s - 0.1 * wf.grad(lambda s: ((s @ w).tanh() ** 2).sum())(s)
        n = n + 1
    return (s * s).mean()


def one_cotangent_for_two(x, w):
    s, t, n = x * 0.7, x * 0.3, 0
    while n < 3 and s.sum() < 1e6:
        s, t = (s @ w).tanh() * t, (t + s).sin()
        n = n + 1
    return ((s + t) * (s + t)).mean()


BRANCHES = [
    one_branch,
    branch_in_a_branch,
    results_read_by_their_gradients,
    gradient_in_a_branch,
]
FUNCTIONS = [
    *BRANCHES,
    until_small,
    never_run,
    newton,
    counted,
    scanned,
    loop_in_a_loop,
    branch_in_a_loop,
    loop_in_a_branch,
    one_loop_into_another,
    descent,
    one_cotangent_for_two,
]


RUNS = [
    *((second, f) for f in FUNCTIONS),
    *((pulled_twice, f) for f in (one_branch, until_small, newton, loop_in_a_loop)),
    *((third, f) for f in BRANCHES),
]


@pytest.mark.parametrize(("way", "f"), RUNS, ids=lambda f: f.__name__)
def test_gradients_of_gradients_have_the_bits_of_eager_code(way, f):
    run = way(f)
    program = wf.compile(run, fallback=False)
    for x, w in ((X, W), (-X, W), (X, -W), (X * 0.1, W)):
        x, w = x.astype(wf.float32), w.astype(wf.float32)
        assert bits(program(x, w), signed_zeros=False) == bits(run(x, w), signed_zeros=False)


@pytest.mark.parametrize("f", [until_small, loop_in_a_loop], ids=lambda f: f.__name__)
def test_gone_through_node_by_node_they_are_the_same(f):
    program = compiled(second(f), X, W)
    got = ran(program, X, W, native=False)
    assert bits(got, signed_zeros=False) == bits(ran(program, X, W), signed_zeros=False)


@pytest.mark.parametrize(
    "f",
    [one_branch, branch_in_a_branch, until_small, newton, scanned, loop_in_a_loop, descent],
    ids=lambda f: f.__name__,
)
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


def test_a_penalty_on_the_gradient_of_a_loop_trains():
    def step(x, w):
        slope = wf.grad(lambda x: until_small(x, w))(x)
        loss = until_small(x, w) + (slope * slope).sum()
        loss.backward()
        g, w.grad = w.grad, None
        return loss.detach(), g

    w = wf.tensor(W.numpy(), requires_grad=True)
    assert bits(wf.compile(step, fallback=False)(X, w)) == bits(step(X, w))


def test_long_loops_note_every_step():
    def f(x):
        return (wf.fori_loop(0, 3000, lambda i, s: (s * 1.001 + x * 0.01).tanh(), x) ** 2).sum()

    run = wf.grad(lambda x: (wf.grad(f)(x) * x).sum())
    program = wf.compile(run, fallback=False)
    assert bits(program(X)) == bits(program(X)) == bits(run(X))


def carrying(copy):
    def f(x, w):
        before, s, n = x * 0.1, x * 0.7, 0
        while n < 5 and s.sum() < 1e6:
            step = 0.5 * (s - before) - 0.1 * (s @ w).sin()
            before, s = copy(s), s + step
            n = n + 1
        return (s * s * before).mean()

    return f


def test_a_variable_that_takes_the_value_of_another_is_refused_and_a_copy_is_not():
    run = second(carrying(lambda s: s))
    with pytest.raises(CaptureError, match=r"write a = b.clone\(\) instead of a = b"):
        wf.compile(run, fallback=False)(X, W)
    with pytest.warns(CaptureWarning):
        assert bits(wf.compile(run)(X, W)) == bits(run(X, W))
    run = second(carrying(lambda s: s.clone()))
    assert bits(wf.compile(run, fallback=False)(X, W)) == bits(run(X, W))


def test_third_derivatives_through_loops_run_eagerly():
    run = third(until_small)
    with pytest.raises(CaptureError, match="expected second derivatives"):
        wf.compile(run, fallback=False)(X, W)
    with pytest.warns(CaptureWarning):
        assert bits(wf.compile(run)(X, W)) == bits(run(X, W))
