"""A tensor is a cell of its own: what is assigned to one never reaches another, nor a gradient."""

from __future__ import annotations

import pytest
import torch

import weft as wf
import weft.nn.functional as F
from weft.errors import DTypeError, GradError


def test_gradients_of_two_leaves_are_two_tensors():
    a, b = (wf.ones(3, requires_grad=True) for _ in range(2))
    (a + b).sum().backward()
    for p in (a, b):
        p.grad *= 0.5
    assert a.grad.tolist() == b.grad.tolist() == [0.5, 0.5, 0.5]


def test_a_gradient_is_not_the_one_that_was_given():
    given, x = wf.ones(3), wf.ones(3, requires_grad=True)
    (x + 0.0).backward(given)
    x.grad += 1.0
    assert given.tolist() == [1.0, 1.0, 1.0]
    _, pullback = wf.vjp(lambda x: x + 0.0, wf.ones(2))
    cotangent = wf.ones(2)
    (g,) = pullback(cotangent)
    g *= 9.0
    assert cotangent.tolist() == [1.0, 1.0]


def test_results_of_a_transform_are_apart():
    ga, gb = wf.grad(lambda x, y: (x + y).sum(), (0, 1))(wf.ones(2), wf.ones(2))
    ga += 1.0
    assert gb.tolist() == [1.0, 1.0]


def _doubles_its_argument(x):
    x[0] = x[0] * 2.0
    return (x * x).sum()


def test_transforms_of_a_function_that_assigns_to_its_argument():
    x = wf.tensor([3.0])
    g = wf.grad(_doubles_its_argument)(x)
    assert g.tolist() == [24.0] and not g.requires_grad
    assert wf.jvp(_doubles_its_argument, (x,), (wf.ones(1),))[1].item() == 24.0
    assert wf.hessian(_doubles_its_argument)(x).tolist() == [[8.0]]
    assert x.tolist() == [3.0]


def test_checkpoint_runs_again_on_the_values_it_ran_on():
    x = wf.tensor(2.0, requires_grad=True)
    y = x * 1.0
    z = wf.checkpoint(lambda a: a * a)(y)
    y += 1.0
    z.backward()
    assert x.grad.item() == 4.0


def test_checkpoint_draws_the_same_random_numbers():
    wf.manual_seed(0)
    x = wf.ones(64, requires_grad=True)
    z = wf.checkpoint(lambda a: F.dropout(a, 0.5))(x)
    state = wf.get_rng_state()
    z.sum().backward()
    assert x.grad.tolist() == z.tolist()
    assert wf.get_rng_state() == state


def _square():
    @wf.custom_vjp
    def square(x):
        return x * x

    return square


def test_custom_vjp_keeps_values():
    square = _square()
    square.defvjp(lambda x: (x * x, x), lambda kept, g: (2.0 * kept * g,))
    x = wf.tensor(2.0, requires_grad=True)
    z = square(x)
    with wf.no_grad():
        x -= 1.0
    z.backward()
    assert x.grad.item() == 4.0


@pytest.mark.parametrize(
    "wrong", [lambda: wf.ones(7), lambda: 1.0, lambda: wf.ones(3, dtype=wf.float64)]
)
def test_custom_vjp_checks_its_cotangents(wrong):
    square = _square()
    square.defvjp(lambda x: (x * x, None), lambda kept, g: (wrong(),))
    with pytest.raises(GradError, match="cotangent 0"):
        square(wf.ones(3, requires_grad=True)).sum().backward()


def test_assign_under_no_grad_takes_the_value_alone():
    w, target = wf.tensor([1.0, 2.0], requires_grad=True), wf.zeros(2)
    with wf.no_grad():
        target.assign(w)
    assert not target.requires_grad
    p, q = (wf.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    with wf.no_grad():
        p.assign(q)
    (p * 5.0).sum().backward()
    assert p.grad.tolist() == [5.0, 5.0] and q.grad is None


def test_memory_lent_out_is_no_constant_of_ours():
    x = wf.tensor(1.0, requires_grad=True)
    (x + 0.0).backward()
    torch.from_dlpack(x.grad).add_(1)
    y = wf.tensor(1.0, requires_grad=True)
    (y * 5.0).backward()
    assert y.grad.item() == 5.0


def test_in_place_operators_keep_the_kind_of_dtype():
    i = wf.arange(3)
    for change in (lambda i: i.__iadd__(0.5), lambda i: i.__itruediv__(2)):
        with pytest.raises(DTypeError, match="same kind"):
            change(i)
    assert i.tolist() == [0, 1, 2]


def test_no_grad_decorates_with_and_without_parentheses():
    @wf.no_grad
    def double(v):
        return v * 2.0

    assert not double(wf.ones(2, requires_grad=True)).requires_grad


@pytest.mark.parametrize("f", [
    lambda z: F.dropout(z, training=False), lambda z: F.dropout(z, p=0.0),
    lambda z: wf.broadcast_arrays(z)[0], lambda z: wf.einsum("i->i", z),
    lambda z: z.reshape(3), lambda z: z[:], lambda z: wf.squeeze(z, axis=()),
])  # fmt: skip
def test_functions_give_tensors_of_their_own(f):
    z = wf.ones(3)
    c = f(z)
    c += 1.0
    assert z.tolist() == [1.0, 1.0, 1.0]
