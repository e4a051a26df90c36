"""Windows that slide over the last axes: sums, largest elements, and where these are.

A window's element t at place o lies at o * stride + t * dilation - offset of its axis; beyond the
edges there is nothing. Taps are unrolled in the rules, strides and offsets are parameters of the
kernel. Conditions are said of o alone, so that a row falls into two edges and a middle without
conditions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ops import scalar as s
from weft.ops.define import Op, Value, register
from weft.ops.elementwise import isnan, maximum, where
from weft.ops.makers import composite
from weft.ops.movement import reshape
from weft.ops.reduction import narrowed, widened
from weft.ops.samples import Sample, array
from weft.ops.scalar import Scalar
from weft.ops.scatter import scatter_sum
from weft.types import TensorType
from weft.types.dtype import float32, float64, int32, int64

Ints = tuple[int, ...]

#: taps that one kernel unrolls at most
TAPS = 64
MANY = 2**24  # taps of a window, in however many pieces
#: coordinates are computed in 64 bits
_FAR = 2**62


def _window_type(
    place: str, t: Any, kernel: Ints, stride: Ints, offset: Ints, sizes: Ints, dilation: Ints
) -> TensorType:
    if t.dtype.kind == "b":
        raise DTypeError(place, expected="numbers", got="bool", hint="convert with .astype()")
    rank = len(kernel)

    def said() -> str:  # symbols are asked for their values only where there is something to say
        window = f"kernel {kernel}, stride {stride}, offset {offset}"
        return f"{window}, sizes {sizes}, dilation {dilation} of {t}"

    if not 0 < rank == len(stride) == len(offset) == len(sizes) == len(dilation) <= t.ndim:
        raise ShapeError(place, expected="as many of each as axes of windows", got=said())
    if min(*kernel, *stride, *dilation) < 1:
        raise ShapeError(place, expected="kernel, stride and dilation of 1 or more", got=said())
    for k, s_, o, m, d in zip(kernel, stride, offset, sizes, dilation, strict=True):
        if abs(o) + m * s_ + k * d > _FAR:
            raise ShapeError(place, expected="windows nearer than 2**62", got=said())
    return TensorType((*t.shape[: t.ndim - rank], *sizes), t.dtype)


def _unrolled_type(
    place: str, t: Any, kernel: Ints, stride: Ints, offset: Ints, sizes: Ints, dilation: Ints
) -> TensorType:
    if math.prod(kernel) > TAPS:
        raise ShapeError(place, expected=f"at most {TAPS} taps", got=f"kernel {kernel}")
    return _window_type(place, t, kernel, stride, offset, sizes, dilation)


def _taps(
    place: Any, shape: Any, kernel: Ints, stride: Ints, offset: Ints, dilation: Ints
) -> Iterator[Any]:
    """The coordinates of each tap, and whether they are inside."""
    axes = []
    for o, n, k, step, off, d in zip(place, shape, kernel, stride, offset, dilation, strict=True):
        one = []
        for t in range(k):
            zero = (
                s.const(0, int64) + off - s.const(t, int64) * d
            )  # o * step is at least this inside
            first, last = -(-zero // step), (zero + n - 1) // step
            one.append((o * step - zero, (o >= first) & (o <= last)))
        axes.append(one)
    for taps in itertools.product(*axes):
        inside = taps[0][1]
        for _, ok in taps[1:]:
            inside = inside & ok
        yield tuple(c for c, _ in taps), inside


def _windows(
    x: Any, kernel: Ints, stride: Ints, offset: Ints, dilation: Ints, sizes: Ints, fill: float
) -> Any:
    """NumPy: every window of x, its taps flattened on the last axis; `fill` outside."""
    rank = len(kernel)
    lead = x.shape[: x.ndim - rank]
    at = [
        np.arange(m)[:, None] * st + np.arange(k) * d - off
        for m, k, st, off, d in zip(sizes, kernel, stride, offset, dilation, strict=True)
    ]
    flat, inside = np.zeros((1, 1), np.int64), np.ones((1, 1), bool)
    for a, n in zip(at, x.shape[x.ndim - rank :], strict=True):
        flat = (flat[:, None, :, None] * n + a[None, :, None, :]).reshape(len(flat) * len(a), -1)
        ok = (a >= 0) & (a < n)
        inside = (inside[:, None, :, None] & ok[None, :, None, :]).reshape(len(flat), -1)
    planes = x.reshape(*lead, math.prod(x.shape[x.ndim - rank :]))
    out = np.where(inside, planes[..., np.where(inside, flat, 0)], np.asarray(fill, x.dtype))
    taps = math.prod(kernel)
    places = np.where(inside, flat, -1).reshape(*sizes, taps)
    return out.reshape(*lead, *sizes, taps), places


def _samples() -> Iterator[Sample]:
    x = array((2, 3, 7, 6), float32)
    one = {"kernel": (2, 3), "stride": (1, 1), "offset": (0, 0), "sizes": (6, 4)}
    yield Sample((x,), one)
    yield Sample((x,), one | {"stride": (2, 2), "offset": (1, 1), "sizes": (4, 3)})
    yield Sample(
        (x,), one | {"kernel": (3, 3), "stride": (3, 1), "offset": (1, 1), "sizes": (3, 6)}
    )
    yield Sample((x,), one | {"stride": (4, 5), "sizes": (2, 1)})
    yield Sample(
        (array((3, 40), float64),), {"kernel": (5,), "stride": (2,), "offset": (2,), "sizes": (20,)}
    )
    yield Sample(
        (array((2, 0, 4), float32),),
        {"kernel": (2,), "stride": (2,), "offset": (0,), "sizes": (2,)},
    )


def _dilated_samples() -> Iterator[Sample]:
    for sample in _samples():
        rank = len(sample.attrs["kernel"])
        yield Sample(sample.args, sample.attrs | {"dilation": (1,) * rank})
    attrs = {"kernel": (3,), "stride": (2,), "offset": (1,), "sizes": (7,), "dilation": (2,)}
    yield Sample((array((2, 18), float32),), attrs)
    yield Sample((array((2, 18), int32),), attrs)


def _long_samples() -> Iterator[Sample]:
    """Also of rows that are longer than vectors."""
    yield from _dilated_samples()
    attrs = {"kernel": (3, 3), "stride": (2, 2), "offset": (1, 1), "dilation": (1, 1)}
    yield Sample((array((2, 3, 9, 40), float32),), attrs | {"sizes": (5, 20)})
    yield Sample((array((2, 5, 21), float64),), attrs | {"stride": (1, 1), "sizes": (5, 21)})


# sums


def _sum_at(i: Any, x: Any, *, kernel: Ints, stride: Ints, offset: Ints, sizes: Ints) -> Scalar:
    rank, acc = len(kernel), None
    for at, inside in _taps(
        i[len(i) - rank :], x.shape[len(i) - rank :], kernel, stride, offset, (1,) * rank
    ):
        v = x((*i[: len(i) - rank], *at), where=inside, otherwise=0).cast(x.dtype.compute)
        acc = v if acc is None else acc + v
    return acc  # type: ignore[return-value]


def _sum_reference(x: Any, *, kernel: Ints, stride: Ints, offset: Ints, sizes: Ints) -> Any:
    return _windows(x, kernel, stride, offset, (1,) * len(kernel), sizes, 0)[0].sum(
        -1, dtype=x.dtype
    )


window_sum = register(
    Op(
        "window_sum",
        lambda t, *, kernel, stride, offset, sizes: _unrolled_type(
            "window_sum", t, kernel, stride, offset, sizes, (1,) * len(kernel)
        ),
        at=_sum_at,
        vjp=lambda g, y, x, *, kernel, stride, offset, sizes: (
            lambda: narrowed(
                window_spread(
                    widened(g), kernel=kernel, stride=stride, offset=offset, sizes=_last(x, kernel)
                ),
                x,
            ),
        ),
        reference=_sum_reference,
        samples=_samples,
        doc="The sum of each window; taps in row-major order.",
    )
)


def _spread_samples() -> Iterator[Sample]:
    for sample in _samples():
        x, a = sample.args[0], sample.attrs
        rank = len(a["kernel"])
        g = array((*x.shape[: x.ndim - rank], *a["sizes"]), float64).astype(x.dtype)
        yield Sample((g,), a | {"sizes": x.shape[x.ndim - rank :]})


def _spread_reference(g: Any, *, kernel: Ints, stride: Ints, offset: Ints, sizes: Ints) -> Any:
    rank = len(kernel)
    lead, places = g.shape[: g.ndim - rank], g.shape[g.ndim - rank :]
    blank = np.zeros(sizes, g.dtype)
    where = _windows(blank, kernel, stride, offset, (1,) * rank, places, 0)[1]
    where = where.reshape(math.prod(places), math.prod(kernel))
    out = np.zeros((math.prod(lead), math.prod(sizes) + 1), g.dtype)
    for k, at in enumerate(where):
        place: Any = (slice(None), at)
        np.add.at(out, place, g.reshape(math.prod(lead), len(where))[:, k, None])
    return out[:, :-1].reshape(*lead, *sizes)


def _spread_type(
    t: TensorType, *, kernel: Ints, stride: Ints, offset: Ints, sizes: Ints
) -> TensorType:
    if t.dtype.compute is not t.dtype or len(kernel) > 2:
        wanted = "one or two axes of windows, and no half type"
        raise DTypeError("window_spread", expected=wanted, got=f"{len(kernel)} of {t}")
    return _window_type("window_spread", t, kernel, stride, offset, sizes, (1,) * len(kernel))


window_spread: Op = register(
    Op(
        "window_spread",
        _spread_type,
        extern="window_spread",
        dense=True,
        vjp=lambda g, y, x, *, kernel, stride, offset, sizes: (
            lambda: window_sum(
                g, kernel=kernel, stride=stride, offset=offset, sizes=_last(x, kernel)
            ),
        ),
        reference=_spread_reference,
        samples=_spread_samples,
        doc="The transpose of window_sum: every element added to all places of its window.",
    )
)


def _last(x: Value, kernel: Ints) -> Any:
    return x.type.shape[x.type.ndim - len(kernel) :]


# largest elements


def _lowest(d: Any) -> float:
    return -math.inf if d.is_float else 0 if d.kind == "u" else -(2 ** (d.bits - 1))


def max_at(
    i: Any, x: Any, *, kernel: Ints, stride: Ints, offset: Ints, sizes: Ints, dilation: Ints
) -> Scalar:
    """Column after column of the window: of equal ones the last stays, of NaNs the first, whatever
    is compared with what first. Neighbours are, in as few steps after each other as there are.
    """
    rank, c = len(kernel), x.dtype.compute
    left: list[Scalar] = [
        x(
            (*i[: len(i) - rank], *at), where=inside, otherwise=s.const(_lowest(c), c).cast(x.dtype)
        ).cast(c)
        for at, inside in _taps(
            i[len(i) - rank :], x.shape[len(i) - rank :], kernel, stride, offset, dilation
        )
    ]
    number = {at: n for n, at in enumerate(itertools.product(*map(range, kernel)))}
    by_column = itertools.product(*map(range, reversed(kernel)))
    left = [left[number[at[::-1]]] for at in by_column]
    while len(left) > 1:
        pairs = [s.maximum(a, b) for a, b in itertools.pairwise(left)][::2]
        left = pairs + left[2 * len(pairs) :]
    return left[0]


def _argmax_at(
    i: Any, x: Any, *, kernel: Ints, stride: Ints, offset: Ints, sizes: Ints, dilation: Ints
) -> Scalar:
    """The first of the largest; of NaNs the last, as PyTorch has it."""
    rank, c = len(kernel), x.dtype.compute
    best, found = s.const(_lowest(c), c), s.const(-1, int64)
    for at, inside in _taps(
        i[len(i) - rank :], x.shape[len(i) - rank :], kernel, stride, offset, dilation
    ):
        v = x(
            (*i[: len(i) - rank], *at), where=inside, otherwise=s.const(_lowest(c), c).cast(x.dtype)
        ).cast(c)
        flat = at[0]
        for n, k in zip(x.shape[len(i) - rank + 1 :], at[1:], strict=True):
            flat = flat * n + k
        better = (v > best) | s.isnan(v) if c.is_float else v > best
        taken = inside & (better | (found < 0))
        best, found = s.select(taken, v, best), s.select(taken, flat, found)
    return found


def _max_reference(x: Any, *, dilation: Ints, **attrs: Any) -> Any:
    lowest = -np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
    return _windows(
        x, attrs["kernel"], attrs["stride"], attrs["offset"], dilation, attrs["sizes"], lowest
    )[0].max(-1)


def _argmax_reference(x: Any, *, dilation: Ints, **attrs: Any) -> Any:
    lowest = -np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
    values, at = _windows(
        x, attrs["kernel"], attrs["stride"], attrs["offset"], dilation, attrs["sizes"], lowest
    )
    at = np.broadcast_to(at, values.shape)
    return np.take_along_axis(at, values.argmax(-1)[..., None], -1)[..., 0]


def _max_vjp(g: Value, y: Value, x: Value, *, kernel: Ints, **attrs: Any) -> tuple[Any, ...]:
    def cotangent() -> Value:
        found = window_argmax(x, kernel=kernel, **attrs)
        return unpool(g, found, sizes=_last(x, kernel))

    return (cotangent,)


window_max = register(
    Op(
        "window_max",
        partial(_unrolled_type, "window_max"),
        extern="window_max",
        vjp=_max_vjp,
        reference=_max_reference,
        samples=_long_samples,
        doc="The largest element of each window, NaN if there is one; ties: the first counts.",
    )
)
window_argmax = register(
    Op(
        "window_argmax",
        lambda t, *, kernel, stride, offset, sizes, dilation: TensorType(
            _unrolled_type("window_argmax", t, kernel, stride, offset, sizes, dilation).shape, int64
        ),
        at=_argmax_at,
        reference=_argmax_reference,
        samples=_dilated_samples,
        doc="Where the largest element of each window is, in row-major order of its axes.",
    )
)


def unpool(g: Value, found: Value, *, sizes: Ints) -> Value:
    """Elements put, and where they meet added, at the places `window_argmax` gave; zeros
    elsewhere.
    """
    lead = g.type.shape[: g.type.ndim - len(sizes)]
    rows, taken = math.prod(lead), math.prod(g.type.shape[len(lead) :])
    flat = (rows, taken)
    out = scatter_sum(
        reshape(found, shape=flat), reshape(g, shape=flat), shape=(rows, math.prod(sizes)), axis=1
    )
    return reshape(out, shape=(*lead, *sizes))  # type: ignore[no-any-return]


# windows of more taps than one kernel unrolls: in pieces


def pieces(kernel: Ints) -> Iterator[tuple[Ints, Ints]]:
    """A window cut into parts of at most TAPS taps: (first tap, size) of each, in row-major order.

    >>> list(pieces((3, 40)))
    [((0, 0), (1, 40)), ((1, 0), (1, 40)), ((2, 0), (1, 40))]
    """
    if math.prod(kernel) > MANY:
        raise ShapeError("pooling", expected=f"windows of at most {MANY} taps", got=str(kernel))
    room, parts = TAPS, []
    for k in reversed(kernel):
        size = max(1, min(k, room))
        parts.append([(a, min(size, k - a)) for a in range(0, k, size)])
        room //= size
    for cut in itertools.product(*reversed(parts)):
        yield tuple(a for a, _ in cut), tuple(n for _, n in cut)


def _shifted(offset: Ints, first: Ints, dilation: Ints) -> Ints:
    return tuple(o - a * d for o, a, d in zip(offset, first, dilation, strict=True))


def large_window_sum(x: Value, *, kernel: Ints, stride: Ints, offset: Ints, sizes: Ints) -> Value:
    """window_sum of any size."""
    out, ones = None, (1,) * len(kernel)
    for first, part in pieces(kernel):
        y = window_sum(
            x, kernel=part, stride=stride, offset=_shifted(offset, first, ones), sizes=sizes
        )
        out = y if out is None else out + y
    return out  # type: ignore[return-value]


def large_window_argmax(
    x: Value, *, kernel: Ints, stride: Ints, offset: Ints, sizes: Ints, dilation: Ints
) -> tuple[Value, Value]:
    """window_max and window_argmax of any size."""
    best: Any = None
    found: Any = None
    for first, part in pieces(kernel):
        attrs = {"kernel": part, "stride": stride, "offset": _shifted(offset, first, dilation)}
        attrs |= {"sizes": sizes, "dilation": dilation}
        y, at = window_max(x, **attrs), window_argmax(x, **attrs)
        if best is None:
            best, found = y, at
            continue
        better = (y > best) | isnan(y) | (found < 0)
        best, found = where(better & (at >= 0), y, best), where(better & (at >= 0), at, found)
    return best, found


def _large_vjp(g: Value, y: Value, x: Value, *, kernel: Ints, **attrs: Any) -> tuple[Any, ...]:
    def cotangent() -> Value:
        _, found = large_window_argmax(x, kernel=kernel, **attrs)
        return unpool(g, found, sizes=_last(x, kernel))

    return (cotangent,)


def _large_samples() -> Iterator[Sample]:
    attrs: dict[str, Any] = {
        "kernel": (9, 9),
        "stride": (1, 2),
        "offset": (4, 4),
        "sizes": (12, 6),
        "dilation": (1, 1),
    }
    yield Sample((array((2, 12, 12), float32),), attrs)
    attrs = {"kernel": (70,), "stride": (3,), "offset": (0,), "sizes": (11,), "dilation": (1,)}
    yield Sample((array((100,), float32),), attrs)


@composite("large_window_max", vjp=_large_vjp, reference=_max_reference, samples=_large_samples)
def large_window_max(
    x: Value, *, kernel: Ints, stride: Ints, offset: Ints, sizes: Ints, dilation: Ints
) -> Value:
    """window_max of any size."""
    _window_type("large_window_max", x.type, kernel, stride, offset, sizes, dilation)
    out: Any = None
    for first, part in pieces(kernel):
        y = window_max(
            x,
            kernel=part,
            stride=stride,
            offset=_shifted(offset, first, dilation),
            sizes=sizes,
            dilation=dilation,
        )
        out = y if out is None else maximum(out, y)
    return out  # type: ignore[no-any-return]
