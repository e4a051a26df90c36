"""What loops keep for their gradients: few states at a time, and never another bit."""

import numpy as np
import pytest
from control_lab import bits

import weft as wf
from weft.errors import DTypeError

X = wf.tensor(np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32))


def slope(f, x, compiled):
    """A loss and its gradient, in one program or eagerly."""

    def step(x):
        loss = f(x).sum()
        loss.backward()
        g, x.grad = x.grad, None
        return loss.detach(), g

    run = wf.compile(step, fallback=False) if compiled else step
    return run(wf.tensor(x.numpy(), requires_grad=True))


def through_call(f, x):
    """The gradient that eager code takes through a compiled call."""
    x = wf.tensor(x.numpy(), requires_grad=True)
    wf.compile(f, fallback=False)(x).sum().backward()
    return x.grad


@pytest.mark.parametrize("kept", [None, False, 2, 3, 4, 10, 64, 1000])
@pytest.mark.parametrize("steps", [65, 130])
def test_no_bit_depends_on_how_many_states_are_kept(kept, steps):
    def f(x):
        step = lambda i, s: (s * 1.001 + x * 0.01).tanh() + i * 0.001
        return wf.fori_loop(0, steps, step, x, checkpoint=kept)

    expected = slope(f, X, compiled=False)
    assert bits(slope(f, X, compiled=True)) == bits(expected)
    assert bits(through_call(f, X)) == bits(expected[1])


@pytest.mark.parametrize("kept", [None, 2, False])
@pytest.mark.parametrize("limit", [0.0, 1.0, 4.0, 40.0])
def test_loops_of_every_length_that_stop_by_a_tensor(kept, limit):
    def f(x):
        less = lambda s: (s * s).sum() < limit
        return wf.while_loop(less, lambda s: s * 1.1 + x * 0.01, x * 0.01, checkpoint=kept)

    assert bits(slope(f, X, compiled=True)) == bits(slope(f, X, compiled=False))


def test_loops_in_loops():
    def f(x):
        for _ in range(70):
            y = x
            while (y * y).sum() > 1.0:
                y = y * 0.7
            x = x + y * 0.1
            x = x / (1.0 + x.abs().max())
        return x

    assert bits(slope(f, X, compiled=True)) == bits(slope(f, X, compiled=False))


@pytest.mark.parametrize("count", [3, 100])
@pytest.mark.parametrize("kept", [None, 4])
def test_scan(count, kept):
    x = wf.tensor(np.random.default_rng(1).standard_normal((count, 3)).astype(np.float32))

    def f(x):
        step = lambda s, v: ((s * 0.9 + v).tanh(), {"product": s * v, "sum": s + v})
        s, ys = wf.scan(step, x[0], x, checkpoint=kept)
        return s.sum() + (ys["product"] * ys["sum"]).sum()

    assert bits(slope(f, x, compiled=True)) == bits(slope(f, x, compiled=False))
    assert bits(through_call(f, x)) == bits(slope(f, x, compiled=False)[1])


def test_a_scan_of_many_steps_is_a_loop():
    f = wf.compile(lambda x: wf.scan(lambda s, v: (s + v, s * v), x[0], x), fallback=False)
    assert [n.op.name for n in f.graph(wf.ones((500, 2))).order].count("while") == 1


def test_a_long_range_is_a_loop_where_it_can_be():
    def sums(x):
        for i in range(300):
            x = x * 0.99 + i
        return x

    def picks(x):
        parts = [x, x * 2, x * 3]
        for i in range(90):
            x = x + parts[i % 3]
        return x

    for f, loops in ((sums, 1), (picks, 0)):
        compiled = wf.compile(f, fallback=False)
        assert [n.op.name for n in compiled.graph(X).order].count("while") == loops
        assert bits(compiled(X)) == bits(f(X))


def grown(steps, kept, width=32):
    """Bytes that a call adds at its peak, and what `explain` says is kept."""
    w = wf.tensor(np.eye(width, dtype=np.float32) * 0.9, requires_grad=True)

    def step(w):
        walk = lambda i, s: (s @ w).tanh() + 0.01
        loss = wf.fori_loop(0, steps, walk, wf.ones((width, width)), checkpoint=kept).sum()
        loss.backward()
        g, w.grad = w.grad, None
        return g

    f = wf.compile(step, fallback=False)
    f(w)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak starts again from here
    before = status("VmRSS")
    g = f(w)
    return status("VmHWM") - before, g, f.explain(w)


def status(field):
    with open("/proc/self/status") as file:
        return int(next(x for x in file if x.startswith(field + ":")).split()[1]) * 1024


def test_ten_thousand_steps_need_little_memory():
    few, g, said = grown(10_000, None)
    everything, same, said_all = grown(10_000, False)
    assert everything > 10_000 * 32 * 32 * 4
    assert few < everything / 10
    assert bits(g) == bits(same)
    ((line, size, most),) = said.loops
    assert size == 32 * 32 * 4 + 64 and most == 256 and "test_checkpoints" in line
    assert "at most 256 steps, 4,160 bytes each" in str(said)
    assert "every step, 4,160 bytes each" in str(said_all)


def test_what_the_reverse_does_not_read_is_not_kept():
    def step(x):
        out, total = wf.zeros((1000,)), x * 0
        n = 0
        while total.max() < 40.0:
            total = total + x.abs()
            out[n] = total.sum()
            n += 1
        (out.sum() + total.sum()).backward()
        g, x.grad = x.grad, None
        return g

    f = wf.compile(step, fallback=False)
    x = wf.tensor(X.numpy(), requires_grad=True)
    assert bits(f(x)) == bits(step(x))
    ((_, size, _),) = f.explain(x).loops
    assert size < 1000  # the 4,000 bytes of `out` are not among it


@pytest.mark.parametrize("bad", [1, 0, -4, 2.0, "all"])
def test_a_wrong_checkpoint(bad):
    with pytest.raises(DTypeError, match="checkpoint: None, False or a number from 2"):
        wf.while_loop(lambda x: x < 1, lambda x: x + 1, wf.tensor(0.0), checkpoint=bad)
