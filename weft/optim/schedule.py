"""Learning-rate schedules, with PyTorch's names and numbers: `step()` once an epoch (or a batch)
sets `lr` in the optimizer's groups.

The numbers are Python's. A captured step reads them anew on every call.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft.capture.refusal import refused
from weft.errors import DTypeError, ShapeError, StateError
from weft.ops.define import capturing, standard_mode
from weft.optim.optimizer import Group, Optimizer
from weft.tensor.arguments import integer, number

Lambda = Callable[[int], float]


def expect_outside(schedule: object) -> None:
    """Refuse to go on in a program, whose numbers a schedule would not see again."""
    if capturing.now is not None:
        hint = "call it after the compiled step, which reads the learning rate in every call"
        where = "a call outside of a compiled function"
        raise refused(f"{type(schedule).__name__}.step()", where, "one inside", hint)


class LRScheduler:
    """Base class: `get_lr` says the learning rates of the epoch `last_epoch`.

    >>> import weft as wf
    >>> class Halving(wf.optim.LRScheduler):
    ...     def get_lr(self):
    ...         return [0.5**self.last_epoch * lr for lr in self.base_lrs]
    >>> opt = wf.optim.SGD([wf.nn.Parameter(wf.ones(1))], lr=1.0)
    >>> schedule = Halving(opt)
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = expect_optimizer(optimizer, type(self).__name__)
        self.last_epoch = integer(last_epoch, "last_epoch")
        for n, group in enumerate(optimizer.param_groups):
            if self.last_epoch >= 0 and "initial_lr" not in group:
                hint = "load the optimizer's state first, or leave last_epoch out"
                expected = f"initial_lr in group {n} to go on from last_epoch={last_epoch}"
                raise StateError(type(self).__name__, expected=expected, got="none", hint=hint)
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs: list[float] = [float(g["initial_lr"]) for g in optimizer.param_groups]
        self.step()

    @property
    def groups(self) -> list[Group]:
        """The groups of the optimizer."""
        return self.optimizer.param_groups

    def _scaled(self, factor: float) -> list[float]:
        """Every learning rate as it is, times a factor."""
        return [g["lr"] * factor for g in self.groups]

    def get_lr(self) -> list[float]:
        """The learning rates of this epoch, which may be computed from those of the one before."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The learning rates as they are."""
        return [float(g["lr"]) for g in self.groups]

    def step(self) -> None:
        """Go on to the next epoch."""
        expect_outside(self)
        self.last_epoch += 1
        with standard_mode():
            for group, lr in zip(self.groups, self.get_lr(), strict=True):
                group["lr"] = lr

    def state_dict(self) -> dict[str, Any]:
        """Where the schedule is; functions given to it are left out."""
        return {k: v for k, v in vars(self).items() if k != "optimizer" and not callable(v)}

    def load_state_dict(self, state_dict: Any) -> None:
        """Go on from where a schedule of the same kind was."""
        if not isinstance(state_dict, dict):
            place, got = f"load_state_dict of {type(self).__name__}", type(state_dict).__name__
            raise DTypeError(place, expected="a dict", got=got)
        vars(self).update({k: v for k, v in state_dict.items() if k in vars(self)})


class LambdaLR(LRScheduler):
    """The first learning rate times a function of the epoch.

    >>> import weft as wf
    >>> opt = wf.optim.SGD([wf.nn.Parameter([1.0])], lr=0.5)
    >>> warm = wf.optim.LambdaLR(opt, lambda epoch: min(1.0, (epoch + 1) / 4))
    >>> opt.param_groups[0]["lr"]
    0.125
    """

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Lambda | Sequence[Lambda], last_epoch: int = -1
    ) -> None:
        many = lr_lambda if isinstance(lr_lambda, Sequence) else None
        self._functions = _Functions(many or [lr_lambda] * len(optimizer.param_groups))  # type: ignore[list-item]
        if len(self._functions.all) != len(optimizer.param_groups):
            expected = f"{len(optimizer.param_groups)} functions"
            raise ShapeError("LambdaLR", expected=expected, got=str(len(self._functions.all)))
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        pairs = zip(self.base_lrs, self._functions.all, strict=True)
        return [base * f(self.last_epoch) for base, f in pairs]

    def state_dict(self) -> dict[str, Any]:
        none = [None] * len(self.base_lrs)  # PyTorch wants to be told that they are left out
        return {**super().state_dict(), "lr_lambdas": none}


class _Functions:
    """Functions that a state leaves out."""

    def __init__(self, functions: Sequence[Lambda]) -> None:
        self.all = list(functions)

    def __call__(self) -> None:
        """Nothing; what can be called is no part of a state."""


