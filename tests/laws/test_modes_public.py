"""The law of the host's mode for what is public: the numbers that Python rounds on the way to an op
(a mean's divisor, a scale, the elements of a list) are the same ones, too.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from copy import copy
from typing import Any

import numpy as np
import pytest
from mxcsr import MODES

import weft as wf
from tests.laws.lab import differences, failed, forget_plans
from tests.laws.modes import host_mode
from tests.robustness.targets import Target, find, names
from weft.errors import WeftError

pytestmark = pytest.mark.xdist_group("public modes")

#: change the process, or try differences of numbers that Python rounds
SETTINGS = {
    "set_num_threads", "set_rng_state", "get_rng_state", "manual_seed", "gradcheck", "placeholder",
}  # fmt: skip
#: good calls of these are about shapes; here, about numbers that no float32 is equal to
ENDS = [n * 0.1 for n in range(1, 40)]
NUMBERS = [0.1, -1e-40, 3.3e-39, 0.7, 1e-45, -16777217.0, 65519.99]


def _made() -> dict[str, Any]:
    """Tensors of Python numbers."""
    F = wf.nn.functional
    x = wf.ones(3)
    return {
        "tensor": lambda: wf.tensor(NUMBERS),
        "tensor as float16": lambda: wf.tensor(NUMBERS, dtype=wf.float16),
        "tensor as bfloat16": lambda: wf.tensor(NUMBERS, dtype=wf.bfloat16),
        "tensor of float64": lambda: wf.tensor(np.array(NUMBERS), dtype=wf.float32),
        "asarray": lambda: wf.asarray(NUMBERS, dtype="float32"),
        "full": lambda: [wf.full((3,), n) for n in NUMBERS],
        "arange": lambda: wf.arange(0.1, 2.0, 0.3),
        "linspace": lambda: wf.linspace(0.1, 0.7, 7, dtype=wf.float16),
        "multiply": lambda: [(x * 0.1), 0.3 / x, x**0.7, x.astype(wf.bfloat16) + 0.1],
        "assign": lambda: wf.ones(3).assign(0.1),
        "setitem": lambda: _set(wf.ones(3), 0.1),
        "where": lambda: wf.where(x > 0.5, 0.1, 0.7),
        "clip": lambda: wf.clip(x, 0.1, 0.7),
        "lerp": lambda: wf.lerp(x, 0.1, 0.7),
        "numpy operand": lambda: x * np.float64(0.1),
        "numpy array": lambda: wf.add(np.array([0.1, 0.2, 0.3]), x),
        "mean": lambda: wf.mean(wf.ones((3, 7)) * 0.1, axis=1),
        "attention": lambda: F.scaled_dot_product_attention(*[wf.ones((2, 3, 5)) * 0.1] * 3),
        "loss": lambda: F.cross_entropy(
            wf.tensor([[0.1, 0.7, 0.2]]), wf.tensor([1]), label_smoothing=0.1
        ),
        "dropout": lambda: F.dropout(wf.ones(50), 0.3, True),
        "in float64": lambda: [
            F.scaled_dot_product_attention(*[wf.ones((2, 3, 7), dtype=wf.float64) * 0.1] * 3),
            F.dropout(wf.ones(50, dtype=wf.float64), 0.3, True),
            F.normalize(wf.ones((3, 7), dtype=wf.float64) * 0.1, p=3.0),
            F.cross_entropy(
                wf.tensor([[0.1, 0.7, 0.2]], dtype=wf.float64), wf.tensor([1]), label_smoothing=0.1
            ),
            _running(0.3),
        ],
        "sizes of ranges": lambda: [wf.arange(0.0, end, 0.1).shape for end in ENDS],
        "read": lambda: [wf.tensor(NUMBERS).tolist(), wf.full((), 1e-40).item(), float(x[0] * 0.1)],
        "learning rates": lambda: [_rates(make) for make in SCHEDULES],
        "first values": _first_values,
        "gradient of mean": lambda: wf.grad(lambda y: (y * 0.1).mean())(wf.ones((3, 7))),
    }  # fmt: skip


def _running(momentum: float) -> Any:
    mean, var = wf.zeros(3, dtype=wf.float64) + 0.1, wf.ones(3, dtype=wf.float64) * 0.7
    x = wf.arange(21, dtype=wf.float64).reshape(7, 3) * 0.1
    wf.nn.functional.batch_norm(x, mean, var, training=True, momentum=momentum)
    return mean, var


SCHEDULES = [
    lambda o: wf.optim.StepLR(o, 3, gamma=0.3),
    lambda o: wf.optim.ExponentialLR(o, 0.93),
    lambda o: wf.optim.CosineAnnealingLR(o, 7),
    lambda o: wf.optim.LinearLR(o),
    lambda o: wf.optim.OneCycleLR(o, 0.3, total_steps=12),
    lambda o: wf.optim.ReduceLROnPlateau(o, factor=0.3, patience=0),
]


def _rates(make: Any) -> list[float]:
    """The learning rates of ten epochs, and what a parameter is after them."""
    p = wf.nn.Parameter(wf.ones(3, dtype=wf.float64))
    opt = wf.optim.AdamW([p], lr=0.1, weight_decay=0.07)
    schedule, found = make(opt), []
    for _ in range(10):
        p.grad = p.detach()
        opt.step()
        schedule.step(*[1.0] * isinstance(schedule, wf.optim.ReduceLROnPlateau))
        found.append(opt.param_groups[0]["lr"])
    return [*found, p.detach()]


def _first_values() -> list[Any]:
    init = wf.nn.init
    fill = [
        lambda x: init.uniform_(x, -0.3, 0.7),
        lambda x: init.trunc_normal_(x, 0.1, 0.7, -1.1, 1.3),
        lambda x: init.xavier_uniform_(x, 0.7),
        lambda x: init.xavier_normal_(x, 0.7),
        lambda x: init.kaiming_uniform_(x, 0.3),
        lambda x: init.kaiming_normal_(x, 0.3),
    ]
    layers = [
        wf.nn.Linear(7, 3, dtype=wf.float64),
        wf.nn.Bilinear(3, 5, 2, dtype=wf.float64),
        wf.nn.Conv1d(3, 2, 3, dtype=wf.float64),
        wf.nn.RNN(3, 7, dtype=wf.float64),
    ]
    filled = [f(wf.zeros((3, 11), dtype=wf.float64)) for f in fill]
    return filled + [p.detach() for layer in layers for p in layer.parameters()]


def _set(x: Any, value: float) -> Any:
    x[1] = value
    return x


def _arrays(out: Any) -> list[Any]:
    """Every tensor in a result, as an array, and every Python number."""
    if isinstance(out, wf.Tensor):
        return [np.array(out.numpy())]
    if isinstance(out, (tuple, list)):
        return [a for o in out for a in _arrays(o)]
    return [np.array(out)] if isinstance(out, (int, float)) else []


def _answers(target: Target, mode: str | None) -> list[Any]:
    """What the good calls of a target give, and leave in copies of their operands."""
    found = []
    for args, attrs in target.good:
        wf.manual_seed(5)
        given = [copy(a) if isinstance(a, wf.Tensor) and a.is_leaf else a for a in args]
        with host_mode(mode) if mode else nullcontext(), suppress(WeftError, TypeError):
            out = None  # stays so where a dtype has no such op, or these are no operands of it
            out = target.run(*given, **attrs)
        found += _arrays(out) + _arrays(given)
    return found


@pytest.fixture(scope="module")
def targets() -> list[tuple[Target, list[Any]]]:
    families = names()
    said = [n for family in ("functions", "functional", "methods") for n in families[family]]
    skipped = SETTINGS | {"empty", "empty_like", "Tensor.backward", "Tensor.__hash__"}
    every = [find(n) for n in said if n not in skipped]
    made = [Target(f"numbers: {n}", f, [((), {})]) for n, f in _made().items()]
    every += made
    return [(target, _answers(target, None)) for target in every]


@pytest.mark.parametrize("mode", MODES)
def test_the_hosts_mode_changes_no_public_result(mode, targets):
    forget_plans()
    failures = []
    for target, want in targets:
        for _ in range(2):  # planned now, and then known
            got = _answers(target, mode)
            failures += differences(got, want, f"{target.name} rounding {mode}")
    failed(failures, 2 * len(targets))
    arrays = sum(len(want) for _, want in targets)
    print(f"\n{mode}: {len(targets)} functions and methods, {arrays} arrays")
