"""Names of NumPy and PyTorch get an error that says Weft's."""

from __future__ import annotations

import copy
import pickle
import re
from functools import reduce

import pytest

import weft as wf
from weft.tensor.elsewhere import (
    ADVICE,
    FUNCTIONS,
    METHOD_ADVICE,
    METHODS,
    MODULE_ADVICE,
    NN_UTILS,
    OPTIM,
)

X = wf.ones((2, 2))


def test_no_name_is_listed_that_is_there_and_what_is_said_instead_is_there():
    assert not [name for name in FUNCTIONS if hasattr(wf, name)]
    assert not [name for name in METHODS if hasattr(wf.Tensor, name)]
    assert not [name for name in ADVICE if hasattr(wf, name)]
    assert not [name for name in METHOD_ADVICE if hasattr(wf.Tensor, name)]
    assert not [name for name in MODULE_ADVICE if hasattr(wf.nn.Module, name)]
    for said in (ADVICE | METHOD_ADVICE | MODULE_ADVICE).values():
        for name in re.findall(r"wf\.([a-z_.0-9]*[a-z0-9])", said):
            assert reduce(getattr, name.split("."), wf) is not None, name
    for ours in (FUNCTIONS | OPTIM | NN_UTILS).values():
        assert reduce(getattr, ours.split("."), wf) is not None, ours
    for ours in METHODS.values():
        head = ours.split("(")[0]
        assert hasattr(X, head) or reduce(getattr, head.split("."), wf), ours


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("view", "; Weft says x.reshape"),
        ("cat", "; Weft says wf.concat"),
        ("float", "; Weft says x.astype(wf.float32)"),
        ("masked_fill", "; Weft says wf.where(mask, value, x)"),
        ("softmax", "; Weft says wf.nn.functional.softmax"),
        ("sort", "; Weft says wf.sort"),
        ("new_zeros", "; Weft says wf.zeros(shape, dtype=x.dtype)"),
        ("norm", "; Weft says x.square().sum().sqrt()"),
        ("add_", "; Weft says x.assign(...), or x += y and the like"),
        ("nothing_like_it", ""),
        ("__nothing__", ""),
    ],
)
def test_a_method_that_is_not_there(name, said):
    with pytest.raises(
        AttributeError, match=f"^'Tensor' object has no attribute '{name}'{re.escape(said)}$"
    ):
        getattr(X, name)


def test_a_function_that_is_not_there():
    with pytest.raises(
        AttributeError, match=r"^module 'weft' has no attribute 'cat'; .* wf.concat$"
    ):
        wf.cat  # noqa: B018
    with pytest.raises(AttributeError, match=r"^module 'weft' has no attribute 'nothing'$"):
        wf.nothing  # noqa: B018


def test_what_is_in_another_place():
    with pytest.raises(
        AttributeError, match=r"^module 'weft.optim' .* wf.optim.OneCycleLR, StepLR, …$"
    ):
        wf.optim.lr_scheduler  # noqa: B018
    with pytest.raises(AttributeError, match=r"Weft says wf.optim.clip_grad_norm_$"):
        wf.nn.utils.clip_grad_norm_  # noqa: B018
    with pytest.raises(AttributeError, match=r"^module 'weft.optim' has no attribute 'Adamax'$"):
        wf.optim.Adamax  # noqa: B018

    with pytest.raises(AttributeError, match=r"wf.data for utils.data, wf.checkpoint for"):
        wf.utils.data  # noqa: B018
    with pytest.raises(AttributeError, match=r"'cuda'; Weft runs on the CPU: leave it out, or"):
        wf.cuda.is_available()
    with pytest.raises(
        AttributeError, match=r"^'Linear' object has no attribute 'cuda'; Weft runs"
    ):
        wf.nn.Linear(2, 2).cuda()
    with pytest.raises(
        AttributeError, match=r"'fmod'; Weft says x - y \* wf.trunc\(x / y\); wf.rem"
    ):
        wf.fmod  # noqa: B018


