"""Sums that loops and calls hand on: added to where they lie, and never another bit."""

import numpy as np
import pytest
from control_lab import bits

import weft as wf
from weft.schedule import drain as draining, sums as summing

RNG = np.random.default_rng(0)


def array(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def plans(call, *args):
    """Which kernels a call's program is made of."""
    said = str(call.explain(*args))
    return [line.split()[1] for line in said.splitlines() if line[:6].strip().isdigit()]


def trained(f, weights, *xs):
    """The gradients of weights through `f`, eagerly and compiled, and the compiled function."""

    def step(*given):
        ws, rest = given[: len(weights)], given[len(weights) :]
        f(*ws, *rest).sum().backward()
        out = tuple(w.grad for w in ws)
        for w in ws:
            w.grad = None
        return out

    call = wf.compile(step, fallback=False)
    given = [*(wf.tensor(w, requires_grad=True) for w in weights), *map(wf.tensor, xs)]
    return step(*given), call(*given), call, given


def recurrent(w, b, xs):
    """A loop whose weight gets an outer product, or a contraction over rows, in every step."""
    h = xs[0] * 0
    for x in xs:
        h = (h @ w + x + b).tanh()
    return h


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 3, draining.DEEP + 1])
@pytest.mark.parametrize("width", [64, 67, 97])
@pytest.mark.parametrize("steps", [18, 40])
def test_products_are_added_many_at_a_time(steps, width, rows, dtype):
    w, b = array(width, width, dtype=dtype) * dtype(0.1), array(width, dtype=dtype)
    eager, compiled, call, given = trained(
        recurrent, (w, b), array(steps, rows, width, dtype=dtype)
    )
    assert bits(compiled) == bits(eager)
    assert "drain" in plans(call, *given)


@pytest.mark.parametrize("most", [1, 2, 7])
def test_no_bit_depends_on_how_many_are_added_at_a_time(monkeypatch, most):
    monkeypatch.setattr(summing, "most", lambda entry: most)
    w, b = array(64, 64) * np.float32(0.1), array(64)
    eager, compiled, _, _ = trained(recurrent, (w, b), array(20, 2, 64))
    assert bits(compiled) == bits(eager)


def test_a_small_sum_has_no_stack():
    w, b = array(8, 8), array(8)
    eager, compiled, call, given = trained(recurrent, (w, b), array(20, 1, 8))
    assert bits(compiled) == bits(eager)
    assert "drain" not in plans(call, *given)


def test_products_of_zeros_of_either_sign_and_what_is_not_finite():
    def f(w, xs):
        h = xs[0]
        for x in xs:
            h = (h * x) @ w
        return h

    xs = array(18, 1, 64)
    xs[:, 0, ::3], xs[:, 0, 1::5] = 0.0, -0.0
    xs[3, 0, 7] = np.inf
    eager, compiled, call, given = trained(f, (array(64, 64) * np.float32(0.1),), xs)
    assert bits(compiled) == bits(eager)
    assert "drain" in plans(call, *given)


def test_a_weight_that_is_read_twice_in_a_step():
    """What is added is of two kinds then: one product after the other, where the sum lies."""

    def f(w, xs):
        h = xs[0]
        for x in xs:
            h = ((h @ w).tanh() + x) @ w
        return h

    eager, compiled, _, _ = trained(f, (array(64, 64) * np.float32(0.05),), array(20, 2, 64))
    assert bits(compiled) == bits(eager)


def test_a_weight_that_only_some_steps_read():
    def f(w, v, xs):
        h = xs[0]
        for x in xs:
            if h.sum() > 0:
                h = (h @ w).tanh() + x
            else:
                h = (h @ v).tanh() - x
        return h

    ws = array(64, 64) * np.float32(0.1), array(64, 64) * np.float32(0.1)
    eager, compiled, call, given = trained(f, ws, array(30, 1, 64))
    got = [np.abs(g.numpy()) for g in compiled]  # of what no step reads: zeros of either sign
    for a, b in zip(got, eager, strict=True):
        np.testing.assert_array_equal(a, np.abs(b.numpy()))
    assert "drain" in plans(call, *given)


def test_a_tree_of_calls():
    def f(w, table, left, right):
        def encode(node):
            if left[node] < 0:
                return table[right[node]].reshape(1, -1)
            a, b = encode(left[node]), encode(right[node])
            return (wf.concat([a, b], axis=1) @ w).tanh()

        return encode(wf.tensor(0) + left.shape[0] - 1)

    pairs = [(0, 1), (2, 3), (5, 6), (4, 7)]  # of leaves 0 to 4, then of pairs
    left = np.array([-1] * 5 + [a for a, _ in pairs])
    right = np.array([*range(5), *(b for _, b in pairs)])
    table, w = array(5, 128), array(256, 128) * np.float32(0.1)
    eager, compiled, call, given = trained(f, (w, table), left, right)
    assert bits(compiled) == bits(eager)
    assert "drain" in plans(call, *given)
    sizes = [
        int(line.split(":")[1].split()[0].replace(",", ""))
        for line in str(call.explain(*given)).splitlines()
        if "of its own in every call" in line
    ]
    assert max(sizes) < w.nbytes  # no call has a gradient of the weight's size


def test_what_is_kept_of_a_step_is_computed_again_where_states_are_dropped():
    def f(w, xs, kept):
        def step(i, h):
            return (h @ w + xs[i]).tanh()

        return wf.fori_loop(0, xs.shape[0], step, xs[0], checkpoint=kept)

    w, xs = array(32, 32) * np.float32(0.2), array(33, 4, 32)
    found = []
    for kept in (False, 1000, 4, 2, None):
        eager, compiled, _, _ = trained(lambda w, xs, kept=kept: f(w, xs, kept), (w,), xs)
        assert bits(compiled) == bits(eager)
        found.append(bits(compiled))
    assert found == found[:1] * len(found)


def test_what_is_drained_is_bounded():
    """However long a loop is, its stacks stay as small as they are said to be."""
    assert draining.most(draining.MOST * 2) == 1
    assert draining.most(1024) * 1024 <= draining.MOST
