"""The law of the neighbour: where PyTorch has the op, values and gradients agree with its own."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from tests.laws.counterparts import TORCH, WITHOUT
from tests.laws.lab import (
    FLOATS,
    Case,
    agree,
    as_tuple,
    close,
    cotangent,
    differentiable,
    each,
    forward,
    good,
    gradients,
    named,
    records,
    tensors,
)
from weft.ops.define import OPS

#: what PyTorch computes in about the same precision
DTYPES = {"float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"}

#: relative and absolute distance in float32, each side being allowed an error of its own: two ulps
#: for a function, more where many of them or a long sum make a result
VALUES = {"scalar": (1e-6, 1e-6), "fold": (2e-6, 2e-6), "contract": (1e-5, 5e-6), "": (1e-5, 5e-6)}
GRADIENTS = {"scalar": (1e-5, 2e-6), "": (3e-5, 1e-5)}
#: beside cancellation no relative bound holds
LOOSE = {"lgamma": 4e-6, "digamma": 4e-6, "polygamma": 4e-6, "pow": 4e-6}

pytestmark = pytest.mark.xdist_group("torch")  # which ops were compared is counted

COMPARED: Counter[str] = Counter()


def _tolerance(table, op):
    family = next((f for f in table if f and getattr(op, f) is not None), "")
    rtol, atol = table[family]
    return max(rtol, LOOSE.get(op.name, 0.0)), atol


#: ops that name a place, of several equal elements another one than PyTorch does: the first
FIRST = {"cumulative_max", "cumulative_min"}


def _comparable(case: Case) -> bool:
    arrays = [a for a in case.sample.args if isinstance(a, (np.ndarray, np.generic))]
    if case.op.name.startswith("layer_norm") and arrays[0].shape[-1] == 1:
        return False  # x - mean is 0; PyTorch's rounding of it is magnified by 1 / sqrt(eps)
    return all(a.dtype.name in DTYPES for a in arrays)


def _array(x):
    return (x.float() if x.dtype is torch.bfloat16 else x).detach().numpy()


def _inputs(case, gradient):
    xs = [torch.as_tensor(np.array(a)) if hasattr(a, "dtype") else a for a in case.sample.args]
    floating = [x for x in xs if isinstance(x, torch.Tensor) and x.dtype.is_floating_point]
    for x in floating if gradient else ():
        x.requires_grad_()
    return xs, floating


def check(case: Case) -> None:
    wants_gradient = case.sample.smooth and differentiable(case)
    xs, floating = _inputs(case, wants_gradient)
    try:
        out = as_tuple(TORCH[case.op.name](*xs, **case.sample.attrs))
    except (NotImplementedError, RuntimeError) as e:
        if (not floating and "not implemented" in str(e).lower()) or "not supported" in str(e):
            return  # PyTorch has the op, but not for these integers
        raise
    COMPARED[case.op.name] += 1
    got = forward(case)
    assert len(got) == len(out)
    rtol, atol = _tolerance(VALUES, case.op)
    for n, (a, b) in enumerate(zip(got, out, strict=True)):
        if n and case.op.name in FIRST and not case.sample.smooth:
            continue
        if a.dtype in FLOATS:
            close(a, _array(b), rtol, atol, f"result {n}")
        else:
            agree(a, _array(b), f"result {n}")
    if wants_gradient:
        seeds = [cotangent(a.shape, a.dtype) for a in got if a.dtype in FLOATS]
        _check_gradients(case, floating, out, seeds)


def _check_gradients(case, floating, out, seeds):
    ys = [y for y in out if y.dtype.is_floating_point]
    some = [
        (y, torch.as_tensor(s.astype(np.float64)).to(y.dtype))
        for y, s in zip(ys, seeds, strict=True)
        if y.requires_grad
    ]
    if not some:
        return
    want = torch.autograd.grad(
        [y for y, _ in some], floating, [s for _, s in some], allow_unused=True
    )
    got = gradients(case.op, tensors(case.sample), case.sample.attrs, seeds)
    rtol, atol = _tolerance(GRADIENTS, case.op)
    for n, (a, b) in enumerate(zip(got, want, strict=True)):
        if b is not None:
            COMPARED[f"gradient of {case.op.name}"] += 1
            close(a, _array(b), rtol, atol, f"gradient {n}")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_every_op_has_a_counterpart_or_a_reason():
    names = named().keys()
    unsaid = names - TORCH.keys() - WITHOUT.keys()
    assert not unsaid, f"say which function of PyTorch each is, or why none: {unsaid}"
    assert not (TORCH.keys() | WITHOUT.keys()) - names
    assert not TORCH.keys() & WITHOUT.keys()


@pytest.mark.parametrize("op", [op for op in records() if op.name in TORCH], ids=lambda op: op.name)
def test_values_and_gradients_agree_with_torch(op):
    each(filter(_comparable, good(op)), check)
    assert COMPARED[op.name], "no sample could be compared"


def test_gradients_were_compared():
    ops = [n for n in COMPARED if not n.startswith("gradient")]
    pulled = {n.removeprefix("gradient of ") for n in COMPARED if n.startswith("gradient")}
    expected = {n for n in ops if OPS[n].vjp is not None}
    samples = sum(COMPARED[n] for n in ops)
    print(
        f"\n{len(ops)} ops compared with PyTorch on {samples} samples, {len(pulled)} with gradients"
    )
    assert not expected - pulled, expected - pulled
