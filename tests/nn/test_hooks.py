"""Hooks see and change what PyTorch's do, in both modes."""

import numpy as np
import pytest
import torch

import weft as wf
from weft import nn
from weft.errors import DTypeError, StateError

X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def pair():
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    mine = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    mine.load_state_dict(theirs.state_dict())
    return mine, theirs


def arrays(grads):
    return [None if g is None else np.array(g.detach().numpy()) for g in grads]


def agree(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            np.testing.assert_allclose(x, y, 1e-5, 1e-6)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize("needs", [False, True], ids=["data", "gradient"])
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_backward_hooks_are_told_what_pytorchs_are(layer, needs):
    mine, theirs = pair()
    told = ([], [])
    for model, seen in zip((mine, theirs), told, strict=True):
        model[layer].register_full_backward_hook(
            lambda m, gi, go, seen=seen: seen.append((arrays(gi), arrays(go)))
        )
    x, y = wf.tensor(X, requires_grad=needs), torch.tensor(X, requires_grad=needs)
    (mine(x) ** 2).sum().backward()
    (theirs(y) ** 2).sum().backward()
    (ours,), (others,) = told
    for a, b in zip(ours, others, strict=True):
        agree(a, b)
    if needs:
        agree(arrays([x.grad]), arrays([y.grad]))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_backward_hooks_change_gradients(compiled):
    mine, theirs = pair()
    for model in (mine, theirs):
        model[1].register_full_backward_hook(lambda m, gi, go: (gi[0] * 2 + go[0],))
        model[1].register_full_backward_hook(lambda m, gi, go: (gi[0] * 3,))

    def step(x):
        mine.zero_grad()
        loss = (mine(x) ** 2).sum()
        loss.backward()
        return loss

    (wf.compile(step, fallback=False) if compiled else step)(wf.tensor(X))
    (theirs(torch.tensor(X)) ** 2).sum().backward()
    agree(arrays(p.grad for p in mine.parameters()), arrays(p.grad for p in theirs.parameters()))


class Two(nn.Module):
    def forward(self, a, b, scale=1.0):
        return a * b * scale, a + b


class TheirTwo(torch.nn.Module):
    def forward(self, a, b, scale=1.0):
        return a * b * scale, a + b


def test_backward_hooks_of_several_arguments_and_results():
    told = ([], [])
    for model, seen, tensor in ((Two(), told[0], wf.tensor), (TheirTwo(), told[1], torch.tensor)):
        handle = model.register_full_backward_hook(
            lambda m, gi, go, seen=seen: seen.append((arrays(gi), arrays(go)))
        )
        a, b = tensor(X, requires_grad=True), tensor(X[::-1].copy())
        for _ in range(2):
            p, q = model(a, b, scale=3.0)
            (p.sum() + (q * q).sum()).backward()
            handle.remove()
    ((slopes, came),), ((their_slopes, their_came),) = told
    agree(came, their_came)
    agree(slopes[:1], their_slopes[:1])
    assert slopes[1] is None and not their_slopes[1].any()  # of what wants none


def test_hooks_with_keyword_arguments_and_order():
    model, said = Two(), []
    with_kwargs = {"with_kwargs": True}
    model.register_forward_pre_hook(lambda m, a, k: (a, {"scale": 5.0}), **with_kwargs)
    model.register_forward_hook(lambda m, a, k, out: said.append(k) or out[0], **with_kwargs)
    model.register_forward_hook(lambda m, a, out: said.append("first"), prepend=True)
    out = model(wf.tensor(2.0), wf.tensor(3.0), scale=1.0)
    assert out.item() == 30.0 and said == ["first", {"scale": 5.0}]


def test_hooked_modules_in_static_mode_and_with_placeholders():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    model[1].register_forward_hook(lambda m, args, out: out * 2)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    want = model(wf.tensor(X)).tolist()
    state = {k: v.tolist() for k, v in model.state_dict().items()}
    model.load_state_dict(before)
    with wf.mode("static"):
        assert model(wf.tensor(X)).tolist() == want
    model.load_state_dict(before)
    x = wf.placeholder("x", (4, 3), wf.float32)
    assert wf.build([x], [model(x)])(x=wf.tensor(X))[0].tolist() == want
    assert {k: v.tolist() for k, v in model.state_dict().items()} == state


def test_wrong_hooks():
    for name in ("forward_pre_hook", "forward_hook", "full_backward_hook"):
        with pytest.raises(DTypeError, match="a function"):
            getattr(nn.Linear(1, 1), f"register_{name}")(3)
    odd = nn.Identity()
    odd.register_full_backward_hook(lambda m, gi, go: None)
    with pytest.raises(DTypeError, match="tensors as results"):
        odd({"x": wf.ones(1)})


def test_parameters_and_buffers_by_name():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    assert net.get_parameter("0.weight") is net[0].weight
    assert net.get_buffer("1.running_mean") is net[1].running_mean
    assert net.state_dict(keep_vars=True)["0.bias"] is net[0].bias
    for get in (net.get_parameter, net.get_buffer):
        with pytest.raises(StateError, match=r"one of (weight, bias|none), got 'wait'"):
            get("0.wait")
    assert net.to("cpu", wf.float64)[0].weight.dtype is wf.float64


def test_lists_grow_and_shrink():
    layers = nn.ModuleList([nn.ReLU()])
    layers = layers + nn.ModuleList([nn.Tanh()])
    layers += [nn.Linear(1, 1)]
    assert [type(m).__name__ for m in layers] == ["ReLU", "Tanh", "Linear"]
    assert type(layers.pop(0)) is nn.ReLU and list(layers.state_dict()) == ["1.weight", "1.bias"]
    both = nn.Sequential(nn.ReLU()) + nn.Sequential(nn.Tanh())
    assert isinstance(both, nn.Sequential) and len(both) == 2
    heads = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    assert type(heads.pop("b")) is nn.Tanh and list(heads) == ["a"]
    heads.clear()
    assert len(heads) == 0 and not hasattr(heads, "a")
