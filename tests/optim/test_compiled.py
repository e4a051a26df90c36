"""A whole training step as one program: the bits of the eager one, and no capture for another
learning rate.
"""

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from weft import nn
from weft.capture import places


class Recurrent(nn.Module):
    def __init__(self):
        self.lstm = nn.LSTM(5, 4, batch_first=True, bidirectional=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class Attentive(nn.Module):
    def __init__(self):
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.layer(x).mean(axis=1))


def mlp():
    return nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)
    )


def averaged():
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8, momentum=None), nn.Linear(8, 3))


CASES = [
    (cnn, (8, 1, 8, 8), "Adam", {}),
    (averaged, (8, 5), "Adam", {}),
    (Recurrent, (8, 4, 5), "Adam", {}),
    (Attentive, (8, 4, 8), "Adam", {}),
    (mlp, (8, 5), "SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (mlp, (8, 5), "AdamW", {"amsgrad": True}),
    (mlp, (8, 5), "RMSprop", {"centered": True, "momentum": 0.5}),
    (mlp, (8, 5), "Adagrad", {"lr_decay": 0.1}),
    (mlp, (8, 5), "Lion", {"weight_decay": 0.1}),
]
IDS = [f"{model.__name__}-{name}" for model, _, name, _ in CASES]


@pytest.mark.parametrize(("model", "shape", "name", "kwargs"), CASES, ids=IDS)
def test_a_compiled_step_gives_the_bits_of_eager(model, shape, name, kwargs):
    def train(compiled):
        wf.manual_seed(0)
        net = model()
        opt = getattr(wf.optim, name)(net.parameters(), **kwargs)
        schedule = wf.optim.StepLR(opt, 1, 0.5)

        def step(x, y):
            opt.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            wf.optim.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            return loss

        run = wf.compile(step, fallback=False) if compiled else step
        rng = np.random.default_rng(0)
        losses = []
        for _ in range(4):
            x = wf.tensor(rng.normal(size=shape).astype(np.float32))
            losses.append(run(x, wf.tensor(np.arange(8) % 3)).item())
            schedule.step()
        if compiled:
            assert run.captures == 1
        state = [s for p in net.parameters() for s in opt.state[p].values()]
        return losses, [v.numpy().copy() for v in [*net.state_dict().values(), *state]]

    (losses, cells), (want, others) = train(True), train(False)
    assert losses == want
    for a, b in zip(cells, others, strict=True):
        assert (a == b).all()


def test_momentum_set_for_a_group_that_is_frozen():
    """Its parameters have the state once they need it, compiled or not."""

    def states(compiled):
        cells = [wf.nn.Parameter([1.0]), wf.nn.Parameter([2.0])]
        opt = wf.optim.SGD([{"params": [p]} for p in cells], lr=0.1)

        def step():
            opt.zero_grad()
            sum((p * p).sum() for p in cells if p.requires_grad).backward()
            opt.step()

        run = wf.compile(step, fallback=False) if compiled else step
        seen = []
        for trained, momentum in ((True, 0.0), (False, 0.0), (False, 0.5), (True, 0.5)):
            cells[0].requires_grad_(trained)
            opt.param_groups[0]["momentum"] = momentum
            run()
            seen.append([list(e) for e in opt.state_dict()["state"].values()])
        return seen, [p.tolist() for p in cells]

    assert states(True) == states(False)
    assert states(True)[0][-1] == [["step", "momentum_buffer"], ["step"]]


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("Adam", {}),
        ("SGD", {"momentum": 0.9, "dampening": 0.5}),
        ("Adagrad", {"lr_decay": 0.1}),
        ("Lion", {}),
    ],
)
def test_layers_that_are_frozen_for_a_while(name, kwargs):
    """Each parameter counts its own steps; thawing them again captures nothing again."""

    def train(compiled):
        wf.manual_seed(0)
        net = mlp()
        opt = getattr(wf.optim, name)(net.parameters(), **kwargs)

        def step(x):
            opt.zero_grad()
            (net(x) ** 2).mean().backward()
            opt.step()

        run = wf.compile(step, fallback=False) if compiled else step
        for i in range(20):
            net[0].requires_grad_(i % 4 > 1)
            if i == 6:
                opt.load_state_dict(opt.state_dict())
            run(wf.tensor(np.random.default_rng(i).normal(size=(8, 5)).astype(np.float32)))
        if compiled:  # which gradients there are before, and which after
            assert run.captures <= 4
        entries = opt.state_dict()["state"].values()
        assert {int(e["step"]) for e in entries} == {10, 20}
        cells = [*net.state_dict().values(), *(v for e in entries for v in e.values())]
        return [v.numpy().copy() for v in cells]

    for a, b in zip(train(True), train(False), strict=True):
        assert (a == b).all()


def test_updates_are_part_of_the_kernels_that_make_gradients():
    """No weight costs a launch of its own: its update follows its gradient, element by element."""
    net = nn.Sequential(*(nn.Linear(16, 16) for _ in range(4)))
    opt = wf.optim.AdamW(net.parameters())

    def step(x):
        opt.zero_grad()
        (net(x) ** 2).mean().backward()
        opt.step()

    said = str(wf.compile(step).explain(wf.ones((8, 16)))).splitlines()
    roots = [line.split()[1] for line in said if " sqrt " in line and "f32[16" in line]
    assert roots.count("contract") == 4 and len(roots) <= len(list(net.parameters()))


def test_a_call_does_not_look_through_the_model(monkeypatch):
    """Parameters found by going through a module guard its structure, and not all that it holds."""
    net = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Dropout(0.1), nn.Linear(8, 3))
    mean, opt = wf.optim.EMA(net), wf.optim.AdamW(net.parameters())

    def step(x):
        opt.zero_grad()
        (net(x) ** 2).mean().backward()
        wf.optim.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        mean.update(net)

    run, x = wf.compile(step, fallback=False), wf.ones((8, 5))
    run(x)
    run(x)
    monkeypatch.setattr(places, "parts", lambda owner: pytest.fail(f"looks through {owner}"))
    run(x)
    assert run.captures == 1
    net[3].bias = nn.Parameter(wf.zeros(3))
    run(x)
    assert run.captures == 2
