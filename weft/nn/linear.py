"""Linear maps and tables of vectors."""

from __future__ import annotations

import math
from typing import Any

from weft.errors import IndexRangeError, ShapeError
from weft.nn import functional as F, init
from weft.nn.module import Module
from weft.nn.parameter import Parameter
from weft.ops.define import in_standard_mode
from weft.tensor.arguments import flag, integer
from weft.tensor.creation import empty
from weft.tensor.tensor import Tensor


def size(x: Any, place: str, least: int = 1) -> int:
    """A count of features, channels or rows."""
    n = integer(x, place)
    if n < least:
        raise ShapeError(place, expected=f"{least} or more", got=str(n))
    return n


class Linear(Module):
    """x Wᵀ + b over the last axis; weight is (out, in).

    >>> import weft as wf
    >>> wf.nn.Linear(3, 2)(wf.ones((4, 3))).shape
    (4, 2)
    """

    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, dtype: Any = None
    ) -> None:
        self.in_features = size(in_features, "Linear in_features", 0)
        self.out_features = size(out_features, "Linear out_features", 0)
        self.weight = Parameter(empty(self.out_features, self.in_features, dtype=dtype))
        wanted = flag(bias, "Linear bias")
        shape = (self.out_features,)
        self.register_parameter("bias", Parameter(empty(shape, dtype=dtype)) if wanted else None)
        self.reset_parameters()

    @in_standard_mode
    def reset_parameters(self) -> None:
        """Other first values: uniform within 1 / sqrt(in_features)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5.0))
        if self.bias is not None:
            bound = 1.0 / math.sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Any) -> Any:
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        said = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{said}, bias={self.bias is not None}"


class Bilinear(Module):
    """x₁ᵀ W x₂ + b over the last axes; weight is (out, in1, in2).

    >>> import weft as wf
    >>> wf.nn.Bilinear(2, 3, 4)(wf.ones((5, 2)), wf.ones((5, 3))).shape
    (5, 4)
    """

    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        self.in1_features = size(in1_features, "Bilinear in1_features")
        self.in2_features = size(in2_features, "Bilinear in2_features")
        self.out_features = size(out_features, "Bilinear out_features")
        shape = (self.out_features, self.in1_features, self.in2_features)
        self.weight = Parameter(empty(shape, dtype=dtype))
        wanted = flag(bias, "Bilinear bias")
        lone = Parameter(empty(shape[:1], dtype=dtype)) if wanted else None
        self.register_parameter("bias", lone)
        self.reset_parameters()

    @in_standard_mode
    def reset_parameters(self) -> None:
        """Other first values: uniform within 1 / sqrt(in1_features)."""
        bound = 1.0 / math.sqrt(self.in1_features)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def forward(self, x: Any, y: Any) -> Any:
        return F.bilinear(x, y, self.weight, self.bias)

    def extra_repr(self) -> str:
        said = f"in1_features={self.in1_features}, in2_features={self.in2_features}"
        return f"{said}, out_features={self.out_features}, bias={self.bias is not None}"


class Embedding(Module):
    """Rows of a table (n, d) by number. The row `padding_idx` is zero and is not learnt.

    >>> import weft as wf
    >>> wf.nn.Embedding(10, 4)(wf.tensor([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        dtype: Any = None,
    ) -> None:
        self.num_embeddings = size(num_embeddings, "Embedding num_embeddings")
        self.embedding_dim = size(embedding_dim, "Embedding embedding_dim")
        n = self.num_embeddings
        if padding_idx is not None:
            padding_idx = integer(padding_idx, "Embedding padding_idx")
            if not -n <= padding_idx < n:
                expected = f"a padding_idx in [{-n}, {n})"
                raise IndexRangeError("Embedding", expected=expected, got=str(padding_idx))
            padding_idx %= n
        self.padding_idx = padding_idx
        self.weight = Parameter(empty(n, self.embedding_dim, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Other first values: normal."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            table = self.weight.numpy().copy()
            table[self.padding_idx] = 0
            self.weight.assign(table)

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None
    ) -> Embedding:
        """A table of given vectors, which are not learnt unless `freeze` is False."""
        if embeddings.ndim != 2:
            got = str(embeddings.type)
            raise ShapeError("Embedding.from_pretrained", expected="a table (n, d)", got=got)
        rows, width = embeddings.shape
        out = cls(rows, width, padding_idx, dtype=embeddings.dtype)
        out.weight = Parameter(embeddings.detach(), not flag(freeze, "freeze"))
        return out

    def forward(self, x: Any) -> Any:
        return F.embedding(x, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        pad = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{pad}"
