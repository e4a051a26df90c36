"""A contraction on given layouts -> four groups of labels with sizes and strides, joined where
memory allows.

"l" is the operand whose elements are broadcast, "r" the one read in vectors, "c" the result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from weft.buffer import Layout
from weft.errors import DTypeError, ShapeError
from weft.ops.contraction import Axis, Contraction, Window, labels
from weft.schedule.contract_classes import Part, View
from weft.schedule.contract_spec import OPERANDS
from weft.types import DType, TensorType
from weft.types.dtype import bool_
from weft.types.record import dataclass

#: up to so many columns the other operand is read in vectors, though that scatters the result
NARROW = 6


@dataclass(frozen=True)
class Group:
    """Labels that are flattened into one index, outermost first; `by` gives strides per operand.
    Only a batch may be empty.
    """

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
        return self.run(operand) == self.size

    def run(self, operand: str) -> int:
        """How many flattened indices in a row are equally spaced in an operand."""
        s = self.by[operand]
        run = self.sizes[-1]
        for i in reversed(range(len(s) - 1)):
            if s[i] != s[-1] * run:
                break
            run *= self.sizes[i]
        return run


@dataclass(frozen=True)
class Operand:
    """An operand and what its axes are called. If `windowed`, it is read through padded copies of
    what blocks need.
    """

    word: int
    layout: Layout
    said: tuple[Axis, ...]
    windowed: bool

    @property
    def windows(self) -> list[Window]:
        """Every axis as a window."""
        return [x if isinstance(x, Window) else Window(x, "", 1, 0) for x in self.said]

    @property
    def taps(self) -> set[str]:
        """The labels that count through windows."""
        return {w.tap for w in self.windows if w.tap}

    @property
    def copying(self) -> str:
        """How its rows are copied, if windowed: see ContractSpec."""
        if not self.windowed:
            return ""
        dense = self.layout.strides[-1] == 1 and all(w.step == 1 for w in self.windows)
        return "dense" if dense else "any"

    def axes(self, groups: Sequence[Group]) -> list[tuple[int, ...]]:
        """AXIS of each axis, if windowed."""
        if not self.windowed:
            return []
        number = {n: i for i, n in enumerate(n for g in groups for n in g.names)}
        out: list[tuple[int, ...]] = [(1, 0, 1, 0, -1, 0, -1, 0)] * (len(self.said) < 2)
        shape: Sequence[int] = self.layout.type.shape  # type: ignore[assignment]
        for w, size, stride in zip(self.windows, shape, self.layout.strides, strict=True):
            p, q = number.get(w.pos, -1), number.get(w.tap, -1)
            out.append((size, stride, w.step, w.pad, p, w.stride, q, w.dilation))
        return out

    def slab(self, batch: Group, lanes: Group, block: int, depth: Group, depth_block: int) -> int:
        """Elements of a padded copy, at most."""
        if not self.windowed:
            return 0
        spans = dict.fromkeys(batch.names, 1) | _spans(lanes, block) | _spans(depth, depth_block)
        size = last = 1
        for w in self.windows:
            last = 1 + abs(w.stride) * (spans.get(w.pos, 1) - 1)
            last += abs(w.dilation) * (spans.get(w.tap, 1) - 1)
            size *= last
        return size // last * (last + 15)  # its rows are padded to whole vectors

    def step(self, group: Group, side: str) -> int:
        """How far apart neighbours of a group lie, as packing finds them; 0 if far in a copy."""
        if not self.windowed:
            return group.strides(side)[-1]
        w = self.windows[-1]
        return {w.tap: w.dilation, w.pos: w.stride}.get(group.names[-1], 0)


@dataclass(frozen=True)
class Problem:
    """c[batch, row, col] = sum over depth of l[batch, row, depth] * r[batch, depth, col]."""

    dtype: DType
    l: Operand
    r: Operand
    groups: tuple[Group, Group, Group, Group]
    steps: int  # of the sum; 0 if a label of depth has no values

    @property
    def batch(self) -> Group:
        return self.groups[0]

    @property
    def rows(self) -> Group:
        return self.groups[1]

    @property
    def cols(self) -> Group:
        return self.groups[2]

    @property
    def depth(self) -> Group:
        return self.groups[3]


def resolve(a: Layout, b: Layout, c: Contraction) -> tuple[Problem, Layout]:
    """The contraction of these layouts, and the result's layout."""
    sizes = label_sizes(a, b, c)
    out = Layout.dense(TensorType([sizes[n] for n in c.out], a.type.dtype))
    return resolve_parts([Part(c, View(a), View(b), View(out))])[0], out


