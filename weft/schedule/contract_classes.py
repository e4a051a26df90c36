"""Windows that skip: (position * stride + tap * dilation - pad) / step has a remainder for most
positions and taps if step > 1, as in a convolution's transpose. Positions of one class, modulo the
step, meet the same taps, every so manieth one, without a remainder; so a contraction falls into one
for each class, on slices of its operands and its result, and multiplies no inserted zeros.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from weft.buffer import Layout
from weft.ops.contraction import Axis, Contraction, Window, labels
from weft.types import TensorType
from weft.types.record import dataclass


@dataclass(frozen=True)
class View:
    """An operand's elements from one on: `offset`, in elements."""

    layout: Layout
    offset: int = 0

    def slice(self, axis: int, start: int, step: int, count: int) -> View:
        """`count` elements along an axis, from `start` on."""
        shape, strides = list(self.layout.type.shape), list(self.layout.strides)
        offset = self.offset + start * strides[axis] if count else self.offset
        shape[axis], strides[axis] = count, strides[axis] * step
        return View(Layout(TensorType(shape, self.layout.type.dtype), strides), offset)


@dataclass(frozen=True)
class Part:
    """A contraction of slices; `extras` have the result's shape. If `nothing`, its sum has no
    terms, whatever it says.
    """

    c: Contraction
    a: View
    b: View
    out: View
    extras: tuple[View, ...] = ()
    nothing: bool = False

    @property
    def apart(self) -> bool:
        """Whether it is less than the whole, also where there is no other part."""
        return self.nothing or any(v.offset for v in (self.a, self.b, self.out, *self.extras))


def classes(whole: Part, sizes: Mapping[str, int]) -> list[Part]:
    """`whole` in parts, without windows that skip where these can be taken apart: if the position
    is the result's alone, and the tap an axis of the other operand, summed over.
    """
    parts = [whole]
    for side in ("a", "b"):
        for number, axis in enumerate(getattr(whole.c, side)):
            if isinstance(axis, Window) and _parts(whole.c, side, axis):
                cut = _Cut(side, number, axis, sizes[axis.pos], sizes[axis.tap])
                parts = [piece for part in parts for piece in cut(part)]
    return parts


def _parts(c: Contraction, side: str, w: Window) -> bool:
    """Whether a window skips and can be taken apart."""
    own, other = (c.a, c.b) if side == "a" else (c.b, c.a)
    everywhere = [*labels(own), *labels(other)]
    alone = everywhere.count(w.pos) == 1 and everywhere.count(w.tap) == 2
    return w.step > 1 and alone and w.pos in c.out and w.tap not in c.out and w.tap in other


@dataclass(frozen=True)
class _Cut:
    """A window on axis `number` of an operand, of `positions` and `taps`."""

    side: str
    number: int
    window: Window
    positions: int
    taps: int

    def __call__(self, part: Part) -> Iterator[Part]:
        w = self.window
        common = math.gcd(w.dilation, w.step)
        every = w.step // common
        for r in range(min(w.step, self.positions)):
            tries = range(min(every, self.taps))
            met = (t for t in tries if (r * w.stride + t * w.dilation - w.pad) % w.step == 0)
            first = next(met, -1)
            start = max(first, 0)
            pad = -((r * w.stride + start * w.dilation - w.pad) // w.step)
            own = Window(w.pos, w.tap, w.stride, w.dilation // common, pad)
            yield self._class(part, r, own, start, every, nothing=first < 0)

    def _class(
        self, part: Part, r: int, own: Window, start: int, every: int, nothing: bool
    ) -> Part:
        w, c, other = self.window, part.c, "b" if self.side == "a" else "a"
        positions = -(-(self.positions - r) // w.step)
        taps = 1 if nothing else -(-(self.taps - start) // every)
        axes: list[Axis] = list(getattr(c, self.side))
        axes[self.number] = own
        sizes = dict(c.sizes) | {w.pos: positions, w.tap: taps}
        c = replace(c, **{self.side: tuple(axes)}, sizes=tuple(sizes.items()))  # type: ignore[arg-type]
        tap_axis = getattr(c, other).index(w.tap)
        place = c.out.index(w.pos)
        many: Sequence[View] = [
            x.slice(place, r, w.step, positions) for x in (part.out, *part.extras)
        ]
        changed = {other: getattr(part, other).slice(tap_axis, start, every, taps)}
        return replace(
            part,
            c=c,
            **changed,
            out=many[0],
            extras=tuple(many[1:]),
            nothing=part.nothing or nothing,
        )
