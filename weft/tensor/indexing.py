"""x[...] and x[...] = v, as NumPy has them.

Integers, slices, `...` and new axes are one view, found again by the tensor's layout and the index
as it was written. Integer and boolean tensors (arrays, lists) are a gather: first the view of the
rest of the index, then one `take` along the axes they index, joined. Assignment writes the same
places and gives the whole new value.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.buffer import Buffer
from weft.buffer.interchange import to_numpy
from weft.errors import CaptureError, DTypeError, IndexRangeError, ShapeError
from weft.ops.basic_index import basic_assign, basic_index
from weft.ops.define import Op, Value, installed
from weft.ops.elementwise import astype, where
from weft.ops.indexing import ravel_index, row_assign, take
from weft.ops.movement import broadcast_to, permute_dims, reshape
from weft.ops.searching import nonzero_places, nonzero_starts
from weft.tensor.index_parse import PLACE, Group, Parsed, out_of_range, parse
from weft.types import broadcast_shapes

#: indices remembered
PLANS = 4096

_gets: dict[Any, Any] = {}
_sets: dict[Any, Any] = {}


def get(x: Value, index: Any) -> Value:
    """x[index]."""
    if isinstance(index, Value):
        return _rows(x, index)
    key = index if index.__class__ is int else _spelling(index)
    try:
        plan = _gets[x.data.layout, key]  # type: ignore[union-attr]
    except (KeyError, AttributeError):
        return _get(x, index, key)
    return installed.launch(plan, x)


def set(x: Value, index: Any, value: Any) -> Value:
    """The value that x has after x[index] = value."""
    key = index if index.__class__ is int else _spelling(index)
    try:
        as_given = value.data.layout if isinstance(value, Value) else value.__class__  # type: ignore[union-attr]
        plan = _sets[x.data.layout, key, as_given]  # type: ignore[union-attr]
    except (KeyError, AttributeError):
        return _set(x, index, key, value)
    return installed.launch(plan, x, value)


def _rows(x: Value, index: Value) -> Value:
    """x[index] for one tensor: if it is of integers and was seen before, straight to its plan."""
    try:
        plan = take.plans[x.data.layout, index.data.layout, 0]  # type: ignore[union-attr]
    except (KeyError, AttributeError):
        return _get(x, index, None)
    try:
        return installed.launch(plan, x, index)
    except IndexRangeError:
        raise _explained(parse(index, x.type.shape), x) from None  # type: ignore[arg-type]


def _spelling(index: Any) -> tuple[Any, ...] | None:
    """A basic index as something that can be looked up; None for any other. 1, True and 1.0 must
    not be taken for each other, so only plain ints and slices of them have one.
    """
    out: list[Any] = []
    for e in index if index.__class__ is tuple else (index,):
        if e.__class__ is int or e is None or e is Ellipsis:
            out.append(e)
        elif e.__class__ is slice:
            a, b, s = e.start, e.stop, e.step
            if (
                (a is None or a.__class__ is int)
                and (b is None or b.__class__ is int)
                and (s is None or s.__class__ is int)
            ):
                out.append((a, b, s))
            else:
                return None
        else:
            return None
    return tuple(out)


def _remember(where_: dict[Any, Any], key: Any, op: Op, plan_key: tuple[Any, ...]) -> None:
    plan = op.plans.get(plan_key)
    if plan is not None:
        if len(where_) >= PLANS:
            where_.clear()
        where_[key] = plan


def _get(x: Value, index: Any, key: Any) -> Value:
    p = parse(index, x.type.shape)  # type: ignore[arg-type]
    if p.groups:
        return _gather(x, p)
    out: Value = basic_index(x, **p.basic)
    if key is not None and isinstance(x.data, Buffer):
        _remember(_gets, (x.data.layout, key), basic_index, (x.data.layout, *p.basic.values()))
    return out


def _set(x: Value, index: Any, key: Any, value: Any) -> Value:
    p = parse(index, x.type.shape)  # type: ignore[arg-type]
    v = value if value.__class__ in (float, int, bool) else as_value(value)
    if p.groups:
        return _scatter(x, p, v)
    if isinstance(v, Value):
        v = _fitted(v, len(p.basic["axes"]))
    out: Value = basic_assign(x, v, **p.basic)
    if key is not None and v is value and isinstance(x.data, Buffer):
        given = v.data.layout if isinstance(v, Value) else v.__class__  # type: ignore[union-attr]
        _remember(
            _sets,
            (x.data.layout, key, given),
            basic_assign,
            (x.data.layout, given, *p.basic.values()),
        )
    return out


def as_value(x: Any) -> Value:
    """A tensor of anything that assignment takes: numbers, arrays, nested lists."""
    if isinstance(x, Value):
        return x
    try:
        a = np.asarray(x)
    except (ValueError, TypeError):
        raise ShapeError(
            PLACE, expected="a value whose lists have equal lengths", got=type(x).__name__
        ) from None
    if a.dtype.kind not in "biuf" and a.dtype.name != "bfloat16":
        raise DTypeError(
            PLACE, expected="a tensor, numbers, or nested lists of them", got=type(x).__name__
        )
    return installed.lift(a)


def _fitted(v: Value, ndim: int) -> Value:
    """Without leading axes of one element beyond `ndim`, as NumPy lets them be."""
    shape = v.type.shape
    extra = len(shape) - ndim
    return (
        reshape(v, shape=shape[extra:]) if extra > 0 and all(n == 1 for n in shape[:extra]) else v
    )


# gathers


class _Plan:
    """How a gather reads from its view: the view's axes in an order in which the indexed ones stand
    together, as one.
    """

    def __init__(self, view: Value, p: Parsed) -> None:
        shape: Any = view.type.shape
        picked = [a for g in p.groups for a in g.axes]
        together = picked == list(range(picked[0], picked[0] + len(picked)))
        rest = [a for a in range(len(shape)) if a not in picked]
        self.at = picked[0] if together else 0
        self.order = tuple(range(len(shape))) if together else (*picked, *rest)
        self.straight = self.order == tuple(range(len(shape)))
        moved = [shape[a] for a in self.order]
        self.apart = tuple(moved)
        last = self.at + len(picked)
        self.joined = (*moved[: self.at], math.prod(moved[self.at : last]), *moved[last:])
        self.sizes = [math.prod(shape[a] for a in g.axes) for g in p.groups]
        self.indices = [_positions(g) for g in p.groups]
        try:
            self.picks = broadcast_shapes(*(i.type.shape for i in self.indices), place=PLACE)
        except ShapeError as e:
            raise IndexRangeError(PLACE, expected=e.expected, got=e.got, hint=e.hint) from None
        self.first = p.first  # where NumPy wants the picked axes

    def operand(self, view: Value) -> Value:
        if not self.straight:
            view = permute_dims(view, axes=self.order)
        return view if view.type.shape == self.joined else reshape(view, shape=self.joined)

    def restored(self, y: Value) -> Value:
        """A value of the joined shape as the view had it."""
        if self.apart != self.joined:
            y = reshape(y, shape=self.apart)
        return y if self.straight else permute_dims(y, axes=_inverse(self.order))

    def index(self) -> Value:
        """One index into the joined axes."""
        if len(self.indices) == 1:
            return self.indices[0]
        spread = [
            i if i.type.shape == self.picks else broadcast_to(i, shape=self.picks)
            for i in self.indices
        ]
        return ravel_index(*spread, sizes=tuple(self.sizes))

    def axes(self, ndim: int) -> tuple[int, ...] | None:
        """The result's axes in NumPy's order, if that isn't the one they have."""
        if self.first == self.at:
            return None
        k = len(self.picks)
        picked = range(self.at, self.at + k)
        rest = [a for a in range(ndim) if a not in picked]
        return (*rest[: self.first], *picked, *rest[self.first :])


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def _positions(g: Group) -> Value:
    """The integer index that a group is; of a mask, where it holds."""
    if not g.is_mask:
        return g.picks
    mask = g.picks
    if not isinstance(mask.data, Buffer):
        raise CaptureError(
            PLACE,
            expected="a mask whose values are known",
            got=f"a symbolic {mask.type}",
            hint="the size of the result would depend on values; use wf.where",
        )
    starts = nonzero_starts(mask)
    many = int(to_numpy(starts.data)[-1])
    return nonzero_places(mask, starts, many=many)


