"""Attention of several heads (Vaswani et al., https://arxiv.org/abs/1706.03762)."""

from __future__ import annotations

import math
from typing import Any

from weft.autodiff.mode import no_grad
from weft.errors import DTypeError, ShapeError
from weft.nn import functional as F, init
from weft.nn.linear import Linear, size
from weft.nn.module import Module
from weft.nn.parameter import Parameter
from weft.ops.attention import attention_weights
from weft.ops.elementwise import logical_not, where
from weft.ops.recurrent import time_steps
from weft.tensor.arguments import flag, number, value
from weft.tensor.creation import arange, empty, ones, tril, zeros
from weft.tensor.data import tensor
from weft.tensor.dtypes import astype
from weft.tensor.shapes import expand_dims, moveaxis, squeeze
from weft.types.dtype import bool_, int64


class KeyValueCache:
    """Keys and values of the positions so far, so that the next needs only its own.

    There is room for `length` positions from the start: shapes stay, and a compiled step serves
    them all. `size` counts the positions that are there. It is for generating: what is in it is
    without a gradient.

    >>> import weft as wf
    >>> attend = wf.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> cache = wf.nn.KeyValueCache(1, 2, 16, 4)
    >>> for x in wf.randn(3, 1, 1, 8):
    ...     out, _ = attend(x, x, x, need_weights=False, cache=cache)
    >>> int(cache.size)
    3
    """

    def __init__(
        self, batch: int, num_heads: int, length: int, head_dim: int, dtype: Any = None
    ) -> None:
        shape = tuple(size(n, "KeyValueCache") for n in (batch, num_heads, length, head_dim))
        self.keys, self.values = zeros(shape, dtype=dtype), zeros(shape, dtype=dtype)
        self.size = tensor(0, dtype=int64)

    def reset(self) -> None:
        """Begin another sequence."""
        self.size.assign(0)

    def extend(self, k: Any, v: Any) -> tuple[Any, Any, Any]:
        """Add keys and values (N, heads, L, E / heads) and give all there is room for, with a mask
        (L, length) of those that each position may look at.
        """
        places = self.size + arange(k.shape[2])
        with no_grad():
            self.keys[:, :, places] = k.detach()
            self.values[:, :, places] = v.detach()
            self.size.assign(self.size + k.shape[2])
        mask = arange(self.keys.shape[2]) <= places.reshape(-1, 1)
        return self.keys, self.values, mask


