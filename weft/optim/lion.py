"""Lion (Chen et al., https://arxiv.org/abs/2302.06675)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.ops.optimizer import lion_update
from weft.optim.numbers import Numbers, check_betas, check_number, check_true
from weft.optim.optimizer import Cells, Group, Optimizer
from weft.tensor.tensor import Tensor


class Lion(Optimizer):
    """The sign of a moving mean of the gradient; weight decay is of the parameters themselves.

    >>> import weft as wf
    >>> opt = wf.optim.Lion(wf.nn.Linear(3, 1).parameters(), lr=1e-4, weight_decay=0.1)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        check_number("Lion", group, "lr")
        check_number("Lion", group, "weight_decay")
        check_betas("Lion", group)
        check_true("Lion", group, "maximize")

    @staticmethod
    def _slots(group: Mapping[str, Any]) -> dict[str, float]:
        return {"exp_avg": 0.0}

    def _update(self, group: Group, steps: Tensor, cells: Cells) -> None:
        numbers = Numbers(group, steps, ("lr", "1 - beta1", "1 - beta2"), "parameter")
        for n, p in cells:
            mean = self.state[p]["exp_avg"]
            operands = (p.detach(), numbers.gradient(p), mean, *numbers(n, p))
            new, moved = lion_update(*operands, decay=numbers.kind)
            p.assign(new)
            mean.assign(moved)
