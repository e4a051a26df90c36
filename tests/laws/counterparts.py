"""PyTorch's word for every op that it has one for: a function of the same operands and attributes.

`TORCH` by op name; `WITHOUT` says why an op is not in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tests.laws.counterparts_by_place import (
    dtype_of,
    on_zeros,
    one_hot,
    ordered,
    places,
    pooled,
    rows,
    running_sum,
    take,
    take_along,
    topk,
    window_spread,
    window_sum,
)
from weft.ops.contraction import Window
from weft.ops.define import OPS

T = torch.Tensor
Counterpart = Callable[..., Any]

#: the same name and the same meaning
SAME = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil",
    "copysign", "cos", "cosh", "digamma", "divide", "erf", "erfc", "erfinv", "exp", "exp2",
    "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot", "isfinite",
    "isinf", "isnan", "lerp", "less", "less_equal", "lgamma", "log", "log10", "log1p", "log2",
    "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "matmul",
    "maximum", "minimum", "multiply", "negative", "nextafter", "not_equal", "positive", "pow",
    "reciprocal", "relu", "remainder", "reshape", "round", "rsqrt", "searchsorted", "sigmoid",
    "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc",
    "where",
]  # fmt: skip

FUNCTIONAL = {
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "log_sigmoid": F.logsigmoid,
    "mish": F.mish,
    "selu": F.selu,
    "silu": F.silu,
    "softplus": F.softplus,
    "softsign": F.softsign,
    "tanhshrink": F.tanhshrink,
}

WITHOUT = {
    **dict.fromkeys(("constant", "parameter", "result"), "no computation, a part of a graph"),
    **dict.fromkeys(("cond", "while", "while_grad"), "control flow, tested in tests/control"),
    **dict.fromkeys(("call", "recursion"), "functions of a program, tested in tests/control"),
    **dict.fromkeys(("put", "get"), "of loops differentiated twice, tested in tests/control"),
    "host": "a call of Python, tested in tests/control",
    **dict.fromkeys(("get_rows", "put_rows"), "rows outside are dropped, tested in tests/control"),
    **dict.fromkeys(
        ("normal", "randint", "random_bits", "uniform"), "numbers of Weft's own generator"
    ),
    **dict.fromkeys(
        ("extended_places", "nonzero_starts", "ravel_index"), "indices for ops that have one"
    ),
    **dict.fromkeys(
        (
            "channel_mean", "channel_moment", "channel_scale", "channel_spread", "channel_total",
            "channel_variance", "rescaled_sum", "row_root", "row_statistics", "scaled_moment",
            "elu_grad", "celu_grad", "selu_grad", "logsumexp_grad", "log_softmax_grad",
            "binary_cross_entropy_grad", "binary_cross_entropy_target_grad", "masked_softmax",
        ),
        "a step of an op that has one, or of its gradient",
    ),
    **dict.fromkeys(
        (
            "adagrad_rate", "adagrad_update", "adam_scale", "adam_update", "lion_update",
            "rmsprop_update", "sgd_damped_update", "sgd_momentum_update", "sgd_update",
        ),
        "a step of an optimizer, compared with PyTorch's in tests/optim",
    ),
    **dict.fromkeys(
        ("gru_cell", "gru_gates", "gru_gates_grad", "lstm_cell", "lstm_gates", "lstm_gates_grad"),
        "a step of a module, compared with PyTorch's in tests/nn",
    ),
}  # fmt: skip


# pointwise


def by_element(f: Counterpart) -> Counterpart:
    """PyTorch takes these parameters as numbers, Weft as tensors: one element at a time. It has no
    gradient for them.
    """

    def run(x: T, *params: T) -> T:
        x, *rest = torch.broadcast_tensors(x, *params)
        flat = [p.reshape(-1).tolist() for p in rest]
        ys = [f(v, *numbers) for v, *numbers in zip(x.reshape(-1), *flat, strict=True)]
        return torch.stack(ys).reshape(x.shape) if ys else x * 1

    return run


def glu(a: T, b: T) -> T:
    return F.glu(torch.stack(torch.broadcast_tensors(a, b), -1), -1).squeeze(-1)


def clamp(x: T, low: T, high: T) -> T:
    return torch.clamp(*torch.broadcast_tensors(x, low, high))


# folds


def one_by_one(f: Counterpart) -> Counterpart:
    """A function of one axis, over several."""

    def run(x: T, *, axes: tuple[int, ...], keepdims: bool) -> T:
        for axis in reversed(axes):
            x = f(x, axis, keepdims)
        return x * 1 if not axes else x

    return run


def arg(f: Counterpart) -> Counterpart:
    def run(x: T, *, axes: tuple[int, ...], keepdims: bool) -> T:
        if x.dtype is torch.bool:
            x = x.to(torch.uint8)
        if len(axes) == 1:
            return f(x, axes[0], keepdims)  # type: ignore[no-any-return]
        assert axes == tuple(range(x.ndim))
        return f(x).reshape((1,) * x.ndim if keepdims else ())  # type: ignore[no-any-return]

    return run


def extreme(f: Counterpart) -> Counterpart:
    return lambda x, *, axes, keepdims: f(x, axes, keepdims) if axes else x * 1


def total(x: T, *, axes: tuple[int, ...], keepdims: bool) -> T:
    return torch.sum(x, axes, keepdims) if axes else x * 1


def spread(f: Counterpart) -> Counterpart:
    def run(x: T, *, axes: tuple[int, ...], keepdims: bool, correction: float) -> T:
        return f(x, dim=axes, keepdim=keepdims, correction=correction)  # type: ignore[no-any-return]

    return run


def along(f: Counterpart) -> Counterpart:
    return lambda x, *, axes, keepdims: f(x, axes, keepdims)


# movement: where each element comes from is asked of NumPy, and PyTorch told to fetch it


def picked(name: str) -> Counterpart:
    def run(x: T, **attrs: Any) -> T:
        places = OPS[name].reference(np.arange(x.numel()).reshape(x.shape), **attrs)  # type: ignore[misc]
        return x.reshape(-1)[torch.as_tensor(np.array(places))]

    return run


def placed(name: str) -> Counterpart:
    """The transpose: elements put among zeros."""

    def run(x: T, *, shape: tuple[int, ...], **attrs: Any) -> T:
        grid = np.arange(math.prod(shape)).reshape(shape)
        if "axes" in attrs:
            attrs["sizes"] = _sizes(x.shape, attrs["axes"], len(shape))
        else:
            attrs["sizes"] = tuple(x.shape)
        places = OPS[name].reference(grid, **attrs)  # type: ignore[misc]
        index = torch.as_tensor(np.array(places)).reshape(-1)
        flat = torch.zeros(math.prod(shape), dtype=x.dtype).index_put((index,), x.reshape(-1))
        return flat.reshape(shape)

    return run


def _sizes(shape: Any, axes: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    sizes = [1] * ndim
    for n, axis in zip(shape, axes, strict=True):
        if axis >= 0:
            sizes[axis] = n
    return tuple(sizes)


def assigned(x: T, value: Any, **attrs: Any) -> T:
    places = OPS["basic_index"].reference(np.arange(x.numel()).reshape(x.shape), **attrs)  # type: ignore[misc]
    index = torch.as_tensor(np.array(places))
    put = torch.broadcast_to(torch.as_tensor(value).to(x.dtype), index.shape)
    return x.reshape(-1).index_put((index.reshape(-1),), put.reshape(-1)).reshape(x.shape)


def border(x: T, value: Any, *, widths: Any) -> T:
    out = F.pad(torch.ones_like(x), _flat(widths), value=0.0)
    return F.pad(x, _flat(widths)) + (1 - out) * value


def _flat(widths: Any) -> list[int]:
    return [n for pair in reversed(widths) for n in pair]


def extended(x: T, *, widths: Any, mode: str) -> T:
    return F.pad(x[None, None], _flat(widths), mode)[0, 0]


def undiagonal(x: T, *, shape: Any, offset: int) -> T:
    blank = torch.zeros(shape, dtype=x.dtype)
    return torch.diagonal_scatter(blank, x, offset, -2, -1) if x.numel() else blank + x.sum()


# products


def contraction(a: T, b: T, *, spec: Any) -> T:
    windows = [x for x in (*spec.a, *spec.b) if isinstance(x, Window)]
    if not windows:
        letters = {n: chr(97 + i) for i, n in enumerate(dict.fromkeys((*spec.a, *spec.b)))}
        said = ["".join(letters[n] for n in axes) for axes in (spec.a, spec.b, spec.out)]
        return torch.einsum(f"{said[0]},{said[1]}->{said[2]}", a, b)
    (w,) = windows
    return F.conv1d(a, b, stride=w.stride, padding=w.pad, dilation=w.dilation)


def convolution(x: T, w: T, **attrs: Any) -> T:
    return (F.conv1d, F.conv2d)[w.ndim - 3](x, w, **attrs)


def convolution_transpose(x: T, w: T, **attrs: Any) -> T:
    return (F.conv_transpose1d, F.conv_transpose2d)[w.ndim - 3](x, w, **attrs)


def attention(q: T, k: T, v: T, *mask: T, causal: bool, scale: float) -> T:
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask[0] if mask else None, is_causal=causal, scale=scale
    )


def attention_weights(q: T, k: T, *mask: T, causal: bool, scale: float) -> T:
    each = torch.eye(k.shape[-2]).expand(*k.shape[:-1], -1)
    return attention(q, k, each, *mask, causal=causal, scale=scale)


# normalisation and losses


def batch_norm(x: T, *params: T, eps: float) -> tuple[T, T, T]:
    axes = (0, *range(2, x.ndim))
    y = F.batch_norm(x, None, None, *params, training=True, eps=eps)
    return y, x.mean(axes), x.var(axes, correction=0)


def batch_norm_apply(x: T, mean: T, var: T, *params: T, eps: float) -> T:
    return F.batch_norm(x, mean.detach(), var.detach(), *params, training=False, eps=eps)


def layer_norm(x: T, *params: T, eps: float) -> T:
    return F.layer_norm(x, x.shape[-1:], *params, eps=eps)


def rms_norm(x: T, *params: T, eps: float) -> T:
    return F.rms_norm(x, x.shape[-1:], *params, eps=eps)


def group_norm(x: T, *params: T, groups: int, eps: float) -> T:
    return F.group_norm(x, groups, *params, eps=eps)


def loss(f: Counterpart, **fixed: Any) -> Counterpart:
    """PyTorch warns of targets that broadcast."""

    def run(x: T, t: T, *more: T, **attrs: Any) -> T:
        return f(*torch.broadcast_tensors(x, t), *more, **fixed, **attrs)  # type: ignore[no-any-return]

    return run


def with_logits(x: T, t: T, *positive: T) -> T:
    x, t = torch.broadcast_tensors(x, t)
    weight = positive[0].detach() if positive else None
    return F.binary_cross_entropy_with_logits(x, t, reduction="none", pos_weight=weight)


def log_partition(x: T) -> tuple[T, T]:
    top = x.amax(1)
    return top, torch.logsumexp(x, 1) - top


def pulled(f: Counterpart) -> Counterpart:
    """The gradient of `f` with respect to its first operand: (g, *operands) -> cotangent."""

    def run(g: T, *xs: T, **attrs: Any) -> T:
        first = xs[0] if xs[0].requires_grad else xs[0].clone().requires_grad_()
        y = f(first, *xs[1:], **attrs)
        return torch.autograd.grad(y, first, g, create_graph=True)[0]

    return run


def weight_grad(f: Counterpart) -> Counterpart:
    def run(g: T, x: T, *, eps: float) -> T:
        w = torch.ones(x.shape[-1], dtype=x.dtype, requires_grad=True)
        return torch.autograd.grad(f(x, w, eps=eps), w, g, create_graph=True)[0]

    return run


def cross_entropy_grad(g: T, x: T, t: T, classes: T) -> T:
    return pulled(lambda x: F.cross_entropy(x, t, reduction="none"))(g, x)  # type: ignore[no-any-return]


def softmax_grad(g: T, y: T, *, axis: int) -> T:
    return torch._softmax_backward_data(g, y, axis, y.dtype)


TORCH: dict[str, Counterpart] = {
    **{name: getattr(torch, name) for name in SAME},
    **FUNCTIONAL,
    "again": torch.ops.aten.alias,
    "alias": torch.ops.aten.alias,
    "all": along(torch.all),
    "any": along(torch.any),
    "arange": lambda start, step, *, size, dtype: (
        start + step * torch.arange(size, dtype=torch.float64)
    ).to(dtype_of(dtype)),
    "argmax": arg(torch.argmax),
    "argmin": arg(torch.argmin),
    "argsort": ordered(1),
    "astype": lambda x, *, dtype: x.to(dtype_of(dtype)),
    "attention": attention,
    "attention_weights": attention_weights,
    "basic_assign": assigned,
    "basic_index": picked("basic_index"),
    "basic_spread": placed("basic_index"),
    "basic_unindex": placed("basic_index"),
    "batch_norm": batch_norm,
    "batch_norm_apply": batch_norm_apply,
    "binary_cross_entropy": loss(F.binary_cross_entropy, reduction="none"),
    "binary_cross_entropy_with_logits": with_logits,
    "bitwise_invert": torch.bitwise_not,
    "broadcast_to": lambda x, *, shape: torch.broadcast_to(x, shape),
    "celu": by_element(F.celu),
    "clip": clamp,
    "concat": lambda *xs, axis: torch.cat(xs, axis),
    "contract": contraction,
    "convolution": convolution,
    "convolution_transpose": convolution_transpose,
    "copy": torch.clone,
    "cross_entropy": partial(F.cross_entropy, reduction="none"),
    "cross_entropy_grad": cross_entropy_grad,
    "cumulative_max": lambda x, *, axis: tuple(torch.cummax(x, axis)),
    "cumulative_min": lambda x, *, axis: tuple(torch.cummin(x, axis)),
    "cumulative_prod": lambda x, *, axis, dtype: torch.cumprod(x, axis, dtype=dtype_of(dtype)),
    "cumulative_sum": running_sum,
    "diagonal": lambda x, *, offset: torch.diagonal(x, offset, -2, -1),
    "elu": by_element(F.elu),
    "equal": torch.eq,
    "extend": extended,
    "eye": lambda *, shape, offset, dtype: torch.diagonal_scatter(
        torch.zeros(shape), torch.ones(torch.zeros(shape).diagonal(offset).shape), offset
    ).to(dtype_of(dtype)),
    "fma": lambda a, b, c: torch.addcmul(c, a, b),
    "full": lambda v, *, shape, dtype: torch.full(shape, 1, dtype=dtype_of(dtype)) * v,
    "gated": glu,
    "gated_grad": lambda g, a, b: pulled(lambda b: glu(a, b))(g, b),
    "gelu_tanh_grad": pulled(FUNCTIONAL["gelu_tanh"]),
    "group_norm": group_norm,
    "hardshrink": by_element(F.hardshrink),
    "hardswish_grad": pulled(F.hardswish),
    "huber_loss": loss(F.huber_loss),
    "kl_div": loss(F.kl_div, reduction="none"),
    "l1_loss": loss(F.l1_loss),
    "large_window_max": lambda x, **attrs: pooled(x, **attrs)[0],
    "layer_norm": layer_norm,
    "layer_norm_grad": lambda g, x, *w, eps: pulled(layer_norm)(g, x, *w, eps=eps),
    "layer_norm_weight_grad": weight_grad(layer_norm),
    "leaky_relu": by_element(F.leaky_relu),
    "linspace": lambda a, b, *, size, endpoint, dtype: torch.linspace(
        a, b, size + (not endpoint), dtype=dtype_of(dtype)
    )[:size],
    "log_partition": log_partition,
    "log_softmax": lambda x, *, axis: F.log_softmax(x, axis),
    "logsumexp": along(torch.logsumexp),
    "max": extreme(torch.amax),
    "mean": along(torch.mean),
    "min": extreme(torch.amin),
    "mish_grad": pulled(F.mish),
    "mse_loss": loss(F.mse_loss),
    "nonzero_places": places,
    "one_hot": one_hot,
    "pad": border,
    "permute_dims": lambda x, *, axes: torch.permute(x, axes),
    "polygamma": lambda x, *, n: torch.polygamma(n, x),
    "prod": one_by_one(torch.prod),
    "rms_norm": rms_norm,
    "rms_norm_grad": lambda g, x, *w, eps: pulled(rms_norm)(g, x, *w, eps=eps),
    "rms_norm_weight_grad": weight_grad(rms_norm),
    "roll": lambda x, *, shifts: torch.roll(x, shifts, tuple(range(x.ndim))),
    "row_add": rows("index_add"),
    "row_assign": rows("index_copy", last=True),
    "row_sum": on_zeros(rows("index_add")),
    "scatter": rows("scatter", last=True),
    "scatter_add": rows("scatter_add"),
    "scatter_sum": on_zeros(rows("scatter_add")),
    "slice": picked("slice"),
    "smooth_l1_loss": loss(F.smooth_l1_loss),
    "softmax": lambda x, *, axis: F.softmax(x, axis),
    "softmax_grad": softmax_grad,
    "softplus_scaled": by_element(F.softplus),
    "softshrink": by_element(F.softshrink),
    "softsign_grad": pulled(F.softsign),
    "sort": ordered(0),
    "square_sum": lambda x: (x * x).sum(),
    "stack": lambda *xs, axis: torch.stack(xs, axis),
    "std": spread(torch.std),
    "sum": total,
    "take": take,
    "take_along_axis": take_along,
    "threshold": by_element(F.threshold),
    "time_steps": lambda x: tuple(x.unbind(0)),
    "topk": topk,
    "tril": lambda x, *, offset: torch.tril(x, offset),
    "triu": lambda x, *, offset: torch.triu(x, offset),
    "undiagonal": undiagonal,
    "unslice": placed("slice"),
    "var": spread(torch.var),
    "window_argmax": lambda x, **attrs: pooled(x, **attrs)[1],
    "window_max": lambda x, **attrs: pooled(x, **attrs)[0],
    "window_spread": window_spread,
    "window_sum": window_sum,
}
