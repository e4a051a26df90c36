"""Optimizers agree with PyTorch's over many steps, and say what is wrong with their arguments."""

import math

import numpy as np
import pytest
import torch

import weft as wf
from weft.errors import DTypeError, GradError, ShapeError, StateError
from weft.interop.torch import copy_optimizer
from weft.ops.define import installed

CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.9}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.5}),
    ("SGD", {"lr": 0.01, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True}),
    ("Adam", {"lr": 0.1, "betas": (0.0, 0.9)}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.3, "amsgrad": True, "maximize": True}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.01, "centered": True, "alpha": 0.9}),
    ("RMSprop", {"lr": 0.01, "centered": True, "momentum": 0.5}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.5}),
]
IDS = [f"{n}({', '.join(f'{k}={v}' for k, v in kw.items())})" for n, kw in CASES]
EACH = pytest.mark.parametrize(("name", "kwargs"), CASES, ids=IDS)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def first_values():
    rng = np.random.default_rng(0)
    return [rng.normal(size=s).astype(np.float32) for s in ((3, 5), (7,), ())]


def loss_of(params, targets):
    """A valley with a bend: gradients of all sizes, none of them noise."""
    away = [p - t for p, t in zip(params, targets, strict=True)]
    return sum((d**2).sum() + 0.1 * (d**4).sum() for d in away)


class Both:
    """The same parameters under both optimizers."""

    def __init__(self, name, kwargs, dtype=np.float32):
        values = [v.astype(dtype) for v in first_values()]
        targets = [np.roll(v.reshape(-1), 1).reshape(v.shape) + dtype(0.5) for v in values]
        self.mine = [wf.nn.Parameter(wf.tensor(v)) for v in values]
        self.theirs = [torch.nn.Parameter(torch.tensor(v)) for v in values]
        self.targets = [wf.tensor(t) for t in targets], [torch.tensor(t) for t in targets]
        self.opt = getattr(wf.optim, name)(self.mine, **kwargs)
        self.other = getattr(torch.optim, name)(self.theirs, **kwargs)

    def train(self, steps):
        for _ in range(steps):
            for opt, params, t in (
                (self.opt, self.mine, self.targets[0]),
                (self.other, self.theirs, self.targets[1]),
            ):
                opt.zero_grad()
                loss_of(params, t).backward()
                opt.step()

    def check(self, rtol, atol):
        for p, q in zip(self.mine, self.theirs, strict=True):
            np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol, atol)


