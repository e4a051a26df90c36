"""Laws of gradients: numeric differences judge every vjp, since tape and graph share it and cannot catch each other."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.laws.lab import as_float64, cases, tensors
from weft.ops.define import OPS

MOST = 120  # elements of an operand beyond which numeric differences take long


def _smooth(op, s):
    wide = as_float64(s)
    return (
        op.vjp is not None
        and s.error is None
        and s.smooth
        and wide is not None
        and all(a.size <= MOST for a in s.args if isinstance(a, np.ndarray))
    )


def _function(op, sample):
    """The op as a function of its floating operands alone, giving one tensor, and those operands."""
    xs = tensors(as_float64(sample))
    floating = [i for i, x in enumerate(xs) if isinstance(x, wf.Tensor) and x.dtype.is_float]

    def f(*given):
        full = list(xs)
        for i, g in zip(floating, given, strict=True):
            full[i] = g
        out = op(*full, **as_float64(sample).attrs)
        outs = [o for o in (out if isinstance(out, tuple) else (out,)) if o.dtype.is_float]
        total = outs[0]
        return total if len(outs) == 1 else tuple(outs)

    return f, [xs[i] for i in floating]


CASES = cases(_smooth)


@pytest.mark.parametrize("op, sample", CASES)
def test_gradient_agrees_with_numeric_differences(op, sample):
    f, xs = _function(op, sample)
    out = f(*xs)
    if any(not o.dtype.is_float for o in (out if isinstance(out, tuple) else (out,))):
        pytest.skip("the result is not floating")
    assert wf.gradcheck(f, xs, eps=1e-6, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op, sample", CASES)
def test_second_gradient_agrees_with_numeric_differences(op, sample):
    f, xs = _function(op, sample)
    if any(x.size > 24 for x in xs):
        pytest.skip("the same formula is checked on the smaller samples")

    def g(*given):
        y, pullback = wf.vjp(f, *given)
        ys = y if isinstance(y, tuple) else (y,)
        seeds = [wf.asarray(np.cos(np.arange(o.size, dtype=np.float64)).reshape(o.shape)) for o in ys]
        return pullback(*seeds)

    assert wf.gradcheck(g, xs, eps=1e-6, rtol=1e-4, atol=1e-5)


def test_differentiable_ops_are_covered():
    covered = {c.values[0].name for c in CASES}
    missing = {
        op.name
        for op in OPS.values()
        if op.vjp is not None and op.samples is not None and op.name not in covered
    }
    assert not missing, missing
