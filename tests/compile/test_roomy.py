"""One program for all lengths, where a size only ends a loop."""

import numpy as np
import pytest
from control_lab import bits

import weft as wf

RNG = np.random.default_rng(0)


def rows(n, width=3):
    return wf.tensor(RNG.standard_normal((n, 2, width)).astype(np.float32))


def programs(call):
    """How many different programs a compiled function has."""
    return len({id(p) for made in call.programs.values() for p in made})


def last(x, w):
    h = x[0] * 0
    for row in x:
        h = (row @ w + h).tanh()
    return h


def masked(x, w):
    h, n = x[0] * 0, wf.tensor(0)
    for t in range(x.shape[0]):
        if h.sum() <= 0:
            h = (x[t] @ w + h).tanh()
            n = n + 1
        else:
            h = h - x[t].abs()
    return h, n


W = wf.tensor(RNG.standard_normal((3, 3)).astype(np.float32))


@pytest.mark.parametrize("f", [last, masked])
def test_one_program_does_for_all_lengths(f):
    call = wf.compile(f, fallback=False)
    for n in (20, 33, 1, 17, 64, 2, 33, 20):
        x = rows(n)
        assert bits(call(x, W)) == bits(f(x, W))
    assert call.captures == 2
    assert programs(call) == 2  # the second found that the length changes


def test_training_through_it():
    w = wf.tensor(W.numpy(), requires_grad=True)
    opt = wf.optim.SGD([w], 0.1)

    def step(x):
        opt.zero_grad()
        loss = last(x, w).sum()
        loss.backward()
        opt.step()
        return loss.detach()

    call = wf.compile(step, fallback=False)
    given = [rows(n) for n in (20, 31, 5, 1, 40)]
    found = []
    for run in (call, step):
        w.assign(W)
        found.append([bits((run(x), w.detach().clone())) for x in given])
    assert found[0] == found[1]
    assert programs(call) == 2


def test_other_sizes_have_programs_of_their_own():
    call = wf.compile(lambda x: last(x, x[0].T @ x[0]), fallback=False)
    for n, width in ((20, 3), (21, 4), (22, 4), (30, 3), (31, 5), (9, 4)):
        x = rows(n, width)
        assert bits(call(x)) == bits(last(x, x[0].T @ x[0]))


def test_rows_that_lie_apart():
    call = wf.compile(last, fallback=False)
    for n in (20, 33, 25):
        x = rows(n)
        assert bits(call(x, W)) == bits(last(x, W))
        apart = rows(2 * n)[::2]
        assert bits(call(apart, W)) == bits(last(apart, W))
        turned = wf.permute_dims(wf.permute_dims(x, (2, 1, 0)).clone(), (2, 1, 0))
        assert bits(call(turned, W)) == bits(last(x, W))


def backwards(x, w):
    h = x[0] * 0
    for t in range(x.shape[0]):
        h = (x[x.shape[0] - 1 - t] @ w + h).tanh()
    return h


def twice_as_far(x, w):
    h = x[0] * 0
    for t in range(x.shape[0]):
        h = (x[t] @ w + h).tanh() * x.shape[0]
    return h + x.sum(axis=0)


def others(x, w):
    y = wf.flip(x, axis=0)
    h = x[0] * 0
    for t in range(y.shape[0]):
        h = (x[t] @ w + y[t] + h).tanh()
    return h


@pytest.mark.parametrize("f", [backwards, twice_as_far, others])
def test_what_else_is_done_with_a_size(f):
    call = wf.compile(f, fallback=False)
    for n in (20, 33, 18, 40):
        x = rows(n)
        assert bits(call(x, W)) == bits(f(x, W))
    assert call.captures == 2


def test_a_row_beyond_the_last_is_the_error_that_it_is():
    def f(x):
        total = x[0] * 0
        t = wf.tensor(0)
        while t < x.shape[0]:
            t = t + 1
            total = total + x[t]
        return total

    call = wf.compile(f, fallback=False)
    for n in (20, 30, 40):
        for run in (f, call):
            with pytest.raises(IndexError):
                run(rows(n))


def test_its_graph_and_its_explanation_are_those_of_the_call():
    call = wf.compile(last, fallback=False)
    for n in (20, 33, 27):
        call(rows(n), W)
    assert "f32[27, 2, 3]" in str(call.graph(rows(27), W))
    assert "f32[27, 2, 3]" in str(call.explain(rows(27), W))
