"""Gradients through calls of compiled functions, and inside of them."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from tests.compile.lab import bits, compiled, random, same
from weft import nn
from weft.errors import CaptureWarning, GradError


def gradients(f, *leaves):
    """What f().backward() leaves behind."""
    for x in leaves:
        x.grad = None
    f().backward()
    out = [x.grad for x in leaves]
    for x in leaves:
        x.grad = None
    return out


def test_backward_through_a_call():
    x, w = random(3, 4, grad=True), random(4, 2, grad=True)
    f = lambda x: (x @ w).tanh().sum()
    c = compiled(f)
    same(gradients(lambda: c(x), x, w), gradients(lambda: f(x), x, w))


def test_backward_through_calls_between_ops():
    w = random(4, grad=True)
    f = lambda h: F.softmax(h * w, dim=-1)
    c = compiled(f)
    x = random(3, 4, grad=True)
    chain = lambda f: lambda: (f(f((x * 2).exp()) + 1) * x).sum()
    same(gradients(chain(c), x, w), gradients(chain(f), x, w))


def test_some_results_are_used():
    f = lambda x: (x * 2, x.exp(), 3, x.detach())
    c = compiled(f)
    x = random(3, grad=True)
    for i in (0, 1):
        same(gradients(lambda i=i: c(x)[i].sum(), x), gradients(lambda i=i: f(x)[i].sum(), x))


def test_a_tensor_passed_twice():
    f = lambda a, b: (a * b * b).sum()
    x = random(3, grad=True)
    same(gradients(lambda: compiled(f)(x, x), x), gradients(lambda: f(x, x), x))


def test_calls_that_want_gradients_of_other_arguments():
    def f(a, b):
        for _ in range(3):
            a, b = a * b + a, (a * b).tanh()
        return (a + b).sum()

    c = compiled(f)
    x, y, z = random(5, grad=True), random(5, grad=True), random(5)
    calls = [(x, y), (y, x), (x, z), (z, x), (x, x), (z, z), (x.detach(), x)]
    for a, b in calls * 3:
        same(c(a, b), f(a, b))
        if a.requires_grad or b.requires_grad:
            same(
                gradients(lambda a=a, b=b: c(a, b), x, y), gradients(lambda a=a, b=b: f(a, b), x, y)
            )
    assert c.captures == 5
    c.programs = None  # what was called before is found without
    same(c(*calls[0]), f(*calls[0]))
    with wf.no_grad(), pytest.raises(AttributeError):
        c(x, y)


def test_an_argument_with_a_history():
    f = lambda y: (y * y).sum()
    x = random(3, grad=True)
    same(gradients(lambda: compiled(f)(x * 2), x), gradients(lambda: f(x * 2), x))


def test_second_gradients():
    f = lambda x: (x.tanh() * x).sum()
    c, x = compiled(f), random(3, 4)
    twice = lambda f: wf.grad(lambda x: (wf.grad(f)(x) * x).sum())
    same(twice(c)(x), twice(f)(x))
    same(wf.hessian(c)(x), wf.hessian(f)(x))
    once = lambda x: x.tanh() * x
    same(wf.jacobian(compiled(once))(x), wf.jacobian(once)(x))
    same(wf.jvp(compiled(once), (x,), (x,)), wf.jvp(once, (x,), (x,)))


def test_transforms_inside():
    f = lambda x: wf.grad(lambda x: (x * x).tanh().sum())(x)
    g = lambda x: wf.hessian(lambda x: (x * x).tanh().sum())(x)
    h = lambda x: wf.vjp(lambda x: (x.exp(), x * x), x)[1](x, x + 1)
    x = random(3)
    for each in (f, g, h):
        same(compiled(each)(x), each(x))


def test_checkpoints_inside():
    block = wf.checkpoint(lambda x: (x * 2).tanh())
    f = lambda x: (block(x) * x).sum()
    x = random(3, 4, grad=True)
    same(gradients(lambda: compiled(f)(x), x), gradients(lambda: f(x), x))


def test_backward_twice_is_an_error_as_in_eager_code():
    x = random(3, grad=True)
    for f in (lambda x: (x * x).sum(), lambda x: ((x * x).sum(), x)):
        c = compiled(f)
        y = c(x)
        y = y[0] if isinstance(y, tuple) else y
        y.backward()
        with pytest.raises(GradError):
            y.backward()


def test_backward_inside_on_an_argument():
    def f(x):
        (x * x).sum().backward()
        return x.grad

    c = compiled(f)
    x, y = random(3, grad=True), None
    y = wf.tensor(x.numpy(), requires_grad=True)
    for _ in range(3):
        same(c(x), f(y))
        same(x.grad, y.grad)


def test_a_leaf_made_inside():
    def f(x):
        w = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)
        (w * x).sum().backward()
        return w.grad

    x = random(3)
    same(compiled(f)(x), f(x))


def test_a_leaf_made_inside_and_given_back_runs_eagerly():
    with pytest.warns(CaptureWarning, match="requires_grad"):
        w = wf.compile(lambda: wf.ones(3, requires_grad=True))()
    (w * 2).sum().backward()
    assert w.grad.tolist() == [2, 2, 2]


def test_an_argument_given_a_value_with_a_history_runs_eagerly():
    def f(x, y):
        x += y
        return x.sum()

    x, y = random(3), random(3, grad=True)
    with pytest.warns(CaptureWarning, match="history"):
        wf.compile(f)(x, y)
    assert x.requires_grad
    x.sum().backward()
    assert y.grad.tolist() == [1, 1, 1]


def test_values_assigned_inside_keep_their_gradients():
    def f(x):
        y = x * 2
        y[0] = 5.0
        y += x
        return y.sum()

    x = random(3, grad=True)
    same(gradients(lambda: compiled(f)(x), x), gradients(lambda: f(x), x))


def test_parameters_that_are_frozen_and_thawed():
    def made(how):
        wf.manual_seed(0)
        layer = nn.Linear(4, 3)

        def step(x):
            layer.zero_grad()
            loss = layer(x).square().sum()
            loss.backward()
            return loss

        return layer, how(step), how(layer)

    (a, f, fa), (b, g, gb) = made(lambda f: f), made(compiled)
    x = random(2, 4)
    for wanted in (True, False, True):
        a.weight.requires_grad_(wanted)
        b.weight.requires_grad_(wanted)
        same(g(x).detach(), f(x).detach())
        same([b.weight.grad, b.bias.grad], [a.weight.grad, a.bias.grad])
        same(gb(x), fa(x))
    for layer in (a, b):
        layer.requires_grad_(False)
    same(gb(x), fa(x))
    for layer in (a, b):
        layer.requires_grad_(True)
    same(gradients(lambda: gb(x).sum(), b.weight), gradients(lambda: fa(x).sum(), a.weight))


def test_gradients_that_were_cleared_or_not():
    p = nn.Parameter(random(3))

    def f(x):
        loss = (p * x).sum()
        loss.backward()
        return loss

    c, x = compiled(f), random(3)
    grads = []
    for step in (c, f):
        p.grad = None
        for i in range(4):
            step(x)
            if i == 1:
                p.grad = p.grad * 2
        grads.append(p.grad)
    same(*grads)


def test_an_optimizer_steps_on_gradients_from_outside():
    p = nn.Parameter(random(3))
    opt = wf.optim.SGD([p], 0.1)
    c = compiled(lambda: opt.step())
    before = p.detach()
    p.grad = random(3)
    c()
    after = p.detach()
    p.assign(before)
    opt.step()
    same(p.detach(), after)
    p.grad = None
    c()
    same(p.detach(), after)


def test_custom_gradients():
    @wf.custom_vjp
    def clipped(x):
        return x * 2

    clipped.defvjp(lambda x: (x * 2, x), lambda x, g: (wf.minimum(g, 0.5) * x,))
    x = random(3, grad=True)
    f = lambda x: (clipped(x) * 3).sum()
    same(gradients(lambda: compiled(f)(x), x), gradients(lambda: f(x), x))


def hard(*shape, seed=0):
    """Values whose sums depend on the order they are added in."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)
    return wf.tensor(a.astype("f"), requires_grad=True)


