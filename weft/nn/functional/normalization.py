"""Normalisation over axes, over channels and over the batch."""

from __future__ import annotations

import math
from typing import Any

from weft.autodiff.mode import no_grad
from weft.errors import DTypeError, ShapeError
from weft.ops import normalization as ops
from weft.ops.batch_norm import (
    batch_norm as batch_norm_op,
    batch_norm_apply,
    group_norm as group_norm_op,
)
from weft.ops.define import Value, standard_mode
from weft.ops.elementwise import abs as absolute, maximum, sqrt
from weft.ops.movement import reshape
from weft.ops.reduction import max as largest, narrowed, sum as total, widened
from weft.tensor.arguments import flag, floating, integer, number, sizes
from weft.tensor.dtypes import astype, finfo
from weft.tensor.statistics import mean, var
from weft.tensor.tensor import Tensor
from weft.types import normalize_axis


def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """The last axes brought to mean 0 and variance 1, times a weight, plus a bias.

    >>> import weft as wf
    >>> wf.nn.functional.layer_norm(wf.tensor([[1.0, 3.0], [2.0, 10.0]]), (2,))
    tensor([[-1.,  1.],
            [-1.,  1.]])
    """
    x, rows, params = _rows("layer_norm", input, normalized_shape, weight, bias)
    if weight is None and bias is not None:
        out = ops.layer_norm(rows, eps=_eps(eps, "layer_norm")) + params[0]
    else:
        out = ops.layer_norm(rows, *params, eps=_eps(eps, "layer_norm"))
    return reshape(out, shape=x.type.shape) if rows is not x else out


