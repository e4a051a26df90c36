"""Adam and AdamW: steps of a size of their own for every element.

Kingma and Ba, https://arxiv.org/abs/1412.6980; Loshchilov and Hutter,
https://arxiv.org/abs/1711.05101; Reddi et al., https://arxiv.org/abs/1904.09237 (amsgrad).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.ops.optimizer import adam_scale, adam_update
from weft.optim.numbers import Numbers, check_betas, check_number, check_true
from weft.optim.optimizer import Cells, Group, Optimizer
from weft.tensor.tensor import Tensor
from weft.types import DType
from weft.types.dtype import float64


class Adam(Optimizer):
    """Moving means of the gradient and of its square; the first is divided by the root of the
    second. `weight_decay` is added to the gradient.

    >>> import weft as wf
    >>> w = wf.nn.Parameter([1.0, 10.0])
    >>> opt = wf.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    Parameter([0.9, 9.9])
    """

    where = "gradient"

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
            },
        )

    def _check(self, group: Group) -> None:
        name = type(self).__name__
        for number in ("lr", "eps", "weight_decay"):
            check_number(name, group, number)
        check_betas(name, group)
        check_true(name, group, "amsgrad", "maximize")

    @staticmethod
    def _slots(group: Mapping[str, Any]) -> dict[str, float]:
        names = ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * group["amsgrad"]
        return dict.fromkeys(names, 0.0)

    def _update(self, group: Group, steps: Tensor, cells: Cells) -> None:
        numbers = _Scaled(group, steps, ("1 - beta1", "beta2", "1 - beta2", "eps"), self.where)
        decay, amsgrad, names = numbers.kind, group["amsgrad"], list(self._slots(group))
        for n, p in cells:
            states = [self.state[p][name] for name in names]
            operands = (p.detach(), numbers.gradient(p), *states, *numbers(n, p))
            new = adam_update(*operands, decay=decay, amsgrad=amsgrad)
            for cell, value in zip((p, *states), new, strict=True):
                cell.assign(value)


class _Scaled(Numbers):
    """The numbers of Adam, behind those that depend on the step."""

    def _make(self, dtype: DType) -> tuple[Any, ...]:
        wide = (self.host(name, float64) for name in ("lr", "beta1", "beta2"))
        return (*adam_scale(self.steps, *wide, dtype=dtype), *super()._make(dtype))


class AdamW(Adam):
    """Adam with weight decay of the parameters themselves: p * (1 - lr * weight_decay) first.

    >>> import weft as wf
    >>> model = wf.nn.Linear(3, 1)
    >>> opt = wf.optim.AdamW(model.parameters(), lr=1e-3)
    """

    where = "parameter"

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)
