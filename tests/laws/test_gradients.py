"""Laws of gradients: numeric differences judge every vjp, since tape and graph share it and cannot
catch each other.
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
    tensors,
)

MOST = 120  # elements of an operand beyond which numeric differences take long
FEW = 24  # the same for second differences


def _cases(op, most):
    """Samples in float64 at which the op is smooth, and which are small."""
    for c in good(op):
        wide = as_float64(c.sample)
        if wide is None or not c.sample.smooth:
            continue
        if all(np.size(a) <= most for a in wide.args if isinstance(a, np.ndarray)):
            case = Case(op, c.number, wide)
            if differentiable(case):
                yield case


def _first(case):
    f, xs = function(case.op, tensors(case.sample), case.sample.attrs)
    assert wf.gradcheck(f, xs, eps=1e-6, rtol=1e-5, atol=1e-6)


def _second(case):
    f, xs = function(case.op, tensors(case.sample), case.sample.attrs)

    def pulled(*given):
        y, pullback = wf.vjp(f, *given)
        return pullback(*(wf.asarray(cotangent(o.shape, np.float64)) for o in as_tuple(y)))

    assert wf.gradcheck(pulled, xs, eps=1e-6, rtol=1e-4, atol=1e-5)


DIFFERENTIABLE = pytest.mark.parametrize(
    "op", [op for op in records() if op.vjp is not None], ids=lambda op: op.name
)


@DIFFERENTIABLE
def test_gradient_agrees_with_numeric_differences(op):
    assert each(_cases(op, MOST), _first), "no sample in float64 that is small and smooth"


@DIFFERENTIABLE
def test_second_gradient_agrees_with_numeric_differences(op):
    each(_cases(op, FEW), _second)
