"""Gradients of gradients through functions that call themselves: the bits of eager code, what
central differences measure, as long as calls are many.
"""

import time

import numpy as np
import pytest
from control_lab import bits, compiled, pulled_twice, ran, second, third
from control_programs import CASES

import weft as wf
from weft.errors import CaptureError, CaptureWarning
from weft.ops.language import parse, verify

W = wf.tensor(np.random.default_rng(0).standard_normal((4, 4)))
X = wf.tensor(np.random.default_rng(1).standard_normal((3, 4)))


def depth(x, n):
    """A number of the program's: one more where x adds up to more than 0."""
    return (x.sum() > 0).astype(wf.int64) + n


def chained(x, w):
    def go(k, z):
        if k <= 0:
            return z * w[0]
        h = (z @ w).tanh()
        return go(k - 1, h * z.sin()) * h + z * w[1]

    y = go(depth(x, 3), x)
    return (y * y).mean()


def swapped(x, w):
    def go(k, a, b):
        return a.sin() * b if k == 0 else go(k - 1, b, a * b) * b

    return go(depth(x, 3), x, x * w[0]).sum()


def two_results(x, w):
    def go(k, a):
        if k <= 0:
            return a.tanh(), a * w[1]
        (p, q), (r, s) = go(k - 1, a * 0.5), go(k - 2, a * w[0])
        return (p * s).sin(), q + r * a

    p, q = go(depth(x, 3), x)
    return (p * q).sum()


def one_of_two_results(x, w):
    def go(k, a):
        if k <= 0:
            return a.tanh(), a * w[1]
        p, q = go(k - 1, a * 0.5)
        return q * a, (p * q).sin()

    return go(depth(x, 3), x)[0].sum()


def one_in_another(x, w):
    def inner(k, z):
        return z.tanh() if k <= 0 else (inner(k - 1, z * w[0]) * z).sin()

    def outer(k, z):
        return inner(k + 2, z) if k <= 0 else inner(k, outer(k - 1, z * 0.5)) * w[1]

    return outer(depth(x, 1), x).sum()


def one_another(x, w):
    def down(k, z):
        return z * w[2] if k <= 0 else across(k, z * w[0]) * z + down(k - 1, z.sin())

    def across(k, z):
        return z.exp() * 0.5 if k <= 0 else across(k - 2, z.sin()) * w[1] + down(k - 1, z * 0.7)

    return down(depth(x, 2), x).sum()


def calls_in_a_loop_in_a_call(x, w):
    def go(k, z):
        if k <= 0:
            return z.sin()
        a = go(k - 1, z * 0.5)
        n, total = 0, a
        while n < k:
            n = n + 1
            total = total * go(k - 2, z + a) + z @ w * 0.1
        return total.tanh() * go(k - 3, a)

    return go(depth(x, 2), x).mean()


def calls_in_a_loop(x, w):
    def go(k, z):
        return z * w[0] if k <= 0 else (go(k - 1, z @ w * 0.3) * z).tanh()

    s, i = x, 0
    while i < 3 and s.sum() < 1e6:
        s = s * 0.5 + go(wf.tensor(2) + i, s)
        i = i + 1
    return (s * s).mean()


def gradients_in_calls(x, w):
    def go(k, z):
        if k <= 0:
            return (z @ w).sin()
        slope = wf.grad(lambda z: ((z @ w).tanh() ** 2).sum())(z)
        return go(k - 1, z - 0.1 * slope) * z

    return go(depth(x, 2), x).mean()


FUNCTIONS = [
    chained,
    swapped,
    two_results,
    one_of_two_results,
    one_in_another,
    one_another,
    calls_in_a_loop_in_a_call,
    calls_in_a_loop,
    gradients_in_calls,
]


