"""Gradients of gradients through loops that append to lists, and through those that go through
such: the bits of eager code, and what central differences measure.
"""

import numpy as np
import pytest
from control_lab import bits, compiled, pulled_twice, ran, second

import weft as wf

X = wf.tensor([1.5, -1.25, 2.0], dtype=wf.float64)
W = wf.tensor([[1.5, 0.25, -0.75], [0.5, -1.0, 0.25], [1.25, 0.5, -0.5]], dtype=wf.float64)


def appended(x, w):
    out = []
    for _ in range(18):
        x = (x * 0.5 + w[0].sin() * x).tanh() + 0.1
        out.append(x * w[1])
    return (wf.stack(out).sin() * 0.5).sum()


def carried_on(x, w):
    out = []
    for _ in range(18):
        x = (x * 0.5 + w[0].sin() * x).tanh() + 0.1
        out.append(x)
    return (wf.stack(out).sin() * out[2] * out[-1]).sum()


def two_in_a_step(x, w):
    out = []
    for _ in range(18):
        x = x * 0.5 + (x * w[0]).sin()
        out.append(x)
        out.append(x * w[1])
    return (wf.stack(out) ** 3).mean()


def gone_through(x, w):
    out, total = [], x * 1.1
    for _ in range(18):
        x = (x * 0.5 + w[0].sin() * x).cos()
        out.append(x)
    for v in out:
        total = total * 0.5 + v * v * w[2]
    return (total * total).sum() + wf.stack(out).exp().mean()


def gone_through_and_on(x, w):
    out, sums, total = [x * w[1]], [], x
    for _ in range(18):
        x = x * 0.5 + w[0].sin()
        out.append(x)
        out.append(x * w[1])
    for i in range(17):
        out.append(w[2] * i)
    for i, v in enumerate(reversed(out)):
        total = total * 0.5 + v * v * (i * 0.1)
        if total.sum() < 0:
            total = total + v
        sums.append(total)
    return wf.concat(sums).sin().sum() + (out[3] * out[4]).sum()


def lists_of_lists(x, w):
    out = []
    for _ in range(17):
        rows = []
        for _ in range(18):
            x = (x * 0.9 + w[0]).tanh()
            rows.append(x)
        out.append(wf.stack(rows).mean(axis=0) * w[1])
        out.extend(rows)
    return (wf.stack(out) ** 2).mean()


def until(x, w):
    out = [w[0]]
    while x.abs().sum() < 50:
        x = x * 1.5 + x.sin() * w[1] + 2
        out.append(x)
    return (wf.stack(out) * out[-1]).sin().sum()


def before_and_behind_a_break(x, w):
    before, after = [], []
    for i in range(30):
        x = x * 1.25 + i
        before.append(x * w[0])
        if x.sum() > 40:
            break
        after.append(x)
    total = w[1]
    for v in before:
        total = total * 0.5 + v.sin()
    return (total * total).sum() + wf.concat([*after, x]).sin().mean()


def on_one_path(x, w):
    out = [x]
    for i in range(20):
        x = x * 0.75 + w[0] * i
        if x[0] > 2:
            out.append(x * w[1])
        elif x[1] > 1:
            out.append(x)
    return (wf.stack(out).sin() ** 2).mean() + sum(v * 0.5 for v in out).cos().sum()


def with_a_condition(x, w):
    kept = [v * 2 for v in w @ x if v > -300]
    return (wf.stack(kept) ** 3).sum() * x.sum()


def in_a_branch(x, w):
    if x.sum() > 0:
        out = []
        for _ in range(18):
            x = (x * w[0]).sin() + 0.2
            out.append(x)
        total = x * w[1]
        for v in out:
            total = total * v.cos()
        return (total + wf.stack(out).prod(axis=0)).sum()
    return (x * x * w[1]).sum()


FUNCTIONS = [
    appended,
    carried_on,
    two_in_a_step,
    gone_through,
    gone_through_and_on,
    lists_of_lists,
    until,
    before_and_behind_a_break,
    on_one_path,
    with_a_condition,
    in_a_branch,
]


@pytest.mark.parametrize("way", [second, pulled_twice], ids=lambda way: way.__name__)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_they_have_the_bits_of_eager_code(way, f):
    run = way(f)
    program = wf.compile(run, fallback=False)
    for x, w in ((X, W), (X * 4, W), (-X, -W)):
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
        np.testing.assert_allclose(g, (a - b) / (2 * eps), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("f", [gone_through_and_on, on_one_path], ids=lambda f: f.__name__)
def test_gone_through_node_by_node_they_are_the_same(f):
    program = compiled(second(f), X, W)
    got = ran(program, X, W, native=False)
    assert bits(got, signed_zeros=False) == bits(ran(program, X, W), signed_zeros=False)


def test_one_capture_does_for_every_length():
    def f(x, w):
        h, out = x[0] * 0, []
        for row in x:
            h = (row * w[0] + h).tanh()
            out.append(h)
        return (wf.stack(out) ** 2).sum()

    run = second(f)
    program = wf.compile(run, fallback=False)
    for steps in (3, 5, 1, 40):
        x = wf.arange(steps * 3, dtype=wf.float32).reshape(steps, 3).sin()
        w = W.astype(wf.float32)
        assert bits(program(x, w), signed_zeros=False) == bits(run(x, w), signed_zeros=False)
    assert program.captures == 2


def test_what_sum_gives_of_a_list_is_added_up_in_another_order():
    """One cotangent is that of every element: a tensor that has many names."""

    def f(x, w):
        out = []
        for _ in range(18):
            x = x * 0.5 + w[0].sin()
            out.append(x * 1.0)
        return (sum(out) ** 2 + out[3] * out[4]).sum()

    run = second(f)
    for got, want in zip(wf.compile(run, fallback=False)(X, W), run(X, W), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
