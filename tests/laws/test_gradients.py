"""Laws of gradients: numeric differences judge every vjp, since tape and graph share it and cannot
catch each other.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.laws.lab import as_float64, cases, tensors
from weft.ops.define import OPS, types_of

MOST = 120  # elements of an operand beyond which numeric differences take long


def _smooth(op, s):
    wide = as_float64(s)
    if op.vjp is None or s.error is not None or not s.smooth or wide is None:
        return False
    if any(a.size > MOST for a in s.args if isinstance(a, np.ndarray)):
        return False
    out = op.infer(*types_of(tuple(tensors(wide))), **wide.attrs)
    return any(t.dtype is wf.float64 for t in (out if isinstance(out, tuple) else (out,)))


def _function(op, sample):
    """The op as a function of its floating operands alone, giving its floating results, and those
    operands.
    """
    wide = as_float64(sample)
    xs = tensors(wide)
    floating = [i for i, x in enumerate(xs) if isinstance(x, wf.Tensor) and x.dtype.is_float]

    def f(*given):
        full = list(xs)
        for i, g in zip(floating, given, strict=True):
            full[i] = g
        out = op(*full, **wide.attrs)
        outs = tuple(o for o in (out if isinstance(out, tuple) else (out,)) if o.dtype.is_float)
        return outs[0] if len(outs) == 1 else outs

    return f, [xs[i] for i in floating]


CASES = cases(_smooth)
SMALL = [c for c in CASES if all(np.size(a) <= 24 for a in c.values[1].args)]


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_gradient_agrees_with_numeric_differences(op, sample):
    f, xs = _function(op, sample)
    assert wf.gradcheck(f, xs, eps=1e-6, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("op", "sample"), SMALL)
def test_second_gradient_agrees_with_numeric_differences(op, sample):
    f, xs = _function(op, sample)

    def g(*given):
        y, pullback = wf.vjp(f, *given)
        ys = y if isinstance(y, tuple) else (y,)
        seeds = [
            wf.asarray(np.cos(np.arange(o.size, dtype=np.float64)).reshape(o.shape)) for o in ys
        ]
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