def rms_norm(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> Tensor:
    """The last axes divided by the root of their mean square, times a weight.

    `eps` is the smallest step of the dtype at 1 unless given.

    >>> import weft as wf
    >>> wf.nn.functional.rms_norm(wf.tensor([3.0, 3.0, -3.0]), (3,))
    tensor([ 1.,  1., -1.])
    """
    x, rows, params = _rows("rms_norm", input, normalized_shape, weight)
    out = ops.rms_norm(rows, *params, eps=_eps(finfo(x).eps if eps is None else eps, "rms_norm"))
    return reshape(out, shape=x.type.shape) if rows is not x else out


def _eps(eps: Any, place: str) -> float:
    return number(eps, place, "eps", least=0)


def _rows(
    place: str, input: Any, normalized_shape: Any, *params: Any
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The operand, the operand with the normalised axes joined, and the parameters that are given,
    joined alike.
    """
    x, shape = floating(input, place), sizes(normalized_shape, place)
    if not shape or x.type.shape[-len(shape) :] != shape:
        raise ShapeError(place, expected=f"an operand whose last axes are {shape}", got=str(x.type))
    given = [floating(p, place) for p in params if p is not None]
    for p in given:
        if p.type.shape != shape:
            raise ShapeError(place, expected=f"parameters of shape {shape}", got=str(p.type))
    if len(shape) == 1:
        return x, x, given
    n = math.prod(shape)
    rows = reshape(x, shape=(*x.type.shape[: -len(shape)], n))
    return x, rows, [reshape(p, shape=(n,)) for p in given]


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """Groups of channels of each example of x (N, C, …) brought to mean 0 and variance 1, then
    scaled per channel.

    >>> import weft as wf
    >>> wf.nn.functional.group_norm(wf.tensor([[1.0, 3.0, 2.0, 10.0]]), 2)
    tensor([[-1.,  1., -1.,  1.]])
    """
    x, groups = floating(input, "group_norm"), integer(num_groups, "group_norm")
    floor = _eps(eps, "group_norm")
    params = [floating(p, "group_norm") for p in (weight, bias) if p is not None]
    if weight is None and bias is not None:
        shift = reshape(params[0], shape=(params[0].type.size, *(1,) * (x.type.ndim - 2)))
        return group_norm_op(x, groups=groups, eps=floor) + shift
    return group_norm_op(x, *params, groups=groups, eps=floor)


def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Every channel of each example of x (N, C, …) brought to mean 0 and variance 1, then scaled
    per channel.

    Running statistics, if not None, move towards the means over the examples by `momentum`; without
    `use_input_stats` they are used.

    >>> import weft as wf
    >>> wf.nn.functional.instance_norm(wf.tensor([[[1.0, 3.0], [2.0, 10.0]]]))
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    x: Any = floating(input, "instance_norm")
    if x.type.ndim < 3:
        raise ShapeError("instance_norm", expected="an operand (N, C, …)", got=str(x.type))
    if not flag(use_input_stats, "instance_norm use_input_stats"):
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    _check_running("instance_norm", running_mean, running_var)
    if running_mean is not None and running_var is not None:
        far = number(momentum, "instance_norm", "momentum", 0, 1)
        axes = tuple(range(2, x.type.ndim))
        with no_grad():
            now = x.detach()
            means = mean(now, axis=(0, *axes)), mean(var(now, axis=axes, correction=1.0), axis=0)
            for old, new in zip((running_mean, running_var), means, strict=True):
                old.assign(old + (astype(new, old.dtype, copy=False) - old) * far)
    return group_norm(x, x.type.shape[1], weight, bias, eps)


def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Every channel of x (N, C, …) brought to mean 0 and variance 1, then scaled and shifted.

    In training mean and variance are the batch's, and the running ones (if not None) move towards
    them by `momentum`: they are assigned to. Otherwise the running ones are used.

    >>> import weft as wf
    >>> mean, var = wf.zeros(1), wf.ones(1)
    >>> wf.nn.functional.batch_norm(wf.tensor([[1.0], [3.0]]), mean, var, training=True)
    tensor([[-1.],
            [ 1.]])
    >>> mean, var
    (tensor([0.2]), tensor([1.1]))
    """
    x, floor = floating(input, "batch_norm"), _eps(eps, "batch_norm")
    momentum = number(momentum, "batch_norm", "momentum")
    _check_running("batch_norm", running_mean, running_var)
    params = [floating(p, "batch_norm") for p in (weight, bias) if p is not None]
    shift = params.pop() if weight is None and bias is not None else None
    if not flag(training, "batch_norm"):
        if running_mean is None or running_var is None:
            raise ShapeError(
                "batch_norm", expected="running statistics, or training=True", got="None"
            )
        stats = (floating(s, "batch_norm") for s in (running_mean, running_var))
        out = batch_norm_apply(x, *stats, *params, eps=floor)
    else:
        n = x.type.size // (x.type.shape[1] or 1) if x.type.ndim > 1 else 0
        if n < 2:
            raise ShapeError(
                "batch_norm",
                expected="more than one value per channel in training",
                got=str(x.type),
            )
        out, mean, var = batch_norm_op(x, *params, eps=floor)
        with standard_mode():
            unbiased, rest = n / (n - 1), 1.0 - momentum  # type: ignore[operator]
        for running, now in ((running_mean, mean), (running_var, var)):
            if running is not None:
                seen = now.detach() * unbiased if now is var else now.detach()
                running.assign(running.detach() * rest + seen * momentum)
    if shift is None:
        return out
    return out + reshape(shift, shape=(shift.type.size, *(1,) * (x.type.ndim - 2)))


def _check_running(place: str, *statistics: Any) -> None:
    for running in statistics:
        if not (running is None or isinstance(running, Value)):
            got = type(running).__name__
            raise DTypeError(place, expected="tensors of running statistics", got=got)


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """x divided by its p-norm along an axis, kept from zero.

    >>> import weft as wf
    >>> wf.nn.functional.normalize(wf.tensor([[3.0, 4.0]]))
    tensor([[0.6, 0.8]])
    """
    x, p, eps = floating(input, "normalize"), number(p, "normalize", "p"), _eps(eps, "normalize")
    if p == 0:
        raise ShapeError("normalize", expected="p other than 0", got="0")
    axes = (normalize_axis(dim, x.type.ndim, "normalize"),)
    w = widened(x)
    with standard_mode():
        square, root = eps * eps, 1.0 / p
    if p == 2:  # the floor under the root, where its gradient is finite
        size = sqrt(maximum(total(w * w, axes=axes, keepdims=True), square))
    elif p == math.inf:
        size = maximum(largest(absolute(w), axes=axes, keepdims=True), eps)
    elif p == 1:
        size = maximum(total(absolute(w), axes=axes, keepdims=True), eps)
    else:
        size = maximum(total(absolute(w) ** p, axes=axes, keepdims=True) ** root, eps)
    out: Any = narrowed(w / size, x)
    return out


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis.

    >>> import weft as wf
    >>> wf.nn.functional.cosine_similarity(wf.tensor([[1.0, 0.0]]), wf.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """
    a, b = (widened(floating(x, "cosine_similarity")) for x in (x1, x2))
    floor = _eps(eps, "cosine_similarity")
    with standard_mode():
        floor = floor * floor
    products = a * b
    axis = normalize_axis(dim, products.type.ndim, "cosine_similarity")

    def size(v: Value) -> Value:
        own = axis - (products.type.ndim - v.type.ndim)
        if own < 0:
            raise ShapeError(
                "cosine_similarity", expected=f"axis {dim} in both", got=f"{a.type} and {b.type}"
            )
        squares = total(v * v, axes=(own,), keepdims=False)
        return sqrt(maximum(squares, floor))

    cosine = total(products, axes=(axis,), keepdims=False) / (size(a) * size(b))
    out: Any = narrowed(cosine, x1 if isinstance(x1, Value) else a)
    return out
