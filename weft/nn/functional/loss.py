"""Loss functions. `reduction` is "mean", "sum" or "none"."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.nn.functional.indices import indices_of, refuse_negative
from weft.ops import losses as ops
from weft.ops.define import Value, standard_mode
from weft.ops.elementwise import astype, not_equal, where
from weft.ops.indexing import take
from weft.ops.losses import reduced
from weft.ops.movement import permute_dims, reshape
from weft.ops.normalization import log_softmax
from weft.ops.reduction import narrowed, sum as total, widened
from weft.ops.scatter import take_along_axis
from weft.tensor.arguments import flag, floating, integer, number, value, word
from weft.tensor.tensor import Tensor
from weft.types.size import as_float


def _how(place: str, reduction: Any, *more: str) -> str:
    return word(reduction, place, (*ops.REDUCTIONS, *more))


def _same(place: str, input: Any, target: Any) -> tuple[Value, Value]:
    """Operands of one shape: a loss that broadcasts is a mistake more often than not."""
    x, t = floating(input, place), floating(target, place)
    if x.type.shape != t.type.shape:
        raise ShapeError(
            place,
            expected="input and target of one shape",
            got=f"{x.type} and {t.type}",
            hint="broadcast one with broadcast_to if that is meant",
        )
    return x, t


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """(x - t)².

    >>> import weft as wf
    >>> wf.nn.functional.mse_loss(wf.tensor([1.0, 2.0]), wf.tensor([0.0, 4.0]))
    tensor(2.5)
    """
    x, t = _same("mse_loss", input, target)
    return ops.mse_loss(x, t, reduction=_how("mse_loss", reduction))


def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """|x - t|.

    >>> import weft as wf
    >>> wf.nn.functional.l1_loss(wf.tensor([1.0, 2.0]), wf.tensor([0.0, 4.0]))
    tensor(1.5)
    """
    x, t = _same("l1_loss", input, target)
    return ops.l1_loss(x, t, reduction=_how("l1_loss", reduction))


def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """|x - t|, rounded off below beta.

    >>> import weft as wf
    >>> wf.nn.functional.smooth_l1_loss(wf.tensor([1.0, 2.0]), wf.tensor([0.5, 4.0]), "none")
    tensor([0.125, 1.5  ])
    """
    x, t = _same("smooth_l1_loss", input, target)
    how = _how("smooth_l1_loss", reduction)
    beta = number(beta, "smooth_l1_loss", "a beta of", least=0)
    return (
        ops.l1_loss(x, t, reduction=how)
        if beta == 0
        else ops.smooth_l1_loss(x, t, beta=beta, reduction=how)
    )


def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Half of (x - t)² up to delta, linear beyond.

    >>> import weft as wf
    >>> wf.nn.functional.huber_loss(wf.tensor([1.0, 2.0]), wf.tensor([0.5, 4.0]), "none")
    tensor([0.125, 1.5  ])
    """
    x, t = _same("huber_loss", input, target)
    delta = number(delta, "huber_loss", "a delta of", least=0)
    if delta == 0:
        raise ShapeError("huber_loss", expected="a delta above 0", got=str(delta))
    return ops.huber_loss(x, t, delta=delta, reduction=_how("huber_loss", reduction))


def _weighed(place: str, loss: Any, weight: Any, x: Value, reduction: str) -> Tensor:
    how = _how(place, reduction)
    if weight is not None:
        loss = loss * floating(weight, place)
    out: Any = loss if how == "none" else reduced(widened(loss), x, how)
    return out


