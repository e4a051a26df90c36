"""Indexing by tensors: a view of the rest of the index, then one `take` along the axes that tensors
index, joined into one.
"""

from __future__ import annotations

import math
from typing import Any

from weft.buffer import Buffer
from weft.buffer.interchange import to_numpy
from weft.errors import CaptureError, IndexRangeError, ShapeError
from weft.ops.basic_index import basic_assign, basic_index
from weft.ops.define import Value, data_of, installed
from weft.ops.elementwise import astype, where
from weft.ops.indexing import ravel_index, row_assign, take
from weft.ops.movement import broadcast_to, permute_dims, reshape
from weft.ops.searching import nonzero_places, nonzero_starts
from weft.tensor.index_parse import PLACE, Group, Parsed, out_of_range
from weft.types import broadcast_shapes
from weft.types.dtype import bool_


class Gather:
    """How an index with tensors reads and writes a tensor of `shape`. It keeps no tensor, so it
    serves every index of the same form.
    """

    def __init__(self, p: Parsed, shape: Any) -> None:
        basic = p.basic
        self.basic = None if p.identity else basic
        view = [1 if a < 0 else basic["sizes"][a] for a in basic["axes"]]
        self.groups = [(g.axes, g.source) for g in p.groups]
        picked = [a for g in p.groups for a in g.axes]
        together = picked == list(range(picked[0], picked[0] + len(picked)))
        rest = [a for a in range(len(view)) if a not in picked]
        self.at = picked[0] if together else 0
        # the view's axes in an order in which those that tensors index stand together
        self.order = tuple(range(len(view))) if together else (*picked, *rest)
        self.straight = self.order == tuple(range(len(view)))
        moved = [view[a] for a in self.order]
        self.apart = tuple(moved)
        last = self.at + len(picked)
        self.joined = (*moved[: self.at], math.prod(moved[self.at : last]), *moved[last:])
        self.sizes = tuple(math.prod(view[a] for a in g.axes) for g in p.groups)
        self.first = p.first  # where NumPy wants the axes of the result that tensors give

    def read(self, x: Value, tensors: list[Value]) -> Value:
        """x[index]."""
        view = x if self.basic is None else basic_index(x, **self.basic)
        indices = [_positions(t) for t in tensors]
        picks = _common(indices)
        try:
            y: Value = take(self._operand(view), self._index(indices, picks), axis=self.at)
        except IndexRangeError:
            raise self._explained(tensors, view) from None
        if 0 in self.joined:
            self._check(tensors, view)
        axes = self._axes(len(picks), y.type.ndim)
        return y if axes is None else permute_dims(y, axes=axes)

    def write(self, x: Value, tensors: list[Value], value: Any) -> Value:
        """What x is after x[index] = value."""
        view = x if self.basic is None else basic_index(x, **self.basic)
        mask = tensors[0] if len(tensors) == 1 and tensors[0].type.dtype is bool_ else None
        if mask is not None and value.__class__ is float and x.type.dtype.is_float:
            new = where(self._spread(mask, view), value, view)  # without a tensor for the number
            return new if self.basic is None else basic_assign(x, new, **self.basic)
        v = value if isinstance(value, Value) else installed.lift(value)
        if v.type.dtype is not x.type.dtype:
            v = astype(v, dtype=x.type.dtype)
        if mask is not None and v.type.size == 1:  # how often the mask holds doesn't matter
            new = where(self._spread(mask, view), reshape(v, shape=()), view)
        else:
            new = self._written(view, tensors, v)
        return new if self.basic is None else basic_assign(x, new, **self.basic)

    def _operand(self, view: Value) -> Value:
        if not self.straight:
            view = permute_dims(view, axes=self.order)
        return view if view.type.shape == self.joined else reshape(view, shape=self.joined)

    def _index(self, indices: list[Value], picks: Any) -> Value:
        """One index into the joined axes."""
        if len(indices) == 1:
            return indices[0]
        spread = [i if i.type.shape == picks else broadcast_to(i, shape=picks) for i in indices]
        return ravel_index(*spread, sizes=self.sizes)

    def _axes(self, k: int, ndim: int) -> tuple[int, ...] | None:
        """The result's axes in NumPy's order, `k` of them given by tensors; None if they are."""
        if self.first == self.at:
            return None
        picked = range(self.at, self.at + k)
        rest = [a for a in range(ndim) if a not in picked]
        return (*rest[: self.first], *picked, *rest[self.first :])

    def _spread(self, mask: Value, view: Value) -> Value:
        """A mask of some axes so that it broadcasts over all."""
        axes, _ = self.groups[0]
        behind = view.type.ndim - axes[-1] - 1 + (not mask.type.shape)
        return reshape(mask, shape=(*mask.type.shape, *[1] * behind)) if behind else mask

    def _written(self, view: Value, tensors: list[Value], v: Value) -> Value:
        indices = [_positions(t) for t in tensors]
        picks = _common(indices)
        rest = (*self.joined[: self.at], *self.joined[self.at + 1 :])
        result = (*rest[: self.first], *picks, *rest[self.first :])
        v = fitted(v, len(result))
        if v.type.shape != result:
            if broadcast_shapes(v.type.shape, result, place="index assignment") != result:
                raise ShapeError(
                    "index assignment",
                    expected=f"a value that broadcasts to {result}",
                    got=str(v.type),
                )
            v = broadcast_to(v, shape=result)
        axes = self._axes(len(picks), len(result))
        if axes is not None:
            v = permute_dims(v, axes=_inverse(axes))
        k = math.prod(picks)
        source = reshape(v, shape=(*rest[: self.at], k, *rest[self.at :]))
        index = reshape(self._index(indices, picks), shape=(k,))
        try:
            y: Value = row_assign(self._operand(view), index, source, axis=self.at)
        except IndexRangeError:
            raise self._explained(tensors, view) from None
        if 0 in self.joined:
            self._check(tensors, view)
        if self.apart != self.joined:
            y = reshape(y, shape=self.apart)
        return y if self.straight else permute_dims(y, axes=_inverse(self.order))

    def _check(self, tensors: list[Value], view: Value) -> None:
        """Look at indices that no kernel did, because there was nothing to move."""
        bad = bad_index([Group(t, *g) for t, g in zip(tensors, self.groups, strict=True)], view)
        if bad is not None:
            raise bad

    def _explained(self, tensors: list[Value], view: Value) -> IndexRangeError:
        groups = [Group(t, *g) for t, g in zip(tensors, self.groups, strict=True)]
        return out_of_range_of(groups, view)


