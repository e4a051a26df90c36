"""Schedules give PyTorch's learning rates, step by step."""

import copy

import pytest
import torch

import weft as wf
from weft.errors import DTypeError, ShapeError, StateError

CASES = [
    ("StepLR", {"step_size": 4, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [3, 3, 9], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 6}),
    ("LinearLR", {"start_factor": 0.1, "end_factor": 0.8, "total_iters": 8}),
    ("PolynomialLR", {"total_iters": 12, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 7, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4, "T_mult": 2, "eta_min": 0.01}),
    ("OneCycleLR", {"max_lr": 0.8, "total_steps": 40}),
    ("OneCycleLR", {"max_lr": [0.8, 0.2], "epochs": 4, "steps_per_epoch": 10, "three_phase": True}),
    ("OneCycleLR", {"max_lr": 0.8, "total_steps": 40, "anneal_strategy": "linear"}),
    ("LambdaLR", {"lr_lambda": lambda n: 0.9**n}),
    ("LambdaLR", {"lr_lambda": [lambda n: 0.9**n, lambda n: 1.0 / (n + 1)]}),
]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pair(name="SGD", **kwargs):
    """Optimizers of both with two groups."""
    mine = [{"params": [wf.nn.Parameter([1.0])]}, {"params": [wf.nn.Parameter([1.0])], "lr": 0.3}]
    theirs = [
        {"params": [torch.nn.Parameter(torch.ones(1))]},
        {"params": [torch.nn.Parameter(torch.ones(1))], "lr": 0.3},
    ]
    return (
        getattr(wf.optim, name)(mine, lr=0.1, **kwargs),
        getattr(torch.optim, name)(theirs, lr=0.1, **kwargs),
    )


def numbers(opt):
    names = ("lr", "momentum", "betas")
    return [
        x for g in opt.param_groups for n in names if n in g
        for x in (g[n] if isinstance(g[n], tuple) else (g[n],))
    ]  # fmt: skip


def follow(opt, other, schedule, theirs, steps):
    for n in range(steps):
        assert numbers(opt) == pytest.approx(numbers(other), rel=1e-10, abs=1e-12), n
        assert schedule.get_last_lr() == pytest.approx(theirs.get_last_lr(), rel=1e-10, abs=1e-12)
        other.step()
        schedule.step()
        theirs.step()


@pytest.mark.parametrize(("name", "kwargs"), CASES, ids=[n for n, _ in CASES])
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_agrees_with_pytorch(name, kwargs, optimizer):
    opt, other = pair(optimizer, **({"momentum": 0.9} if optimizer == "SGD" else {}))
    schedule = getattr(wf.optim, name)(opt, **kwargs)
    theirs = getattr(torch.optim.lr_scheduler, name)(other, **kwargs)
    follow(opt, other, schedule, theirs, 40)


def sequence(module, o):
    warm = module.LinearLR(o, 0.1, total_iters=3)
    down = module.CosineAnnealingLR(o, 6)
    last = module.ExponentialLR(o, 0.5)
    return module.SequentialLR(o, [warm, down, last], [3, 9])


@pytest.mark.filterwarnings("ignore")
def test_sequences_agree_with_pytorch():
    opt, other = pair()
    schedule, theirs = sequence(wf.optim, opt), sequence(torch.optim.lr_scheduler, other)
    follow(opt, other, schedule, theirs, 16)