def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """-(t * log(x) + (1 - t) * log(1 - x)) for probabilities x; a logarithm counts -100 at least.

    >>> import weft as wf
    >>> x, t = wf.tensor([0.5, 0.75]), wf.tensor([1.0, 0.0])
    >>> wf.nn.functional.binary_cross_entropy(x, t, reduction="none")
    tensor([0.6931, 1.3863])
    """
    x, t = _same("binary_cross_entropy", input, target)
    return _weighed("binary_cross_entropy", ops.binary_cross_entropy(x, t), weight, x, reduction)


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Tensor:
    """binary_cross_entropy of sigmoid(x), without overflow; `pos_weight` weighs the class 1.

    >>> import weft as wf
    >>> x, t = wf.tensor([0.0, 200.0]), wf.tensor([1.0, 0.0])
    >>> wf.nn.functional.binary_cross_entropy_with_logits(x, t, reduction="none")
    tensor([  0.6931, 200.    ])
    """
    x, t = _same("binary_cross_entropy_with_logits", input, target)
    positive = (
        () if pos_weight is None else (floating(pos_weight, "binary_cross_entropy_with_logits"),)
    )
    loss = ops.binary_cross_entropy_with_logits(x, t, *positive)
    return _weighed("binary_cross_entropy_with_logits", loss, weight, x, reduction)


def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """t * (log(t) - x), x being a logarithm of probabilities (and t too, with log_target).

    The divergence of distributions is the sum over classes, so "batchmean" (the sum divided by the
    first size) is what the mathematical definition says; "mean" divides by the number of elements.

    >>> import weft as wf
    >>> p = wf.tensor([[0.5, 0.5]])
    >>> wf.nn.functional.kl_div(wf.tensor([[0.25, 0.75]]).log(), p, reduction="batchmean")
    tensor(0.1438)
    """
    x, t = _same("kl_div", input, target)
    how = _how("kl_div", reduction, "batchmean")
    loss: Any = ops.kl_div(x, t, log_target=flag(log_target, "kl_div"))
    if how == "none":
        return loss
    out: Any = reduced(widened(loss), x, "sum" if how == "batchmean" else how)
    return out / as_float(x.type.sizes[0] if x.type.ndim else 1) if how == "batchmean" else out