def resolve_parts(parts: Sequence[Part], turned: bool = False) -> list[Problem]:
    """The contraction of each part. What is copied with its padding in one, is in all, and the
    operands play the same roles in all, those of the first; each other's if `turned`.
    """
    seen = [_inside_both(part) for part in parts]
    windowed = [not all(inside) for inside in zip(*seen, strict=True)]
    swapped = _swapped(*_free(parts[0])) != turned
    return [_problem(part, windowed, swapped) for part in parts]


def label_sizes(a: Layout, b: Layout, c: Contraction) -> dict[str, int]:
    """The size of every label, or an error that names the one to look at."""
    if a.type.dtype is not b.type.dtype or a.type.dtype is bool_:
        raise DTypeError(
            "contraction",
            expected="two operands of one dtype, not bool",
            got=f"{a.type.dtype.name} and {b.type.dtype.name}",
        )
    return _sizes(a, b, c)


def summed(c: Contraction) -> list[str]:
    """The labels that are summed over, in order."""
    return [x for x in dict.fromkeys(labels(c.a)) if x not in c.out]


def _inside_both(part: Part) -> list[bool]:
    """For each operand, whether it is read at elements only."""
    sizes = _sizes(part.a.layout, part.b.layout, part.c)
    if any(sizes[n] == 0 for n in summed(part.c)):
        return [True, True]
    out = []
    for layout, axes in ((part.a.layout, part.c.a), (part.b.layout, part.c.b)):
        shape: Sequence[int] = layout.type.shape  # type: ignore[assignment]
        out.append(all(_inside(x, n, sizes) for x, n in zip(axes, shape, strict=True)))
    return out


def _sizes(a: Layout, b: Layout, c: Contraction) -> dict[str, int]:
    """The size of every label, or an error that names the one to look at."""
    sizes = dict(c.sizes)
    wrong: list[str] = []
    for axes, layout in ((c.a, a), (c.b, b)):
        if len(axes) != layout.type.ndim:
            raise ShapeError("contraction", expected=f"{len(axes)} axes", got=str(layout.type))
        for x, n in zip(axes, layout.type.shape, strict=True):
            if isinstance(x, str) and sizes.setdefault(x, n) != n:  # type: ignore[arg-type]
                wrong.append(x)
    in_a, in_b, out = set(labels(c.a)), set(labels(c.b)), set(c.out)
    wrong += [n for n in in_a | in_b | out if (n in in_a) + (n in in_b) + (n in out) < 2]
    wrong += [n for n in in_a | in_b if n not in sizes]
    if wrong or len(out) < len(c.out):
        raise ShapeError(
            "contraction",
            expected="labels of one known size, in two of operands and result",
            got=f"{c} of {a.type} and {b.type}",
            hint=f"see {', '.join(map(repr, sorted(set(wrong)))) or 'the result'}",
        )
    return sizes


def _free(part: Part) -> tuple[list[str], list[str], list[str], dict[str, int]]:
    """The labels of the result that only A has, only B has, and all, those of one value left out;
    all sizes.
    """
    c, sizes = part.c, _sizes(part.a.layout, part.b.layout, part.c)
    in_a, in_b, strides = set(labels(c.a)), set(labels(c.b)), _strides(c.out, part.out.layout)
    by_place = sorted((n for n in c.out if sizes[n] != 1), key=lambda n: -strides[n])
    m = [n for n in by_place if n not in in_b]
    n = [n for n in by_place if n not in in_a]
    return m, n, by_place, sizes