MAKERS = [
    *((name, lambda m, o, name=name, kw=kw: getattr(m, name)(o, **kw)) for name, kw in CASES),
    ("SequentialLR", sequence),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("steps", [2, 5, 12])
@pytest.mark.parametrize(("name", "make"), MAKERS, ids=[n for n, _ in MAKERS])
def test_state_goes_both_ways(name, make, steps):
    """Of a run in one, the other goes on."""

    def begin():
        opt, other = pair(momentum=0.9)
        return opt, other, make(wf.optim, opt), make(torch.optim.lr_scheduler, other)

    opt, other, schedule, theirs = begin()
    for _ in range(steps):
        for x in (other, schedule, theirs):
            x.step()
    again, another, mine, yours = begin()
    again.load_state_dict(other.state_dict())
    mine.load_state_dict(theirs.state_dict())
    another.load_state_dict(opt.state_dict())
    yours.load_state_dict(schedule.state_dict())
    for _ in range(10):
        another.step()
        for x in (schedule, mine, yours):
            x.step()
        assert numbers(again) == pytest.approx(numbers(opt), rel=1e-10, abs=1e-12)
        assert numbers(another) == pytest.approx(numbers(opt), rel=1e-10, abs=1e-12)


def test_sequences_load_what_older_versions_wrote():
    opt, _ = pair()
    schedule = sequence(wf.optim, opt)
    for _ in range(5):
        schedule.step()
    new = schedule.state_dict()
    old = {"schedulers": new["_schedulers"], "milestones": [3, 9], "last_epoch": 5}
    again, _ = pair()
    rest = sequence(wf.optim, again)
    again.load_state_dict(opt.state_dict())
    rest.load_state_dict(old)
    schedule.step()
    rest.step()
    assert numbers(again) == numbers(opt)
    for bad in ({}, [], {"_schedulers": []}):
        with pytest.raises(StateError, match="the states of 3 schedulers"):
            rest.load_state_dict(bad)


def test_going_on_needs_where_the_rate_began():
    opt, other = pair()
    with pytest.raises(StateError, match="initial_lr in group 0"):
        wf.optim.StepLR(opt, 3, last_epoch=4)
    for o in (opt, other):
        for group in o.param_groups:
            group["initial_lr"] = 1.0
    mine = wf.optim.StepLR(opt, 3, last_epoch=4)
    theirs = torch.optim.lr_scheduler.StepLR(other, 3, last_epoch=4)
    follow(opt, other, mine, theirs, 8)


def test_plateaus_agree_with_pytorch():
    for kwargs in (
        {"patience": 1},
        {"mode": "max", "patience": 2, "cooldown": 1, "min_lr": 0.02, "factor": 0.5},
        {"threshold_mode": "abs", "threshold": 0.5, "patience": 0},
        {"patience": 0, "min_lr": [0.05, 0.001]},
    ):
        opt, other = pair()
        schedule = wf.optim.ReduceLROnPlateau(opt, **kwargs)
        theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(other, **kwargs)
        for metric in (5.0, 4.0, 4.0, 4.1, 3.9, 3.9, 3.9, 8.0, 7.0, 7.0, 7.0, 7.0):
            schedule.step(metric)
            theirs.step(metric)
            assert schedule.get_last_lr() == pytest.approx(theirs.get_last_lr())


@pytest.mark.parametrize(("name", "kwargs"), CASES, ids=[n for n, _ in CASES])
def test_state_is_resumed(name, kwargs):
    make = lambda: pair(momentum=0.9)[0]
    whole = make()
    schedule = getattr(wf.optim, name)(whole, **kwargs)
    for _ in range(10):
        schedule.step()
    half = make()
    first = getattr(wf.optim, name)(half, **kwargs)
    for _ in range(5):
        first.step()
    saved = copy.deepcopy((half.state_dict(), first.state_dict()))
    rest = make()
    second = getattr(wf.optim, name)(rest, **kwargs)
    rest.load_state_dict(saved[0])
    second.load_state_dict(saved[1])
    for _ in range(5):
        second.step()
    assert numbers(rest) == pytest.approx(numbers(whole), rel=1e-12)


def test_wrong_arguments():
    opt, _ = pair()
    wrong = [
        (lambda: wf.optim.StepLR(3, 1), DTypeError),
        (lambda: wf.optim.StepLR(opt, 0), ShapeError),
        (lambda: wf.optim.LinearLR(opt, 0.0), ShapeError),
        (lambda: wf.optim.OneCycleLR(opt, 0.1), ShapeError),
        (lambda: wf.optim.OneCycleLR(opt, [0.1], 10), ShapeError),
        (lambda: wf.optim.SequentialLR(opt, [], []), DTypeError),
        (lambda: wf.optim.SequentialLR(opt, [wf.optim.StepLR(opt, 1)], [3]), ShapeError),
        (lambda: wf.optim.LambdaLR(opt, [len]), ShapeError),
        (lambda: wf.optim.ReduceLROnPlateau(opt, "least"), ShapeError),
    ]
    for make, error in wrong:
        with pytest.raises(error):
            make()
    schedule = wf.optim.OneCycleLR(pair("Adam")[0], 0.1, 2)
    schedule.step()
    schedule.step()
    with pytest.raises(ShapeError, match="at most 2 steps"):
        schedule.step()