def layer(w, x):
    return (w @ x).tanh() + (w * x).sin() + w * 0.1


def looped(w, x):
    for _ in range(3):
        if x.sum() > 0:
            x = (x * w).tanh() + w
        else:
            x = x * 1.25 - w * w
    return x + w * x


@pytest.mark.parametrize("f", [layer, looped])
def test_contributions_add_up_in_the_order_of_the_tape(f):
    """A tensor read several times inside of a call, and before and after it in eager code."""

    def run(f):
        w, x = hard(8, 8), hard(8, 8, seed=1)
        before = (w * 0.3).exp() + w
        h = f(w, x)
        again = f(w, h)
        after = (w.sin() * before + w * 1.7).sum()
        (h.sum() + again.sum() * 3 + after).backward()
        first = [bits(w.grad), bits(x.grad)]
        return first + [bits(g) for g in wf.grad(lambda w, x: f(w, f(w, x)).sum(), (0, 1))(w, x)]

    c = compiled(f)
    assert run(c) == run(f)


def test_a_recurrent_cell_called_in_eager_code():
    cell, x = nn.GRUCell(6, 5), [hard(3, 6, seed=i) for i in range(6)]

    def run(cell, params):
        h = wf.zeros((3, 5))
        for v in x:
            h = cell(v, h)
        h.sum().backward()
        out = [bits(p.grad) for p in (*params, *x)]
        for p in (*params, *x):
            p.grad = None
        return out

    params = list(cell.parameters())
    c = compiled(cell)
    assert run(c, params) == run(cell, params)
    assert c.captures <= 2  # at first h has no history