def _problem(part: Part, windowed: Sequence[bool], swapped: bool) -> Problem:
    c = part.c
    m, n, by_place, sizes = _free(part)
    order = summed(c)
    empty = any(sizes[n] == 0 for n in order)
    both = ((part.a, c.a, windowed[0]), (part.b, c.b, windowed[1]))
    operands = [
        Operand(OPERANDS + word, view.layout, axes, copied)
        for word, (view, axes, copied) in enumerate(both)
    ]
    l, r = operands[::-1] if swapped else operands
    by = {
        "l": {} if l.windowed else _strides(l.said, l.layout),
        "r": {} if r.windowed else _strides(r.said, r.layout),
        "c": _strides(c.out, part.out.layout),
        **{f"e{i}": _strides(c.out, x.layout) for i, x in enumerate(part.extras)},
    }
    fixed = {x for o in operands if o.windowed for x in labels(o.said)}
    batch = [x for x in by_place if x not in m and x not in n]
    depth = [x for x in order if sizes[x] != 1] if not empty else []
    rows, cols = (n, m) if swapped else (m, n)
    if l.windowed:
        rows = _long_runs(rows, l.taps, sizes)
    joined = [_join(names, sizes, by, fixed) for names in (batch, rows, cols, depth)]
    groups = (joined[0], *(g if g.names else _single(by) for g in joined[1:]))
    steps = 0 if empty or part.nothing else groups[3].size
    return Problem(part.a.layout.type.dtype, l, r, groups, steps)  # type: ignore[arg-type]


def _long_runs(rows: list[str], taps: set[str], sizes: Mapping[str, int]) -> list[str]:
    """Rows in an order in which more of them in a row are equally spaced: channels, not taps."""
    inner = [n for n in rows if n in taps]
    outer = [n for n in rows if n not in taps]
    longer = bool(inner and outer) and sizes[outer[-1]] > sizes[inner[-1]]
    return [*inner, *outer] if longer and rows[-1] in taps else rows


def _swapped(m: list[str], n: list[str], by_place: list[str], sizes: Mapping[str, int]) -> bool:
    """Whether vectors run along A's labels: if these are neighbours in the result, or B's too few
    to fill one.
    """
    high, wide = (math.prod(sizes[x] for x in g) for g in (m, n))
    near = by_place[-1] if by_place else ""
    if near in m:
        return not (high <= NARROW and wide >= 16)
    if near in n:
        return wide <= NARROW and high >= 16
    return high > wide


def _join(
    names: list[str],
    sizes: Mapping[str, int],
    by: Mapping[str, Mapping[str, int]],
    fixed: set[str],
) -> Group:
    """Neighbouring labels become one where strides allow, unless an operand needs them apart."""
    kept: list[str] = []
    joined: list[int] = []
    strides: dict[str, list[int]] = {operand: [] for operand in by}
    for name in names:
        size, own = sizes[name], {operand: s.get(name, 0) for operand, s in by.items()}
        apart = not kept or name in fixed or kept[-1] in fixed
        if apart or any(strides[o][-1] != own[o] * size for o in by):
            kept.append(name)
            joined.append(size)
            for o in by:
                strides[o].append(own[o])
        else:
            kept[-1] = name
            joined[-1] *= size
            for o in by:
                strides[o][-1] = own[o]
    return Group(tuple(kept), tuple(joined), {o: tuple(s) for o, s in strides.items()})


def _single(by: Mapping[str, object]) -> Group:
    """A group of no labels: one element, next to itself."""
    return Group(("",), (1,), dict.fromkeys(by, (1,)))


def _strides(axes: Sequence[Axis], layout: Layout) -> dict[str, int]:
    """What each label moves by, windows taken as if nothing lay outside."""
    out: dict[str, int] = {}
    for x, stride in zip(axes, layout.strides, strict=True):
        w = x if isinstance(x, Window) else Window(x, "", 1, 0)
        for name, by in ((w.pos, w.stride), (w.tap, w.dilation)):
            out[name] = out.get(name, 0) + by * stride
    return out


def _inside(x: Axis, size: int, sizes: Mapping[str, int]) -> bool:
    """Whether an axis is read at elements only, from the first on."""
    if isinstance(x, str):
        return True
    high = x.stride * (sizes[x.pos] - 1) + x.dilation * (sizes[x.tap] - 1)
    return x.step == 1 and x.pad == 0 and x.stride >= 0 and x.dilation >= 0 and high < size


def _spans(group: Group, block: int) -> dict[str, int]:
    """How many values each label takes at most within `block` neighbouring flattened indices."""
    values: list[int] = []
    inner = 1
    for size in reversed(group.sizes):
        values.insert(0, min(size, (block + inner - 2) // inner + 1))
        inner *= size
    out: dict[str, int] = {}
    crossed = False
    for name, size, n in zip(group.names, group.sizes, values, strict=True):
        out[name] = size if crossed else n
        crossed = crossed or n > 1
    return out
