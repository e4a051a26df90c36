"""What an index means: NumPy's indexing rules, taken apart into a view and gathers."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from weft.errors import DTypeError, IndexRangeError, IndexTypeError, ShapeError
from weft.ops.define import Value, installed
from weft.types.dtype import bool_
from weft.types.size import Size, index

PLACE = "index"


class Group(NamedTuple):
    """An integer tensor, or a mask of some axes, and the axes of the view that it indexes."""

    picks: Value
    axes: tuple[int, ...]
    source: int  # the operand's axis that the first of them is

    @property
    def is_mask(self) -> bool:
        return self.picks.type.dtype is bool_


class Parsed(NamedTuple):
    """An index as the attributes of a `basic_index` and what is then gathered from it.

    `first` is where the axes of the gather go in the result.
    """

    basic: dict[str, tuple[int, ...]]
    groups: list[Group]
    first: int
    identity: bool  # the view is the whole operand


def parse(index: Any, shape: tuple[int, ...]) -> Parsed:
    """Apply NumPy's rules to an index into a tensor of `shape`."""
    items = [_item(e) for e in index] if isinstance(index, tuple) else [_item(index)]
    used = sum(_consumed(e) for e in items)
    if used > len(shape):
        raise IndexRangeError(
            PLACE, expected=f"at most {len(shape)} indices into shape {shape}", got=f"{used}"
        )
    dots = sum(e is Ellipsis for e in items)
    if dots > 1:
        raise IndexRangeError(PLACE, expected="at most one ...", got=str(dots))
    if not dots:
        items.append(Ellipsis)
    walk = _Walk(shape, len(shape) - used)
    for e in items:
        walk.step(e)
    return walk.done()


class _Walk:
    """Goes through the items of an index, and the axes of the operand along with them."""

    def __init__(self, shape: tuple[int, ...], rest: int) -> None:
        self.shape, self.rest, self.axis = shape, rest, 0
        self.starts: list[int] = []
        self.sizes: list[int] = []
        self.steps: list[int] = []
        self.axes: list[int] = []
        self.groups: list[Group] = []
        self.runs = 0  # of integers and tensors that stand together
        self.first = 0
        self.inside = False

    def step(self, e: Any) -> None:
        if isinstance(e, (int, Value)):
            if not self.inside:
                self.runs += 1
                self.first = len(self.axes) if self.runs == 1 else 0
            self.inside = True
            self._integer(e) if isinstance(e, int) else self._tensor(e)
            return
        self.inside = False
        if e is None:
            self.axes.append(-1)
        elif e is Ellipsis:
            for _ in range(self.rest):
                self._keep(0, self.shape[self.axis], 1)
        else:
            self._slice(e)

    def done(self) -> Parsed:
        identity = (
            self.axes == list(range(len(self.shape)))
            and tuple(self.sizes) == self.shape
            and all(s == 1 for s in self.steps)
        )
        basic = {k: tuple(getattr(self, k)) for k in ("starts", "sizes", "steps", "axes")}
        return Parsed(basic, self.groups, self.first, identity)

    def _keep(self, start: int, size: int, step: int) -> None:
        self.axes.append(self.axis)
        self._range(start, size, step)

    def _range(self, start: int, size: int, step: int) -> None:
        self.starts.append(start)
        self.sizes.append(size)
        self.steps.append(step)
        self.axis += 1

    def _integer(self, i: int) -> None:
        n = self.shape[self.axis]
        if not -n <= i < n:
            raise out_of_range(i, self.axis, n)
        self._range(i + n if i < 0 else i, 1, 1)

    def _slice(self, s: slice) -> None:
        n = self.shape[self.axis]
        if any(type(x) is Size for x in (n, s.start, s.stop)):
            self._part(s, n)
            return
        try:
            start, stop, step = s.indices(n)
        except TypeError:
            raise DTypeError(PLACE, expected="integers or None in a slice", got=str(s)) from None
        except ValueError:
            raise ShapeError(PLACE, expected="a slice step other than 0", got=str(s)) from None
        size = len(range(start, stop, step))
        self._keep(start if size else 0, size, step if size > 1 else 1)

    def _part(self, s: slice, n: Any) -> None:
        """`slice.indices`, where some of its ends or the size are symbols."""
        step = 1 if s.step is None else operator.index(s.step)
        if not step:
            raise ShapeError(PLACE, expected="a slice step other than 0", got=f"step {step}")
        low, high = (0, n) if step > 0 else (-1, n - 1)
        first, last = (low, high) if step > 0 else (high, low)

        def end(x: Any) -> Any:
            x = index(x)
            return max(x + n, low) if x < 0 else min(x, high)

        start = first if s.start is None else end(s.start)
        stop = last if s.stop is None else end(s.stop)
        far = stop - start if step > 0 else start - stop
        size = max((far + abs(step) - 1) // abs(step), 0)
        self._keep(start, size, 1 if step == 1 or size <= 1 else step)

    def _tensor(self, index: Value) -> None:
        at, axis = len(self.axes), self.axis
        if index.type.dtype is not bool_:
            self._keep(0, self.shape[axis], 1)
            self.groups.append(Group(index, (at,), axis))
            return
        shape = index.type.shape
        for a, n in enumerate(shape):
            if n != self.shape[axis + a]:
                raise IndexRangeError(
                    PLACE,
                    expected=f"a mask of {self.shape[axis + a]} along axis {axis + a}",
                    got=f"one of {n}",
                )
        for _ in shape:
            self._keep(0, self.shape[self.axis], 1)
        if not shape:  # True or False: picks all of a new axis, or nothing
            self.axes.append(-1)
        self.groups.append(Group(index, tuple(range(at, len(self.axes))), axis))


def out_of_range(i: int, axis: int, n: int) -> IndexRangeError:
    return IndexRangeError(
        PLACE, expected=f"an index in [{-n}, {n}) for axis {axis} of size {n}", got=str(i)
    )


def _consumed(e: Any) -> int:
    if isinstance(e, Value):
        return e.type.ndim if e.type.dtype is bool_ else 1
    return int(isinstance(e, (int, slice)))


def _item(e: Any) -> Any:
    """One of int, slice, None, ..., or a Value of integers or bools."""
    if e is None or e is Ellipsis or isinstance(e, slice) or type(e) in (int, Size):
        return e
    if isinstance(e, (bool, np.bool_)):
        return installed.lift(np.asarray(e))
    if not isinstance(e, Value):
        if not isinstance(e, (np.ndarray, list, tuple, range)):
            try:
                return operator.index(e)
            except TypeError:
                raise _unsuitable(type(e).__name__) from None
        e = _array(e)
        if not e.ndim and e.dtype.kind in "iu":
            return int(e)
        e = installed.lift(e)
    if not (e.type.dtype is bool_ or e.type.dtype.is_int):
        raise _unsuitable(f"a tensor of {e.type.dtype.name}")
    return e


def _array(e: Any) -> np.ndarray[Any, Any]:
    try:
        a = np.asarray(e)
    except (ValueError, TypeError):
        raise ShapeError(PLACE, expected="lists of equal lengths", got=repr(e)) from None
    if not a.size and not isinstance(e, np.ndarray):
        return a.astype(np.int64)
    if a.dtype.kind not in "biu":
        raise _unsuitable(f"an array of {a.dtype}")
    return a


def _unsuitable(got: str) -> IndexTypeError:
    return IndexTypeError(
        PLACE, expected="integers, slices, None, ..., and tensors of integers or bools", got=got
    )
