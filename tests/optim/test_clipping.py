"""Clipped gradients and moving averages of weights, beside PyTorch."""

import math

import numpy as np
import pytest
import torch

import weft as wf
from weft.errors import DTypeError, NumericsError, ShapeError


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-13)])
@pytest.mark.parametrize("kind", [2.0, 1.0, 3.0, math.inf])
def test_clipping_agrees_with_pytorch(kind, dtype, tolerance):
    for most in (0.5, 100.0):
        rng = np.random.default_rng(0)
        grads = [rng.normal(size=s).astype(dtype) for s in ((3, 4), (4,), (1,))]
        mine = [wf.nn.Parameter(wf.tensor(0 * g)) for g in grads]
        theirs = [torch.nn.Parameter(torch.tensor(0 * g)) for g in grads]
        for p, q, g in zip(mine, theirs, grads, strict=True):
            p.grad, q.grad = wf.tensor(g), torch.tensor(g)
        got = wf.optim.clip_grad_norm_(mine, most, kind)
        want = torch.nn.utils.clip_grad_norm_(theirs, most, kind)
        np.testing.assert_allclose(got.item(), want.item(), tolerance)
        for p, q in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), tolerance, tolerance / 100)


def test_clipping_corners():
    p = wf.nn.Parameter([1.0])
    assert wf.optim.clip_grad_norm_([p], 1.0).item() == 0.0
    p.grad = wf.tensor([float("inf")])
    with pytest.raises(NumericsError):
        wf.optim.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    with pytest.raises(ShapeError):
        wf.optim.clip_grad_norm_(p, -1.0)
    with pytest.raises(DTypeError):
        wf.optim.clip_grad_norm_(3, 1.0)
    half = wf.nn.Parameter(wf.ones(4, dtype=wf.bfloat16))
    half.grad, p.grad = wf.ones(4, dtype=wf.bfloat16) * 2, wf.tensor([3.0])
    assert wf.optim.clip_grad_norm_([half, p], 2.5).item() == 5.0
    assert half.grad.dtype is wf.bfloat16 and half.grad.tolist() == [1.0] * 4
    p.grad = wf.tensor([-7.0])
    wf.optim.clip_grad_value_([p], 2.0)
    assert p.grad.tolist() == [-2.0]


def test_moving_averages_of_weights():
    model = wf.nn.Sequential(wf.nn.Linear(2, 2), wf.nn.BatchNorm1d(2))
    mean = wf.optim.EMA(model, decay=0.9)
    first = model[0].weight.numpy().copy()
    mean.update(model)
    for p in model.parameters():
        p.assign(p.detach() + 1.0)
    model(wf.randn(5, 2))
    mean.update(model)
    np.testing.assert_allclose(mean.module[0].weight.numpy(), first + 0.1, 1e-5, 1e-6)
    assert int(mean.module[1].num_batches_tracked) == 1 and int(mean.n_averaged) == 2
    assert not mean.module[0].weight.requires_grad and mean(wf.ones((3, 2))).shape == (3, 2)
    model[0] = wf.nn.Linear(3, 2)
    with pytest.raises(ShapeError, match="a model like the copy"):
        mean.update(model)


@pytest.mark.parametrize("compiled", [False, True])
def test_moving_averages_agree_with_pytorch(compiled):
    swa = torch.optim.swa_utils
    net, other = wf.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    mean = wf.optim.EMA(net, decay=0.95)
    theirs = swa.AveragedModel(other, multi_avg_fn=swa.get_ema_multi_avg_fn(0.95))
    update = lambda: mean.update(net)
    call = wf.compile(update, fallback=False) if compiled else update
    for i in range(100):
        values = np.random.default_rng(i).normal(size=(2, 3)).astype(np.float32)
        net.weight.assign(wf.tensor(values))
        other.weight.data = torch.tensor(values)
        call()
        theirs.update_parameters(other)
        if i == 0:
            assert (mean.module.weight == net.weight).all()
        np.testing.assert_allclose(
            mean.module.weight.numpy(), theirs.module.weight.detach().numpy(), 2e-6, 1e-6
        )
    assert list(mean.state_dict()) == list(theirs.state_dict())
    assert not compiled or call.captures == 1
