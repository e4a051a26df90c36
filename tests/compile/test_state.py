"""State from outside: modules, buffers, optimizers. A compiled function sees it as it is now and
leaves it as the function itself would.
"""

from __future__ import annotations

import gc
import weakref

import pytest

import weft as wf
from tests.compile.lab import compiled, outcome, random, same
from weft import nn
from weft.runtime.start import engine

pytestmark = pytest.mark.tiny


def test_a_compiled_module_is_the_module():
    net = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    c, x = compiled(net), random(5, 4)
    assert list(c.parameters()) == list(net.parameters())
    assert c.state_dict().keys() == net.state_dict().keys()
    wf.manual_seed(0)
    c(x)
    c.eval()
    assert not net.training
    same(c(x), net(x))
    c.train()
    assert c.training
    c.load_state_dict({k: v * 0 for k, v in net.state_dict().items()})
    assert not net[0].weight.numpy().any()


def test_attributes_set_on_a_compiled_module_are_the_modules():
    class Scaled(nn.Module):
        def __init__(self):
            self.k = 2.0
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            return self.layer(x) * self.k

    net = Scaled()
    c, x = compiled(net), random(2, 3)
    same(c(x), net(x))
    c.k = 3.0
    assert net.k == 3.0
    same(c(x), net(x))
    net.layer = nn.Linear(3, 3)
    same(c(x), net(x))


def test_training_and_evaluation():
    a, b = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
    c = compiled(a)
    for i in range(6):
        a.train(i % 3 != 1)
        b.train(i % 3 != 1)
        x = random(8, 4)
        same(c(x), b(x))
        same(list(a.buffers()), list(b.buffers()))
    assert c.captures == 2


def test_dropout():
    layer = nn.Dropout(0.5)
    c, x = compiled(layer), random(100)
    wf.manual_seed(1)
    first = c(x)
    layer.eval()
    same(c(x), x)
    layer.train()
    wf.manual_seed(1)
    same(c(x), first)


def test_a_cell_that_is_read_and_written():
    total = wf.zeros(3)

    def f(x):
        total.assign(total * 2 + x)
        return total, total + 0

    c = compiled(f)
    xs = [random(3) for _ in range(4)]
    got = [c(x)[1].tolist() for x in xs]
    assert c(xs[0])[0] is total
    total.assign(wf.zeros(3))
    assert got == [f(x)[1].tolist() for x in xs]


def test_cells_that_exchange_their_values():
    a, b = wf.ones(2), wf.zeros(2)

    def f():
        old = a + 0
        a.assign(b)
        b.assign(old)

    c = compiled(f)
    for i in range(1, 5):
        c()
        assert (a.tolist(), b.tolist()) == (([0, 0], [1, 1]) if i % 2 else ([1, 1], [0, 0]))


def test_a_value_read_before_keeps_its_elements():
    """Updated in place, yes; but nobody who holds the old value sees that."""
    w = nn.Parameter(wf.zeros(3))

    def f():
        with wf.no_grad():
            w.assign(w + 1)

    c = compiled(f)
    kept = []
    for _ in range(4):
        kept += [(w.detach(), w.numpy(), w[1:])]
        c()
    for i, (a, b, d) in enumerate(kept):
        assert a.tolist() == [i] * 3 and b.tolist() == [i] * 3 and d.tolist() == [i] * 2


def test_state_loaded_between_calls():
    def made(how):
        wf.manual_seed(0)
        net = nn.Linear(4, 3)
        opt = wf.optim.Adam(net.parameters(), 0.1)

        def step(x):
            opt.zero_grad()
            loss = net(x).sum()
            loss.backward()
            opt.step()
            return loss

        return net, opt, how(step)

    (a, opt_a, f), (b, opt_b, g) = made(lambda f: f), made(compiled)
    x = random(2, 4)
    for _ in range(3):
        same(g(x).detach(), f(x).detach())
    saved, weights = opt_a.state_dict(), {k: v.numpy() for k, v in a.state_dict().items()}
    for _ in range(2):
        same(g(x).detach(), f(x).detach())
    for net, opt in ((a, opt_a), (b, opt_b)):
        opt.load_state_dict(saved)
        net.load_state_dict(weights)
    for _ in range(2):
        same(g(x).detach(), f(x).detach())
    same(list(b.parameters()), list(a.parameters()))


def test_numbers_of_an_optimizer_that_change():
    def made(how):
        wf.manual_seed(0)
        net = nn.Linear(4, 3)
        opt = wf.optim.SGD(net.parameters(), 0.1, momentum=0.9)

        def step(x):
            opt.zero_grad()
            net(x).sum().backward()
            opt.step()

        return net, opt, how(step)

    (a, opt_a, f), (b, opt_b, g) = made(lambda f: f), made(compiled)
    x = random(2, 4)
    for i in range(5):
        opt_a.param_groups[0]["lr"] = opt_b.param_groups[0]["lr"] = 0.1 / (i + 1)
        f(x)
        g(x)
    assert g.captures == 1, g.reasons
    opt_a.param_groups[0]["momentum"] = opt_b.param_groups[0]["momentum"] = 0.5
    f(x)
    g(x)
    same(list(b.parameters()), list(a.parameters()))


def test_state_of_another_type():
    net = nn.Linear(4, 3)
    c, x = compiled(net), random(2, 4)
    same(c(x), net(x))
    net.double()
    assert (outcome(c, x) or ("",))[0] == (outcome(net, x) or ("",))[0]
    same(c(x.astype(wf.float64)), net(x.astype(wf.float64)))
    net.float()
    same(c(x), net(x))


def test_hooks():
    net = nn.Linear(4, 3)
    c, x = compiled(net), random(2, 4)
    same(c(x), net(x))
    handle = net.register_forward_hook(lambda module, args, out: out * 2)
    same(c(x), net(x))
    handle.remove()
    same(c(x), net(x))


def test_nothing_is_kept_alive():
    net = nn.Linear(4, 3)
    c = wf.compile(net)
    c(random(2, 4))
    seen = weakref.ref(net)
    del net, c
    gc.collect()
    assert seen() is None


def test_a_program_keeps_nothing_of_the_values_it_was_captured_with():
    weight = wf.zeros((1 << 18,))
    used = engine().memory_stats().used

    @wf.compile
    def step(x):
        weight.assign(weight + x)
        return weight[0]

    for _ in range(3):
        step(wf.tensor(1.0))
    assert weight[0].item() == 3
    assert engine().memory_stats().used - used < weight.type.nbytes // 2
