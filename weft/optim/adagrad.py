"""Adagrad (Duchi et al., Journal of Machine Learning Research 12, 2011)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.ops.elementwise import astype
from weft.ops.optimizer import adagrad_rate, adagrad_update
from weft.optim.numbers import Numbers, check_number, check_true
from weft.optim.optimizer import Cells, Group, Optimizer
from weft.tensor.tensor import Tensor
from weft.types import DType
from weft.types.dtype import float64


class Adagrad(Optimizer):
    """The gradient divided by the root of the sum of all its squares so far.

    >>> import weft as wf
    >>> opt = wf.optim.Adagrad(wf.nn.Linear(3, 1).parameters(), lr=0.1)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "eps": eps,
                "maximize": maximize,
            },
        )

    def _check(self, group: Group) -> None:
        for name in ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"):
            check_number("Adagrad", group, name)
        check_true("Adagrad", group, "maximize")

    @staticmethod
    def _slots(group: Mapping[str, Any]) -> dict[str, float]:
        return {"sum": float(group["initial_accumulator_value"])}

    def _update(self, group: Group, steps: Tensor, cells: Cells) -> None:
        numbers = _Slowing(group, steps, ("eps",), "gradient")
        for n, p in cells:
            squares = self.state[p]["sum"]
            operands = (p.detach(), numbers.gradient(p), squares, *numbers(n, p))
            new, more = adagrad_update(*operands, decay=numbers.kind)
            p.assign(new)
            squares.assign(more)


class _Slowing(Numbers):
    """The numbers of Adagrad, behind the learning rate, which depends on the step."""

    def _make(self, dtype: DType) -> tuple[Any, ...]:
        rate = adagrad_rate(self.steps, self.host("lr", float64), self.host("lr_decay", float64))
        return (astype(rate, dtype=dtype), *super()._make(dtype))
