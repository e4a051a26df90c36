"""A schedule that waits for a metric to stop improving."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.errors import DTypeError, ShapeError
from weft.ops.define import standard_mode
from weft.optim.optimizer import Optimizer
from weft.optim.schedule import expect_optimizer, expect_outside
from weft.tensor.arguments import integer, number, word


class ReduceLROnPlateau:
    """Times `factor` once a metric has not improved for more than `patience` epochs.

    >>> import weft as wf
    >>> opt = wf.optim.SGD([wf.nn.Parameter([1.0])], lr=1.0)
    >>> schedule = wf.optim.ReduceLROnPlateau(opt, patience=1)
    >>> for loss in (5.0, 5.0, 5.0):
    ...     schedule.step(loss)
    >>> opt.param_groups[0]["lr"]
    0.1
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        place = "ReduceLROnPlateau"
        self.optimizer = expect_optimizer(optimizer, place)
        self.mode = word(mode, place, ("min", "max"))
        self.threshold_mode = word(threshold_mode, place, ("rel", "abs"))
        self.factor = number(factor, place, "a factor", 0, 1)
        if self.factor == 1:
            raise ShapeError(place, expected="a factor below 1", got="1")
        self.patience, self.cooldown = integer(patience, place), integer(cooldown, place)
        self.threshold = number(threshold, place, "threshold")
        self.eps, count = number(eps, place, "eps"), len(optimizer.param_groups)
        lowest = list(min_lr) if isinstance(min_lr, Sequence) else [min_lr] * count
        if len(lowest) != count:
            raise ShapeError(place, expected=f"{count} values of min_lr", got=str(len(lowest)))
        self.min_lrs = [number(least, place, "min_lr") for least in lowest]
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0
        self.last_epoch = 0

    def step(self, metrics: Any) -> None:
        """Tell the metric of an epoch."""
        expect_outside(self)
        now = float(metrics)
        with standard_mode():
            self._tell(now)

    def _tell(self, now: float) -> None:
        self.last_epoch += 1
        if self._better(now):
            self.best, self.num_bad_epochs = now, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                lr = max(group["lr"] * self.factor, least)
                if group["lr"] - lr > self.eps:
                    group["lr"] = lr
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def _better(self, now: float) -> bool:
        least, by = self.mode == "min", self.threshold
        if self.threshold_mode == "rel":
            limit = self.best * (1 - by if least else 1 + by)
        else:
            limit = self.best + (-by if least else by)
        return now < limit if least else now > limit

    def get_last_lr(self) -> list[float]:
        """The learning rates as they are."""
        return [float(g["lr"]) for g in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Where the schedule is."""
        return {k: v for k, v in vars(self).items() if k != "optimizer"}

    def load_state_dict(self, state_dict: Any) -> None:
        """Go on from where a schedule of the same kind was."""
        if not isinstance(state_dict, dict):
            place, got = "load_state_dict of ReduceLROnPlateau", type(state_dict).__name__
            raise DTypeError(place, expected="a dict", got=got)
        vars(self).update({k: v for k, v in state_dict.items() if k in self.state_dict()})
