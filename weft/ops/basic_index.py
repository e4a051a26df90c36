"""Indexing by integers, slices and new axes: one view to read, one kernel to write.

A basic index is said per axis of the operand as (start, size, step), within bounds; `axes` lists
the result's axes in order: an axis of the operand, or -1 for a new axis of one element. An axis
that is not listed was indexed by an integer, its start.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.buffer import Layout
from weft.errors import ShapeError
from weft.ops.define import Op, Type, Value, register
from weft.ops.makers import like, wants_gradient
from weft.ops.samples import Sample, array
from weft.ops.scalar import select
from weft.types import Shape, TensorType, broadcast_shapes
from weft.types.dtype import float32, int8

Ints = tuple[int, ...]


def _shape(sizes: Ints, axes: Ints) -> Ints:
    return tuple(1 if a < 0 else sizes[a] for a in axes)


def _check(place: str, shape: Shape, starts: Ints, sizes: Ints, steps: Ints, axes: Ints) -> None:
    kept = [a for a in axes if a >= 0]
    if not len(shape) == len(starts) == len(sizes) == len(steps) or len(set(kept)) < len(kept):
        got = f"starts {starts}, sizes {sizes}, steps {steps}, axes {axes}"
        raise ShapeError(place, expected=f"an index of {len(shape)} axes", got=got)
    for axis, (n, a, k, s) in enumerate(zip(shape, starts, sizes, steps, strict=True)):
        if k and not (0 <= a < n and 0 <= a + (k - 1) * s < n):
            raise ShapeError(
                place,
                expected=f"indices within axis {axis} of {n}",
                got=f"start {a}, size {k}, step {s}",
            )
        if axis not in axes and k != 1:
            raise ShapeError(
                place, expected="axes left out to have one element", got=f"{k} of axis {axis}"
            )


def _index_type(t: TensorType, *, starts: Ints, sizes: Ints, steps: Ints, axes: Ints) -> TensorType:
    _check("index", t.shape, starts, sizes, steps, axes)
    return TensorType(_shape(sizes, axes), t.dtype)


def _index_view(
    x: Layout, *, starts: Ints, sizes: Ints, steps: Ints, axes: Ints
) -> tuple[Layout, int]:
    out = TensorType(_shape(sizes, axes), x.type.dtype)
    strides = [0 if a < 0 else x.strides[a] * steps[a] for a in axes]
    return Layout(out, strides), sum(
        a * s for a, s in zip(starts, x.strides, strict=True)
    ) if out.size else 0


def _index_at(i: Any, x: Any, *, starts: Ints, sizes: Ints, steps: Ints, axes: Ints) -> Any:
    place: list[Any] = list(starts)
    for j, a in zip(i, axes, strict=True):
        if a >= 0:
            place[a] = (j if steps[a] == 1 else j * steps[a]) + starts[a]
    return x(place)


def _inside(i: Any, sizes: Any, starts: Ints, steps: Ints, axes: Ints) -> tuple[Any, list[Any]]:
    """Whether index i lies in the region, and where: one index for each axis of the region."""
    inside, within = None, {}
    for axis, (j, a, s) in enumerate(zip(i, starts, steps, strict=True)):
        d = j - a
        if axis in axes:
            q = d if s == 1 else -d if s == -1 else d // s
            ok = (q >= 0) & (q < sizes[axis])
            if abs(s) != 1:
                ok = ok & (q * s).eq(d)
            within[axis] = q
        else:
            ok = d.eq(0)
        inside = ok if inside is None else inside & ok
    return inside, [0 if a < 0 else within[a] for a in axes]


def _unindex_at(i: Any, x: Any, *, shape: Shape, starts: Ints, steps: Ints, axes: Ints) -> Any:
    sizes = {a: n for a, n in zip(axes, x.shape, strict=True) if a >= 0}
    inside, place = _inside(i, sizes, starts, steps, axes)
    return x(place) if inside is None else x(place, where=inside, otherwise=0)


def _unindex_type(
    t: TensorType, *, shape: Shape, starts: Ints, steps: Ints, axes: Ints
) -> TensorType:
    named = [a for a in axes if a >= 0]
    if len(axes) != t.ndim or len(set(named)) < len(named) or any(a >= len(shape) for a in named):
        raise ShapeError("unindex", expected=f"distinct axes of {shape} for {t}", got=str(axes))
    if any(n != 1 for n, a in zip(t.shape, axes, strict=True) if a < 0):
        raise ShapeError("unindex", expected="one element along new axes", got=str(t))
    sizes: Any = dict(zip(axes, t.shape, strict=True))
    region = tuple(sizes.get(a, 1) for a in range(len(shape)))
    _check("unindex", shape, starts, region, steps, axes)
    return TensorType(shape, t.dtype)


def _assign_at(
    i: Any, x: Any, v: Any, *, starts: Ints, sizes: Ints, steps: Ints, axes: Ints
) -> Any:
    inside, place = _inside(i, sizes, starts, steps, axes)
    rest = place[len(place) - len(v.static) :]
    there = [0 if n == 1 else q for n, q in zip(v.static, rest, strict=True)]
    if inside is None:
        return v(there).cast(x.dtype)
    return select(inside, v(there, where=inside).cast(x.dtype), x(i, where=~inside))


def _assign_type(
    x: TensorType, v: Type, *, starts: Ints, sizes: Ints, steps: Ints, axes: Ints
) -> TensorType:
    _check("index assignment", x.shape, starts, sizes, steps, axes)
    region = _shape(sizes, axes)
    if (
        isinstance(v, TensorType)
        and broadcast_shapes(v.shape, region, place="index assignment") != region
    ):
        raise ShapeError(
            "index assignment", expected=f"a value that broadcasts to {region}", got=str(v)
        )
    return x


def _assign_vjp(g: Value, y: Value, x: Value, v: Any, **index: Any) -> tuple[Any, ...]:
    return (
        lambda: basic_assign(g, 0.0, **index),
        (lambda: like(basic_index(g, **index), v)) if wants_gradient(v) else None,
    )


def _grid(index: dict[str, Any], shape: Any) -> tuple[Any, ...]:
    """The same as NumPy would be told."""
    told = []
    for n, a, k, s in zip(shape, index["starts"], index["sizes"], index["steps"], strict=True):
        told.append(np.arange(a, a + k * s, s) if k else np.arange(0))
        assert not k or n
    return np.ix_(*told)


def _index_reference(x: Any, **index: Any) -> Any:
    out = x[_grid(index, x.shape)]
    return out.reshape(_shape(index["sizes"], index["axes"]))


def _unindex_reference(x: Any, *, shape: Any, starts: Ints, steps: Ints, axes: Ints) -> Any:
    sizes = tuple(dict(zip(axes, x.shape, strict=True)).get(a, 1) for a in range(len(shape)))
    out = np.zeros(shape, x.dtype)
    out[_grid({"starts": starts, "sizes": sizes, "steps": steps}, shape)] = x.reshape(sizes)
    return out


def _assign_reference(x: Any, v: Any, **index: Any) -> Any:
    out, region = np.array(x), _shape(index["sizes"], index["axes"])
    out[_grid(index, x.shape)] = np.broadcast_to(v, region).reshape(index["sizes"])
    return out


_INDICES: tuple[dict[str, Ints], ...] = (
    {"starts": (1, 0), "sizes": (3, 6), "steps": (1, 1), "axes": (0, 1)},
    {"starts": (4, 5), "sizes": (5, 3), "steps": (-1, -2), "axes": (0, 1)},
    {"starts": (2, 1), "sizes": (1, 2), "steps": (1, 3), "axes": (1,)},
    {"starts": (0, 3), "sizes": (5, 1), "steps": (1, 1), "axes": (-1, 0)},
    {"starts": (4, 5), "sizes": (1, 1), "steps": (1, 1), "axes": ()},
    {"starts": (0, 0), "sizes": (0, 6), "steps": (1, 1), "axes": (0, -1, 1)},
)
_OUTSIDE: dict[str, Ints] = {"starts": (0, 1), "sizes": (6, 2), "steps": (1, 3), "axes": (0, 1)}


def _index_samples() -> Iterator[Sample]:
    for index in _INDICES:
        yield Sample((array((5, 6), float32),), dict(index))
    yield Sample((array((5, 6), int8),), dict(_INDICES[0]))
    yield Sample((array((5, 6), float32),), _OUTSIDE, ShapeError)
    yield Sample((array((5, 6), float32),), _INDICES[0] | {"axes": (0,)}, ShapeError)


def _unindex_samples() -> Iterator[Sample]:
    for index in _INDICES:
        attrs = {"shape": (5, 6)} | {k: v for k, v in index.items() if k != "sizes"}
        yield Sample((array(_shape(index["sizes"], index["axes"]), float32),), attrs)
    good = {"shape": (5, 6), "starts": (1, 0), "steps": (1, 2), "axes": (0, 1)}
    x = array((2, 3), float32)
    for wrong in (
        {"starts": (4, 0)},
        {"steps": (1, 3)},
        {"axes": (0, 0)},
        {"axes": (0,)},
        {"axes": (0, -1)},
    ):
        yield Sample((x,), good | wrong, ShapeError)


def _assign_samples() -> Iterator[Sample]:
    for index in _INDICES:
        region = _shape(index["sizes"], index["axes"])
        yield Sample((array((5, 6), float32), array(region, float32, seed=1)), dict(index))
        yield Sample((array((5, 6), float32), array(region[1:], float32, seed=1)), dict(index))
        yield Sample((array((5, 6), float32), 2.5), dict(index))
    yield Sample((array((5, 6), int8), array((6,), float32, seed=1)), dict(_INDICES[0]))
    yield Sample((array((5, 6), float32), array((4,), float32)), dict(_INDICES[0]), ShapeError)
    yield Sample((array((5, 6), float32), array((2, 3, 6), float32)), dict(_INDICES[0]), ShapeError)


basic_index: Op = register(
    Op(
        "basic_index",
        _index_type,
        at=_index_at,
        view=_index_view,
        vjp=lambda g, y, x, *, starts, sizes, steps, axes: (
            lambda: _transposed(steps)(
                g, shape=x.type.shape, starts=starts, steps=steps, axes=axes
            ),
        ),
        reference=_index_reference,
        samples=_index_samples,
        doc="The elements that integers, slices and new axes pick.",
    )
)


def _transposed(steps: Ints) -> Op:
    """Where places need no division, one pass; else a pass of zeros and one that writes."""
    return basic_unindex if all(abs(s) == 1 for s in steps) else basic_spread


def _unindex_vjp(
    g: Value, y: Value, x: Value, *, shape: Shape, starts: Ints, steps: Ints, axes: Ints
) -> tuple[Any, ...]:
    sizes = _region(x, shape, axes)
    return (lambda: basic_index(g, starts=starts, sizes=sizes, steps=steps, axes=axes),)


basic_unindex: Op = register(
    Op(
        "basic_unindex",
        _unindex_type,
        at=_unindex_at,
        vjp=_unindex_vjp,
        reference=_unindex_reference,
        samples=_unindex_samples,
        doc="Elements put where a basic index says, among zeros: the transpose of basic_index.",
    )
)


basic_spread: Op = register(
    Op(
        "basic_spread",
        _unindex_type,
        extern="spread",
        vjp=_unindex_vjp,
        reference=_unindex_reference,
        samples=_unindex_samples,
        doc="The same as basic_unindex, by writing to places instead of asking each its source.",
    )
)


def _region(x: Value, shape: Shape, axes: Ints) -> Ints:
    sizes = dict(zip(axes, x.type.shape, strict=True))
    return tuple(sizes.get(a, 1) for a in range(len(shape)))  # type: ignore[misc]


basic_assign: Op = register(
    Op(
        "basic_assign",
        _assign_type,
        at=_assign_at,
        vjp=_assign_vjp,
        reference=_assign_reference,
        samples=_assign_samples,
        doc="The operand with the elements that a basic index picks replaced by a value.",
    )
)
