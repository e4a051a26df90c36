"""What `explain` says of a program is what it does."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft import nn, optim

pytestmark = pytest.mark.tiny


def test_values_kept_for_a_backward_inside():
    w = wf.tensor(np.ones((64, 64), np.float32), requires_grad=True)

    def step(x):
        w.grad = None
        h = x @ w
        a = wf.tanh(h)
        b = wf.exp(a @ w)
        loss = (b * b).sum()
        loss.backward()
        return loss

    compiled, x = wf.compile(step, fallback=False), wf.rand((128, 64))
    compiled(x)
    first = step.__code__.co_firstlineno
    said = compiled.explain(x)
    lines = {op: (int(line.split(":")[-2]) - first, size) for line, size, op in said.saved}
    assert lines == {"tanh": (3, 128 * 64 * 4), "exp": (4, 128 * 64 * 4)}
    text = str(said)
    assert "saved for the gradient: 65,536 bytes in 2 values" in text
    assert said.peak == said.arena + (128 * 64 + 64 * 64 + 64 * 64 + 1) * 4
    assert f"peak: {said.peak:,} bytes" in text


def test_nothing_is_kept_where_nobody_goes_back():
    net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Tanh())
    compiled, x = wf.compile(net, fallback=False), wf.rand((4, 8))
    with wf.no_grad():
        assert compiled.explain(x).saved == ()
    assert compiled.explain(x).saved != ()  # in eager code somebody may


def test_parallel_products_and_what_follows_them():
    def f(a, b, c, d):
        return wf.relu(a @ b + c @ d)

    threads = wf.get_num_threads()
    wf.set_num_threads(2)
    try:
        xs = [wf.rand((64, 64)) for _ in range(4)]
        said = wf.compile(f, fallback=False).explain(*xs)
        assert said.kernels == (("matmul",), ("matmul",), ("add", "relu"))
        assert "at the same time as the next 1" in str(said)
        assert "relu  ->  f32[64, 64]  (" in str(said)  # into the result, not the arena
    finally:
        wf.set_num_threads(threads)


def test_jumps_are_no_kernels():
    def f(x):
        while x.sum() > 1:
            x = x / 2
        return x

    said = wf.compile(f, fallback=False).explain(wf.rand((8, 8)))
    loop = [("sum",), ("greater",), ("divide",), ("copy",)]
    assert said.kernels == (("copy",), *loop, ("copy",))
    assert "6 kernel launches of 4 kernels" in str(said) and "jump      if false" in str(said)


def test_reasons_and_inputs():
    net = nn.Linear(3, 2)
    opt = optim.SGD(net.parameters(), 0.1)

    @wf.compile(fallback=False)
    def step(x, how):
        opt.zero_grad()
        loss = net(x).square().sum() if how == "sum" else net(x).square().mean()
        loss.backward()
        opt.step()
        return loss

    step(wf.rand((4, 3)), "sum")
    step(wf.rand((5, 3)), "sum")
    step(wf.rand((5, 3)), "mean")
    text = str(step.explain(wf.rand((5, 3)), "mean"))
    for part in ("the first call", "was f32[4, 3], now it is f32[5, 3]", "was 'sum', now it is"):
        assert part in text
    assert "argument  f32[5, 3]" in text and "state" in text