class StepLR(LRScheduler):
    """Times gamma every `step_size` epochs.

    >>> import weft as wf
    >>> opt = wf.optim.SGD([wf.nn.Parameter([1.0])], lr=0.5)
    >>> schedule = wf.optim.StepLR(opt, step_size=2, gamma=0.5)
    >>> for epoch in range(4):
    ...     schedule.step()
    >>> opt.param_groups[0]["lr"]
    0.125
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = count_of(step_size, "StepLR step_size")
        self.gamma = number(gamma, "StepLR", "gamma")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        falls = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return self._scaled(self.gamma if falls else 1.0)


class MultiStepLR(LRScheduler):
    """Times gamma at each of the milestones.

    >>> import weft as wf
    >>> opt = wf.optim.SGD([wf.nn.Parameter(wf.ones(1))], lr=1.0)
    >>> schedule = wf.optim.MultiStepLR(opt, [2, 3], gamma=0.5)
    >>> for _ in range(3):
    ...     print(schedule.get_last_lr())
    ...     opt.step()
    ...     schedule.step()
    [1.0]
    [1.0]
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = dict(Counter(integer(m, "MultiStepLR milestones") for m in milestones))
        self.gamma = number(gamma, "MultiStepLR", "gamma")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._scaled(self.gamma ** self.milestones.get(self.last_epoch, 0))


