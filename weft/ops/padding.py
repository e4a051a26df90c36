"""Borders: of one number, or continuing the tensor. Widths are (before, after) for each axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ops.define import Op, Type, Value, register
from weft.ops.indexing import row_sum
from weft.ops.makers import like, wants_gradient
from weft.ops.movement import slice_
from weft.ops.samples import Sample, array
from weft.ops.scalar import Scalar, select
from weft.types import Shape, TensorType
from weft.types.dtype import DTYPES, float32, int64

Widths = tuple[tuple[int, int], ...]


def padded_shape(place: str, t: TensorType, widths: Widths) -> Shape:
    if len(widths) != t.ndim or any(min(w) < 0 for w in widths):
        raise ShapeError(place, expected=f"{t.ndim} pairs of widths of 0 or more", got=str(widths))
    return tuple(a + n + b for (a, b), n in zip(widths, t.shape, strict=True))


def _pad_type(x: TensorType, value: Type, *, widths: Widths) -> TensorType:
    if isinstance(value, TensorType) and value.shape:
        raise ShapeError("pad", expected="a number to pad with", got=str(value))
    return TensorType(padded_shape("pad", x, widths), x.dtype)


def _pad_at(i: Any, x: Any, value: Any, *, widths: Widths) -> Any:
    inside, place = None, []
    for j, n, (before, after) in zip(i, x.shape, widths, strict=True):
        place.append(j - before if before else j)
        if before or after:
            ok = place[-1] < n
            if before:
                ok = ok & (place[-1] >= 0)
            inside = ok if inside is None else inside & ok
    if inside is None:
        return x(place)
    return x(place, where=inside, otherwise=value(()).cast(x.dtype))


def _inner(g: Value, x: Value, widths: Widths) -> Value:
    starts = tuple(a for a, _ in widths)
    return slice_(g, starts=starts, sizes=x.type.shape, steps=(1,) * len(starts))  # type: ignore[no-any-return]


def _pad_vjp(g: Value, y: Value, x: Value, value: Any, *, widths: Widths) -> tuple[Any, ...]:
    def of_value() -> Value:
        return like(g, value) - like(_inner(g, x, widths), value)

    return (lambda: _inner(g, x, widths)), of_value if wants_gradient(value) else None


def _pad_samples() -> Iterator[Sample]:
    x = array((3, 5), float32)
    for widths in [((0, 0), (1, 2)), ((2, 1), (0, 0)), ((1, 0), (0, 40)), ((0, 0), (0, 0))]:
        yield Sample((x, 1.5), {"widths": widths})
    yield Sample((x, np.array(2.0, np.float32)), {"widths": ((1, 1), (1, 1))})
    yield Sample((array((3, 5), DTYPES[7]), 4), {"widths": ((1, 1), (0, 1))})
    yield Sample((array((0, 2), float32), 3.0), {"widths": ((1, 1), (0, 1))})
    yield Sample((x, 0.0), {"widths": ((1, 1),)}, ShapeError)
    yield Sample((x, 0.0), {"widths": ((1, 1), (-1, 0))}, ShapeError)


pad: Op = register(
    Op(
        "pad",
        _pad_type,
        at=_pad_at,
        vjp=_pad_vjp,
        onnx="Pad",
        samples=_pad_samples,
        reference=lambda x, value, *, widths: np.pad(x, widths, constant_values=value),
        doc="A border of one number around a tensor.",
    )
)

#: mode -> where in an axis of n elements position q of its extension comes from
_EXTENSIONS: dict[str, Callable[[Any, Any], Scalar]] = {
    "reflect": lambda q, n: select(q < 0, -q, select(q < n, q, 2 * (n - 1) - q)),
    "replicate": lambda q, n: select(q < 0, q.like(0), select(q < n, q, n - 1)),
    "circular": lambda q, n: select(q < 0, q + n, select(q < n, q, q - n)),
}
_NUMPY: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _extend_type(x: TensorType, *, widths: Widths, mode: str) -> TensorType:
    if mode not in _EXTENSIONS:
        raise ShapeError("pad", expected=f"one of {', '.join(_EXTENSIONS)}", got=repr(mode))
    shape = padded_shape("pad", x, widths)
    sizes: Any = x.shape
    for axis, (n, w) in enumerate(zip(sizes, widths, strict=True)):
        most = {"reflect": n - 1, "circular": n, "replicate": max(w) if n else 0}[mode]
        if max(w) > max(most, 0):
            raise ShapeError(
                "pad",
                expected=f"at most {max(most, 0)} {mode} elements at axis {axis} of {n}",
                got=str(w),
            )
    return TensorType(shape, x.dtype)


def _extend_at(i: Any, x: Any, *, widths: Widths, mode: str) -> Any:
    extension = _EXTENSIONS[mode]
    pairs = zip(i, x.shape, widths, strict=True)
    return x([extension(j - w[0], n) if max(w) else j for j, n, w in pairs])


def _extend_vjp(g: Value, y: Value, x: Value, *, widths: Widths, mode: str) -> tuple[Any, ...]:
    def cotangent() -> Value:
        out = g
        for axis, ((before, after), n) in enumerate(zip(widths, x.type.shape, strict=True)):
            if before or after:
                places = extended_places(size=n, before=before, after=after, mode=mode)
                shape = (*out.type.shape[:axis], n, *out.type.shape[axis + 1 :])
                out = row_sum(places, out, shape=shape, axis=axis)
        return out

    return (cotangent,)


def _extend_samples() -> Iterator[Sample]:
    for mode in _EXTENSIONS:
        for widths in [((0, 0), (1, 2)), ((2, 1), (0, 0)), ((1, 2), (3, 4)), ((0, 0), (0, 0))]:
            yield Sample((array((3, 5), float32),), {"widths": widths, "mode": mode})
    yield Sample(
        (array((3, 5), float32),), {"widths": ((3, 0), (0, 0)), "mode": "reflect"}, ShapeError
    )
    yield Sample(
        (array((3, 5), float32),), {"widths": ((1, 0), (6, 0)), "mode": "circular"}, ShapeError
    )
    yield Sample((array((0,), float32),), {"widths": ((1, 0),), "mode": "replicate"}, ShapeError)
    yield Sample((array((3,), float32),), {"widths": ((1, 0),), "mode": "mirror"}, ShapeError)


def _places_samples() -> Iterator[Sample]:
    for mode in _EXTENSIONS:
        yield Sample((), {"size": 5, "before": 2, "after": 3, "mode": mode})


def _extend_reference(x: Any, *, widths: Widths, mode: str) -> Any:
    return np.pad(x, widths, mode=_NUMPY[mode])


def _places_type(*, size: int, before: int, after: int, mode: str) -> TensorType:
    (n,) = _extend_type(TensorType((size,), int64), widths=((before, after),), mode=mode).shape
    return TensorType((n,), int64)


extend: Op = register(
    Op(
        "extend",
        _extend_type,
        at=_extend_at,
        vjp=_extend_vjp,
        samples=_extend_samples,
        reference=_extend_reference,
        doc="A border that continues the tensor: mirrored, repeating its ends, or going round.",
    )
)
extended_places: Op = register(
    Op(
        "extended_places",
        _places_type,
        at=lambda i, *, size, before, after, mode: _EXTENSIONS[mode](
            i[0] - before, i[0].like(0) + size
        ),
        reference=lambda *, size, before, after, mode: np.pad(
            np.arange(size), (before, after), mode=_NUMPY[mode]
        ),
        samples=_places_samples,
        doc="Where each element of an extended axis comes from.",
    )
)
