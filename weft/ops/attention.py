"""Attention as composites: scores, their softmax, the weighted sum of values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ops.creation import arange
from weft.ops.define import Value
from weft.ops.elementwise import exp, greater_equal, where
from weft.ops.linalg import matmul
from weft.ops.makers import composite, later
from weft.ops.movement import again, permute_dims, reshape
from weft.ops.normalization import softmax, softmax_grad
from weft.ops.reduction import max as largest, narrowed, sum as total, widened
from weft.ops.samples import Sample, array
from weft.types.dtype import bool_, float32, int64


@composite(
    "masked_softmax",
    samples=lambda: iter(
        [Sample((array((3, 5), float32),)), Sample((array((2, 3, 40), float32),))]
    ),
    vjp=lambda g, y, x: (lambda: softmax_grad(g, y, axis=x.type.ndim - 1),),
)
def masked_softmax(x: Value) -> Value:
    """softmax along the last axis, and zeros for a row that is -inf throughout."""
    w, axes = widened(x), (x.type.ndim - 1,)
    top = largest(w, axes=axes, keepdims=True)
    e = exp(w - where(top > float("-inf"), top, 0.0))
    s = total(e, axes=axes, keepdims=True)
    return narrowed(e / where(s > 0.0, s, 1.0), x)


def _samples() -> Iterator[Sample]:
    q, k, v = (
        array((2, 3, 4), float32),
        array((2, 5, 4), float32, seed=1),
        array((2, 5, 6), float32, seed=2),
    )
    plain = {"causal": False, "scale": 0.5}
    yield Sample((q, k, v), plain)
    yield Sample((q, k, v), plain | {"causal": True})
    yield Sample((q, k, v, array((3, 5), float32)), plain)
    yield Sample((q, k, v, np.arange(15).reshape(3, 5) % 4 > 0), plain)
    yield Sample((q, k, v, np.zeros((3, 5), bool)), plain)
    yield Sample((q, k, v, array((5,), float32)), plain)
    yield Sample((q, k, v, np.array(True)), plain)
    yield Sample((q, k, v, array((2, 5), float32)), plain, ShapeError)


def _weights_reference(q: Any, k: Any, *mask: Any, causal: bool, scale: float) -> Any:
    s = q.astype("f8") * scale @ np.swapaxes(k.astype("f8"), -1, -2)
    if causal:
        s = np.where(np.tri(*s.shape[-2:]) > 0, s, -np.inf)
    for m in mask:
        s = np.where(m, s, -np.inf) if m.dtype == bool else s + m
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(top), top, 0))
    t = e.sum(-1, keepdims=True)
    return (e / np.where(t > 0, t, 1)).astype(q.dtype)


@composite(
    "attention_weights",
    reference=_weights_reference,
    samples=lambda: (Sample((*s.args[:2], *s.args[3:]), s.attrs, s.error) for s in _samples()),
)
def attention_weights(q: Value, k: Value, *mask: Value, causal: bool, scale: float) -> Value:
    """softmax(q kᵀ * scale + mask) along the last axis."""
    n = k.type.ndim
    scores = matmul(q * scale, permute_dims(k, axes=(*range(n - 2), n - 1, n - 2)))
    shape = scores.type.shape[-2:]
    if causal:
        rows = reshape(arange(0, 1, size=shape[0], dtype=int64), shape=(shape[0], 1))
        scores = where(
            greater_equal(rows, arange(0, 1, size=shape[1], dtype=int64)), scores, float("-inf")
        )
    for m in mask:
        masked = where(m, scores, float("-inf")) if m.type.dtype is bool_ else scores + m
        if masked.type.shape != scores.type.shape:
            raise ShapeError(
                "attention",
                expected=f"a mask that broadcasts to {scores.type.shape}",
                got=str(m.type),
            )
        scores = masked
    if not scores.type.shape[-1]:
        return scores  # type: ignore[no-any-return]
    return masked_softmax(scores) if mask else softmax(scores, axis=scores.type.ndim - 1)  # type: ignore[no-any-return]


def _attention_vjp(g: Value, y: Value, *xs: Value, causal: bool, scale: float) -> Any:
    """Computes the weights a second time: they are the largest thing there is to keep."""
    return later.body_vjp("attention", _attend)(
        g, y, *(again(x) for x in xs), causal=causal, scale=scale
    )


def _attend(q: Value, k: Value, v: Value, *mask: Value, causal: bool, scale: float) -> Value:
    """The values, weighed by attention_weights."""
    return matmul(attention_weights(q, k, *mask, causal=causal, scale=scale), v)  # type: ignore[no-any-return]


attention = composite(
    "attention",
    vjp=_attention_vjp,
    samples=_samples,
    reference=lambda q, k, v, *mask, causal, scale: (
        _weights_reference(q.astype("f8"), k, *mask, causal=causal, scale=scale) @ v
    ).astype(q.dtype),
)(_attend)
