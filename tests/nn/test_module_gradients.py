"""What modules pass back: to their inputs as PyTorch's do, and compiled what they do eagerly."""

import numpy as np
import pytest
import torch
from nn.module_cases import LAYERS, STATELESS
from nn.test_modules import as_tree, close, given, loss_of, one_thread as one_thread, pair

import weft as wf

TARGETS = {"BCELoss", "BCEWithLogitsLoss", "KLDivLoss"}  # PyTorch gives these no gradient


def cotangents(case, outs, number):
    """A sum with weights, of nothing symmetric, so that no gradient cancels."""
    total = 0
    for n, o in enumerate(outs):
        if "float" in str(o.dtype):
            w = np.random.default_rng([n, *o.shape]).normal(size=tuple(o.shape)).astype(np.float32)
            total = total + (o * number(w)).sum()
    return total


def leaf(x):
    return wf.tensor(x, requires_grad=x.dtype == np.float32) if isinstance(x, np.ndarray) else x


def torch_leaf(x):
    return torch.tensor(x, requires_grad=x.dtype == np.float32) if isinstance(x, np.ndarray) else x


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", LAYERS + STATELESS, ids=str)
def test_gradients_of_inputs_and_parameters_agree_with_pytorch(case):
    mine, theirs = pair(case)
    inputs, others = given(leaf, case.inputs), given(torch_leaf, case.inputs)
    called = {k: wf.tensor(v) if isinstance(v, np.ndarray) else v for k, v in case.called.items()}
    torch_called = {
        k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in case.called.items()
    }
    cotangents(case, as_tree(mine(*inputs, **called)), wf.tensor).backward()
    cotangents(case, as_tree(theirs(*others, **torch_called)), torch.tensor).backward()
    compared = 0
    for n, (x, y) in enumerate(zip(as_tree(inputs), as_tree(others), strict=True)):
        if case.name in TARGETS and n == 1:
            continue
        assert (x.grad is None) == (y.grad is None), n
        if y.grad is not None:
            close(x.grad, y.grad, 1e-4, 2e-5)
            compared += 1
    for (name, p), q in zip(mine.named_parameters(), theirs.parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None), name
        if q.grad is not None:
            close(p.grad, q.grad, 1e-4, 5e-5)
            compared += 1
    assert compared


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", LAYERS + STATELESS, ids=str)
def test_compiled_gives_the_bits_of_eager(case):
    """Outputs, gradients of inputs and parameters, and the buffers that a call leaves behind."""
    mine, _ = pair(case)
    before = {k: v.clone() for k, v in mine.state_dict().items()}
    floating = [x for x in as_tree(case.inputs) if x.dtype == np.float32]

    def run(called, *tensors):
        rest = iter(tensors)
        inputs = given(lambda a: next(rest) if a.dtype == np.float32 else wf.tensor(a), case.inputs)
        outs = as_tree(mine(*inputs, **called))
        wanted = [*tensors, *mine.parameters()]
        for x in wanted:
            x.grad = None
        loss_of(outs).backward()
        return outs, [x.grad for x in wanted]

    called = {k: wf.tensor(v) if isinstance(v, np.ndarray) else v for k, v in case.called.items()}

    def bits(call):
        mine.load_state_dict(before)
        outs, grads = call(called, *(wf.tensor(a, requires_grad=True) for a in floating))
        state = mine.state_dict().values()
        return [None if x is None else x.numpy().tobytes() for x in (*outs, *grads, *state)]

    assert bits(wf.compile(run, fallback=False)) == bits(run)