def test_what_is_done_to_the_memory_of_a_tensor():
    hint = (
        r"^'Buffer' object has no attribute '.*'; it is memory; use the tensor itself .* p.assign"
    )
    p = wf.nn.Parameter(wf.ones((2, 2)))
    for wrong in (
        lambda: p.data.mul_(2.0),
        lambda: p.data.shape,
        lambda: p.data - 1.0,
        lambda: X * p.data,
        lambda: p.data[0],
    ):
        with pytest.raises(AttributeError, match=hint):
            wrong()
    with pytest.raises(AttributeError, match=r"^'Parameter' object's data .* Weft says p.assign"):
        p.data = wf.zeros((2, 2))
    with pytest.raises(AttributeError, match=r"Weft says p.assign"):
        p.data = X.numpy()
    assert p.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    x = wf.ones(2)
    x.data = wf.zeros(2)
    with pytest.raises(AttributeError, match=r"'layout'; .*, where x.assign\(v\) was meant$"):
        x + 1


def test_arguments_that_are_called_otherwise():
    for name in [
        "all",
        "any",
        "argmax",
        "argmin",
        "max",
        "mean",
        "min",
        "prod",
        "std",
        "sum",
        "var",
    ]:
        place = rf"^{name}\(\):? got an unexpected keyword argument"
        with pytest.raises(TypeError, match=f"{place} 'dim'; Weft says axis=$"):
            getattr(X, name)(dim=1, keepdim=True)
        with pytest.raises(TypeError, match=f"{place} 'keepdim'; Weft says keepdims=$"):
            getattr(wf, name)(X, 1, keepdim=False)
    for call in (
        lambda: wf.concat([X, X], dim=1),
        lambda: wf.stack([X, X], dim=1),
        lambda: wf.sort(X, dim=1),
        lambda: wf.topk(X, 1, dim=1),
        lambda: wf.cumulative_sum(X, dim=1),
        lambda: wf.flip(X, dims=(1,)),
        lambda: wf.split(X, 1, dim=1),
        lambda: wf.squeeze(X, dim=1),
    ):
        with pytest.raises(TypeError, match=r"Weft says axis=$"):
            call()
    with pytest.raises(TypeError, match=r"'unbiased'; Weft says correction=1$"):
        X.std(1, unbiased=True)
    with pytest.raises(
        TypeError, match=r"^DataLoader.__init__\(\) .* 'num_workers'; Weft says workers=$"
    ):
        wf.data.DataLoader([1, 2], num_workers=2)
    with pytest.raises(TypeError, match=r"'pin_memory'; there is nothing to pin: leave it out$"):
        wf.data.DataLoader([1, 2], batch_size=2, pin_memory=True)
    with pytest.raises(TypeError, match=r"^compile\(\) .* 'fullgraph'; Weft says fallback=False$"):
        wf.compile(lambda x: x, fullgraph=True)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'nothing'$") as e:
        wf.sort(X, nothing=1)
    assert e.traceback[-1].path.name == "test_elsewhere.py"


def test_pytorchs_tensors_are_named_with_the_library():
    theirs = type("Tensor", (), {"__module__": "torch"})()
    hint = r"got torch.Tensor; make a tensor with wf.tensor\(...\)$"
    for wrong in (
        lambda: X + theirs,
        lambda: theirs * X,
        lambda: X @ theirs,
        lambda: wf.nn.functional.relu(theirs),
    ):
        with pytest.raises(wf.errors.DTypeError, match=hint):
            wrong()


def test_an_axis_may_be_positional():
    x = wf.tensor([[3.0, 1.0], [2.0, 4.0]])
    assert wf.stack([x, x], 1).shape == (2, 2, 2) and wf.concat([x, x], 1).shape == (2, 4)
    assert wf.roll(x, 1, 0).tolist() == x[::-1].tolist() == wf.flip(x, 0).tolist()
    assert wf.sort(x, 0).tolist() == [[2.0, 1.0], [3.0, 4.0]]
    assert wf.argsort(x, 0).tolist() == [[1, 0], [0, 1]]
    assert x.sum(1, True).shape == (2, 1)


def test_what_looks_for_names_finds_none():
    assert not hasattr(X, "__cuda_array_interface__")
    assert copy.deepcopy(X).shape == pickle.loads(pickle.dumps(X)).shape == (2, 2)