@pytest.mark.parametrize("way", [second, pulled_twice], ids=lambda way: way.__name__)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_they_have_the_bits_of_eager_code(way, f):
    run = way(f)
    program = wf.compile(run, fallback=False)
    for x, w in ((X, W), (-X, W), (X * 0.3, -W)):
        x, w = x.astype(wf.float32), w.astype(wf.float32)
        assert bits(program(x, w), signed_zeros=False) == bits(run(x, w), signed_zeros=False)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_they_are_what_central_differences_measure(f):
    program = wf.compile(wf.grad(f, (0, 1)), fallback=False)
    twice = wf.compile(lambda x, w, *v: wf.vjp(wf.grad(f, (0, 1)), x, w)[1](v), fallback=False)
    v, eps = (X.cos(), W.sin()), 1e-6
    got = twice(X, W, *v)
    up = program(X + eps * v[0], W + eps * v[1])
    down = program(X - eps * v[0], W - eps * v[1])
    for g, a, b in zip(got, up, down, strict=True):
        np.testing.assert_allclose(g, (a - b) / (2 * eps), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "f", [chained, one_in_another, calls_in_a_loop_in_a_call], ids=lambda f: f.__name__
)
def test_gone_through_node_by_node_and_as_text_they_are_the_same(f):
    program = compiled(second(f), X, W)
    got = ran(program, X, W, native=False)
    assert bits(got, signed_zeros=False) == bits(ran(program, X, W), signed_zeros=False)
    graph = program.captured.function
    verify(graph)
    assert parse(str(graph)).entry == graph


def climbed(k, z, w):
    if k <= 0:
        return z * w[0]
    h = (z @ w).tanh()
    return climbed(k - 1, h * z.sin(), w) * h + z * w[1]


@pytest.mark.alone
def test_they_take_as_long_as_calls_are_many():
    """What calls and their reverses gave is kept: it is not computed for every call around."""

    def slope(k, x, w):
        return (wf.grad(lambda x: (climbed(k, x, w) ** 2).sum())(x) ** 2).sum()

    f = wf.compile(lambda k, x, w: wf.grad(lambda x: slope(k, x, w))(x), fallback=False)
    took = []
    for k in (200, 2_000):
        k = wf.tensor(k)
        f(k, X, W)
        start = time.perf_counter()
        f(k, X, W)
        took.append(time.perf_counter() - start)
    assert took[1] < 40 * took[0] + 0.05  # 100 times if it were


def test_steps_of_training_that_penalise_the_gradient():
    def penalised(x, w):
        return (wf.grad(chained, 1)(x, w) ** 2).sum() + chained(x, w)

    def step(x, w):
        for _ in range(20):
            w = w - 0.1 * wf.grad(penalised, 1)(x, w)
        return w

    assert bits(wf.compile(step, fallback=False)(X, W)) == bits(step(X, W))


def test_an_argument_that_is_given_back_is_added_up_in_another_order():
    """One tensor that has two names, as elsewhere."""

    def f(x, w):
        def power(k, z):
            return z if k <= 0 else power(k - 1, z * w[0]) + w[1]

        y = (x * w[1]).exp()
        return (power(depth(x, -9), x) * y).sum()

    run = second(f)
    for got, want in zip(wf.compile(run, fallback=False)(X, W), run(X, W), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_third_derivatives_run_eagerly():
    run = third(chained)
    with pytest.raises(CaptureError, match="expected second derivatives"):
        wf.compile(run, fallback=False)(X, W)
    with pytest.warns(CaptureWarning):
        assert bits(wf.compile(run)(X, W)) == bits(run(X, W))


def test_programs_of_the_table_give_their_stores_back():
    case = next(c for c in CASES if c.name == "recursion over a tree")
    node, left, right, embedded, w = case.arguments[-1]

    def slope(e, w):
        return (wf.grad(lambda e: case.function(node, left, right, e, w).sum())(e) ** 2).sum()

    f = wf.compile(wf.grad(slope, (0, 1)), fallback=False)
    want = bits(f(embedded, w))
    assert all(bits(f(embedded, w)) == want for _ in range(200))
