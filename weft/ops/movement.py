"""Moving elements without computing: reshape, permute, broadcast, slice, join, pad.

Most of these are views in eager mode (`view` gives the layout); `at` says the same as an index
function for kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from weft.buffer import Layout
from weft.errors import ShapeError
from weft.ops.define import Op, Value, register
from weft.ops.elementwise import astype
from weft.ops.makers import later
from weft.ops.samples import Sample, array
from weft.types import Shape, TensorType, broadcast_shapes
from weft.types.dtype import float32, int8

Viewed = tuple[Layout, int] | None


# reshape


def _reshape_type(t: TensorType, *, shape: Shape) -> TensorType:
    if math.prod(shape) != t.size:
        raise ShapeError(
            "reshape", expected=f"a shape of {t.size} elements", got=f"{tuple(shape)} for {t}"
        )
    return TensorType(shape, t.dtype)


def _reshape_view(layout: Layout, *, shape: Shape) -> Viewed:
    out = TensorType(shape, layout.type.dtype)
    if layout.is_dense:
        return Layout.dense(out), 0
    strides = _split_strides(layout, shape)  # type: ignore[arg-type]
    return None if strides is None else (Layout(out, strides), 0)


def _split_strides(layout: Layout, shape: tuple[int, ...]) -> list[int] | None:
    """Strides that lay `shape` over memory of `layout`, or None where only a copy can."""
    old = [(n, s) for n, s in zip(layout.type.shape, layout.strides, strict=True) if n != 1]
    runs: list[list[int]] = []  # joined axes: [size, stride of the last]
    for n, s in old:
        if runs and runs[-1][1] == n * s:
            runs[-1] = [runs[-1][0] * n, s]  # type: ignore[list-item]
        else:
            runs.append([n, s])  # type: ignore[list-item]
    strides: list[int] = []
    for n in reversed(shape):
        if n == 1:
            strides.append(1)
            continue
        while runs and runs[-1][0] == 1:
            runs.pop()
        if not runs or runs[-1][0] % n:
            return None
        strides.append(runs[-1][1])
        runs[-1] = [runs[-1][0] // n, runs[-1][1] * n]
    return strides[::-1]


def _reshape_at(i: Any, x: Any, *, shape: Shape) -> Any:
    flat: Any = i[0] if i else None
    for n, j in zip(shape[1:], i[1:], strict=True):
        flat = flat * n + j
    return x(_unravel(flat, x.shape))


def _unravel(flat: Any, shape: Any) -> tuple[Any, ...]:
    out = []
    for n in reversed(shape[1:]):
        out.append(flat % n)
        flat = flat // n
    return (flat, *reversed(out)) if shape else ()


def _reshape_samples() -> Iterator[Sample]:
    x = array((2, 3, 4), float32)
    for shape in [(24,), (6, 4), (2, 12), (1, 2, 3, 4, 1)]:
        yield Sample((x,), {"shape": shape})
        yield Sample((x.transpose(2, 0, 1),), {"shape": shape})
    yield Sample((array((0, 3), float32),), {"shape": (3, 0)})
    yield Sample((array((), float32),), {"shape": (1, 1)})
    yield Sample((x,), {"shape": (5, 5)}, ShapeError)


reshape: Op = register(
    Op("reshape", _reshape_type, at=_reshape_at, view=_reshape_view, onnx="Reshape",
       vjp=lambda g, y, x, *, shape: (reshape(g, shape=x.type.shape),),
       reference=lambda x, *, shape: x.reshape(shape), samples=_reshape_samples,
       doc="The same elements in row-major order under another shape.")
)  # fmt: skip


alias = register(
    Op("alias", lambda t: t, at=lambda i, x: x(i), view=lambda l: (l, 0), onnx="Identity",
       vjp=lambda g, y, x: (g,), reference=lambda x: x,
       samples=lambda: iter([Sample((array((2, 3), float32),))]),
       doc="The same value under another name: where a gradient can end.")
)  # fmt: skip

again = register(
    Op("again", lambda t: t, at=lambda i, x: x(i), view=lambda l: (l, 0), onnx="Identity",
       vjp=lambda g, y, x: (g,), reference=lambda x: x,
       samples=lambda: iter([Sample((array((2, 3), float32),))]),
       doc="The same value, for computing something a second time: a compiled program does not "
           "take what is computed from it for what was computed before.")
)  # fmt: skip


# permute


def _permute_type(t: TensorType, *, axes: tuple[int, ...]) -> TensorType:
    if sorted(axes) != list(range(t.ndim)):
        raise ShapeError(
            "permute_dims", expected=f"a permutation of 0..{t.ndim - 1}", got=str(axes)
        )
    return TensorType([t.shape[a] for a in axes], t.dtype)


def _permute_view(layout: Layout, *, axes: tuple[int, ...]) -> Viewed:
    out = _permute_type(layout.type, axes=axes)
    return Layout(out, [layout.strides[a] for a in axes]), 0


def _permute_samples() -> Iterator[Sample]:
    x = array((2, 3, 4), float32)
    for axes in [(0, 1, 2), (2, 0, 1), (1, 0, 2), (2, 1, 0)]:
        yield Sample((x,), {"axes": axes})
    yield Sample((array((33, 70), int8),), {"axes": (1, 0)})
    yield Sample((x,), {"axes": (0, 1)}, ShapeError)
    yield Sample((x,), {"axes": (0, 1, 1)}, ShapeError)


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


permute_dims: Op = register(
    Op("permute_dims", _permute_type, onnx="Transpose",
       at=lambda i, x, *, axes: x(tuple(i[a] for a in _inverse(axes))),
       view=_permute_view,
       vjp=lambda g, y, x, *, axes: (permute_dims(g, axes=_inverse(axes)),),
       reference=lambda x, *, axes: x.transpose(axes), samples=_permute_samples,
       doc="The axes in another order.")
)  # fmt: skip


# broadcast


def _broadcast_type(t: TensorType, *, shape: Shape) -> TensorType:
    if broadcast_shapes(t.shape, shape, place="broadcast_to") != tuple(shape):
        raise ShapeError("broadcast_to", expected=f"a shape that {t} broadcasts to", got=str(shape))
    return TensorType(shape, t.dtype)


def _broadcast_view(layout: Layout, *, shape: Shape) -> Viewed:
    own = [0 if n == 1 else s for n, s in zip(layout.type.shape, layout.strides, strict=True)]
    lead = len(shape) - len(own)
    strides = [0] * lead + own
    return Layout(TensorType(shape, layout.type.dtype), strides), 0


def _broadcast_at(i: Any, x: Any, *, shape: Shape) -> Any:
    own = i[len(i) - len(x.static) :]
    return x(tuple(0 if n == 1 else j for n, j in zip(x.static, own, strict=True)))


def _broadcast_samples() -> Iterator[Sample]:
    yield Sample((array((3, 1), float32),), {"shape": (2, 3, 4)})
    yield Sample((array((), float32),), {"shape": (5,)})
    yield Sample((array((1, 3), float32),), {"shape": (0, 3)})
    yield Sample((array((3,), float32),), {"shape": (4,)}, ShapeError)
    yield Sample((array((2, 3), float32),), {"shape": (3,)}, ShapeError)


broadcast_to = register(
    Op("broadcast_to", _broadcast_type, view=_broadcast_view, onnx="Expand",
       at=_broadcast_at,
       vjp=lambda g, y, x, *, shape: (later.like(g, x),),
       reference=lambda x, *, shape: np.broadcast_to(x, shape), samples=_broadcast_samples,
       doc="Axes of one element repeated to a shape.")
)  # fmt: skip


# slice: (start, length, step) per axis, already within bounds


def _slice_type(t: TensorType, *, starts: Any, sizes: Any, steps: Any) -> TensorType:
    if not t.ndim == len(starts) == len(sizes) == len(steps):
        got = f"starts {starts}, sizes {sizes}, steps {steps} of {t}"
        raise ShapeError("slice", expected=f"{t.ndim} starts, sizes and steps", got=got)
    for n, a, k, s in zip(t.shape, starts, sizes, steps, strict=True):
        if k and not (0 <= a < n and 0 <= a + (k - 1) * s < n):
            raise ShapeError(
                "slice",
                expected=f"indices within an axis of {n}",
                got=f"start {a}, size {k}, step {s}",
            )
    return TensorType(sizes, t.dtype)


def _slice_view(layout: Layout, *, starts: Any, sizes: Any, steps: Any) -> Viewed:
    strides = [s * k for s, k in zip(layout.strides, steps, strict=True)]
    out = TensorType(sizes, layout.type.dtype)
    offset = sum(a * s for a, s in zip(starts, layout.strides, strict=True)) if out.size else 0
    return Layout(out, strides), offset


def _slice_at(i: Any, x: Any, *, starts: Any, sizes: Any, steps: Any) -> Any:
    return x(tuple(j * s + a for j, a, s in zip(i, starts, steps, strict=True)))


def _slice_samples() -> Iterator[Sample]:
    x = array((5, 6), float32)
    yield Sample((x,), {"starts": (1, 0), "sizes": (3, 6), "steps": (1, 1)})
    yield Sample((x,), {"starts": (4, 5), "sizes": (5, 3), "steps": (-1, -2)})
    yield Sample((x,), {"starts": (0, 1), "sizes": (0, 2), "steps": (1, 3)})
    yield Sample((x,), {"starts": (0, 1), "sizes": (6, 2), "steps": (1, 3)}, ShapeError)


def _slice_reference(x: Any, *, starts: Any, sizes: Any, steps: Any) -> Any:
    return x[np.ix_(*(a + np.arange(n) * s for a, n, s in zip(starts, sizes, steps, strict=True)))]


slice_ = register(
    Op("slice", _slice_type, view=_slice_view, onnx="Slice",
       at=_slice_at,
       vjp=lambda g, y, x, *, starts, sizes, steps: (
           unslice(g, shape=x.type.shape, starts=starts, steps=steps),),
       reference=_slice_reference, samples=_slice_samples, doc="A regular grid of elements.")
)  # fmt: skip


def _unslice_at(i: Any, x: Any, *, shape: Shape, starts: Any, steps: Any) -> Any:
    """Element i of the result comes from (i - start) / step, where that is whole and within x."""
    inside, index = None, []
    for j, a, s, n in zip(i, starts, steps, x.shape, strict=True):
        d = j - a
        q = d if s == 1 else -d if s == -1 else d // s
        ok = (q >= 0) & (q < n)
        if abs(s) != 1:
            ok = ok & (d % s).eq(0)
        inside = ok if inside is None else inside & ok
        index.append(q)
    return x(tuple(index), where=inside, otherwise=0)


def _unslice_samples() -> Iterator[Sample]:
    x = array((2, 3), float32)
    yield Sample((x,), {"shape": (5, 6), "starts": (1, 0), "steps": (1, 2)})
    yield Sample((x,), {"shape": (5, 6), "starts": (4, 5), "steps": (-1, -2)})


def _unslice_reference(x: Any, *, shape: tuple[int, ...], starts: Any, steps: Any) -> Any:
    out = np.zeros(shape, x.dtype)
    out[np.ix_(*(a + np.arange(n) * s for a, n, s in zip(starts, x.shape, steps, strict=True)))] = x
    return out


def _unslice_type(t: TensorType, *, shape: Shape, starts: Any, steps: Any) -> TensorType:
    out = TensorType(shape, t.dtype)
    _slice_type(out, starts=starts, sizes=t.shape, steps=steps)
    return out


unslice: Op = register(
    Op("unslice", _unslice_type, at=_unslice_at,
       vjp=lambda g, y, x, *, shape, starts, steps: (
           slice_(g, starts=starts, sizes=x.type.shape, steps=steps),),
       reference=_unslice_reference, samples=_unslice_samples,
       doc="Elements put on a regular grid of zeros: the transpose of slice.")
)  # fmt: skip


@lru_cache(maxsize=4096)
def _spread_axes(have: Shape, want: Shape) -> tuple[int, ...]:
    """The axes along which `want` was repeated to give `have`."""
    lead = len(have) - len(want)
    pairs = enumerate(zip(want, have[lead:], strict=True), lead)
    return (*range(lead), *(k for k, (n, m) in pairs if n != m and n == 1))


def _equal(a: Shape, b: Shape) -> bool:
    """Whether shapes are; sizes that may be symbols are compared only where the ranks agree."""
    return len(a) == len(b) and a == b


def _like(g: Value, x: Value) -> Value:
    """Sum a cotangent back to the shape of the operand it belongs to, in the operand's dtype."""
    have, want = g.type, x.type
    if not _equal(have.shape, want.shape):
        axes = _spread_axes(have.shape, want.shape)
        if axes:
            g = later.sum(g, axes=axes, keepdims=False)
        if not _equal(g.type.shape, want.shape):
            g = reshape(g, shape=want.shape)
    return g if have.dtype is want.dtype else astype(g, dtype=want.dtype)


later.like = _like
