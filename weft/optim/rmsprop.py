"""RMSprop (Hinton's lecture 6e of Neural Networks for Machine Learning, 2012)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.ops.optimizer import rmsprop_update
from weft.optim.numbers import Numbers, check_number, check_true
from weft.optim.optimizer import Cells, Group, Optimizer
from weft.tensor.tensor import Tensor


class RMSprop(Optimizer):
    """The gradient divided by the root of the moving mean of its square.

    With `centered` it is divided by its standard deviation instead.

    >>> import weft as wf
    >>> opt = wf.optim.RMSprop(wf.nn.Linear(3, 1).parameters(), lr=1e-2, momentum=0.9)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "alpha": alpha,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "centered": centered,
                "maximize": maximize,
            },
        )

    def _check(self, group: Group) -> None:
        for name in ("lr", "alpha", "eps", "weight_decay", "momentum"):
            check_number("RMSprop", group, name)
        check_true("RMSprop", group, "centered", "maximize")

    @staticmethod
    def _slots(group: Mapping[str, Any]) -> dict[str, float]:
        names = ["square_avg"] + ["grad_avg"] * group["centered"]
        return dict.fromkeys(names + ["momentum_buffer"] * (group["momentum"] != 0), 0.0)

    def _update(self, group: Group, steps: Tensor, cells: Cells) -> None:
        moving, centered = group["momentum"] != 0, group["centered"]
        names = ("lr", "alpha", "1 - alpha", "eps", "momentum")[: 4 + moving]
        numbers = Numbers(group, steps, names, "gradient")
        slots = list(self._slots(group))
        for n, p in cells:
            states = [self.state[p][name] for name in slots]
            operands = (p.detach(), numbers.gradient(p), *states, *numbers(n, p))
            new = rmsprop_update(*operands, decay=numbers.kind, centered=centered, momentum=moving)
            for cell, value in zip((p, *states), new, strict=True):
                cell.assign(value)
