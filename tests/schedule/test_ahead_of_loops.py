"""Weights that loops read are packed before them: in the right place, and as long as is needed."""

import numpy as np
import pytest
from control_lab import bits

import weft as wf

RNG = np.random.default_rng(0)


def array(*shape):
    return wf.tensor(RNG.standard_normal(shape).astype(np.float32))


W, X = array(128, 512) * 0.05, array(16, 128)


def narrow(h):
    return h[:, :128].tanh()


def copies(call, *args):
    return sum(
        " copy  ->  f32[16, 128, 32]" in line for line in str(call.explain(*args)).splitlines()
    )


def after_another(x, w, n):
    h = x
    for _ in range(n):
        h = narrow(h @ w)
    for _ in range(n):
        h = narrow(h @ w) + x
    return h


def in_another(x, w, n):
    h = x
    for _ in range(n):
        for _ in range(n):
            h = narrow(h @ w)
        h = h + x
    return h


def both(x, w, n):
    h = x
    for _ in range(n):
        for _ in range(n):
            h = narrow(h @ w)
        h = narrow(h @ w) + x
    for _ in range(n):
        h = narrow(h @ w)
    return h


def made_inside(x, w, n):
    h = x
    for i in range(n):
        v = w * (1.0 + 0.01 * i)
        for _ in range(n):
            h = narrow(h @ v)
        h = h + x
    return h


def in_a_branch(x, w, n):
    h = x
    if x.sum() > 0:
        for _ in range(n):
            h = narrow(h @ w)
    for _ in range(n):
        h = narrow(h @ w) - x
    return h


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("f", [after_another, in_another, both, made_inside, in_a_branch])
def test_no_bit_changes(f, sign):
    x = X * sign
    call = wf.compile(lambda x, w: f(x, w, 18), fallback=False)
    assert bits(call(x, W)) == bits(f(x, W, 18))


def test_a_weight_is_packed_once_for_loops_in_loops():
    call = wf.compile(lambda x, w: in_another(x, w, 18), fallback=False)
    assert copies(call, X, W) == 1


def test_training():
    def step(x, w):
        both(x, w, 17).sum().backward()
        g, w.grad = w.grad, None
        return g

    w = wf.tensor(W.numpy(), requires_grad=True)
    assert bits(wf.compile(step, fallback=False)(X, w)) == bits(step(X, w))
