"""Porting from PyTorch: tensors, weights, and the layer at which a port first differs."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import weft as wf
from weft import nn
from weft.interop.torch import compare, copy_optimizer, copy_weights, from_torch, to_torch

ROOT = Path(__file__).parents[2]


def theirs(activation=torch.nn.GELU):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.BatchNorm2d(4), activation(),
        torch.nn.Flatten(), torch.nn.Dropout(0.5), torch.nn.Linear(4 * 36, 5),
    )  # fmt: skip


def ours(activation=nn.GELU):
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), activation(), nn.Flatten(),
        nn.Dropout(0.5), nn.Linear(4 * 36, 5),
    )  # fmt: skip


X = np.random.default_rng(0).normal(size=(2, 1, 6, 6)).astype(np.float32)


def test_weft_does_not_import_torch():
    code = "import weft, sys; assert not {'torch', 'weft.interop'} & set(sys.modules)"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", code], env=env, timeout=600).returncode == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "uint8"])
def test_tensors_share_memory(dtype):
    x = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    y = from_torch(x)
    assert y.shape == (2, 3) and y.dtype is getattr(wf, dtype)
    back = to_torch(y)
    assert back.dtype is x.dtype and torch.equal(back, x)
    assert back.data_ptr() == x.data_ptr()


def test_weights_go_both_ways():
    a, b = theirs(), ours()
    copy_weights(a, b)
    assert compare(a, b, X)
    c = theirs()
    with torch.no_grad():
        for p in c.parameters():
            p.zero_()
    copy_weights(b, c)
    for p, q in zip(a.state_dict().values(), c.state_dict().values(), strict=True):
        assert torch.equal(p, q)
    with torch.no_grad():
        c[0].weight.add_(1)  # what was copied is its own
    assert compare(a, b, X)


def test_weights_that_do_not_fit():
    small = torch.nn.Linear(2, 2)
    with pytest.raises(wf.errors.StateError, match="weight is"):
        copy_weights(small, nn.Linear(3, 2))
    with pytest.raises(wf.errors.StateError, match="size mismatch"):
        copy_weights(nn.Linear(3, 2), small)
    with pytest.raises(wf.errors.DTypeError, match="one of Weft's"):
        copy_weights(small, small)


@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", {"momentum": 0.9}), ("SGD", {}), ("AdamW", {"amsgrad": True}), ("RMSprop", {})],
)
def test_optimizers_go_both_ways(name, options):
    """Either one takes over from the other, in the middle of a course."""

    def make(library, module):
        net = module.Linear(3, 2)
        return net, getattr(library.optim, name)(net.parameters(), lr=0.05, **options)

    def step(net, opt, x):
        opt.zero_grad()
        (net(x) ** 2).sum().backward()
        opt.step()

    (a, a_opt), (b, b_opt) = make(torch, torch.nn), make(wf, nn)
    copy_weights(a, b)
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    for n in range(6):
        step(a, a_opt, torch.tensor(x))
        step(b, b_opt, wf.tensor(x))
        if n % 2:  # the one that goes on is new
            (c, c_opt), (d, d_opt) = make(torch, torch.nn), make(wf, nn)
            copy_weights(b, c)
            copy_optimizer(b_opt, c_opt)
            copy_weights(a, d)
            copy_optimizer(a_opt, d_opt)
            a, a_opt, b, b_opt = c, c_opt, d, d_opt
    np.testing.assert_allclose(b.weight.numpy(), a.weight.detach().numpy(), 1e-4, 1e-6)
    copy_optimizer(make(wf, nn)[1], a_opt)  # before the first step


def test_optimizers_that_do_not_fit():
    (theirs_, ours_) = (torch.nn.Linear(2, 2), nn.Linear(2, 2))
    sgd = torch.optim.SGD(theirs_.parameters(), lr=0.1)
    with pytest.raises(wf.errors.DTypeError, match="of that name, got SGD and Adam"):
        copy_optimizer(sgd, wf.optim.Adam(ours_.parameters()))
    with pytest.raises(wf.errors.DTypeError):
        copy_optimizer(sgd, sgd)
    with pytest.raises(wf.errors.StateError, match=r"groups of \[2\] .* got groups of \[1\]"):
        copy_optimizer(wf.optim.SGD([ours_.weight], lr=0.1), sgd)


def test_points_at_another_function():
    a, b = theirs(), ours(nn.ReLU)
    copy_weights(a, b)
    found = compare(a, b, X)
    assert not found and found.first.name == "2"
    assert "its inputs and weights agree" in str(found) and "<- differs first" in str(found)


def test_points_at_weights():
    a, b = theirs(), ours()
    copy_weights(a, b)
    with wf.no_grad():
        b[5].bias.assign(b[5].bias + 1)
    found = compare(a, b, torch.tensor(X))
    assert found.first.name == "5" and found.weights == ["5.bias"]
    assert str(found).endswith("5: its weights differ: 5.bias")


def test_points_at_what_is_between_layers():
    class Theirs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.b(self.a(x).tanh())

    class Ours(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            return self.b(self.a(x).sigmoid())

    a, b = Theirs(), Ours()
    copy_weights(a, b)
    found = compare(a, b, wf.tensor(X[0, 0, :, :3]))
    assert found.first.name == "b" and "its inputs differ" in str(found)


def test_leaves_models_as_they_were():
    a, b = theirs(), ours()
    b[1].eval()
    compare(a, b, X)
    assert a.training and b.training and not b[1].training
    assert not b._after and not b[0]._after


def test_tuples_are_compared():
    a, b = torch.nn.LSTM(3, 4, batch_first=True), nn.LSTM(3, 4, batch_first=True)
    copy_weights(a, b)
    found = compare(a, b, X[0, :, :, :3])
    assert found and found.rows[0].kind == "LSTM"
