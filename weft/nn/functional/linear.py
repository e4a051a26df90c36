"""Linear maps, look-up tables, dropout, padding."""

from __future__ import annotations

from typing import Any

from weft.buffer import Buffer
from weft.capture.refusal import refused
from weft.errors import DTypeError, IndexRangeError, ShapeError
from weft.nn.functional.indices import indices_of, refuse_negative
from weft.ops.creation import one_hot as one_hot_op
from weft.ops.define import Value, real, standard_mode
from weft.ops.elementwise import add, astype, equal, where
from weft.ops.indexing import take
from weft.ops.linalg import matmul
from weft.ops.movement import alias, permute_dims, reshape, slice_
from weft.ops.padding import extend, pad as pad_op
from weft.tensor.arguments import (
    flag,
    floating,
    integer,
    number,
    sizes,
    value,
    value as as_value,
    word,
)
from weft.tensor.random import rand
from weft.tensor.shapes import broadcast_to
from weft.tensor.statistics import max as largest, min as smallest
from weft.tensor.tensor import Tensor
from weft.types.dtype import int64


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """x Wᵀ + b over the last axis of x (…, in); W is (out, in) or (in,), b (out,).

    >>> import weft as wf
    >>> w, b = wf.tensor([[1.0, 0.0], [1.0, 1.0]]), wf.tensor([0.5, 0.0])
    >>> wf.nn.functional.linear(wf.tensor([[2.0, 3.0]]), w, b)
    tensor([[2.5, 5. ]])
    """
    x, w = value(input), value(weight)
    if w.type.ndim not in (1, 2) or not x.type.ndim or x.type.shape[-1] != w.type.shape[-1]:
        raise ShapeError(
            "linear", expected="input (…, in) and weight (out, in)", got=f"{x.type} and {w.type}"
        )
    if w.type.ndim == 2:
        w = permute_dims(w, axes=(1, 0))
    out = matmul(x, w)
    return out if bias is None else out + value(bias)


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """x₁ᵀ W y₂ + b over the last axes; W is (out, in1, in2).

    >>> import weft as wf
    >>> wf.nn.functional.bilinear(wf.tensor([[1.0, 2.0]]), wf.tensor([[3.0]]), wf.ones((1, 2, 1)))
    tensor([[9.]])
    """
    x, y, w = (
        floating(input1, "bilinear"),
        floating(input2, "bilinear"),
        floating(weight, "bilinear"),
    )
    if (
        w.type.ndim != 3
        or x.type.shape[-1:] != w.type.shape[1:2]
        or y.type.shape[-1:] != w.type.shape[2:]
    ):
        raise ShapeError(
            "bilinear",
            expected="inputs (…, in1) and (…, in2), weight (out, in1, in2)",
            got=f"{x.type}, {y.type}, {w.type}",
        )
    half = matmul(reshape(x, shape=(*x.type.shape[:-1], 1, 1, x.type.shape[-1])), w)
    whole = matmul(half, reshape(y, shape=(*y.type.shape[:-1], 1, y.type.shape[-1], 1)))
    out = reshape(whole, shape=whole.type.shape[:-2])
    return out if bias is None else out + value(bias)


def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Tensor:
    """The rows of a table (n, d) that integers name. The row `padding_idx` is given no gradient.

    >>> import weft as wf
    >>> table = wf.tensor([[0.0, 0.0], [1.0, 2.0]])
    >>> wf.nn.functional.embedding(wf.tensor([1, 0, 1]), table)
    tensor([[1., 2.],
            [0., 0.],
            [1., 2.]])
    """
    index, table = value(input), floating(weight, "embedding")
    if not index.type.dtype.is_int:
        raise DTypeError("embedding", expected="integer indices", got=index.type.dtype.name)
    if table.type.ndim != 2:
        raise ShapeError("embedding", expected="a table (n, d)", got=str(table.type))
    n: int = table.type.shape[0]  # type: ignore[assignment]
    with indices_of("embedding", "rows", n, index):
        rows = take(table, refuse_negative(index), axis=0)
    if padding_idx is None:
        return rows
    padding_idx = integer(padding_idx, "embedding")
    if not -n <= padding_idx < n:
        raise IndexRangeError(
            "embedding", expected=f"a padding_idx in [{-n}, {n})", got=str(padding_idx)
        )
    blank = equal(reshape(index, shape=(*index.type.shape, 1)), padding_idx % n)
    return where(blank, rows.detach(), rows)


