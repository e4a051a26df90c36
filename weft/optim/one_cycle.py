"""A schedule of one cycle, learning rate and momentum."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.errors import ShapeError
from weft.ops.define import standard_mode
from weft.optim.optimizer import Group, Optimizer
from weft.optim.schedule import LRScheduler, count_of, expect_optimizer
from weft.tensor.arguments import flag, number, word


class OneCycleLR(LRScheduler):
    """Up to `max_lr`, down to nearly 0; momentum the other way (Smith and Topin,
    https://arxiv.org/abs/1708.07120). `step()` once a batch.

    >>> import weft as wf
    >>> opt = wf.optim.SGD([wf.nn.Parameter([1.0])], lr=0.1, momentum=0.9)
    >>> schedule = wf.optim.OneCycleLR(opt, max_lr=1.0, total_steps=100)
    >>> round(opt.param_groups[0]["lr"], 6)
    0.04
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        place = "OneCycleLR"
        expect_optimizer(optimizer, place)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                expected = "total_steps, or epochs and steps_per_epoch"
                raise ShapeError(place, expected=expected, got="neither")
            total_steps = count_of(epochs, place) * count_of(steps_per_epoch, place)
        self.total_steps = count_of(total_steps, f"{place} total_steps")
        self.cosine = word(anneal_strategy, place, ("cos", "linear")) == "cos"
        start = number(pct_start, place, "a pct_start", 0, 1)
        with standard_mode():
            self.ends = self._phases(start, flag(three_phase, place))
        self.three_phase = three_phase
        self.cycle_momentum = flag(cycle_momentum, place)
        self.momenta = (base_momentum, max_momentum)
        groups = optimizer.param_groups
        tops = list(max_lr) if isinstance(max_lr, Sequence) else [max_lr] * len(groups)
        if len(tops) != len(groups):
            raise ShapeError(place, expected=f"{len(groups)} values of max_lr", got=str(len(tops)))
        if cycle_momentum and not all("momentum" in g or "betas" in g for g in groups):
            expected = "an optimizer with momentum or betas, or cycle_momentum=False"
            raise ShapeError(place, expected=expected, got=type(optimizer).__name__)
        self.tops = [number(t, place, "max_lr", least=0) for t in tops]
        over = number(div_factor, place, "div_factor")
        further = number(final_div_factor, place, "final_div_factor")
        with standard_mode():
            self.firsts = [t / over for t in self.tops]
            self.lasts = [f / further for f in self.firsts]
        if last_epoch == -1:
            self._tell(groups)
        super().__init__(optimizer, last_epoch)

    def _tell(self, groups: list[Group]) -> None:
        """Write where each group begins, turns and ends into it, as PyTorch does, which reads it
        from a saved state.
        """
        for group, *rates in zip(groups, self.firsts, self.tops, self.lasts, strict=True):
            group.update(zip(("initial_lr", "max_lr", "min_lr"), rates, strict=True))
            if self.cycle_momentum:
                group["base_momentum"], group["max_momentum"] = self.momenta

    def _phases(self, start: float, three: bool) -> list[float]:
        """The last step of each phase."""
        first, last = start * self.total_steps - 1, self.total_steps - 1.0
        return [first, 2 * first if three else last, last][: 3 if three else 2]

    def _levels(self, low: float, high: float, end: float) -> list[float]:
        """A number at the beginning and at the end of each phase."""
        return [low, high, low, end] if self.three_phase else [low, high, end]

    def _between(self, levels: list[float]) -> float:
        step, begin = self.last_epoch, 0.0
        for i, end in enumerate(self.ends):
            if step <= end or i == len(self.ends) - 1:
                part = (step - begin) / (end - begin) if end > begin else 1.0
                a, b = levels[i], levels[i + 1]
                if self.cosine:
                    return b + (a - b) / 2.0 * (math.cos(math.pi * part) + 1)
                return (b - a) * part + a
            begin = end
        return levels[-1]

    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            expected = f"at most {self.total_steps} steps"
            raise ShapeError("OneCycleLR", expected=expected, got=str(self.last_epoch))
        if self.cycle_momentum:
            low, high = self.momenta
            now = self._between(self._levels(high, low, high))
            for group in self.groups:
                if "betas" in group:
                    group["betas"] = (now, *group["betas"][1:])
                else:
                    group["momentum"] = now
        levels = zip(self.firsts, self.tops, self.lasts, strict=True)
        return [self._between(self._levels(*each)) for each in levels]
