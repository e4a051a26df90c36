"""Functions that fold axes: sums, means, extremes. The order of additions is stated in
docs/numerics.md.

`axis` is None (all axes), an integer or a tuple of integers; with `keepdims` folded axes stay, with
size 1. `dim` and `keepdim`, PyTorch's names of the two, are errors that say so.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft.errors import ShapeError
from weft.ops import reduction as ops
from weft.ops.define import Op, installed
from weft.ops.elementwise import astype
from weft.ops.movement import reshape
from weft.tensor.arguments import flag, number, remember, value
from weft.tensor.elsewhere import no_keyword, says_keywords
from weft.types import as_dtype, normalize_axes, normalize_axis

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

#: a look-up that misses: no tensor, no such plan, nothing to look up by, an array that hides its
#: data; (1.0, 2) finds what (1, 2) left, but is no axes: `math.gcd` takes integers only
_MISSING = (KeyError, AttributeError, TypeError, ValueError)


def _fold(op: Op, x: Any, axis: Any, keepdims: Any, **more: Any) -> Tensor:
    """The call in full, remembered for the next one."""
    v = value(x)
    axes = normalize_axes(axis, v.type.ndim, op.name)
    out: Tensor = op(v, axes=axes, keepdims=flag(keepdims, op.name), **more)
    said = (axis, keepdims, *more.values(), axis.__class__, keepdims.__class__)
    remember(op, v, said, (axes, keepdims, *more.values()))
    return out


def _fold_as(op: Op, x: Any, axis: Any, keepdims: Any, dtype: Any) -> Tensor:
    """Converted first, so that nothing is lost on the way; integers wrap to the dtype at the
    end.
    """
    d = as_dtype(dtype)
    out = _fold(op, astype(value(x), dtype=d), axis, keepdims)
    return out if out.type.dtype is d else astype(out, dtype=d)


def sum(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    dtype: Any = None,
    dim: None = None,
    keepdim: None = None,
) -> Tensor:
    """The sum of the elements. Integers add up in 64 bits unless `dtype` says otherwise.

    >>> import weft as wf
    >>> wf.sum(wf.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([4., 6.])
    """
    if dim is not None or keepdim is not None:
        raise no_keyword("sum", dim=dim, keepdim=keepdim)
    if dtype is not None:
        return _fold_as(ops.sum, x, axis, keepdims, dtype)
    try:
        plan = ops.sum.plans[x.data.layout, axis, keepdims, axis.__class__, keepdims.__class__]
        if axis.__class__ is tuple:
            math.gcd(*axis)
    except _MISSING:
        return _fold(ops.sum, x, axis, keepdims)
    return installed.launch(plan, x)


@says_keywords
def prod(x: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The product of the elements. Integers multiply in 64 bits unless `dtype` says otherwise.

    >>> import weft as wf
    >>> wf.prod(wf.tensor([[1, 2], [3, 4]]), axis=1)
    tensor([ 2, 12])
    """
    if dtype is not None:
        return _fold_as(ops.prod, x, axis, keepdims, dtype)
    return _fold(ops.prod, x, axis, keepdims)


def max(
    x: Any, axis: Any = None, keepdims: bool = False, dim: None = None, keepdim: None = None
) -> Tensor:
    """The largest element; NaN if there is one. Elements that tie share the gradient.

    >>> import weft as wf
    >>> wf.max(wf.tensor([[1.0, 5.0], [3.0, 4.0]]), axis=1)
    tensor([5., 4.])
    """
    if dim is not None or keepdim is not None:
        raise no_keyword("max", dim=dim, keepdim=keepdim)
    try:
        plan = ops.max.plans[x.data.layout, axis, keepdims, axis.__class__, keepdims.__class__]
        if axis.__class__ is tuple:
            math.gcd(*axis)
    except _MISSING:
        return _fold(ops.max, x, axis, keepdims)
    return installed.launch(plan, x)


def min(
    x: Any, axis: Any = None, keepdims: bool = False, dim: None = None, keepdim: None = None
) -> Tensor:
    """The smallest element; NaN if there is one. Elements that tie share the gradient.

    >>> import weft as wf
    >>> wf.min(wf.tensor([[1.0, 5.0], [3.0, 4.0]]), axis=0, keepdims=True)
    tensor([[1., 4.]])
    """
    if dim is not None or keepdim is not None:
        raise no_keyword("min", dim=dim, keepdim=keepdim)
    try:
        plan = ops.min.plans[x.data.layout, axis, keepdims, axis.__class__, keepdims.__class__]
        if axis.__class__ is tuple:
            math.gcd(*axis)
    except _MISSING:
        return _fold(ops.min, x, axis, keepdims)
    return installed.launch(plan, x)


def mean(
    x: Any, axis: Any = None, keepdims: bool = False, dim: None = None, keepdim: None = None
) -> Tensor:
    """The sum divided by the number of elements. Integers are taken as float32.

    >>> import weft as wf
    >>> wf.mean(wf.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(2.5)
    """
    if dim is not None or keepdim is not None:
        raise no_keyword("mean", dim=dim, keepdim=keepdim)
    try:
        plan = ops.mean.plans[x.data.layout, axis, keepdims, axis.__class__, keepdims.__class__]
        if axis.__class__ is tuple:
            math.gcd(*axis)
    except _MISSING:
        return _fold(ops.mean, ops.floating(value(x)), axis, keepdims)
    return installed.launch(plan, x)


@says_keywords
def var(x: Any, axis: Any = None, keepdims: bool = False, *, correction: float = 0.0) -> Tensor:
    """The sum of squared distances from the mean, divided by n - correction.

    >>> import weft as wf
    >>> wf.var(wf.tensor([1.0, 2.0, 3.0, 4.0])), wf.var(wf.tensor([1.0, 3.0]), correction=1)
    (tensor(1.25), tensor(2.))
    """
    return _fold(
        ops.var, ops.floating(value(x)), axis, keepdims, correction=number(correction, "var")
    )


@says_keywords
def std(x: Any, axis: Any = None, keepdims: bool = False, *, correction: float = 0.0) -> Tensor:
    """The square root of the variance.

    >>> import weft as wf
    >>> wf.std(wf.tensor([[1.0, 3.0], [4.0, 4.0]]), axis=1)
    tensor([1., 0.])
    """
    return _fold(
        ops.std, ops.floating(value(x)), axis, keepdims, correction=number(correction, "std")
    )


def any(
    x: Any, axis: Any = None, keepdims: bool = False, dim: None = None, keepdim: None = None
) -> Tensor:
    """Whether some element is not zero.

    >>> import weft as wf
    >>> wf.any(wf.tensor([[True, False], [False, False]]), axis=1)
    tensor([ True, False])
    """
    if dim is not None or keepdim is not None:
        raise no_keyword("any", dim=dim, keepdim=keepdim)
    return _fold(ops.any, x, axis, keepdims)


def all(
    x: Any, axis: Any = None, keepdims: bool = False, dim: None = None, keepdim: None = None
) -> Tensor:
    """Whether no element is zero.

    >>> import weft as wf
    >>> wf.all(wf.tensor([[True, True], [True, False]]), axis=1)
    tensor([ True, False])
    """
    if dim is not None or keepdim is not None:
        raise no_keyword("all", dim=dim, keepdim=keepdim)
    return _fold(ops.all, x, axis, keepdims)


def argmax(
    x: Any, axis: Any = None, keepdims: bool = False, dim: None = None, keepdim: None = None
) -> Tensor:
    """Where the first largest element is, along an axis or in row-major order.

    >>> import weft as wf
    >>> wf.argmax(wf.tensor([[1.0, 5.0], [7.0, 4.0]]), axis=1), wf.argmax(wf.tensor([1, 3, 3]))
    (tensor([1, 0]), tensor(1))
    """
    if dim is not None or keepdim is not None:
        raise no_keyword("argmax", dim=dim, keepdim=keepdim)
    return _position(ops.argmax, x, axis, keepdims)


def argmin(
    x: Any, axis: Any = None, keepdims: bool = False, dim: None = None, keepdim: None = None
) -> Tensor:
    """Where the first smallest element is, along an axis or in row-major order.

    >>> import weft as wf
    >>> wf.argmin(wf.tensor([[1.0, 5.0], [7.0, 4.0]]), axis=0, keepdims=True)
    tensor([[0, 1]])
    """
    if dim is not None or keepdim is not None:
        raise no_keyword("argmin", dim=dim, keepdim=keepdim)
    return _position(ops.argmin, x, axis, keepdims)


def _position(op: Op, x: Any, axis: Any, keepdims: Any) -> Tensor:
    v, kept = value(x), flag(keepdims, op.name)
    if isinstance(axis, (tuple, list)):
        raise ShapeError(op.name, expected="one axis, or None for all", got=str(axis))
    if axis is not None and v.type.ndim:
        return op(v, axes=(normalize_axis(axis, v.type.ndim, op.name),), keepdims=kept)
    if axis is not None:
        normalize_axis(axis, 0, op.name)
    out: Tensor = op(reshape(v, shape=(v.type.size,)), axes=(0,), keepdims=False)
    return reshape(out, shape=(1,) * v.type.ndim) if kept else out
