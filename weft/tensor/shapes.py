"""Functions that change a tensor's shape and leave its elements alone. Most share memory with their
operand.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft.buffer import Buffer
from weft.errors import ShapeError
from weft.ops import movement as ops
from weft.ops.define import installed
from weft.ops.elementwise import copy as copied
from weft.tensor.arguments import flag, remember, sizes, value
from weft.tensor.elsewhere import no_keyword
from weft.types import broadcast_shapes, normalize_axes, normalize_axis

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

#: a look-up that misses: no tensor, no such plan, nothing to look up by, an array that hides its
#: data; (2.0, 3) finds what (2, 3) left, but is no shape: `math.gcd` takes integers only
_MISSING = (KeyError, AttributeError, TypeError, ValueError)


def reshape(x: Any, shape: Any, *, copy: bool | None = None) -> Tensor:
    """The same elements in row-major order under another shape; one size may be -1, for what is
    left.

    With `copy=True` the result has memory of its own; with `copy=False` it must share its
    operand's.

    >>> import weft as wf
    >>> wf.reshape(wf.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if copy is None:
        try:
            plan = ops.reshape.plans[x.data.layout, shape]
            math.gcd(*shape) if shape.__class__ is tuple else math.gcd(shape)
        except _MISSING:
            return _reshape(x, shape, shape)
        return installed.launch(plan, x)
    v = value(x)
    out = _reshape(v, shape, shape)
    if flag(copy, "reshape"):
        return copied(out)
    if isinstance(v.data, Buffer) and ops.reshape.view(v.data.layout, shape=out.type.shape) is None:  # type: ignore[misc]
        raise ShapeError(
            "reshape", expected="a shape that needs no copy", got=f"{shape} for {v.data.layout}"
        )
    return out


def reshape_method(x: Any, *shape: Any) -> Any:
    """The same elements in row-major order under another shape: `x.reshape(2, -1)` or
    `x.reshape((2, -1))`.
    """
    try:
        plan = ops.reshape.plans[x.data.layout, shape]
        math.gcd(*(shape[0] if shape and shape[0].__class__ is tuple else shape))
    except _MISSING:
        return _reshape(x, shape[0] if len(shape) == 1 else shape, shape)
    return installed.launch(plan, x)


def _reshape(x: Any, shape: Any, said: Any) -> Tensor:
    v, whole = value(x), sizes(shape, "reshape")
    if -1 in whole:
        rest = math.prod(n for n in whole if n != -1)
        if whole.count(-1) > 1 or not rest or v.type.size % rest:
            hint = (
                "at most one size may be -1"
                if whole.count(-1) > 1
                else "-1 must stand for a whole number"
            )
            raise ShapeError(
                "reshape", expected=f"a shape of {v.type.size} elements", got=str(whole), hint=hint
            )
        whole = tuple(v.type.size // rest if n == -1 else n for n in whole)
    out: Tensor = ops.reshape(v, shape=whole)
    remember(ops.reshape, v, (said,), (whole,))
    return out


def permute_dims(x: Any, axes: Any) -> Tensor:
    """The axes in another order.

    >>> import weft as wf
    >>> wf.permute_dims(wf.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    try:
        plan = ops.permute_dims.plans[x.data.layout, axes]
        math.gcd(*axes) if axes.__class__ is tuple else math.gcd(axes)
    except _MISSING:
        v = value(x)
        order = tuple(
            normalize_axis(a, v.type.ndim, "permute_dims") for a in sizes(axes, "permute_dims")
        )
        out = ops.permute_dims(v, axes=order)
        remember(ops.permute_dims, v, (axes,), (order,))
        return out
    return installed.launch(plan, x)


def permute_method(x: Any, *axes: Any) -> Any:
    """The axes in another order: `x.permute_dims(2, 0, 1)` or `x.permute_dims((2, 0, 1))`."""
    return permute_dims(x, axes[0] if len(axes) == 1 else axes)


def matrix_transpose(x: Any) -> Tensor:
    """The last two axes swapped.

    >>> import weft as wf
    >>> wf.matrix_transpose(wf.tensor([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """
    n = value(x).type.ndim
    if n < 2:
        raise ShapeError("matrix_transpose", expected="at least two axes", got=str(value(x).type))
    return permute_dims(x, (*range(n - 2), n - 1, n - 2))


def moveaxis(x: Any, source: Any, destination: Any) -> Tensor:
    """Some axes put elsewhere; the others keep their order.

    >>> import weft as wf
    >>> wf.moveaxis(wf.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    v = value(x)
    pairs = []
    for axes in (source, destination):
        order = [normalize_axis(a, v.type.ndim, "moveaxis") for a in sizes(axes, "moveaxis")]
        if len(set(order)) < len(order):
            raise ShapeError("moveaxis", expected="distinct axes", got=str(axes))
        pairs.append(order)
    if len(pairs[0]) != len(pairs[1]):
        raise ShapeError(
            "moveaxis", expected="as many destinations as sources", got=f"{source}, {destination}"
        )
    order = [a for a in range(v.type.ndim) if a not in pairs[0]]
    for to, a in sorted(zip(pairs[1], pairs[0], strict=True)):
        order.insert(to, a)
    return permute_dims(v, tuple(order))


def squeeze(x: Any, axis: Any = None, dim: None = None) -> Tensor:
    """Without axes of one element: those named, or all of them.

    >>> import weft as wf
    >>> wf.squeeze(wf.zeros((1, 3, 1)), axis=0).shape, wf.squeeze(wf.zeros((1, 3, 1))).shape
    ((3, 1), (3,))
    """
    if dim is not None:
        raise no_keyword("squeeze", dim=dim)
    v = value(x)
    shape = v.type.shape
    if axis is None:
        gone = tuple(i for i, n in enumerate(shape) if n == 1)
    else:
        gone = normalize_axes(axis, len(shape), "squeeze")
        if wide := [a for a in gone if shape[a] != 1]:
            raise ShapeError(
                "squeeze", expected="axes of one element", got=f"axes {wide} of {v.type}"
            )
    return ops.reshape(v, shape=tuple(n for i, n in enumerate(shape) if i not in gone))


def expand_dims(x: Any, axis: Any = 0) -> Tensor:
    """With new axes of one element, so that they stand at the places named.

    >>> import weft as wf
    >>> wf.expand_dims(wf.zeros((3,)), axis=-1).shape
    (3, 1)
    """
    v = value(x)
    new = sizes(axis, "expand_dims")
    places = normalize_axes(new, v.type.ndim + len(new), "expand_dims")
    shape = list(v.type.shape)
    for p in places:
        shape.insert(p, 1)
    return ops.reshape(v, shape=tuple(shape))


def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Axes start_dim to end_dim (both included) as one, in row-major order.

    >>> import weft as wf
    >>> wf.flatten(wf.zeros((2, 3, 4)), start_dim=1).shape
    (2, 12)
    """
    v = value(x)
    shape = v.type.shape or (1,)
    first, last = (normalize_axis(a, len(shape), "flatten") for a in (start_dim, end_dim))
    if first > last:
        raise ShapeError(
            "flatten", expected="start_dim <= end_dim", got=f"{start_dim} and {end_dim}"
        )
    joined = math.prod(shape[first : last + 1])
    return ops.reshape(v, shape=(*shape[:first], joined, *shape[last + 1 :]))


def broadcast_to(x: Any, shape: Any) -> Tensor:
    """Axes of one element, and missing leading axes, repeated to a shape. No element is copied.

    >>> import weft as wf
    >>> wf.broadcast_to(wf.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return ops.broadcast_to(value(x), shape=sizes(shape, "broadcast_to"))


def broadcast_arrays(*xs: Any) -> tuple[Tensor, ...]:
    """All operands, broadcast to their common shape.

    >>> import weft as wf
    >>> [x.shape for x in wf.broadcast_arrays(wf.zeros((3, 1)), wf.zeros(4))]
    [(3, 4), (3, 4)]
    """
    vs = [value(x) for x in xs]
    shape = broadcast_shapes(*(v.type.shape for v in vs), place="broadcast_arrays")
    return tuple(ops.broadcast_to(v, shape=shape) for v in vs)


def unstack(x: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, without it.

    >>> import weft as wf
    >>> wf.unstack(wf.tensor([[1, 2], [3, 4]]), axis=1)
    (tensor([1, 3]), tensor([2, 4]))
    """
    v = value(x)
    shape = v.type.shape
    a = normalize_axis(axis, len(shape), "unstack")
    sized = tuple(1 if i == a else n for i, n in enumerate(shape))
    rest = tuple(n for i, n in enumerate(shape) if i != a)
    steps = (1,) * len(shape)
    starts = [tuple(k if i == a else 0 for i in range(len(shape))) for k in range(shape[a])]  # type: ignore[arg-type]
    return tuple(
        ops.reshape(ops.slice_(v, starts=s, sizes=sized, steps=steps), shape=rest) for s in starts
    )
