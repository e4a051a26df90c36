"""Averages of weights over the steps of training."""

from __future__ import annotations

import copy
from typing import Any

from weft.autodiff.mode import no_grad
from weft.errors import ShapeError
from weft.nn.module import Module
from weft.ops.define import host_number
from weft.ops.elementwise import where
from weft.tensor.arguments import number
from weft.tensor.data import tensor
from weft.tensor.tensor import Tensor
from weft.types.dtype import int64


class EMA(Module):
    """A copy of a model whose parameters are the moving mean of the model's.

    After each step of the optimizer, `update(model)` moves the copy: decay * mean + (1 - decay) *
    parameter; the first time it takes the parameters over, as PyTorch's `AveragedModel` does.
    Buffers are taken over as they are. Calling it calls the copy.

    >>> import weft as wf
    >>> model = wf.nn.Linear(2, 1)
    >>> mean = wf.optim.EMA(model, decay=0.9)
    >>> mean.update(model)
    >>> bool((mean.module.weight == model.weight).all())
    True
    """

    n_averaged: Tensor

    def __init__(self, model: Module, decay: float = 0.999) -> None:
        self.decay = number(decay, "EMA", "a decay", 0, 1)
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self.register_buffer("n_averaged", tensor(0, dtype=int64))

    def update(self, model: Module) -> None:
        """Move the means towards the parameters of the model."""
        with no_grad():
            mine, theirs = list(self.module.parameters()), list(model.parameters())
            if [p.shape for p in mine] != [p.shape for p in theirs]:
                expected, got = f"a model like the copy: {len(mine)} parameters", f"{len(theirs)}"
                hint = "their shapes count too; make another EMA of a model that has changed"
                raise ShapeError("EMA.update", expected=expected, got=got, hint=hint)
            far, first = host_number(lambda: 1.0 - self.decay), self.n_averaged == 0
            for mean, p in zip(mine, theirs, strict=True):
                now = p.detach()
                mean.assign(where(first, now, mean + (now - mean) * far))
            for own, b in zip(self.module.buffers(), model.buffers(), strict=True):
                own.assign(b.detach())
            self.n_averaged.assign(self.n_averaged + 1)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)
