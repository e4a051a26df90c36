"""Attention: Vaswani et al., https://arxiv.org/abs/1706.03762."""

from __future__ import annotations

import math
from typing import Any

from weft.errors import ShapeError
from weft.nn.functional.linear import dropout
from weft.ops import attention as ops
from weft.ops.define import standard_mode
from weft.ops.elementwise import astype
from weft.ops.linalg import matmul
from weft.ops.movement import broadcast_to, reshape
from weft.tensor.arguments import flag, floating, number, value as as_value
from weft.tensor.tensor import Tensor
from weft.types.dtype import bool_
from weft.types.size import applied


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(q kᵀ * scale + mask) v over the last two axes: q (…, L, E), k (…, S, E), v (…, S, V).

    A bool mask says which pairs take part; a floating one is added to the scores. `is_causal` lets
    position i see those up to i. A query that sees nothing gives zeros. `scale` is 1 / sqrt(E)
    unless given.

    >>> import weft as wf
    >>> q = wf.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> wf.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    tensor([[1.    , 0.    ],
            [0.3302, 0.6698]])
    """
    place = "scaled_dot_product_attention"
    q, k, v = (floating(x, place) for x in (query, key, value))
    if (
        min(x.type.ndim for x in (q, k, v)) < 2
        or q.type.shape[-1] != k.type.shape[-1]
        or k.type.shape[-2] != v.type.shape[-2]
    ):
        raise ShapeError(
            place,
            expected="q (…, L, E), k (…, S, E), v (…, S, V)",
            got=f"{q.type}, {k.type}, {v.type}",
        )
    if flag(enable_gqa, place):
        k, v = (_shared(x, q) for x in (k, v))
    causal = flag(is_causal, place)
    if attn_mask is not None and causal:
        raise ShapeError(place, expected="attn_mask or is_causal, not both", got="both")
    with standard_mode():
        by = (
            1.0 / applied(math.sqrt, q.type.shape[-1])
            if scale is None
            else number(scale, place, "scale")
        )
    mask = () if attn_mask is None else (_mask(attn_mask, q),)
    if dropout_p:
        weights = ops.attention_weights(q, k, *mask, causal=causal, scale=by)
        return matmul(dropout(weights, dropout_p), v)
    return ops.attention(q, k, v, *mask, causal=causal, scale=by)


def _mask(mask: Any, q: Any) -> Any:
    m = as_value(mask)
    return (
        m
        if m.type.dtype is bool_ or m.type.dtype is q.type.dtype
        else astype(m, dtype=q.type.dtype)
    )


def _shared(x: Any, q: Any) -> Any:
    """Heads of keys or values repeated for the groups of queries that share them."""
    have, want = x.type.shape[-3], q.type.shape[-3]
    if not have or want % have:
        raise ShapeError(
            "scaled_dot_product_attention",
            expected=f"a number of heads that divides {want}",
            got=str(have),
        )
    *lead, _, s, e = x.type.shape
    wide = broadcast_to(
        reshape(x, shape=(*lead, have, 1, s, e)), shape=(*lead, have, want // have, s, e)
    )
    return reshape(wide, shape=(*lead, want, s, e))
