"""A contraction on given layouts -> four groups of labels with sizes and strides, joined where memory allows.

"c" is the result; "l" the operand whose elements are broadcast, "r" the one read in vectors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.buffer import Layout
from weft.errors import DTypeError, ShapeError
from weft.ops.contraction import Axis, Contraction, Window, labels
from weft.schedule.contract_spec import OPERANDS
from weft.types import DType, TensorType
from weft.types.dtype import bool_

#: at most so many columns make it worth while to read the other operand in vectors, though the result is scattered
NARROW = 6

Strides = Mapping[str, int]


@dataclass(frozen=True)
class Group:
    """Labels that are flattened into one index, outermost first. Never empty but for a batch: `by` gives strides per operand."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    by: Mapping[str, tuple[int, ...]]

    @property
    def size(self) -> int:
        return math.prod(self.sizes)

    def strides(self, operand: str) -> tuple[int, ...]:
        return self.by[operand]

    def flat(self, operand: str) -> bool:
        """Whether flattened indices are equally spaced in an operand."""
        s = self.by[operand]
        return all(s[i] == s[i + 1] * self.sizes[i + 1] for i in range(len(s) - 1))


@dataclass(frozen=True)
class Operand:
    """One operand. If `windowed` it is read through a padded copy of what a block needs."""

    word: int
    layout: Layout
    said: tuple[Axis, ...]
    windowed: bool

    @property
    def copying(self) -> str:
        """How its rows are copied, if windowed: see ContractSpec."""
        last = self.said[-1] if self.said else ""
        if not self.windowed:
            return ""
        dense = self.layout.strides[-1] == 1 and not (isinstance(last, Window) and last.step != 1)
        return "dense" if dense else "any"

    def axes(self, groups: Sequence[Group]) -> list[tuple[int, ...]]:
        """AXIS of each axis, if windowed."""
        if not self.windowed:
            return []
        number = {n: i for i, n in enumerate(n for g in groups for n in g.names)}
        out = [(1, 0, 1, 0, -1, 0, -1, 0)] * (len(self.said) < 2)  # a copy has at least two axes
        for x, size, stride in zip(self.said, self.layout.type.shape, self.layout.strides, strict=True):
            w = x if isinstance(x, Window) else Window(x, "", 1, 0)
            p, q = number.get(w.pos, -1), number.get(w.tap, -1)
            out.append((size, stride, w.step, w.pad, p, w.stride, q, w.dilation))
        return out  # type: ignore[return-value]

    def slab(self, batch: Group, lanes: Group, block: int, depth: Group, depth_block: int) -> int:
        """Elements that a padded copy takes at most."""
        if not self.windowed:
            return 0
        spans = dict.fromkeys(batch.names, 1) | _spans(lanes, block) | _spans(depth, depth_block)
        size = last = 1
        for x in self.said:
            w = x if isinstance(x, Window) else Window(x, "", 1, 0)
            last = 1 + abs(w.stride) * (spans.get(w.pos, 1) - 1) + abs(w.dilation) * (spans.get(w.tap, 1) - 1)
            size *= last
        return size // last * (last + 15)  # rows are padded to whole vectors

    def lane_step(self, lanes: Group, side: str) -> int:
        """How far apart neighbouring lanes lie, as packing sees them."""
        return self._copied(lanes.names[-1]) if self.windowed else lanes.strides(side)[-1]

    def depth_step(self, depth: Group, side: str) -> int:
        return self._copied(depth.names[-1]) if self.windowed else depth.strides(side)[-1]

    def _copied(self, name: str) -> int:
        """The stride of a label in a padded copy; 0 stands for any that is long."""
        last = self.said[-1]
        if isinstance(last, Window):
            return {last.pos: last.stride, last.tap: last.dilation}.get(name, 0)
        return int(last == name)


@dataclass(frozen=True)
class Problem:
    dtype: DType
    l: Operand
    r: Operand
    batch: Group
    rows: Group
    cols: Group
    depth: Group
    steps: int  # of the sum; 0 if a label of depth has no values


def resolve(a: Layout, b: Layout, c: Contraction) -> tuple[Problem, Layout]:
    """The contraction of these layouts, and the result's layout."""
    if a.type.dtype is not b.type.dtype or a.type.dtype is bool_:
        raise DTypeError(
            "contraction", expected="two operands of one dtype, not bool", got=f"{a.type.dtype.name} and {b.type.dtype.name}"
        )
    sizes = _sizes(a, b, c)
    out = Layout.dense(TensorType([sizes[n] for n in c.out], a.type.dtype))
    return _problem(a, b, c, sizes, out), out