def one_hot(tensor: Any, num_classes: int = -1) -> Tensor:
    """A last axis of zeros with a one where the index says. -1 classes: as many as the largest
    index needs.

    >>> import weft as wf
    >>> wf.nn.functional.one_hot(wf.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    x, num_classes = value(tensor), integer(num_classes, "one_hot")
    if not x.type.dtype.is_int:
        raise DTypeError("one_hot", expected="integers", got=x.type.dtype.name)
    if num_classes == -1 and not x.type.size:
        raise ShapeError("one_hot", expected="num_classes for an empty tensor", got="-1")
    if not isinstance(real(x), Buffer):
        return _one_hot_in_program(x, num_classes)
    if x.type.size:
        low, high = int(smallest(x)), int(largest(x))
        classes = high + 1 if num_classes == -1 else num_classes
        if low < 0 or high >= classes:
            raise IndexRangeError(
                "one_hot", expected=f"classes in [0, {classes})", got=f"{low} to {high}"
            )
        num_classes = classes
    return one_hot_op(x, size=num_classes, dtype=int64)


def _one_hot_in_program(x: Tensor, num_classes: int) -> Tensor:
    """Of indices that only a run knows, which checks them by looking up zeros."""
    if num_classes == -1:
        hint = "say how many classes there are"
        raise refused("one_hot", "num_classes", f"-1 and a symbolic {x.type}", hint)
    zeros = broadcast_to(astype(value(0), dtype=x.type.dtype), (num_classes,))
    with indices_of("one_hot", "classes", num_classes, x):
        checked = add(x, take(zeros, refuse_negative(x), axis=0))
    return one_hot_op(checked, size=num_classes, dtype=int64)


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, elements are zeroed with probability p and the others divided by 1 - p.

    `inplace` is taken for PyTorch's sake and changes nothing.

    >>> import weft as wf
    >>> wf.nn.functional.dropout(wf.tensor([1.0, 2.0]), training=False)
    tensor([1., 2.])
    """
    p = number(p, "dropout", "a probability", 0, 1)
    x = floating(input, "dropout")
    if not flag(training, "dropout") or p == 0:
        return alias(x)
    return _thinned(x, x.type.shape, p)


def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of x (N, C, L) are dropped, the others divided by 1 - p.

    >>> import weft as wf
    >>> wf.nn.functional.dropout1d(wf.ones((1, 2, 3)), training=False).shape
    (1, 2, 3)
    """
    return _drop_channels("dropout1d", input, p, training, 1)


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of x (N, C, H, W) are dropped, the others divided by 1 - p.

    >>> import weft as wf
    >>> wf.nn.functional.dropout2d(wf.ones((1, 2, 3, 3)), training=False).shape
    (1, 2, 3, 3)
    """
    return _drop_channels("dropout2d", input, p, training, 2)


def _drop_channels(place: str, input: Any, p: float, training: bool, spatial: int) -> Tensor:
    x = floating(input, place)
    p = number(p, place, "a probability", 0, 1)
    if x.type.ndim not in (spatial + 1, spatial + 2):
        raise ShapeError(place, expected=f"{spatial + 1} or {spatial + 2} axes", got=str(x.type))
    if not flag(training, place) or p == 0:
        return alias(x)
    lead = x.type.ndim - spatial
    return _thinned(x, (*x.type.shape[:lead], *(1,) * spatial), p)


def _thinned(x: Value, shape: Any, p: float) -> Tensor:
    """x / (1 - p) where a random number of `shape` is at least p, else 0."""
    kept = rand(shape) >= p
    with standard_mode():
        by = 1.0 / (1.0 - p) if p < 1 else 0.0
    return where(kept, x * by, 0.0)


_MODES = ("constant", "reflect", "replicate", "circular")


def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """Borders around the last axes: pad = (left, right, top, bottom, …), counted from the last
    axis. Negative widths cut.

    >>> import weft as wf
    >>> wf.nn.functional.pad(wf.tensor([[1.0, 2.0]]), (1, 1, 0, 1))
    tensor([[0., 1., 2., 0.],
            [0., 0., 0., 0.]])
    """
    x = as_value(input)
    given = sizes(pad, "pad")
    word(mode, "pad", _MODES)
    if len(given) % 2 or len(given) // 2 > x.type.ndim:
        raise ShapeError(
            "pad", expected=f"pairs of widths for at most {x.type.ndim} axes", got=str(given)
        )
    if mode != "constant" and value is not None:
        raise ShapeError(
            "pad", expected="a value with mode 'constant' only", got=f"{value} with {mode!r}"
        )
    pairs = [(0, 0)] * (x.type.ndim - len(given) // 2)
    pairs += [(given[i], given[i + 1]) for i in range(len(given) - 2, -1, -2)]
    if any(min(w) < 0 for w in pairs):
        x = _cut(x, pairs)
    widths = tuple((max(a, 0), max(b, 0)) for a, b in pairs)
    if mode == "constant":
        return pad_op(x, 0 if value is None else value, widths=widths)
    return extend(x, widths=widths, mode=mode)


def _cut(x: Value, pairs: list[tuple[int, int]]) -> Tensor:
    starts = tuple(max(-a, 0) for a, _ in pairs)
    shape = x.type.sizes
    left = tuple(n - s + min(b, 0) for n, s, (_, b) in zip(shape, starts, pairs, strict=True))
    if min(left, default=0) < 0:
        raise ShapeError("pad", expected="to cut no more than there is", got=f"{pairs} of {x.type}")
    return slice_(x, starts=starts, sizes=left, steps=(1,) * len(left))
