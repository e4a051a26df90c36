"""Gradients kept within bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from weft.autodiff.mode import no_grad
from weft.errors import DTypeError, NumericsError
from weft.ops.define import host_number
from weft.ops.optimizer import square_sum
from weft.tensor.arguments import flag, number
from weft.tensor.creation import zeros
from weft.tensor.elementwise import clip, minimum
from weft.tensor.manipulation import stack
from weft.tensor.tensor import Tensor
from weft.types.dtype import float32


def _gradients(parameters: Any, place: str) -> list[Tensor]:
    params = [parameters] if isinstance(parameters, Tensor) else parameters
    if not isinstance(params, Iterable):
        got = type(params).__name__
        raise DTypeError(place, expected="parameters", got=got, hint="give model.parameters()")
    found = []
    for p in params:
        if not isinstance(p, Tensor):
            raise DTypeError(place, expected="parameters", got=type(p).__name__)
        if p.grad is not None:
            found.append(p.grad)
    return found


def _norm(grads: list[Tensor], kind: float) -> Any:
    if not grads:
        return zeros(())
    if kind == math.inf:
        parts = [g.abs().max() for g in grads]
    elif kind == 2.0:
        parts = [square_sum(g) for g in grads]
    else:
        parts = [(g.abs() ** kind).sum() for g in grads]
    wide = max((float32, *(p.dtype for p in parts)), key=lambda d: d.bits)
    together = stack([p.astype(wide) for p in parts])
    if kind == math.inf:
        return together.max()
    whole = together.sum()
    return whole.sqrt() if kind == 2.0 else whole ** (1.0 / kind)


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Scale all gradients by one factor, so that their norm taken together is at most `max_norm`.
    The norm before that is given back.

    >>> import weft as wf
    >>> w = wf.nn.Parameter([3.0, 4.0])
    >>> (w * w).sum().backward()
    >>> float(wf.optim.clip_grad_norm_([w], 1.0))
    10.0
    >>> w.grad
    tensor([0.6, 0.8])
    """
    place = "clip_grad_norm_"
    grads = _gradients(parameters, place)
    number(max_norm, place, "max_norm", least=0)
    kind = number(norm_type, place, "norm_type")
    with no_grad():
        total: Tensor = _norm(grads, kind)
        if flag(error_if_nonfinite, place) and not math.isfinite(float(total)):
            expected = "gradients with a finite norm"
            raise NumericsError(place, expected=expected, got=str(float(total)))
        limit = host_number(lambda: float(max_norm))
        factor = minimum(limit / (total + 1e-6), 1.0)
        for g in grads:
            g.assign(g * factor)
    return total


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Keep every element of the gradients between -clip_value and clip_value.

    >>> import weft as wf
    >>> w = wf.nn.Parameter([3.0, 0.25])
    >>> (w * w).sum().backward()
    >>> wf.optim.clip_grad_value_([w], 1.0)
    >>> w.grad
    tensor([1. , 0.5])
    """
    grads = _gradients(parameters, "clip_grad_value_")
    most = number(clip_value, "clip_grad_value_", "clip_value", least=0)
    with no_grad():
        for g in grads:
            g.assign(clip(g, -most, most))