@EACH
def test_steps_agree_with_pytorch(name, kwargs):
    both = Both(name, kwargs)
    steps = 20 if kwargs.get("maximize") else 100
    both.train(steps)
    both.check(2e-5, 2e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_steps_agree_to_the_end_in_float64(name):
    both = Both(name, {"lr": 0.01}, np.float64)
    both.train(100)
    both.check(1e-12, 1e-13)


def test_bias_correction_agrees_after_thousands_of_steps():
    """Where 1 - beta ** t is nearly 1, and where it is nearly 0."""
    for betas in ((0.9, 0.999), (0.9, 0.99999)):
        p, q = wf.nn.Parameter(wf.ones(3)), torch.nn.Parameter(torch.ones(3))
        opt = wf.optim.Adam([p], lr=1e-3, betas=betas)
        other = torch.optim.Adam([q], lr=1e-3, betas=betas)
        for i in range(2000):
            g = np.array([1.0, math.sin(i), 0.01], np.float32)
            p.grad, q.grad = wf.tensor(g), torch.tensor(g)
            opt.step()
            other.step()
            if i in (0, 1, 10, 100, 1999):
                np.testing.assert_allclose(p.numpy(), q.detach().numpy(), 3e-6, 1e-6)


def test_lion():
    """The formula of its paper, in NumPy."""
    p = wf.nn.Parameter(wf.tensor(first_values()[0]))
    w, m = p.numpy().astype(np.float64), 0.0
    opt = wf.optim.Lion([p], lr=0.01, betas=(0.9, 0.99), weight_decay=0.1)
    for i in range(20):
        g = np.random.default_rng(i).normal(size=w.shape)
        p.grad = wf.tensor(g.astype(np.float32))
        opt.step()
        w = w * (1 - 0.01 * 0.1) - 0.01 * np.sign(0.9 * m + 0.1 * g)
        m = 0.99 * m + 0.01 * g
    np.testing.assert_allclose(p.numpy(), w, 1e-5, 1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["SGD", "AdamW", "RMSprop", "Adagrad", "Lion"])
def test_half_parameters_follow_the_wide_ones(name, dtype):
    def run(d):
        p = wf.nn.Parameter(wf.tensor(first_values()[0]).astype(d))
        opt = getattr(wf.optim, name)([p], lr=0.01)
        for i in range(5):
            g = np.random.default_rng(i).normal(size=p.shape)
            p.grad = wf.tensor(g.astype(np.float32)).astype(d)
            opt.step()
        assert p.dtype.name == d and all(s.dtype is p.dtype for s in opt.state[p].values())
        return p.astype("float32").numpy()

    eps = wf.finfo(getattr(wf, dtype)).eps
    np.testing.assert_allclose(run(dtype), run("float32"), 8 * eps, 8 * eps)


@pytest.mark.parametrize("name", ["SGD", "AdamW", "RMSprop", "Adagrad", "Lion"])
def test_each_parameter_is_one_launch(name, monkeypatch):
    """What a step launches beside that does not depend on the number of parameters."""

    def launches(count):
        params = [wf.nn.Parameter(wf.ones((3, n + 1))) for n in range(count)]
        opt = getattr(wf.optim, name)(params, lr=0.1, weight_decay=0.1)
        for p in params:
            p.grad = wf.ones(p.shape)
        opt.step()
        seen = []
        launch = installed.launch
        with monkeypatch.context() as m:
            m.setattr(installed, "launch", lambda *a: seen.append(a) or launch(*a))
            opt.step()
        return len(seen)

    assert launches(5) - launches(2) == 3


# state


@EACH
def test_state_goes_both_ways(name, kwargs):
    both = Both(name, kwargs)
    both.train(5)
    again = Both(name, kwargs)
    for p, q, old in zip(again.mine, again.theirs, both.mine, strict=True):
        p.assign(old.detach())
        q.data = torch.tensor(old.numpy().copy())
    again.opt.load_state_dict(both.other.state_dict())  # PyTorch's into mine
    mine = both.opt.state_dict()
    theirs = both.other.state_dict()
    for i, entry in theirs["state"].items():  # mine into PyTorch's
        for key in entry:
            if key != "step" and entry[key] is not None:
                value = mine["state"][i][key].numpy()
                np.testing.assert_allclose(value, entry[key].numpy(), 1e-4, 1e-6)
                theirs["state"][i][key] = torch.tensor(value.copy())
    again.other.load_state_dict(theirs)
    again.train(5)
    again.check(2e-5, 2e-6)


@EACH
def test_parameters_count_the_steps_in_which_they_had_a_gradient(name, kwargs):
    """As after unfreezing, or where a path of the model was not taken; the state goes both ways."""
    both = Both(name, kwargs)

    def train(both, steps):
        for i in steps:
            for opt, params, targets in (
                (both.opt, both.mine, both.targets[0]),
                (both.other, both.theirs, both.targets[1]),
            ):
                opt.zero_grad()
                loss_of(params, targets).backward()
                for n, p in enumerate(params):
                    if i % (n + 1):
                        p.grad = None
                opt.step()

    train(both, range(1, 20))
    both.check(2e-5, 2e-6)
    mine, theirs = (o.state_dict()["state"] for o in (both.opt, both.other))
    counts = [(i, int(e["step"])) for i, e in theirs.items() if "step" in e]
    assert all(int(mine[i]["step"]) == count for i, count in counts)
    again = Both(name, kwargs)
    copy_optimizer(both.other, again.opt)
    copy_optimizer(both.opt, again.other)
    for p, q, old in zip(again.mine, again.theirs, both.mine, strict=True):
        p.assign(old.detach())
        q.data = torch.tensor(old.numpy().copy())
    train(again, range(20, 40))
    again.check(2e-5, 2e-6)


def test_parameters_without_a_step_have_no_entry():
    """As in PyTorch; older files, which have zeros for them, load too."""
    a, b = wf.nn.Parameter([1.0]), wf.nn.Parameter([1.0])
    opt = wf.optim.Adam([a, b])
    b.grad = wf.tensor([1.0])
    opt.step()
    state = opt.state_dict()
    assert list(state["state"]) == [1]
    zeros = {k: wf.zeros(1) for k in ("exp_avg", "exp_avg_sq")}
    state["state"][0] = {"step": wf.tensor(1), **zeros}
    opt.load_state_dict(state)
    assert [int(e["step"]) for e in opt.state_dict()["state"].values()] == [1, 1]


LATER = [
    ("SGD", {}, {"momentum": 0.9}),
    ("SGD", {}, {"momentum": 0.9, "nesterov": True}),
    ("SGD", {"momentum": 0.9}, {"momentum": 0.0}),
    ("Adam", {"amsgrad": True}, {"amsgrad": False}),
    ("AdamW", {}, {"weight_decay": 0.0}),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("name", "first", "later"), LATER)
def test_numbers_that_come_later_bring_the_state_they_need(name, first, later, compiled):
    """As a schedule of the momentum does."""
    both = Both(name, {"lr": 0.01, **first})

    def step():
        both.opt.zero_grad()
        loss_of(both.mine, both.targets[0]).backward()
        both.opt.step()

    call = wf.compile(step, fallback=False) if compiled else step
    for i in range(10):
        if i == 4:
            for opt in (both.opt, both.other):
                opt.param_groups[0].update(later)
        call()
        both.other.zero_grad()
        loss_of(both.theirs, both.targets[1]).backward()
        both.other.step()
    both.check(2e-5, 2e-6)
    assert not compiled or call.captures == 2


@pytest.mark.parametrize("compiled", [False, True])
def test_momentum_that_goes_and_comes_again(compiled):
    """What was gathered before counts again; a state that is loaded has it too."""
    p, q = wf.nn.Parameter([1.0, 2.0]), torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    opt, other = wf.optim.SGD([p], 0.1, momentum=0.9), torch.optim.SGD([q], 0.1, momentum=0.9)

    def step():
        opt.zero_grad()
        (p * p).sum().backward()
        opt.step()

    call = wf.compile(step, fallback=False) if compiled else step
    for momentum in (0.9, 0.0, 0.9, 0.0, 0.0, 0.9):
        opt.param_groups[0]["momentum"] = other.param_groups[0]["momentum"] = momentum
        call()
        other.zero_grad()
        (q * q).sum().backward()
        other.step()
        opt.load_state_dict(opt.state_dict())
    np.testing.assert_allclose(p.numpy(), q.detach().numpy(), 1e-6)
    assert not compiled or call.captures == 2
    opt.load_state_dict({**opt.state_dict(), "state": {}})
    assert opt.state_dict()["state"] == {}
    assert opt.state[p]["momentum_buffer"].tolist() == [0.0, 0.0]


def test_a_schedule_gives_momentum_to_plain_descent():
    p, q = wf.nn.Parameter([1.0]), torch.nn.Parameter(torch.ones(1))
    opt, other = wf.optim.SGD([p], lr=0.1), torch.optim.SGD([q], lr=0.1)
    mine = wf.optim.OneCycleLR(opt, 0.1, total_steps=10)
    theirs = torch.optim.lr_scheduler.OneCycleLR(other, 0.1, total_steps=10)
    for _ in range(9):
        p.grad, q.grad = wf.tensor([1.0]), torch.ones(1)
        for x in (opt, other, mine, theirs):
            x.step()
    np.testing.assert_allclose(p.numpy(), q.detach().numpy(), 1e-6)


@pytest.mark.parametrize(("name", "first", "later"), LATER)
def test_a_state_brings_numbers_and_what_they_need(name, first, later):
    both, again = Both(name, {"lr": 0.01, **first}), Both(name, {"lr": 0.01, **later})
    both.train(3)
    again.opt.load_state_dict(both.opt.state_dict())
    again.other.load_state_dict(both.other.state_dict())
    again.train(5)
    again.check(2e-5, 2e-6)
    mine, theirs = (o.state_dict()["state"].get(0, {}) for o in (again.opt, again.other))
    assert mine.keys() - {"step"} == {k for k, v in theirs.items() if v is not None} - {"step"}


def test_a_saved_state_goes_on_to_the_same_bits(tmp_path):
    def start():
        wf.manual_seed(0)
        net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.Tanh(), wf.nn.Linear(4, 1))
        return net, wf.optim.AdamW(net.parameters(), lr=0.01)

    def train(net, opt, steps):
        for i in range(steps):
            opt.zero_grad()
            x = wf.tensor(np.random.default_rng(i).normal(size=(5, 3)).astype("f4"))
            (net(x) ** 2).mean().backward()
            opt.step()

    net, opt = start()
    train(net, opt, 6)
    half, half_opt = start()
    train(half, half_opt, 3)
    wf.save({"model": half.state_dict(), "opt": half_opt.state_dict()}, tmp_path / "half.wf")
    rest, rest_opt = start()
    state = wf.load(tmp_path / "half.wf")
    rest.load_state_dict(state["model"])
    rest_opt.load_state_dict(state["opt"])
    for i in range(3, 6):
        rest_opt.zero_grad()
        x = wf.tensor(np.random.default_rng(i).normal(size=(5, 3)).astype("f4"))
        (rest(x) ** 2).mean().backward()
        rest_opt.step()
    for a, b in zip(net.parameters(), rest.parameters(), strict=True):
        assert (a.numpy() == b.numpy()).all()