def out_of_range_of(groups: list[Group], view: Value) -> IndexRangeError:
    """The error that a kernel met."""
    found = bad_index(groups, view)
    return found or IndexRangeError(PLACE, expected="indices within their axes", got="one outside")


def bad_index(groups: list[Group], view: Value) -> IndexRangeError | None:
    """Which of the indices is out of range, of which axis."""
    for g in groups:
        if not g.is_mask and isinstance(data_of(g.picks), Buffer):
            n: int = view.type.shape[g.axes[0]]  # type: ignore[assignment]
            given = to_numpy(g.picks.data)
            bad = given[(given < -n) | (given >= n)]
            if bad.size:
                return out_of_range(int(bad[0]), g.source, n)
    return None


def fitted(v: Value, ndim: int) -> Value:
    """Without leading axes of one element beyond `ndim`, as NumPy lets them be."""
    shape = v.type.shape
    extra = len(shape) - ndim
    if extra > 0 and all(n == 1 for n in shape[:extra]):
        return reshape(v, shape=shape[extra:])
    return v


def _common(indices: list[Value]) -> Any:
    """The shape that indices are broadcast to."""
    first = indices[0].type.shape
    if all(i.type.shape == first for i in indices):
        return first
    try:
        return broadcast_shapes(*(i.type.shape for i in indices), place=PLACE)
    except ShapeError as e:
        raise IndexRangeError(PLACE, expected=e.expected, got=e.got, hint=e.hint) from None


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def _positions(index: Value) -> Value:
    """An integer index as it is; of a mask, where it holds."""
    if index.type.dtype is not bool_:
        return index
    if not isinstance(data_of(index), Buffer):
        raise CaptureError(
            PLACE,
            expected="a mask whose values are known",
            got=f"a symbolic {index.type}",
            hint="the size of the result would depend on values; use wf.where",
        )
    starts = nonzero_starts(index)
    many = int(to_numpy(starts.data)[-1])
    return nonzero_places(index, starts, many=many)
