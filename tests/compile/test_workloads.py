"""The workloads of the benchmarks, eager and compiled: losses, weights, gradients, the optimizer's
state and random numbers are the same to the bit, whatever the number of threads.

WEFT_WORKLOAD_STEPS says how many steps the training ones take: 3 here, 50 in a full run.
"""

from __future__ import annotations

import os

import pytest

import weft as wf
import weft.nn.functional as F
from benchmarks.workloads import numbers, with_weft
from tests.compile.lab import bits, compiled
from weft import nn, optim

STEPS = int(os.environ.get("WEFT_WORKLOAD_STEPS", "3"))


@pytest.fixture(autouse=True)
def restore():
    n = wf.get_num_threads()
    yield
    wf.set_num_threads(n)


def mlp():
    return with_weft.load(
        with_weft.stack(numbers.MLP_SIZES, nn.ReLU), numbers.stack(33, numbers.MLP_SIZES)
    )


def gpt():
    return with_weft.load(with_weft.GPT(128), numbers.gpt(128))


INFERENCE = {
    "W1": (lambda: with_weft.elementwise, numbers.elementwise),
    "W2": (lambda: with_weft.norm, numbers.norm),
    "W4": (with_weft.tiny, lambda: numbers.classes(4, 1, (8,), 2)[:1]),
    "W8": (gpt, lambda: numbers.tokens(1, 128)[:1]),
    "W9": (
        lambda: with_weft.load(with_weft.ResNet18(), numbers.resnet()),
        lambda: (numbers.image(),),
    ),
}
TRAINING = {
    "W3": (mlp, lambda p: optim.Adam(p, 1e-3), lambda: numbers.classes(3, 64, (784,), 10)),
    "W5": (with_weft.tiny, lambda p: optim.SGD(p, 0.1), lambda: numbers.classes(5, 32, (8,), 2)),
    "W6": (
        lambda: with_weft.load(with_weft.CNN(), numbers.cnn()),
        lambda p: optim.SGD(p, 0.05, momentum=0.9),
        lambda: numbers.classes(66, 32, (3, 32, 32), 10),
    ),
    "W7": (
        gpt,
        lambda p: optim.AdamW(p, 3e-4, eps=1e-8, weight_decay=0.01),
        lambda: numbers.tokens(8, 128),
    ),
}


@pytest.mark.parametrize("name", INFERENCE)
def test_inference(name):
    make, data = INFERENCE[name]
    f, inputs = make(), [wf.tensor(a) for a in data()]
    if isinstance(f, nn.Module):
        f.eval()
    with wf.no_grad():
        want = bits(f(*inputs))
        for threads in (1, 2, 3):
            wf.set_num_threads(threads)
            assert bits(compiled(f)(*inputs)) == want, f"{threads} threads"


def train(name, wrap):
    make, optimizer, data = TRAINING[name]
    wf.manual_seed(0)
    model = make()
    opt = optimizer(model.parameters())

    def step(x, labels):
        opt.zero_grad()
        y = model(x)
        loss = F.cross_entropy(y.reshape(-1, y.shape[-1]), labels.reshape(-1))
        loss.backward()
        opt.step()
        return loss

    call = wrap(step)
    x, labels = (wf.tensor(a) for a in data())
    losses = [bits(call(x, labels)) for _ in range(STEPS)]
    held = [bits(v) for v in model.state_dict().values()]
    slopes = [bits(p.grad) for p in model.parameters()]
    state = [bits(v) for p in model.parameters() for v in opt.state[p].values()]
    return {
        "losses": losses, "weights": held, "gradients": slopes, "optimizer": state,
        "random numbers": [wf.get_rng_state()],
    }  # fmt: skip


@pytest.mark.parametrize("name", TRAINING)
def test_training(name):
    want = train(name, lambda f: f)
    assert len(set(want["losses"])) == STEPS
    for threads in (1, 2, 3):
        wf.set_num_threads(threads)
        got = train(name, compiled)
        for what, known in want.items():
            differ = [i for i, (a, b) in enumerate(zip(got[what], known, strict=True)) if a != b]
            assert not differ, f"{what} {differ[:5]} with {threads} threads"