def test_state_that_does_not_fit():
    opt = wf.optim.Adam([wf.nn.Parameter(wf.ones(3))])
    other = wf.optim.Adam([wf.nn.Parameter(wf.ones(3)), wf.nn.Parameter(wf.ones(3))])
    with pytest.raises(StateError, match=r"groups of \[1\] parameters, got groups of \[2\]"):
        opt.load_state_dict(other.state_dict())
    wide = wf.optim.Adam([p := wf.nn.Parameter(wf.ones(4))])
    p.grad = wf.ones(4)
    wide.step()
    with pytest.raises(StateError, match="exp_avg of shape"):
        opt.load_state_dict(wide.state_dict())
    with pytest.raises(StateError, match="param_groups"):
        opt.load_state_dict({})
    state = other.state_dict()
    for bad in (-1, 0.5, math.nan, math.inf, "many", None, [1], wf.ones(2)):
        state["state"] = {1: {"step": bad}}
        with pytest.raises(StateError, match="a count of steps"):
            other.load_state_dict(state)


# groups and steps


def test_groups_have_numbers_of_their_own():
    a, b = wf.nn.Parameter([1.0]), wf.nn.Parameter([1.0])
    opt = wf.optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    opt.add_param_group({"params": [c := wf.nn.Parameter([1.0])], "lr": 1.0})
    for p in (a, b, c):
        p.grad = wf.tensor([1.0])
    opt.step()
    np.testing.assert_allclose([a.item(), b.item(), c.item()], [0.9, 0.5, 0.0], atol=1e-7)
    opt.param_groups[0]["lr"] = 0.2
    opt.step()
    np.testing.assert_allclose(a.item(), 0.7, atol=1e-7)


