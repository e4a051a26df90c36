"""Calls that are started and awaited."""

from __future__ import annotations

import asyncio
import time

import pytest

import weft as wf
from tests.compile.lab import compiled, random, same
from weft import nn, optim


def test_results_are_awaited():
    f = compiled(lambda x, k=1: (x * 2 + k).sum(axis=0))
    x = random(4, 3)

    async def main():
        pending = f.start(x)
        pair = await asyncio.gather(f.start(x, k=3), f.start(x + 1))
        return await pending, *pair

    same(asyncio.run(main()), (f(x), f(x, k=3), f(x + 1)))
    program = wf.trace(lambda x: x * 3, x)
    same(program.start(x).result(), program(x))


def test_the_loop_goes_on_while_a_program_runs():
    def long(x):
        while x.sum() < 5e4:
            x = x + (x @ x).abs().min() * 0 + 1e-3
        return x

    f = compiled(long)
    x = wf.zeros((32, 32))
    f(wf.full((32, 32), 60.0))

    async def main():
        pending, ticks, slowest, last = f.start(x), 0, 0.0, time.process_time()
        task = asyncio.ensure_future(_wait(pending))
        while not task.done():
            await asyncio.sleep(0.001)
            now = time.process_time()
            slowest, last, ticks = max(slowest, now - last), now, ticks + 1
        return ticks, slowest, await task

    started = time.process_time()  # of this process: the machine may be stopped meanwhile
    ticks, slowest, y = asyncio.run(main())
    took = time.process_time() - started
    assert y.sum().item() >= 5e4
    assert ticks > 20 and slowest < took / 3, (ticks, slowest, took)


async def _wait(pending):
    return await pending


def test_errors_and_modes_come_along():
    w = random(3, grad=True)
    f = compiled(lambda x, i: wf.take(x * w, i, axis=0))
    x = random(3)
    with pytest.raises(IndexError, match="got 7"):
        asyncio.run(_wait(f.start(x, wf.tensor([7]))))
    with wf.no_grad():
        pending = f.start(x, wf.tensor([1]))
    assert not pending.result().requires_grad
    assert f.start(x, wf.tensor([1])).result().requires_grad


def test_steps_run_in_the_order_they_were_started():
    def train(start):
        wf.manual_seed(0)
        net = nn.Linear(4, 2)
        opt = optim.Adam(net.parameters(), 0.1)

        @wf.compile(fallback=False)
        def step(x):
            opt.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            opt.step()
            return loss.detach()

        xs = [wf.full((3, 4), float(i)) for i in range(8)]
        if start:
            losses = [p.result() for p in [step.start(x) for x in xs]]
        else:
            losses = [step(x) for x in xs]
        return losses, net.weight.detach()

    same(train(True), train(False))


def test_a_call_that_is_taken_back():
    f = compiled(lambda x: x * 2)
    slow = [f.start(wf.ones((1000, 1000))) for _ in range(20)]
    last = f.start(wf.ones(3))
    if last.cancel():
        assert "cancelled" in repr(last) and last.done()
    for p in slow:
        p.result(60)
    assert "done" in repr(slow[0])