class MultiheadAttention(Module):
    """Queries look at keys and take values, in `num_heads` parts of the embedding.

    As in PyTorch, a bool mask here is True where a query may *not* look, sequences are (L, N, E)
    unless `batch_first`, and the result is a pair: the output, and the weights or None.

    >>> import weft as wf
    >>> attend = wf.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = wf.randn(3, 5, 8)
    >>> out, weights = attend(x, x, x)
    >>> out.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        *,
        dtype: Any = None,
    ) -> None:
        place = "MultiheadAttention"
        self.embed_dim = size(embed_dim, f"{place} embed_dim")
        self.num_heads = size(num_heads, f"{place} num_heads")
        if self.embed_dim % self.num_heads:
            expected = f"an embed_dim that {self.num_heads} heads divide"
            raise ShapeError(place, expected=expected, got=str(self.embed_dim))
        self.head_dim = self.embed_dim // self.num_heads
        self.dropout = number(dropout, place, "a dropout", 0, 1)
        self.batch_first = flag(batch_first, f"{place} batch_first")
        self.kdim = self.embed_dim if kdim is None else size(kdim, f"{place} kdim")
        self.vdim = self.embed_dim if vdim is None else size(vdim, f"{place} vdim")
        e = self.embed_dim
        alike = self.kdim == e and self.vdim == e
        whole = Parameter(empty((3 * e, e), dtype=dtype)) if alike else None
        self.register_parameter("in_proj_weight", whole)
        for name, n in (("q", e), ("k", self.kdim), ("v", self.vdim)):
            own = None if alike else Parameter(empty((e, n), dtype=dtype))
            self.register_parameter(f"{name}_proj_weight", own)
        shift = Parameter(empty((3 * e,), dtype=dtype)) if flag(bias, f"{place} bias") else None
        self.register_parameter("in_proj_bias", shift)
        self.out_proj = Linear(e, e, bias, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Other first values: xavier_uniform_, and biases of 0."""
        for name, p in self._parameters.items():
            if p is not None and name != "in_proj_bias":
                init.xavier_uniform_(p)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)  # type: ignore[arg-type]

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> tuple[Any, Any]:
        """The output and the weights (None unless wanted). With a `cache`, keys and values are
        added to those that it has, and queries look at all of these up to their own.
        """
        same = query is key and key is value
        batched = query.ndim == 3
        query, key, value = (self._batch_first(x) for x in (query, key, value))
        self._check(query, key, value)
        q, k, v = self._projected(query, key, value, same)
        seen = None
        if cache is not None:
            k, v, seen = cache.extend(k, v)
        n, length, s = q.shape[0], q.shape[2], k.shape[2]
        mask = _mask(key_padding_mask, attn_mask, (n, self.num_heads, length, s), q.dtype)
        if seen is not None:
            if mask is not None:
                got, expected = "a mask", "a cache, which is a causal mask by itself"
                raise ShapeError("MultiheadAttention", expected=expected, got=got)
            mask = seen
        p = self.dropout if self.training else 0.0
        weights = None
        if flag(need_weights, "need_weights"):
            if is_causal and mask is None:
                mask = tril(ones((length, s), dtype=bool_))
            given = () if mask is None else (mask,)
            scale = 1.0 / math.sqrt(self.head_dim)
            weights = attention_weights(q, k, *given, causal=False, scale=scale)
            weights = F.dropout(weights, p) if p else weights
            out = weights @ v
        else:
            causal = flag(is_causal, "is_causal") and mask is None
            out = F.scaled_dot_product_attention(q, k, v, mask, p, causal)
        out = moveaxis(out, 1, 2).reshape(n, length, self.embed_dim)
        out = self.out_proj(out)
        if weights is not None and average_attn_weights:
            weights = weights.mean(axis=1)
        if not batched:
            return squeeze(out, 0), weights if weights is None else squeeze(weights, 0)
        return (out if self.batch_first else moveaxis(out, 0, 1)), weights

    def _batch_first(self, x: Any) -> Any:
        if x.ndim == 2:
            return expand_dims(x, 0)
        return x if self.batch_first or x.ndim != 3 else moveaxis(x, 0, 1)

    def _check(self, query: Any, key: Any, value: Any) -> None:
        wanted = (self.embed_dim, self.kdim, self.vdim)
        fits = all(
            x.ndim == 3 and x.shape[2] == e and x.shape[0] == query.shape[0]
            for x, e in zip((query, key, value), wanted, strict=True)
        )
        if not fits or key.shape[1] != value.shape[1]:
            raise ShapeError(
                "MultiheadAttention",
                expected=f"query, key and value of {wanted} features, one batch, "
                "keys as many as values",
                got=f"{query.type}, {key.type}, {value.type} (N, L, E)",
            )

    def _projected(self, query: Any, key: Any, value: Any, same: bool) -> Any:
        """Queries, keys and values as (N, heads, L, E / heads)."""
        heads = (self.num_heads, self.head_dim)
        w, b = self.in_proj_weight, self.in_proj_bias
        if same and w is not None:
            x = F.linear(query, w, b)
            x = x.reshape(*x.shape[:2], 3, *heads).permute_dims(2, 0, 3, 1, 4)
            return time_steps(x)
        each: Any = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        if w is not None:
            each = time_steps(w.reshape(3, self.embed_dim, self.embed_dim))
        shifts = (None,) * 3 if b is None else time_steps(b.reshape(3, self.embed_dim))
        xs = (query, key, value)
        outs = (F.linear(x, w, b) for x, w, b in zip(xs, each, shifts, strict=True))
        return tuple(moveaxis(x.reshape(*x.shape[:2], *heads), 2, 1) for x in outs)

    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None

    def extra_repr(self) -> str:
        said = f"embed_dim={self.embed_dim}, num_heads={self.num_heads}"
        return said + f", batch_first={self.batch_first}"


def _mask(padding: Any, attn: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """One mask of PyTorch's two, in the words of scaled_dot_product_attention: True where to look,
    or a number to add.
    """
    n, heads, length, s = shape
    found = []
    for name, m in (("key_padding_mask", padding), ("attn_mask", attn)):
        if m is None:
            continue
        m = value(m)
        if not (m.type.dtype is bool_ or m.type.dtype.is_float):
            expected = f"{name}: bools (True: don't look) or floats (added)"
            raise DTypeError("MultiheadAttention", expected=expected, got=m.type.dtype.name)
        known: dict[str, list[Any]] = {
            "key_padding_mask": [((n, s), (n, 1, 1, s)), ((s,), (1, 1, 1, s))],
            "attn_mask": [((length, s),) * 2, ((n * heads, length, s), shape)],
        }
        shapes = known[name]
        fitting = [new for old, new in shapes if old == m.type.shape]
        if not fitting:
            wanted = " or ".join(str(old) for old, _ in shapes)
            expected = f"{name} of shape {wanted}"
            raise ShapeError("MultiheadAttention", expected=expected, got=str(m.type))
        found.append(m.reshape(fitting[0]))
    if all(m.type.dtype is bool_ for m in found):
        found = [logical_not(m) for m in found]
        return None if not found else found[0] if len(found) == 1 else found[0] & found[1]
    added = [where(m, -math.inf, 0.0) if m.type.dtype is bool_ else m for m in found]
    return astype(added[0] if len(added) == 1 else added[0] + added[1], dtype, copy=False)
