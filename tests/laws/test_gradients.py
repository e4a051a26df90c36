"""Laws of gradients: numeric differences judge every vjp, since tape and graph share it and cannot
catch each other.

Small samples are checked element by element, others along one direction.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.laws.lab import (
    Case,
    as_float64,
    as_tuple,
    cotangent,
    differentiable,
    each,
    function,
    good,
    records,
    same_bits,
    tensors,
)

MOST = 40  # elements of an operand that are checked one by one
FEW = 10  # the same for second differences


def _cases(op):
    """Samples in float64 at which the op is smooth."""
    for c in good(op):
        wide = as_float64(c.sample)
        if wide is not None and c.sample.smooth:
            case = Case(op, c.number, wide)
            if differentiable(case):
                yield case


def _check(f, xs, most, rtol, atol):
    if all(x.size <= most for x in xs):
        assert wf.gradcheck(f, xs, eps=1e-6, rtol=rtol, atol=atol)
    else:
        _along(f, xs, rtol, atol)


def _along(f, xs, rtol, atol):
    """The derivative along a direction: the gradient's, and the one that differences measure."""
    rng = np.random.default_rng(0)
    ways = [rng.standard_normal(x.shape) for x in xs]
    y, pullback = wf.vjp(f, *xs)
    seeds = [rng.standard_normal(o.shape) for o in as_tuple(y)]
    slopes = pullback(*map(wf.asarray, seeds))
    got = sum(np.vdot(g.numpy(), w) for g, w in zip(slopes, ways, strict=True))

    def value(step):
        moved = [wf.asarray(x.numpy() + step * w) for x, w in zip(xs, ways, strict=True)]
        ends = as_tuple(f(*moved))
        return sum(np.vdot(o.numpy(), s) for o, s in zip(ends, seeds, strict=True))

    eps = 1e-6
    want = (value(eps) - value(-eps)) / (2 * eps)
    scale = sum(np.abs(g.numpy() * w).sum() for g, w in zip(slopes, ways, strict=True))
    assert abs(got - want) <= atol + rtol * max(abs(want), scale), (
        f"{got:.10g} along a direction, {want:.10g} by differences"
    )


def _first(case):
    f, xs = function(case.op, tensors(case.sample), case.sample.attrs)
    _check(f, xs, MOST, 1e-5, 1e-6)


def _second(case):
    f, xs = function(case.op, tensors(case.sample), case.sample.attrs)

    def pulled(*given):
        y, pullback = wf.vjp(f, *given)
        return pullback(*(wf.asarray(cotangent(o.shape, np.float64)) for o in as_tuple(y)))

    _check(pulled, xs, FEW, 1e-4, 1e-5)


def _launched(case):
    """Twice as it is run, first by calling the ops, then by their launches; then by the vjp."""

    def slopes(**options):
        xs = [x.detach() for x in tensors(case.sample)]
        f, leaves = function(case.op, xs, case.sample.attrs)
        for x in leaves:
            x.requires_grad = True
        y = as_tuple(f(*leaves))[0]
        if not y.requires_grad:
            return []
        y.backward(wf.asarray(cotangent(y.shape, np.float64)).astype(y.dtype), **options)
        return [x.grad.numpy().copy() for x in leaves if x.grad is not None]

    called, launched, said = slopes(), slopes(), slopes(create_graph=True)
    same_bits(called, said, "the ops called")
    same_bits(launched, said, "the ops launched")


DIFFERENTIABLE = pytest.mark.parametrize(
    "op", [op for op in records() if op.vjp is not None], ids=lambda op: op.name
)


@DIFFERENTIABLE
def test_gradient_agrees_with_numeric_differences(op):
    assert each(_cases(op), _first), "no sample in float64 that is smooth"


@DIFFERENTIABLE
def test_second_gradient_agrees_with_numeric_differences(op):
    each(_cases(op), _second)


@DIFFERENTIABLE
def test_gradient_launched_is_the_one_the_rule_says(op):
    each((c for c in good(op) if differentiable(c) and _tensors_alone(c)), _launched)


def _tensors_alone(case):
    """Python numbers among the operands keep a gradient from being launched."""
    return all(isinstance(x, wf.Tensor) for x in tensors(case.sample))
