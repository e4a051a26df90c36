"""Folding axes: sum, prod, max, min, any, all, argmax, argmin, and the statistics said with them.

The order in which elements meet is part of the contract: see docs/numerics.md.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ops.define import Op, Value, register
from weft.ops.elementwise import astype, divide, equal, sqrt, where
from weft.ops.makers import composite, later
from weft.ops.monoids import MONOIDS, PLACES
from weft.ops.movement import broadcast_to, reshape
from weft.ops.samples import Sample, array
from weft.types import DType, Shape, TensorType
from weft.types.dtype import DTYPES, bool_, float32, int64, uint64
from weft.types.size import as_float

Axes = tuple[int, ...]


def folded_shape(shape: Shape, axes: Axes, keepdims: bool) -> Shape:
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def check_axes(place: str, t: TensorType, axes: Axes) -> None:
    if len(set(axes)) < len(axes) or not builtins.all(0 <= a < t.ndim for a in axes):
        raise ShapeError(place, expected=f"distinct axes of {t}", got=str(axes))


def restore(g: Value, x: Value, axes: Axes) -> Value:
    """A folded value spread over the axes it was folded from."""
    kept = reshape(g, shape=folded_shape(x.type.shape, axes, True))
    out: Value = broadcast_to(kept, shape=x.type.shape)
    return out


def accumulated(dtype: DType) -> DType:
    """What sums and products of a dtype are: the array API's defaults, 64 bits for integers."""
    return dtype if dtype.is_float else uint64 if dtype.kind == "u" else int64


def fold(
    name: str,
    gives: Callable[[DType], DType],
    vjp: Callable[..., Any] | None = None,
    *,
    kinds: str = "fiub",
    empty: bool = True,
    onnx: Any = None,
    reference: Any = None,
    doc: str = "",
) -> Op:
    """A reduction over `axes` by a monoid of `weft.ops.monoids`. `empty`: whether it has a value
    for no elements.
    """
    if name not in MONOIDS and name not in PLACES:
        raise ValueError(f"fold {name!r}: no monoid of weft/ops/monoids.py")

    def infer(t: TensorType, *, axes: Axes, keepdims: bool) -> TensorType:
        check_axes(name, t, axes)
        if t.dtype.kind not in kinds:
            raise DTypeError(
                name, expected="numbers", got=t.dtype.name, hint="convert with .astype()"
            )
        if not empty and math.prod(t.shape[a] for a in axes) == 0:
            raise ShapeError(
                name, expected="at least one element to reduce", got=f"{t} over axes {axes}"
            )
        return TensorType(folded_shape(t.shape, axes, keepdims), gives(t.dtype))

    def samples() -> Iterator[Sample]:
        span = (-1.3, 1.3) if name == "prod" else (-3.0, 3.0)
        x = array((3, 4, 5), float32, span)
        for axes in [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2), ()]:
            if axes and (len(axes) == 1 or name not in PLACES):
                yield Sample((x,), {"axes": axes, "keepdims": len(axes) == 1})
        for d in DTYPES:
            if d.kind in kinds:
                yield Sample((array((3, 70), d, span),), {"axes": (1,), "keepdims": False})
                yield Sample((array((33, 3), d, span),), {"axes": (0,), "keepdims": False})
        yield Sample(
            (array((0, 3), float32),),
            {"axes": (0,), "keepdims": False},
            None if empty else ShapeError,
        )

    return register(
        Op(name, infer, fold=name, vjp=vjp, onnx=onnx, samples=samples, doc=doc,
           reference=reference or _reference(name, gives))
    )  # fmt: skip


def _reference(name: str, gives: Callable[[DType], DType]) -> Callable[..., Any]:
    f = getattr(np, name)

    def run(x: Any, *, axes: Axes, keepdims: bool) -> Any:
        return f(x, axis=axes[0] if name in PLACES else axes, keepdims=keepdims)

    return run


def _same(d: DType) -> DType:
    return d


def _pick_vjp(g: Value, y: Value, x: Value, *, axes: Axes, keepdims: bool) -> tuple[Any, ...]:
    """Ties share the cotangent evenly."""

    def cotangent() -> Any:
        mask = equal(x, restore(y, x, axes))
        count = sum(astype(mask, dtype=x.type.dtype), axes=axes, keepdims=keepdims)
        return where(mask, restore(divide(g, count), x, axes), 0.0)

    return (cotangent,)