def _gather(x: Value, p: Parsed) -> Value:
    view = x if p.identity else basic_index(x, **p.basic)
    plan = _Plan(view, p)
    try:
        y = take(plan.operand(view), plan.index(), axis=plan.at)
    except IndexRangeError:
        raise _explained(p, view) from None
    axes = plan.axes(y.type.ndim)
    return y if axes is None else permute_dims(y, axes=axes)


def _scatter(x: Value, p: Parsed, value: Any) -> Value:
    view = x if p.identity else basic_index(x, **p.basic)
    v = value if isinstance(value, Value) else installed.lift(value)
    if v.type.dtype is not x.type.dtype:
        v = astype(v, dtype=x.type.dtype)
    if len(p.groups) == 1 and p.groups[0].is_mask and v.type.size == 1:
        new = _masked(view, p.groups[0], v)
    else:
        new = _written(view, p, v)
    return new if p.identity else basic_assign(x, new, **p.basic)


def _masked(view: Value, g: Group, v: Value) -> Value:
    """One number where the mask holds: its size does not matter then, nor how often it holds."""
    behind = view.type.ndim - g.axes[-1] - 1
    mask = reshape(g.picks, shape=(*g.picks.type.shape, *[1] * (behind + (not g.picks.type.shape))))
    return where(mask, reshape(v, shape=()), view)


def _written(view: Value, p: Parsed, v: Value) -> Value:
    plan = _Plan(view, p)
    rest = (*plan.joined[: plan.at], *plan.joined[plan.at + 1 :])
    result = (*rest[: plan.first], *plan.picks, *rest[plan.first :])
    v = _fitted(v, len(result))
    if v.type.shape != result:
        if broadcast_shapes(v.type.shape, result, place="index assignment") != result:
            raise ShapeError(
                "index assignment", expected=f"a value that broadcasts to {result}", got=str(v.type)
            )
        v = broadcast_to(v, shape=result)
    axes = plan.axes(len(result))
    if axes is not None:
        v = permute_dims(v, axes=_inverse(axes))
    k = math.prod(plan.picks)  # type: ignore[arg-type]
    source = reshape(v, shape=(*rest[: plan.at], k, *rest[plan.at :]))
    index = plan.index()
    if index.type.shape != (k,):
        index = reshape(broadcast_to(index, shape=plan.picks), shape=(k,))
    try:
        y = row_assign(plan.operand(view), index, source, axis=plan.at)
    except IndexRangeError:
        raise _explained(p, view) from None
    return plan.restored(y)


def _explained(p: Parsed, view: Value) -> IndexRangeError:
    """Which of the indices is out of range, of which axis."""
    for g in p.groups:
        if not g.is_mask and isinstance(g.picks.data, Buffer):
            n: int = view.type.shape[g.axes[0]]  # type: ignore[assignment]
            given = to_numpy(g.picks.data)
            bad = given[(given < -n) | (given >= n)]
            if bad.size:
                return out_of_range(int(bad[0]), g.source, n)
    return IndexRangeError(PLACE, expected="indices within their axes", got="one outside")
