"""Gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.errors import ShapeError
from weft.ops.optimizer import sgd_damped_update, sgd_momentum_update, sgd_update
from weft.optim.numbers import Numbers, check_number, check_true
from weft.optim.optimizer import Cells, Group, Optimizer
from weft.tensor.tensor import Tensor


class SGD(Optimizer):
    """p - lr * g; with `momentum`, along a decaying sum of gradients.

    >>> import weft as wf
    >>> w = wf.nn.Parameter([1.0])
    >>> opt = wf.optim.SGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    Parameter([0.8])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )

    def _check(self, group: Group) -> None:
        for name in ("lr", "momentum", "weight_decay"):
            check_number("SGD", group, name)
        check_number("SGD", group, "dampening", least=float("-inf"))
        check_true("SGD", group, "nesterov", "maximize")
        if group["nesterov"] and (group["momentum"] == 0 or group["dampening"] != 0):
            got = f"momentum {group['momentum']}, dampening {group['dampening']}"
            expected = "momentum above 0 and no dampening with nesterov"
            raise ShapeError("SGD", expected=expected, got=got)

    @staticmethod
    def _slots(group: Mapping[str, Any]) -> dict[str, float]:
        return {"momentum_buffer": 0.0} if group["momentum"] != 0 else {}

    def _update(self, group: Group, steps: Tensor, cells: Cells) -> None:
        moving, damped = group["momentum"] != 0, group["dampening"] != 0
        names = ("lr", "momentum", "1 - dampening")[: 1 + moving + (moving and damped)]
        numbers = Numbers(group, steps, names, "gradient")
        decay, nesterov = numbers.kind, group["nesterov"]
        for n, p in cells:
            old, g, said = p.detach(), numbers.gradient(p), numbers(n, p)
            if not moving:
                p.assign(sgd_update(old, g, *said, decay=decay))
                continue
            buffer = self.state[p]["momentum_buffer"]
            if damped:
                new, moved = sgd_damped_update(
                    old, g, buffer, steps[n], *said, decay=decay, nesterov=nesterov
                )
            else:
                new, moved = sgd_momentum_update(
                    old, g, buffer, *said, decay=decay, nesterov=nesterov
                )
            p.assign(new)
            buffer.assign(moved)
