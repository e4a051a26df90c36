"""grad, value_and_grad, vjp, jvp, jacobian, hessian, custom_vjp, checkpoint, gradcheck."""

from __future__ import annotations

import math

import numpy as np
import pytest

import weft as wf
from weft.errors import DTypeError, GradError, NumericsError, ShapeError
from weft.runtime.start import engine


def f64(*values):
    return wf.tensor(list(values), dtype=wf.float64)


def test_grad_of_grad_of_grad():
    f = wf.grad(wf.grad(wf.grad(lambda x: x**4.0)))
    assert f(f64(2.0).sum()).item() == pytest.approx(48.0)


def test_grad_of_several_arguments():
    ga, gb = wf.grad(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(f64(2.0), f64(3.0))
    assert (ga.tolist(), gb.tolist()) == ([12.0], [4.0])


def test_value_and_grad_gives_plain_results():
    y, g = wf.value_and_grad(lambda x: (x * x).sum())(f64(1.0, 2.0))
    assert y.item() == 5.0 and g.tolist() == [2.0, 4.0]
    assert not y.requires_grad and not g.requires_grad


def test_an_outer_tape_sees_through_an_inner_grad():
    w = wf.tensor(3.0, dtype=wf.float64, requires_grad=True)
    inner = wf.grad(lambda x: x * x * w)(f64(2.0).sum())  # 2 x w
    inner.backward()
    assert w.grad.item() == 4.0


def test_inner_and_outer_variables_are_kept_apart():
    # d/dx (x * d/dy (x + y)) = 1
    outer = wf.grad(lambda x: x * wf.grad(lambda y: x + y)(f64(1.0).sum()))
    assert outer(f64(1.0).sum()).item() == 1.0


def test_grad_works_inside_no_grad():
    with wf.no_grad():
        assert wf.grad(lambda x: (x * x).sum())(f64(3.0)).tolist() == [6.0]


def test_grad_of_what_does_not_depend_is_zero():
    assert wf.grad(lambda x: f64(1.0).sum() * 2.0 + x.sum() * 0.0)(f64(1.0, 2.0)).tolist() == [
        0.0,
        0.0,
    ]


def test_grad_refuses_what_it_cannot_do():
    with pytest.raises(ShapeError, match="one element"):
        wf.grad(lambda x: x)(f64(1.0, 2.0))
    with pytest.raises(DTypeError, match="floating"):
        wf.grad(lambda x: x.sum())(wf.tensor([1, 2]))
    with pytest.raises(DTypeError, match="one tensor"):
        wf.grad(lambda x: (x, x))(f64(1.0))
    with pytest.raises(ShapeError, match="argnums"):
        wf.grad(lambda x: x.sum(), argnums=1)(f64(1.0))


def test_vjp_can_be_called_again():
    y, pullback = wf.vjp(lambda a, b: (a * b, a + b), f64(2.0), f64(5.0))
    assert [o.tolist() for o in y] == [[10.0], [7.0]]
    assert [c.tolist() for c in pullback(f64(1.0), f64(0.0))] == [[5.0], [2.0]]
    assert [c.tolist() for c in pullback(f64(0.0), f64(1.0))] == [[1.0], [1.0]]


def test_jvp_agrees_with_differences():
    rng = np.random.default_rng(0)
    x, t = rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    w = wf.asarray(rng.standard_normal((4, 2)))

    def f(x):
        return ((x @ w).tanh() * x.sum()).exp()

    y, dy = wf.jvp(f, (wf.asarray(x),), (wf.asarray(t),))
    e = 1e-6
    want = (f(wf.asarray(x + e * t)).numpy() - f(wf.asarray(x - e * t)).numpy()) / (2 * e)
    np.testing.assert_allclose(dy.numpy(), want, rtol=1e-6)
    np.testing.assert_array_equal(y.numpy(), f(wf.asarray(x)).numpy())


def test_jvp_of_a_linear_function_of_something_else():
    _, dy = wf.jvp(lambda x, c: x * 3.0 + c, (f64(1.0), f64(2.0)), (f64(5.0), f64(0.0)))
    assert dy.tolist() == [15.0]


def test_jacobian_and_hessian():
    x = f64(1.0, 2.0, 3.0)
    j = wf.jacobian(lambda x: x[1:] * x[:-1])(x)
    assert j.tolist() == [[2.0, 1.0, 0.0], [0.0, 3.0, 2.0]]
    h = wf.hessian(lambda x: (x * x * x).sum() + x[0] * x[1])(x)
    assert h.tolist() == [[6.0, 1.0, 0.0], [1.0, 12.0, 0.0], [0.0, 0.0, 18.0]]


def test_jacobian_of_matrices_has_both_shapes():
    x = wf.asarray(np.arange(6.0).reshape(2, 3))
    assert wf.jacobian(lambda x: x.sum(axis=1))(x).shape == (2, 2, 3)


def test_custom_vjp_replaces_the_gradient():
    @wf.custom_vjp
    def log1pexp(x):
        return (1.0 + x.exp()).log()

    log1pexp.defvjp(lambda x: (log1pexp.f(x), x), lambda x, g: (g * (1.0 - 1.0 / (1.0 + x.exp())),))
    g = wf.grad(lambda x: log1pexp(x).sum())(wf.tensor([100.0]))
    assert g.tolist() == [1.0]
    assert log1pexp(wf.tensor([0.0])).item() == pytest.approx(math.log(2))


def test_custom_vjp_without_a_gradient_is_an_error_where_one_is_wanted():
    @wf.custom_vjp
    def double(x):
        return x * 2.0

    assert double(wf.tensor([1.0])).tolist() == [2.0]
    with pytest.raises(GradError, match=r"give it one with double.defvjp\(forward, backward\)$"):
        wf.grad(lambda x: double(x).sum())(wf.tensor([1.0]))


def test_custom_vjp_takes_arguments_by_name():
    @wf.custom_vjp
    def scaled(x, by=1.0, *, bias=0.0):
        return x * by + bias

    scaled.defvjp(lambda x, by: (x * by, by), lambda by, g: (g * (by + 1.0), None))
    g = wf.grad(lambda x: scaled(by=3.0, x=x).sum())(wf.tensor([1.0]))
    assert g.tolist() == [4.0]
    with pytest.raises(GradError, match=r"given by position, in a custom_vjp, got bias$"):
        scaled(wf.tensor([1.0]), bias=1.0)


def test_custom_vjp_counts_its_cotangents():
    @wf.custom_vjp
    def f(x, y):
        return x * y

    f.defvjp(lambda x, y: (x * y, None), lambda kept, g: (g,))
    with pytest.raises(GradError, match="2 cotangents"):
        wf.grad(lambda x: f(x, x).sum())(wf.tensor([1.0]))


def test_checkpoint_gives_the_same_bits_and_runs_again():
    runs = []
    w = wf.tensor(np.linspace(-1, 1, 16, dtype="f").reshape(4, 4), requires_grad=True)
    x = wf.tensor(np.linspace(0, 1, 8, dtype="f").reshape(2, 4), requires_grad=True)

    def block(x):
        runs.append(1)
        return ((x @ w).tanh() @ w).exp()

    block(x).sum().backward()
    want = [x.grad.tolist(), w.grad.tolist()]
    x.grad = w.grad = None
    runs.clear()
    wf.checkpoint(block)(x).sum().backward()
    assert [x.grad.tolist(), w.grad.tolist()] == want
    assert len(runs) == 2


def test_checkpoint_holds_less_memory():
    x = wf.tensor(np.ones(100_000, "f"), requires_grad=True)

    def block(x):
        for _ in range(10):
            x = x.exp() * 0.3
        return x

    def held(f):
        before = engine().memory_stats().used
        y = f(x)
        out = engine().memory_stats().used - before
        y.sum().backward()
        return out

    assert held(wf.checkpoint(block)) * 5 < held(block)


def test_gradcheck_finds_a_wrong_gradient():
    @wf.custom_vjp
    def wrong(x):
        return x * x

    wrong.defvjp(lambda x: (x * x, x), lambda x, g: (g * x,))
    with pytest.raises(NumericsError, match="argument 0, element"):
        wf.gradcheck(lambda x: wrong(x), [f64(1.0, 2.0)])