def _prod_vjp(g: Value, y: Value, x: Value, *, axes: Axes, keepdims: bool) -> tuple[Any, ...]:
    """y / x where no factor is zero; where exactly one is, the product of the others, for that
    one.
    """

    def cotangent() -> Any:
        zero = equal(x, 0.0)
        zeros = sum(astype(zero, dtype=x.type.dtype), axes=axes, keepdims=keepdims)
        others = prod(where(zero, 1.0, x), axes=axes, keepdims=keepdims)
        single = where(equal(zeros, 1.0), g * others, 0.0)
        regular = where(equal(zeros, 0.0), g * y, 0.0)
        return where(
            zero, restore(single, x, axes), divide(restore(regular, x, axes), where(zero, 1.0, x))
        )

    return (cotangent,)


sum = fold(
    "sum", accumulated, lambda g, y, x, *, axes, keepdims: (lambda: restore(g, x, axes),),
    onnx="ReduceSum", doc="The sum of the elements.")  # fmt: skip
prod = fold("prod", accumulated, _prod_vjp, onnx="ReduceProd", doc="The product of the elements.")
max = fold(
    "max",
    _same,
    _pick_vjp,
    empty=False,
    onnx="ReduceMax",
    doc="The largest element; NaN if there is one.",
)
min = fold(
    "min",
    _same,
    _pick_vjp,
    empty=False,
    onnx="ReduceMin",
    doc="The smallest element; NaN if there is one.",
)
any = fold("any", lambda d: bool_, doc="Whether some element is not zero.")
all = fold("all", lambda d: bool_, doc="Whether no element is zero.")
argmax = fold(
    "argmax", lambda d: int64, empty=False, onnx="ArgMax", doc="Where the first largest element is."
)
argmin = fold(
    "argmin",
    lambda d: int64,
    empty=False,
    onnx="ArgMin",
    doc="Where the first smallest element is.",
)

later.sum = sum


def _count(x: Value, axes: Axes) -> float:
    return as_float(math.prod(x.type.shape[a] for a in axes))


def _left(x: Value, axes: Axes, correction: float) -> float:
    """The count without the correction; 0 if that is more."""
    count: Any = math.prod(x.type.shape[a] for a in axes)
    if correction and count < correction:
        return 0.0
    return _count(x, axes) - correction


def floating(x: Value) -> Value:
    return x if x.type.dtype.is_float else astype(x, dtype=float32)


def widened(x: Value) -> Value:
    """In the dtype ops compute in, so that a composite over a half type rounds once, at its end."""
    return x if x.type.dtype.compute is x.type.dtype else astype(x, dtype=x.type.dtype.compute)


def narrowed(y: Value, x: Value) -> Value:
    return y if y.type.dtype is x.type.dtype else astype(y, dtype=x.type.dtype)


def _stat_samples() -> Iterator[Sample]:
    for axes in [(0,), (2,), (1, 2), (0, 1, 2)]:
        yield Sample((array((3, 4, 70), float32),), {"axes": axes, "keepdims": False})
    for d in DTYPES:
        if d.is_float:
            yield Sample((array((3, 5), d),), {"axes": (1,), "keepdims": True})


@composite("mean",
           vjp=lambda g, y, x, *, axes, keepdims: (lambda: restore(g / _count(x, axes), x, axes),),
           reference=lambda x, *, axes, keepdims: np.mean(x, axis=axes, keepdims=keepdims),
           samples=_stat_samples, onnx="ReduceMean")  # fmt: skip
def mean(x: Value, *, axes: Axes, keepdims: bool) -> Value:
    """The sum divided by the number of elements."""
    check_axes("mean", x.type, axes)
    return narrowed(sum(widened(x), axes=axes, keepdims=keepdims) / _count(x, axes), x)


def _var_samples() -> Iterator[Sample]:
    for s in _stat_samples():
        yield Sample(s.args, s.attrs | {"correction": 0.0})
        yield Sample(s.args, s.attrs | {"correction": 1.0})


@composite("var", samples=_var_samples,
           reference=lambda x, *, axes, keepdims, correction: np.var(
               x, axis=axes, keepdims=keepdims, ddof=correction))  # fmt: skip
def var(x: Value, *, axes: Axes, keepdims: bool, correction: float) -> Value:
    """The mean squared distance from the mean, over n - correction, which is at least 0."""
    check_axes("var", x.type, axes)
    w = widened(x)
    d = w - sum(w, axes=axes, keepdims=True) / _count(x, axes)
    return narrowed(sum(d * d, axes=axes, keepdims=keepdims) / _left(x, axes, correction), x)


@composite("std", samples=_var_samples,
           reference=lambda x, *, axes, keepdims, correction: np.std(
               x, axis=axes, keepdims=keepdims, ddof=correction))  # fmt: skip
def std(x: Value, *, axes: Axes, keepdims: bool, correction: float) -> Value:
    """The square root of the variance."""
    return narrowed(sqrt(var(widened(x), axes=axes, keepdims=keepdims, correction=correction)), x)