class ExponentialLR(LRScheduler):
    """Times gamma every epoch.

    >>> import weft as wf
    >>> opt = wf.optim.SGD([wf.nn.Parameter(wf.ones(1))], lr=1.0)
    >>> schedule = wf.optim.ExponentialLR(opt, gamma=0.5)
    >>> for _ in range(3):
    ...     print(schedule.get_last_lr())
    ...     opt.step()
    ...     schedule.step()
    [1.0]
    [0.5]
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = number(gamma, "ExponentialLR", "gamma")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._scaled(self.gamma if self.last_epoch > 0 else 1.0)


class ConstantLR(LRScheduler):
    """Times a factor for the first `total_iters` epochs.

    >>> import weft as wf
    >>> opt = wf.optim.SGD([wf.nn.Parameter(wf.ones(1))], lr=1.0)
    >>> schedule = wf.optim.ConstantLR(opt, factor=0.5, total_iters=2)
    >>> for _ in range(3):
    ...     print(schedule.get_last_lr())
    ...     opt.step()
    ...     schedule.step()
    [0.5]
    [0.5]
    [1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.factor = number(factor, "ConstantLR", "a factor", 0, 1)
        self.total_iters = integer(total_iters, "ConstantLR total_iters")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._scaled(1.0 / self.factor if self.last_epoch == self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """Times a factor that goes in a line from `start_factor` to `end_factor`: a warm-up.

    >>> import weft as wf
    >>> opt = wf.optim.SGD([wf.nn.Parameter([1.0])], lr=1.0)
    >>> schedule = wf.optim.LinearLR(opt, start_factor=0.5, total_iters=4)
    >>> schedule.step()
    >>> opt.param_groups[0]["lr"]
    0.625
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3.0,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor = number(start_factor, "LinearLR", "a start_factor", 0, 1)
        if self.start_factor == 0:
            raise ShapeError("LinearLR", expected="a start_factor above 0", got="0")
        self.end_factor = number(end_factor, "LinearLR", "an end_factor", 0, 1)
        self.total_iters = count_of(total_iters, "LinearLR total_iters")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self.last_epoch > self.total_iters:
            return self._scaled(1.0)
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._scaled(1.0 + rise / before)


class PolynomialLR(LRScheduler):
    """Down to 0 along a power of the epochs that are left.

    >>> import weft as wf
    >>> opt = wf.optim.SGD([wf.nn.Parameter(wf.ones(1))], lr=1.0)
    >>> schedule = wf.optim.PolynomialLR(opt, total_iters=4)
    >>> for _ in range(3):
    ...     print(schedule.get_last_lr())
    ...     opt.step()
    ...     schedule.step()
    [1.0]
    [0.75]
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = count_of(total_iters, "PolynomialLR total_iters")
        self.power = number(power, "PolynomialLR", "power")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        n, whole = self.last_epoch, self.total_iters
        if n == 0 or n > whole:
            return self._scaled(1.0)
        return self._scaled(((1.0 - n / whole) / (1.0 - (n - 1) / whole)) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """Down to `eta_min` along half a cosine of `T_max` epochs, and up again after it.

    >>> import weft as wf
    >>> opt = wf.optim.SGD([wf.nn.Parameter([1.0])], lr=1.0)
    >>> schedule = wf.optim.CosineAnnealingLR(opt, T_max=10)
    >>> for epoch in range(10):
    ...     schedule.step()
    >>> opt.param_groups[0]["lr"]
    0.0
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = count_of(T_max, "CosineAnnealingLR T_max")
        self.eta_min = number(eta_min, "CosineAnnealingLR", "eta_min")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        n, turn, least = self.last_epoch, math.pi / self.T_max, self.eta_min
        if n == 0:
            return self._scaled(1.0)
        if (n - 1 - self.T_max) % (2 * self.T_max) == 0:
            bases = zip(self.groups, self.base_lrs, strict=True)
            return [g["lr"] + (b - least) * (1 - math.cos(turn)) / 2 for g, b in bases]
        ratio = (1 + math.cos(turn * n)) / (1 + math.cos(turn * (n - 1)))
        return [ratio * (g["lr"] - least) + least for g in self.groups]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down to `eta_min` along half a cosine, again and again, each `T_mult` times as long.

    >>> import weft as wf
    >>> opt = wf.optim.SGD([wf.nn.Parameter(wf.ones(1))], lr=1.0)
    >>> schedule = wf.optim.CosineAnnealingWarmRestarts(opt, T_0=2)
    >>> for _ in range(3):
    ...     print(schedule.get_last_lr())
    ...     opt.step()
    ...     schedule.step()
    [1.0]
    [0.5]
    [1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        place = "CosineAnnealingWarmRestarts"
        self.T_0, self.T_mult = count_of(T_0, f"{place} T_0"), count_of(T_mult, f"{place} T_mult")
        self.eta_min = number(eta_min, place, "eta_min")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        here, whole = self._place()
        part = (1 + math.cos(math.pi * here / whole)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]

    def _place(self) -> tuple[int, int]:
        """The epoch of this cosine, and how many it has."""
        here, whole = self.last_epoch, self.T_0
        while here >= whole:
            here, whole = here - whole, whole * self.T_mult
        return here, whole

    def state_dict(self) -> dict[str, Any]:
        here, whole = self._place()
        return {**super().state_dict(), "T_cur": here, "T_i": whole}  # PyTorch reads them


class SequentialLR(LRScheduler):
    """Schedules one after the other, each from its milestone on.

    >>> import weft as wf
    >>> opt = wf.optim.SGD([wf.nn.Parameter([1.0])], lr=1.0)
    >>> warm = wf.optim.LinearLR(opt, start_factor=0.5, total_iters=2)
    >>> down = wf.optim.CosineAnnealingLR(opt, T_max=4)
    >>> schedule = wf.optim.SequentialLR(opt, [warm, down], milestones=[2])
    >>> for epoch in range(6):
    ...     schedule.step()
    >>> opt.param_groups[0]["lr"]
    0.0
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        place = "SequentialLR"
        if not schedulers or not all(isinstance(s, LRScheduler) for s in schedulers):
            raise DTypeError(place, expected="schedulers", got=repr(schedulers)[:60])
        if len(milestones) != len(schedulers) - 1:
            expected = f"{len(schedulers) - 1} milestones for {len(schedulers)} schedulers"
            raise ShapeError(place, expected=expected, got=str(len(milestones)))
        if any(s.optimizer is not optimizer for s in schedulers):
            raise ShapeError(place, expected="schedulers of this optimizer", got="of another one")
        self.optimizer = optimizer
        self.schedulers, self.milestones = list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:  # what making the schedules changed
            group["lr"] = group["initial_lr"]
        for schedule in schedulers:
            schedule.last_epoch -= 1
        self.schedulers[0].step()

    def step(self) -> None:
        expect_outside(self)
        self.last_epoch += 1
        i = bisect_right(self.milestones, self.last_epoch)
        schedule = self.schedulers[i]
        if i > 0 and self.milestones[i - 1] == self.last_epoch:
            schedule.last_epoch = -1
            for group in self.groups:
                group["lr"] = group["initial_lr"]
        schedule.step()

    def state_dict(self) -> dict[str, Any]:
        return {
            "_schedulers": [s.state_dict() for s in self.schedulers],
            "_milestones": list(self.milestones),
            "last_epoch": self.last_epoch,
        }

    def load_state_dict(self, state_dict: Any) -> None:
        place = "load_state_dict of SequentialLR"
        said: dict[str, Any] = state_dict if isinstance(state_dict, dict) else {}
        given = said.get("_schedulers", said.get("schedulers"))  # the latter in older files
        if not isinstance(given, list) or len(given) != len(self.schedulers):
            expected = f"a dict with the states of {len(self.schedulers)} schedulers"
            raise StateError(place, expected=expected, got=repr(state_dict)[:60])
        for schedule, state in zip(self.schedulers, given, strict=True):
            schedule.load_state_dict(state)
        self.milestones = list(said.get("_milestones", said.get("milestones", self.milestones)))
        super().load_state_dict({"last_epoch": said.get("last_epoch", self.last_epoch)})


def expect_optimizer(x: Any, place: str) -> Optimizer:
    """An optimizer, or an error that names the place."""
    if not isinstance(x, Optimizer):
        raise DTypeError(place, expected="an optimizer", got=type(x).__name__)
    return x


def count_of(n: Any, place: str) -> int:
    """How many epochs or steps: 1 or more, or an error that names the place."""
    out = integer(n, place)
    if out < 1:
        raise ShapeError(place, expected="1 or more", got=str(out))
    return out
