"""Functions that fold along an axis and keep every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.ops import cumulative
from weft.ops.creation import full
from weft.ops.define import Op
from weft.ops.joining import concat
from weft.ops.reduction import accumulated
from weft.tensor.arguments import flag, value
from weft.tensor.elsewhere import says_keywords
from weft.tensor.selection import one_axis
from weft.types import as_dtype

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

__all__ = ["cumulative_max", "cumulative_min", "cumulative_prod", "cumulative_sum"]


@says_keywords
def cumulative_sum(
    x: Any, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The sums of the elements up to each one along an axis; with `include_initial` a zero comes
    first.

    >>> import weft as wf
    >>> wf.cumulative_sum(wf.tensor([1, 2, 3]))
    tensor([1, 3, 6])
    """
    return _running(cumulative.cumulative_sum, x, axis, dtype, include_initial, 0, reverse=False)


@says_keywords
def cumulative_prod(
    x: Any, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The products of the elements up to each one along an axis; with `include_initial` a one comes
    first.

    >>> import weft as wf
    >>> wf.cumulative_prod(wf.tensor([1, 2, 3]))
    tensor([1, 2, 6])
    """
    return _running(cumulative.cumulative_prod, x, axis, dtype, include_initial, 1)


def _running(
    op: Op, x: Any, axis: Any, dtype: Any, include_initial: bool, initial: int, **attrs: Any
) -> Tensor:
    v = value(x)
    a = one_axis(axis, v, op.name)
    d = accumulated(v.type.dtype) if dtype is None else as_dtype(dtype)
    out: Tensor = op(v, axis=a, dtype=d, **attrs)
    if not flag(include_initial, op.name):
        return out
    shape = tuple(1 if k == a else n for k, n in enumerate(v.type.shape))
    return concat(full(initial, shape=shape, dtype=d), out, axis=a)


@says_keywords
def cumulative_max(x: Any, /, axis: int | None = None) -> Tensor:
    """The largest element up to each one along an axis; the first NaN stays.

    >>> import weft as wf
    >>> wf.cumulative_max(wf.tensor([1, 3, 2]))
    tensor([1, 3, 3])
    """
    v = value(x)
    return cumulative.cumulative_max(v, axis=one_axis(axis, v, "cumulative_max"))[0]


@says_keywords
def cumulative_min(x: Any, /, axis: int | None = None) -> Tensor:
    """The smallest element up to each one along an axis; the first NaN stays.

    >>> import weft as wf
    >>> wf.cumulative_min(wf.tensor([3, 1, 2]))
    tensor([3, 1, 1])
    """
    v = value(x)
    return cumulative.cumulative_min(v, axis=one_axis(axis, v, "cumulative_min"))[0]