def test_results_that_nobody_differentiates_send_nothing_back():
    f = lambda x: (x * 2, x.sqrt(), x.log().sum())
    x = wf.tensor([0.0, 4.0, float("inf")], requires_grad=True)
    for used in ([0], [1], [0, 2], [2, 1], [0, 1, 2]):
        run = lambda f, used=used: gradients(lambda: sum(f(x)[i].sum() for i in used), x)
        same(run(compiled(f)), run(f))
    assert np.isfinite(run(compiled(f))[0].numpy()).any()


def test_one_of_several_inputs_is_asked_for():
    f = lambda a, b: (a * b).exp() + a * b * b
    a, b = hard(4), hard(4, seed=1)
    for argnums in (0, 1, (0, 1)):
        same(wf.grad(lambda a, b: compiled(f)(a, b).sum(), argnums)(a, b),
             wf.grad(lambda a, b: f(a, b).sum(), argnums)(a, b))  # fmt: skip


def test_a_loss_that_was_pulled_back_inside_keeps_a_used_history():
    w = random(3, grad=True)

    def f(x):
        loss = (x * w).square().mean()
        loss.backward()
        return loss, loss.detach()

    for run in (f, compiled(f)):
        loss, plain = run(random(3))
        assert (loss.requires_grad, loss.is_leaf, plain.requires_grad) == (True, False, False)
        for pull in (loss.backward, (loss * 2).backward):
            with pytest.raises(GradError, match="already used"):
                pull()


@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_inside_a_step_are_captured_once(order):
    """What a transform differentiates by is its own: no gradient of it is left in the world."""
    wf.manual_seed(0)
    net = wf.nn.Sequential(wf.nn.Linear(1, 4), wf.nn.Tanh(), wf.nn.Linear(4, 1))
    slope = lambda t: net(t).sum()
    for _ in range(order):
        slope = (lambda f: lambda t: wf.grad(lambda s: f(s).sum())(t))(slope)

    def step(t):
        net.zero_grad()
        loss = (slope(t) ** 2).mean() + slope(wf.zeros((1, 1))).sum()
        loss.backward()
        return loss, net[0].weight.grad

    run = wf.compile(step, fallback=False)
    for seed in range(4):
        t = wf.tensor(np.random.default_rng(seed).random((5, 1)).astype(np.float32))
        assert [x.tolist() for x in run(t)] == [x.tolist() for x in step(t)]
    assert run.captures == 1
