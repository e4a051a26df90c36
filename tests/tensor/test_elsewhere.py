"""Names of NumPy and PyTorch get an error that says Weft's."""

from __future__ import annotations

import copy
import pickle
import re
from functools import reduce

import pytest

import weft as wf
from weft.tensor.elsewhere import FUNCTIONS, METHODS, NN_UTILS, OPTIM

X = wf.ones((2, 2))


def test_no_name_is_listed_that_is_there_and_what_is_said_instead_is_there():
    assert not [name for name in FUNCTIONS if hasattr(wf, name)]
    assert not [name for name in METHODS if hasattr(wf.Tensor, name)]
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
    with pytest.raises(AttributeError, match=r"^module 'weft.optim' .* Weft says wf.optim.StepLR$"):
        wf.optim.lr_scheduler  # noqa: B018
    with pytest.raises(AttributeError, match=r"Weft says wf.optim.clip_grad_norm_$"):
        wf.nn.utils.clip_grad_norm_  # noqa: B018
    with pytest.raises(AttributeError, match=r"^module 'weft.optim' has no attribute 'Adamax'$"):
        wf.optim.Adamax  # noqa: B018


def test_what_looks_for_names_finds_none():
    assert not hasattr(X, "__cuda_array_interface__")
    assert copy.deepcopy(X).shape == pickle.loads(pickle.dumps(X)).shape == (2, 2)