def nll_loss(
    input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """-x at the target's class, x (N, C, …) being logarithms of probabilities; targets (N, …) are
    integers.

    With `weight` classes count differently, and the mean is the weighted one. Targets of
    `ignore_index` count nothing.

    >>> import weft as wf
    >>> x = wf.tensor([[0.5, 0.5], [0.25, 0.75]]).log()
    >>> wf.nn.functional.nll_loss(x, wf.tensor([0, 1]), reduction="none")
    tensor([0.6931, 0.2877])
    """
    rows = _Rows("nll_loss", input, target, ignore_index)
    n = rows.index.type.size
    with indices_of("nll_loss", "classes", rows.classes, rows.given):
        picked = take_along_axis(rows.x, reshape(rows.index, shape=(n, 1)), axis=1)
    return rows.finish(-reshape(picked, shape=(n,)), weight, _how("nll_loss", reduction))


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """-log(softmax(x)) at the target, x (N, C, …) being logits.

    Targets are classes (N, …), integers, or probabilities of every class (N, C, …).
    `label_smoothing` moves that part of the probability to all classes alike.

    >>> import weft as wf
    >>> x = wf.tensor([[0.0, 0.0], [0.0, 1.0]])
    >>> wf.nn.functional.cross_entropy(x, wf.tensor([0, 1]), reduction="none")
    tensor([0.6931, 0.3133])
    """
    how = _how("cross_entropy", reduction)
    smooth = number(label_smoothing, "cross_entropy", "a label_smoothing", 0, 1)
    x, t = floating(input, "cross_entropy"), value(target)
    if t.type.dtype.is_float:
        return _by_probabilities(x, t, weight, how, smooth)
    rows = _Rows("cross_entropy", x, t, ignore_index)
    with indices_of("cross_entropy", "classes", rows.classes, rows.given):
        return _by_classes(rows, weight, how, smooth)


def _by_classes(rows: _Rows, weight: Any, how: str, smooth: float) -> Tensor:
    if not smooth:
        return rows.finish(ops.cross_entropy(rows.x, rows.index), weight, how)
    n, classes = rows.x.type.shape
    y = log_softmax(rows.x, axis=1)
    hard = -reshape(take_along_axis(y, reshape(rows.index, shape=(n, 1)), axis=1), shape=(n,))
    spread = y if weight is None else y * floating(weight, "cross_entropy")
    even = -total(spread, axes=(1,), keepdims=False)
    near, far = rows.finish(hard, weight, how), rows.finish(even, weight, how, weigh=False)
    sure, each = _shares(smooth, classes)
    return near * sure + far * each


def _shares(smooth: float, classes: Any) -> tuple[float, float]:
    """What a smoothed target leaves of a probability, and what it gives to every class."""
    with standard_mode():
        return 1.0 - smooth, smooth / float(classes)


def _by_probabilities(x: Value, t: Value, weight: Any, how: str, smooth: float) -> Tensor:
    if x.type.shape != t.type.shape or not x.type.ndim:
        raise ShapeError(
            "cross_entropy", expected=f"probabilities of shape {x.type.shape}", got=str(t.type)
        )
    axis = 1 if x.type.ndim > 1 else 0
    classes = x.type.shape[axis]
    if smooth:
        sure, each = _shares(smooth, classes)
        t = t * sure + each
    y = widened(log_softmax(x, axis=axis)) * widened(t)
    if weight is not None:
        w = floating(weight, "cross_entropy")
        y = y * reshape(w, shape=(w.type.size, *(1,) * (x.type.ndim - 1 - axis)))
    out: Any = reduced(-total(y, axes=(axis,), keepdims=False), x, how)
    return out


class _Rows:
    """Logits (N, C, …) and targets (N, …) as rows, one per target, and the way back."""

    def __init__(self, place: str, input: Any, target: Any, ignore: int) -> None:
        x, t = floating(input, place), value(target)
        shape = x.type.shape
        wanted = (*shape[:1], *shape[2:]) if len(shape) > 1 else ()
        if not shape or t.type.shape != wanted:
            raise ShapeError(
                place,
                expected=f"input (N, C, …) and target of shape {wanted}",
                got=f"{x.type} and {t.type}",
            )
        if not t.type.dtype.is_int:
            raise DTypeError(place, expected="integer targets", got=t.type.dtype.name)
        classes = shape[1] if len(shape) > 1 else shape[0]
        if len(shape) > 2:
            x = permute_dims(x, axes=(0, *range(2, len(shape)), 1))
        n = t.type.size
        self.place, self.shape, self.classes = place, wanted, classes
        self.x = x if x.type.shape == (n, classes) else reshape(x, shape=(n, classes))
        flat = t if t.type.shape == (n,) else reshape(t, shape=(n,))
        self.kept = None
        left, held = integer(ignore, place), np.iinfo(t.type.dtype.np)
        if held.min <= left <= held.max:
            self.kept = not_equal(flat, left)
            flat = where(self.kept, flat, 0)
        self.given, self.index = flat, refuse_negative(flat)

    def finish(self, loss: Value, weight: Any, how: str, *, weigh: bool = True) -> Any:
        """Leave out what is ignored, weigh the rest (unless it is weighed already), and reduce."""
        counts = None
        if weight is not None:
            w = floating(weight, self.place)
            if w.type.shape != (self.classes,):
                raise ShapeError(
                    self.place, expected=f"weights of shape ({self.classes},)", got=str(w.type)
                )
            counts = take(w, self.index, axis=0)
            loss = loss * counts if weigh else loss
        if self.kept is not None:
            loss = where(self.kept, loss, 0.0)
            if counts is not None:
                counts = where(self.kept, counts, 0.0)
            elif how == "mean":
                counts = astype(self.kept, dtype=loss.type.dtype.compute)
        if how == "none":
            return loss if self.shape == loss.type.shape else reshape(loss, shape=self.shape)
        out = total(widened(loss), axes=(0,), keepdims=False)
        if how == "mean":
            if counts is None:
                out = out / as_float(loss.type.size)
            else:
                out = out / total(widened(counts), axes=(0,), keepdims=False)
        return narrowed(out, loss)
