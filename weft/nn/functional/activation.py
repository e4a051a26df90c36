"""Activation functions.

`inplace` is taken for PyTorch's sake and changes nothing: a tensor is a value.
"""

from __future__ import annotations

from typing import Any

from weft.errors import DTypeError, ShapeError
from weft.ops import activation as ops, elementwise as ew
from weft.ops.define import Op, installed
from weft.ops.movement import reshape, slice_
from weft.ops.normalization import (
    log_softmax as log_softmax_op,
    logsumexp as logsumexp_op,
    softmax as softmax_op,
)
from weft.tensor import elementwise as fast
from weft.tensor.arguments import flag, floating, number, remember, value
from weft.tensor.dtypes import astype
from weft.tensor.tensor import Tensor
from weft.types import normalize_axes, normalize_axis


def relu(input: Any, inplace: bool = False) -> Tensor:
    """x where it is positive, else 0.

    >>> import weft as wf
    >>> wf.nn.functional.relu(wf.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return fast.relu(input)


def relu6(input: Any, inplace: bool = False) -> Tensor:
    """x kept between 0 and 6.

    >>> import weft as wf
    >>> wf.nn.functional.relu6(wf.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """
    return hardtanh(input, 0.0, 6.0)


def hardtanh(
    input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x kept between two bounds.

    >>> import weft as wf
    >>> wf.nn.functional.hardtanh(wf.tensor([-2.0, 0.5, 2.0]))
    tensor([-1. ,  0.5,  1. ])
    """
    return ew.clip(value(input), min_val, max_val)


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where it is positive, else negative_slope * x.

    >>> import weft as wf
    >>> wf.nn.functional.leaky_relu(wf.tensor([-1.0, 2.0]), 0.25)
    tensor([-0.25,  2.  ])
    """
    return ops.leaky_relu(input, negative_slope)


def prelu(input: Any, weight: Any) -> Tensor:
    """leaky_relu with a slope that is learnt: one number, or one per channel of x (N, C, …).

    >>> import weft as wf
    >>> wf.nn.functional.prelu(wf.tensor([[-1.0, 2.0], [-2.0, -4.0]]), wf.tensor([0.5, 0.25]))
    tensor([[-0.5,  2. ],
            [-1. , -1. ]])
    """
    x, w = floating(input, "prelu"), floating(weight, "prelu")
    channels = x.type.shape[1] if x.type.ndim > 1 else 1
    if w.type.ndim > 1 or w.type.size not in (1, channels):
        raise ShapeError("prelu", expected=f"1 or {channels} slopes", got=str(w.type))
    if w.type.size != 1:
        w = reshape(w, shape=(channels, *(1,) * (x.type.ndim - 2)))
    return ops.leaky_relu(x, w)


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, else alpha * (exp(x) - 1).

    >>> import weft as wf
    >>> wf.nn.functional.elu(wf.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.    ])
    """
    return ops.elu(input, alpha)


def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, else alpha * (exp(x / alpha) - 1).

    >>> import weft as wf
    >>> wf.nn.functional.celu(wf.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.    ])
    """
    if number(alpha, "celu", "alpha") == 0:
        raise ShapeError("celu", expected="an alpha other than 0", got="0")
    return ops.celu(input, alpha)


def selu(input: Any, inplace: bool = False) -> Tensor:
    """elu, scaled so that activations keep mean 0 and variance 1.

    >>> import weft as wf
    >>> wf.nn.functional.selu(wf.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return ops.selu(input)


def gelu(input: Any, approximate: str = "none") -> Tensor:
    """x times the normal distribution function of x; with approximate="tanh", of a tanh near it.

    >>> import weft as wf
    >>> wf.nn.functional.gelu(wf.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """
    if not isinstance(approximate, str) or approximate not in ("none", "tanh"):
        raise DTypeError("gelu", expected="approximate 'none' or 'tanh'", got=repr(approximate))
    return ew.gelu(input) if approximate == "none" else ops.gelu_tanh(input)


def silu(input: Any, inplace: bool = False) -> Tensor:
    """x * sigmoid(x).

    >>> import weft as wf
    >>> wf.nn.functional.silu(wf.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    return ew.silu(input)


def mish(input: Any, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)).

    >>> import weft as wf
    >>> wf.nn.functional.mish(wf.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.944 ])
    """
    return ops.mish(input)


def sigmoid(input: Any) -> Tensor:
    """1 / (1 + exp(-x)).

    >>> import weft as wf
    >>> wf.nn.functional.sigmoid(wf.tensor([0.0, 1.0]))
    tensor([0.5   , 0.7311])
    """
    return fast.sigmoid(input)


def logsigmoid(input: Any) -> Tensor:
    """The logarithm of sigmoid, exact where that is small.

    >>> import weft as wf
    >>> wf.nn.functional.logsigmoid(wf.tensor([-100.0, 0.0]))
    tensor([-100.    ,   -0.6931])
    """
    return ew.log_sigmoid(input)


def tanh(input: Any) -> Tensor:
    """The hyperbolic tangent.

    >>> import weft as wf
    >>> wf.nn.functional.tanh(wf.tensor([0.0, 1.0]))
    tensor([0.    , 0.7616])
    """
    return fast.tanh(input)


def hardswish(input: Any, inplace: bool = False) -> Tensor:
    """x * clip(x + 3, 0, 6) / 6.

    >>> import weft as wf
    >>> wf.nn.functional.hardswish(wf.tensor([-4.0, 1.5, 4.0]))
    tensor([-0.   ,  1.125,  4.   ])
    """
    return ops.hardswish(input)


def hardsigmoid(input: Any, inplace: bool = False) -> Tensor:
    """clip(x + 3, 0, 6) / 6.

    >>> import weft as wf
    >>> wf.nn.functional.hardsigmoid(wf.tensor([-4.0, 1.5, 4.0]))
    tensor([0.  , 0.75, 1.  ])
    """
    return ops.hardsigmoid(input)


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x is above a threshold.

    >>> import weft as wf
    >>> wf.nn.functional.softplus(wf.tensor([-1.0, 2.0]))
    tensor([0.3133, 2.1269])
    """
    beta, threshold = (
        number(beta, "softplus", "beta"),
        number(threshold, "softplus", "threshold"),
    )
    if beta == 1 and threshold >= 20:  # exact everywhere: nothing to switch over for
        return ew.softplus(input)
    return ops.softplus_scaled(input, beta, threshold)


def softsign(input: Any) -> Tensor:
    """x / (1 + |x|).

    >>> import weft as wf
    >>> wf.nn.functional.softsign(wf.tensor([-1.0, 3.0]))
    tensor([-0.5 ,  0.75])
    """
    return ops.softsign(input)


def tanhshrink(input: Any) -> Tensor:
    """x - tanh(x).

    >>> import weft as wf
    >>> wf.nn.functional.tanhshrink(wf.tensor([0.0, 1.0]))
    tensor([0.    , 0.2384])
    """
    return ops.tanhshrink(input)


def softshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """x moved towards zero by lambd.

    >>> import weft as wf
    >>> wf.nn.functional.softshrink(wf.tensor([-1.0, 0.25, 2.0]))
    tensor([-0.5,  0. ,  1.5])
    """
    return ops.softshrink(input, number(lambd, "softshrink", "a lambd of", least=0))


def hardshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """x where it is further from zero than lambd, else 0.

    >>> import weft as wf
    >>> wf.nn.functional.hardshrink(wf.tensor([-1.0, 0.25, 2.0]))
    tensor([-1.,  0.,  2.])
    """
    return ops.hardshrink(input, lambd)


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it is above a threshold, else another value.

    >>> import weft as wf
    >>> wf.nn.functional.threshold(wf.tensor([-1.0, 2.0]), 0.5, 9.0)
    tensor([9., 2.])
    """
    return ops.threshold(input, threshold, value)


def glu(input: Any, dim: int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of the second.

    >>> import weft as wf
    >>> wf.nn.functional.glu(wf.tensor([4.0, 2.0, 0.0, 0.0]))
    tensor([2., 1.])
    """
    x = floating(input, "glu")
    axis, shape = normalize_axis(dim, x.type.ndim, "glu"), x.type.shape
    if shape[axis] % 2:
        raise ShapeError("glu", expected="an axis of even size", got=f"{x.type} along {dim}")
    half = shape[axis] // 2
    sizes = tuple(half if a == axis else n for a, n in enumerate(shape))
    steps = (1,) * len(shape)
    a, b = (
        slice_(
            x,
            starts=tuple(k * half if i == axis else 0 for i in range(len(shape))),
            sizes=sizes,
            steps=steps,
        )
        for k in (0, 1)
    )
    return ops.gated(a, b)


def softmax(input: Any, dim: int = -1, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis.

    >>> import weft as wf
    >>> wf.nn.functional.softmax(wf.tensor([0.0, 0.0, 1000.0, 1000.0]))
    tensor([0. , 0. , 0.5, 0.5])
    """
    if dtype is None:
        try:
            plan = softmax_op.plans[input.data.layout, dim, dim.__class__]
        except (KeyError, AttributeError, TypeError, ValueError):
            return _along(softmax_op, input, dim)
        return installed.launch(plan, input)
    return _along(softmax_op, astype(input, dtype, copy=False), dim)


def log_softmax(input: Any, dim: int = -1, dtype: Any = None) -> Tensor:
    """The logarithm of softmax, exact where softmax is small.

    >>> import weft as wf
    >>> wf.nn.functional.log_softmax(wf.tensor([0.0, 1000.0]))
    tensor([-1000.,     0.])
    """
    if dtype is None:
        try:
            plan = log_softmax_op.plans[input.data.layout, dim, dim.__class__]
        except (KeyError, AttributeError, TypeError, ValueError):
            return _along(log_softmax_op, input, dim)
        return installed.launch(plan, input)
    return _along(log_softmax_op, astype(input, dtype, copy=False), dim)


def _along(op: Op, input: Any, dim: Any) -> Any:
    x = floating(input, op.name)
    if not x.type.ndim:  # a single element is an axis of one
        normalize_axis(dim, 1, op.name)
        return reshape(op(reshape(x, shape=(1,)), axis=0), shape=())
    axis = normalize_axis(dim, x.type.ndim, op.name)
    out = op(x, axis=axis)
    remember(op, x, (dim, dim.__class__), (axis,))
    return out


def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))) over an axis or several, without overflow on the way.

    >>> import weft as wf
    >>> wf.nn.functional.logsumexp(wf.tensor([1000.0, 1000.0]), 0)
    tensor(1000.6932)
    """
    x = floating(input, "logsumexp")
    axes = normalize_axes(dim, x.type.ndim, "logsumexp")
    return logsumexp_op(x, axes=axes, keepdims=flag(keepdim, "logsumexp"))