def test_parameters_without_a_gradient_stay():
    a, b = wf.nn.Parameter([1.0]), wf.nn.Parameter([1.0])
    opt = wf.optim.Adam([a, b], weight_decay=0.5)
    a.grad = wf.tensor([1.0])
    opt.step()
    assert b.item() == 1.0 and a.item() != 1.0
    opt.zero_grad()
    assert a.grad is None
    opt.step()
    state = opt.state_dict()["state"]
    assert list(state) == [0] and int(state[0]["step"]) == 1


def test_parameters_are_cells():
    p = wf.nn.Parameter([1.0, 2.0])
    opt = wf.optim.SGD([p], lr=0.1)
    old = p.detach()
    (p * p).sum().backward()
    opt.step()
    assert old.tolist() == [1.0, 2.0] and p.requires_grad and p.is_leaf
    (p * p).sum().backward()


def test_a_closure_computes_the_loss():
    p = wf.nn.Parameter([2.0])
    opt = wf.optim.SGD([p], lr=0.25)

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert opt.step(closure).item() == 4.0 and p.item() == 1.0


def test_gradients_can_be_made_zeros():
    p = wf.nn.Parameter([2.0])
    (p * p).sum().backward()
    wf.optim.SGD([p]).zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0]


# mistakes


def params():
    return [wf.nn.Parameter([1.0])]


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: wf.optim.SGD([]), ShapeError, "at least one parameter"),
        (lambda: wf.optim.SGD(3), DTypeError, "model.parameters"),
        (lambda: wf.optim.SGD(params()[0]), DTypeError, "give a list"),
        (lambda: wf.optim.SGD([("w", params()[0])]), DTypeError, "named_parameters"),
        (lambda: wf.optim.SGD([params()[0] * 2]), GradError, "leaves"),
        (lambda: wf.optim.SGD([wf.tensor([1])]), DTypeError, "floating"),
        (lambda: wf.optim.SGD(params() * 2), ShapeError, "once"),
        (lambda: wf.optim.SGD([{"params": []}]), ShapeError, "at least one"),
        (lambda: wf.optim.SGD([{"p": params()}]), DTypeError, '"params"'),
        (lambda: wf.optim.SGD([{"params": params(), "rate": 1}]), ShapeError, "rate"),
        (lambda: wf.optim.SGD(params(), lr=-1), ShapeError, "lr 0 or more, got -1"),
        (lambda: wf.optim.SGD(params(), lr=float("nan")), ShapeError, "lr"),
        (lambda: wf.optim.SGD(params(), lr="big"), DTypeError, "a Python number"),
        (lambda: wf.optim.SGD(params(), lr=wf.tensor(0.1)), DTypeError, "float"),
        (lambda: wf.optim.SGD(params(), nesterov=True), ShapeError, "momentum above 0"),
        (lambda: wf.optim.Adam(params(), betas=(0.9, 1.0)), ShapeError, r"beta2 in \[0, 1\)"),
        (lambda: wf.optim.Adam(params(), betas=0.9), ShapeError, "two numbers"),
        (lambda: wf.optim.Adam(params(), amsgrad=1), DTypeError, "True or False"),
        (lambda: wf.optim.RMSprop(params(), alpha=-0.1), ShapeError, "alpha"),
        (lambda: wf.optim.Lion(params(), betas=(2, 0)), ShapeError, "beta1"),
        (lambda: wf.optim.Adagrad(params(), lr_decay=-1), ShapeError, "lr_decay"),
    ],
)
def test_wrong_arguments(make, error, match):
    with pytest.raises(error, match=match):
        make()
