"""Transformer layers, with PyTorch's parameters and defaults."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from weft.errors import DTypeError
from weft.nn import functional as F, init
from weft.nn.activation import Dropout
from weft.nn.attention import MultiheadAttention
from weft.nn.containers import ModuleList
from weft.nn.linear import Linear, size
from weft.nn.module import Module
from weft.nn.normalization import LayerNorm
from weft.tensor.arguments import flag
from weft.tensor.creation import full, triu

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"relu": F.relu, "gelu": F.gelu}


def _activation(given: Any, place: str) -> Callable[[Any], Any]:
    if isinstance(given, str) and given in _ACTIVATIONS:
        return _ACTIVATIONS[given]
    if callable(given):
        return given
    expected = "activation: 'relu', 'gelu' or a function"
    raise DTypeError(place, expected=expected, got=repr(given))


class TransformerEncoderLayer(Module):
    """Attention of a sequence to itself, then two linear maps; each added to what it was given.

    >>> import weft as wf
    >>> layer = wf.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> layer(wf.randn(3, 5, 8)).shape
    (3, 5, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        said = {"bias": bias, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, batch_first=batch_first, **said
        )
        self.linear1 = Linear(d_model, dim_feedforward, **said)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **said)
        self.norm_first = flag(norm_first, "TransformerEncoderLayer norm_first")
        self.norm1 = LayerNorm(d_model, layer_norm_eps, **said)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, **said)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.activation = _activation(activation, "TransformerEncoderLayer")

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        x = src
        if self.norm_first:
            x = x + self._attend(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._feed(self.norm2(x))
        x = self.norm1(x + self._attend(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._feed(x))

    def _attend(self, x: Any, mask: Any, padding: Any, causal: bool) -> Any:
        out, _ = self.self_attn(
            x, x, x, padding, need_weights=False, attn_mask=mask, is_causal=causal
        )
        return self.dropout1(out)

    def _feed(self, x: Any) -> Any:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Attention of a sequence to itself, attention to a memory, then two linear maps.

    >>> import weft as wf
    >>> layer = wf.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> layer(wf.randn(3, 4, 8), wf.randn(3, 6, 8)).shape
    (3, 4, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        said = {"bias": bias, "dtype": dtype}
        attend = {"batch_first": batch_first, **said}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, **attend)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, **attend)
        self.linear1 = Linear(d_model, dim_feedforward, **said)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **said)
        self.norm_first = flag(norm_first, "TransformerDecoderLayer norm_first")
        self.norm1 = LayerNorm(d_model, layer_norm_eps, **said)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, **said)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, **said)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation, "TransformerDecoderLayer")

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        own = (tgt_key_padding_mask, False, tgt_mask, True, tgt_is_causal)
        other = (memory_key_padding_mask, False, memory_mask, True, memory_is_causal)

        def look(x: Any) -> Any:
            return self.dropout1(self.self_attn(x, x, x, *own)[0])

        def recall(x: Any) -> Any:
            return self.dropout2(self.multihead_attn(x, memory, memory, *other)[0])

        x = tgt
        if self.norm_first:
            x = x + look(self.norm1(x))
            x = x + recall(self.norm2(x))
            return x + self._feed(self.norm3(x))
        x = self.norm1(x + look(x))
        x = self.norm2(x + recall(x))
        return self.norm3(x + self._feed(x))

    def _feed(self, x: Any) -> Any:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def _copies(layer: Any, count: int, place: str) -> ModuleList:
    if not isinstance(layer, Module):
        raise DTypeError(place, expected="a layer to repeat", got=type(layer).__name__)
    return ModuleList(copy.deepcopy(layer) for _ in range(size(count, f"{place} num_layers")))


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other. `enable_nested_tensor` and `mask_check` are
    taken for PyTorch's sake and change nothing.

    >>> import weft as wf
    >>> layer = wf.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> wf.nn.TransformerEncoder(layer, 2)(wf.ones((1, 4, 8))).shape
    (1, 4, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        flag(enable_nested_tensor, "TransformerEncoder enable_nested_tensor")
        flag(mask_check, "TransformerEncoder mask_check")
        self.layers = _copies(encoder_layer, num_layers, "TransformerEncoder")
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after the other.

    >>> import weft as wf
    >>> layer = wf.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> wf.nn.TransformerDecoder(layer, 2)(wf.ones((1, 4, 8)), wf.ones((1, 6, 8))).shape
    (1, 4, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.layers = _copies(decoder_layer, num_layers, "TransformerDecoder")
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, tgt_is_causal, memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder that reads `src`, and a decoder that writes `tgt` and looks at what was read
    (Vaswani et al., https://arxiv.org/abs/1706.03762).

    >>> import weft as wf
    >>> net = wf.nn.Transformer(8, 2, 1, 1, dim_feedforward=16, batch_first=True)
    >>> net(wf.randn(3, 6, 8), wf.randn(3, 4, 8), tgt_is_causal=True).shape
    (3, 4, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        said: dict[str, Any] = {"bias": bias, "dtype": dtype}
        each = (dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        self.encoder, self.decoder = custom_encoder, custom_decoder
        if custom_encoder is None:
            layer: Module = TransformerEncoderLayer(d_model, nhead, *each, **said)
            norm = LayerNorm(d_model, layer_norm_eps, **said)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is None:
            layer = TransformerDecoderLayer(d_model, nhead, *each, **said)
            norm = LayerNorm(d_model, layer_norm_eps, **said)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Other first values: xavier_uniform_ for all that has two axes."""
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool = False,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        encoder: Any = self.encoder
        decoder: Any = self.decoder
        memory = encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, dtype: Any = None) -> Any:
        """(sz, sz): 0 where a position may look, -inf above the diagonal.

        >>> import weft as wf
        >>> wf.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[  0., -inf],
                [  0.,   0.]])
        """
        return triu(full((sz, sz), -math.inf, dtype=dtype), k=1)