def _sizes(a: Layout, b: Layout, c: Contraction) -> dict[str, int]:
    sizes = dict(c.sizes)
    for name, axes, layout in (("first", c.a, a), ("second", c.b, b)):
        if len(axes) != layout.type.ndim:
            raise ShapeError("contraction", expected=f"{len(axes)} axes in the {name} operand", got=str(layout.type))
        for x, n in zip(axes, layout.type.shape, strict=True):
            if isinstance(x, str) and sizes.setdefault(x, n) != n:  # type: ignore[arg-type]
                raise ShapeError(
                    "contraction", expected=f"one size along {x!r}", got=f"{sizes[x]} and {n}", hint=f"in {a.type} and {b.type}"
                )
    in_a, in_b = set(labels(c.a)), set(labels(c.b))
    lost = [n for n in (in_a ^ in_b) if n not in c.out] + [n for n in c.out if n not in in_a | in_b]
    unknown = [n for n in in_a | in_b if n not in sizes]
    if lost or unknown or len(set(c.out)) < len(c.out):
        raise ShapeError(
            "contraction",
            expected="labels that two of the operands and the result share, of known size",
            got=f"{c}",
            hint=f"see {', '.join(sorted({*lost, *unknown})) or 'the result'}",
        )
    return sizes


def _problem(a: Layout, b: Layout, c: Contraction, sizes: dict[str, int], out: Layout) -> Problem:
    order = [x for x in dict.fromkeys(labels(c.a)) if x not in c.out]
    empty = any(sizes[n] == 0 for n in order)
    operands = []
    for word, (layout, axes) in enumerate(((a, c.a), (b, c.b))):
        windowed = not empty and any(
            isinstance(x, Window) and not _inside(x, n, sizes)  # type: ignore[arg-type]
            for x, n in zip(axes, layout.type.shape, strict=True)
        )
        operands.append(Operand(OPERANDS + word, layout, axes, windowed))
    strides = [{} if o.windowed else _strides(o.said, o.layout) for o in operands]
    c_strides = _strides(c.out, out)
    in_a, in_b = set(labels(c.a)), set(labels(c.b))
    by_place = [n for n in sorted(c.out, key=lambda n: -c_strides[n]) if sizes[n] != 1]
    m = [n for n in by_place if n not in in_b]
    n = [n for n in by_place if n not in in_a]
    swapped = _swapped(m, n, by_place, sizes)
    l, r = (1, 0) if swapped else (0, 1)
    rows, cols = (n, m) if swapped else (m, n)
    fixed = {x for o in operands if o.windowed for x in labels(o.said)}
    depth = [] if empty else [x for x in order if sizes[x] != 1]

    def group(names: list[str], least: int) -> Group:
        return _join(names, sizes, {"l": strides[l], "r": strides[r], "c": c_strides}, fixed, least)

    g = {
        "batch": group([x for x in by_place if x in in_a and x in in_b], 0),
        "rows": group(rows, 1), "cols": group(cols, 1), "depth": group(depth, 1),
    }  # fmt: skip
    return Problem(a.type.dtype, operands[l], operands[r], steps=0 if empty else g["depth"].size, **g)


def _swapped(m: list[str], n: list[str], by_place: list[str], sizes: Mapping[str, int]) -> bool:
    """Whether vectors run along A's labels: if these are neighbours in the result, or B's too few to fill one."""
    high, wide = (math.prod(sizes[x] for x in g) for g in (m, n))
    near = by_place[-1] if by_place else ""
    if near in m:
        return not (high <= NARROW and wide >= 16)
    if near in n:
        return wide <= NARROW and high >= 16
    return high > wide


def _join(
    names: list[str], sizes: Mapping[str, int], by: Mapping[str, Strides], fixed: set[str], least: int
) -> Group:
    """Neighbouring labels become one where their strides allow, unless an operand needs them apart."""
    out: list[tuple[str, int, dict[str, int]]] = []
    for name in names:
        size, own = sizes[name], {o: s.get(name, 0) for o, s in by.items()}
        if out and name not in fixed and out[-1][0] not in fixed:
            _, before, outer = out[-1]
            if all(outer[o] == own[o] * size for o in own):
                out[-1] = (name, before * size, own)
                continue
        out.append((name, size, own))
    while len(out) < least:
        out.append(("", 1, dict.fromkeys(by, 0)))
    return Group(tuple(x[0] for x in out), tuple(x[1] for x in out), {o: tuple(x[2][o] for x in out) for o in by})


def _strides(axes: Sequence[Axis], layout: Layout) -> dict[str, int]:
    """What each label moves by, windows taken as if nothing lay outside."""
    out: dict[str, int] = {}
    for x, stride in zip(axes, layout.strides, strict=True):
        w = x if isinstance(x, Window) else Window(x, "", 1, 0)
        for name, by in ((w.pos, w.stride), (w.tap, w.dilation)):
            out[name] = out.get(name, 0) + by * stride
    return out


def _inside(w: Window, size: int, sizes: Mapping[str, int]) -> bool:
    """Whether a window reads elements only, and starts at the first."""
    ends = [sorted((0, by * (sizes[n] - 1))) for n, by in ((w.pos, w.stride), (w.tap, w.dilation))]
    low, high = (sum(e[i] for e in ends) - w.pad for i in range(2))
    return w.step == 1 and w.pad == 0 and low >= 0 and high < size


def _spans(group: Group, block: int) -> dict[str, int]:
    """How many values each label takes at most within `block` neighbouring flattened indices."""
    out, inner, crossed = {}, 1, False
    values: list[int] = []
    for size in reversed(group.sizes):
        values.insert(0, min(size, (block - 1 + inner - 1) // inner + 1))
        inner *= size
    for name, size, n in zip(group.names, group.sizes, values, strict=True):
        out[name] = size if crossed else n
        crossed = crossed or n > 1
    return out
