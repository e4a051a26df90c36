"""Losses as modules. `reduction` is "mean", "sum" or "none"."""

from __future__ import annotations

from typing import Any

from weft.nn import functional as F
from weft.nn.module import Module
from weft.ops.losses import REDUCTIONS
from weft.tensor.arguments import flag, integer, number, word
from weft.tensor.tensor import Tensor


class _Loss(Module):
    words: tuple[str, ...] = tuple(REDUCTIONS)

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = word(reduction, type(self).__name__, self.words)

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"


class MSELoss(_Loss):
    """(x - t)².

    >>> import weft as wf
    >>> wf.nn.MSELoss()(wf.tensor([1.0, 2.0]), wf.tensor([0.0, 4.0]))
    tensor(2.5)
    """

    def forward(self, x: Any, target: Any) -> Any:
        return F.mse_loss(x, target, self.reduction)


class L1Loss(_Loss):
    """|x - t|.

    >>> import weft as wf
    >>> wf.nn.L1Loss()(wf.tensor([1.0, 2.0]), wf.tensor([0.0, 4.0]))
    tensor(1.5)
    """

    def forward(self, x: Any, target: Any) -> Any:
        return F.l1_loss(x, target, self.reduction)


class SmoothL1Loss(_Loss):
    """|x - t|, rounded off below beta.

    >>> import weft as wf
    >>> wf.nn.SmoothL1Loss()(wf.tensor([1.0, 2.0]), wf.tensor([0.0, 4.0]))
    tensor(1.)
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = number(beta, "SmoothL1Loss", "a beta of", least=0)

    def forward(self, x: Any, target: Any) -> Any:
        return F.smooth_l1_loss(x, target, self.reduction, self.beta)


class HuberLoss(_Loss):
    """Half of (x - t)² up to delta, linear beyond.

    >>> import weft as wf
    >>> wf.nn.HuberLoss()(wf.tensor([1.0, 2.0]), wf.tensor([0.0, 4.0]))
    tensor(1.)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = number(delta, "HuberLoss", "a delta of", least=0)

    def forward(self, x: Any, target: Any) -> Any:
        return F.huber_loss(x, target, self.reduction, self.delta)


class KLDivLoss(_Loss):
    """t * (log(t) - x), x being a logarithm of probabilities.

    >>> import weft as wf
    >>> wf.nn.KLDivLoss("sum")(wf.log(wf.tensor([0.5, 0.5])), wf.tensor([1.0, 0.0]))
    tensor(0.6931)
    """

    words = (*REDUCTIONS, "batchmean")

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = flag(log_target, "KLDivLoss log_target")

    def forward(self, x: Any, target: Any) -> Any:
        return F.kl_div(x, target, self.reduction, self.log_target)


class _Weighted(_Loss):
    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)


class BCELoss(_Weighted):
    """-(t * log(x) + (1 - t) * log(1 - x)) for probabilities x.

    >>> import weft as wf
    >>> wf.nn.BCELoss()(wf.tensor([0.5, 0.5]), wf.tensor([1.0, 0.0]))
    tensor(0.6931)
    """

    def forward(self, x: Any, target: Any) -> Any:
        return F.binary_cross_entropy(x, target, self.weight, self.reduction)


class BCEWithLogitsLoss(_Weighted):
    """BCELoss of sigmoid(x), without overflow.

    >>> import weft as wf
    >>> wf.nn.BCEWithLogitsLoss()(wf.tensor([0.0, 0.0]), wf.tensor([1.0, 0.0]))
    tensor(0.6931)
    """

    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, x: Any, target: Any) -> Any:
        return F.binary_cross_entropy_with_logits(
            x, target, self.weight, self.reduction, self.pos_weight
        )


class NLLLoss(_Weighted):
    """-x at the target's class, x (N, C, …) being logarithms of probabilities.

    >>> import weft as wf
    >>> wf.nn.NLLLoss()(wf.tensor([[-0.5, -1.0]]), wf.tensor([1]))
    tensor(1.)
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = integer(ignore_index, "NLLLoss ignore_index")

    def forward(self, x: Any, target: Any) -> Any:
        return F.nll_loss(x, target, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(_Weighted):
    """-log(softmax(x)) at the target, x (N, C, …) being logits.

    >>> import weft as wf
    >>> wf.nn.CrossEntropyLoss()(wf.tensor([[0.0, 0.0]]), wf.tensor([1]))
    tensor(0.6931)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = integer(ignore_index, "CrossEntropyLoss ignore_index")
        self.label_smoothing = number(label_smoothing, "CrossEntropyLoss", "smoothing", 0, 1)

    def forward(self, x: Any, target: Any) -> Any:
        return F.cross_entropy(
            x, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing
        )
