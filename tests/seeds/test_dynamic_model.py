"""A model with a branch on its input, trained in the dynamic graph and compiled: the same losses
and weights.
"""

from __future__ import annotations

import pytest

import weft as wf
from weft import nn
from weft.data import DataLoader, TensorDataset


class DynamicModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1 = nn.Linear(10, 5)
        self.linear2 = nn.Linear(5, 1)

    def forward(self, x):
        # control flow that depends on the input
        if x.mean() > 0.5:
            x = self.linear1(x)
        else:
            x = wf.relu(self.linear1(x))
        return self.linear2(x)


def batches():
    """Batches of which some take one branch, some the other."""
    x = wf.rand((48, 10)) + wf.tensor([0.1, -0.1] * 24).reshape(48, 1)
    return DataLoader(TensorDataset(x, x.sum(axis=1, keepdims=True)), batch_size=8)


def train(how):
    """Ten epochs; every loss, and the weights at the end."""
    wf.manual_seed(0)
    model = DynamicModel()
    optimizer = wf.optim.Adam(model.parameters())
    dataloader = batches()
    losses = []

    def forward(x):
        return model(x)

    def step(batch_x, batch_y):
        optimizer.zero_grad()
        output = forward(batch_x)
        loss = nn.MSELoss()(output, batch_y)
        loss.backward()
        optimizer.step()
        return loss

    compiled = None
    if how == "compiled forward":
        compiled = forward = wf.compile(forward, fallback=False)
    elif how == "compiled step":
        compiled = step = wf.compile(step, fallback=False)
    with wf.mode("static" if how == "static mode" else "dynamic"):
        for _ in range(10):
            for batch_x, batch_y in dataloader:
                losses.append(step(batch_x, batch_y))
    taken = {bool(x.mean() > 0.5) for x, _ in dataloader}
    assert taken == {True, False}, "both branches"
    return [x.numpy().tobytes() for x in (*losses, *model.parameters())], compiled, losses


@pytest.fixture(scope="module")
def dynamic():
    bits, _, losses = train("dynamic")
    assert losses[-1].item() < losses[0].item()
    return bits


@pytest.mark.parametrize("how", ["compiled forward", "compiled step", "static mode"])
def test_training_gives_the_bits_of_the_dynamic_graph(how, dynamic):
    bits, compiled, _ = train(how)
    assert bits == dynamic
    # a first step finds no gradients and no state of the optimizer, all others do
    assert compiled is None or compiled.captures <= 2
