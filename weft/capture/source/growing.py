"""Lists that a loop of the program appends to.

The loop's state has a tensor with a row for every element that will be appended, and how many have
been. What a step appends is put into its rows at the end of the step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from weft.autodiff.mode import enable_grad
from weft.capture.chosen import Chosen, as_chosen
from weft.capture.refusal import refused
from weft.capture.runs import (
    GROWN,
    Maybe,
    Run,
    are_numbers,
    as_tensor,
    put,
    refilled,
    row_type,
    same,
    settle,
    size_to_find,
)  # fmt: skip
from weft.capture.stacks import Room, Spec, Stack, absorbed, empty, spec, stacked
from weft.capture.structure import flatten
from weft.control.region import Region
from weft.errors import CaptureError
from weft.ops.creation import full
from weft.ops.define import Value, capturing, installed
from weft.ops.growing import put_rows
from weft.types import TensorType


@dataclass(eq=False)
class Opened:
    """A list that a loop appends to: how many rows every step appends, None where that depends on
    values, and their type. `found`: then the number of the size that all of them are.
    """

    rows: Any
    type: TensorType
    found: int | None = None


class Growth:
    """The lists that grow in one loop of so many steps; None where that depends on values.
    `stacks`: whether lists may be stacks, which shrink and are read in it too.
    """

    def __init__(self, steps: Any, stacks: bool = True) -> None:
        self.steps, self.may_stack = steps, stacks
        self.found: int | None = None  # the number of steps, where the program finds it
        self.begun: list[tuple[list[Any], Run]] = []
        self.stacks: list[tuple[list[Any], list[Any]]] = []  # with what they consisted of

    def find(self, before: Any, after: Any) -> bool:
        """Make room in the lists that have more elements after a step; whether there are any."""
        found = False
        for x, y in zip(before, after, strict=True):
            if self.may_stack and type(x) is list and type(y) is list and _is_uneven(x, y):
                found = self._stack(x, spec([*x, *y]), len(y) > len(x) or _has_more(y)) or found
                continue
            more = _appended(x, y)
            if more is not None and not any(self._is_open(v) for v in x):
                if not (self.may_stack and isinstance(capturing.now, Region) and self._finds(more)):
                    self._begin(x, more)
                elif not self._stack(x, spec([*x, *more]), True):
                    continue
                found = True
        return found

    def _finds(self, more: list[Any]) -> bool:
        """Whether it depends on values how many elements there will be."""
        return _count(more) is None or (self.steps is None and self.found is None)

    def _begin(self, x: list[Any], more: list[Any]) -> None:
        type_ = row_type(more)
        assert type_ is not None
        rows, found = _count(more), None
        if rows is None:
            found, n = size_to_find()
        else:
            if self.steps is None:
                self.found, self.steps = size_to_find()
            n = self.steps * rows
        room = full(0, shape=(n, *type_.shape), dtype=type_.dtype)
        run = Run(room, are_numbers(more), as_chosen(0), Opened(rows, type_, found))
        refilled(x, [*x, run])
        self.begun.append((x, run))

    def read(self, of: Any) -> bool:
        """A list that grows is read in the loop: whether it can be a stack."""
        at = next((i for i, (_, run) in enumerate(self.begun) if run.loop is of), None)
        if at is None:
            return False
        if not self.may_stack:
            raise refused(
                "a list",
                "a length that is known",
                "one that is still growing, or depends on values",
                "read it after the loop, or keep what is read in a variable of its own",
            )
        x, run = self.begun.pop(at)
        refilled(x, [v for v in x if v is not run])
        if of.found is not None:
            settle(of.found, as_chosen(0))
        row = Run(run.rows, run.numbers)
        return self._stack(x, spec([*x, row]), True)

    def _stack(self, x: list[Any], elements: Spec | None, more: bool) -> bool:
        """Have a list be a stack: if there will be `more` elements, with room for them."""
        if elements is None:
            return False
        known_ = next((old for y, old in self.stacks if y is x), None)
        if known_ is None:
            known_ = list(x)
            self.stacks.append((x, known_))
        if len(x) == 1 and type(x[0]) is Stack and x[0].room is not None:
            refilled(x, [x[0].having(x[0].count, 0)])  # another number at least
        elif more or (x and type(x[0]) is Stack):
            refilled(x, [absorbed(empty(elements, Room.here()), known_)])
        else:
            stacked(x)
        return True

    def drop(self) -> None:
        """Leave the lists as they were found."""
        for x, old in self.stacks:
            refilled(x, old)
        for x, run in self.begun:
            refilled(x, [v for v in x if v is not run])
            if run.loop.found is not None:
                settle(run.loop.found, as_chosen(0))
        if self.found is not None:
            settle(self.found, as_chosen(0))

    def _is_open(self, v: Any) -> bool:
        return type(v) is Run and any(v.loop is run.loop for _, run in self.begun)

    def absorb(self, held: Any) -> None:
        """Put what a step has appended to lists into their rows."""
        for x in lists_in(held):
            if len(x) > 1 and type(x[0]) is Stack and x[0].room is not None:
                x[:] = [absorbed(x[0], x[1:])]
        left = [run.loop for _, run in self.begun if run.loop.rows is not None]
        for x in lists_in(held) if self.begun else ():
            at = next((i for i, v in enumerate(x) if self._is_open(v)), None)
            if at is not None and at + 1 < len(x):
                left = [loop for loop in left if loop is not x[at].loop]
                x[at:] = [_put(x[at], x[at + 1 :])]
        if left:
            raise _uneven()

    def runs(self) -> bool:
        """Whether there are lists that grow, and a step at least."""
        sizes: list[Any] = [run.rows.type.shape[0] for _, run in self.begun]
        return bool(sizes) and all(n > 0 for n in sizes)

    def end(self, held: Any) -> None:
        """Every step has appended what it appends: all rows are elements."""
        if self.found is not None and not self.begun:  # it was for lists that are stacks now
            settle(self.found, as_chosen(0))
        for x in lists_in(held) if self.begun else ():
            for i, v in enumerate(x):
                if self._is_open(v):
                    if v.loop.found is not None:
                        settle(v.loop.found, v.count)
                    elif self.found is not None:
                        settle(self.found, v.count // v.loop.rows)
                    x[i] = Run(v.rows, v.numbers)


@enable_grad()
def _put(run: Run, more: list[Any]) -> Run:
    """A run with what a step has appended."""
    if row_type(more) is not run.loop.type or _count(more) != run.loop.rows:
        raise _uneven()
    assert run.count is not None
    count = installed.tensor(run.count.data)
    if run.loop.rows is None:
        rows, count = put(run.rows, count, more)
    else:
        rows = put_rows(run.rows, count, *map(as_tensor, more))
        count = count + run.loop.rows
    for v in more:
        value = v.value if type(v) is Maybe else v.rows if type(v) is Run else v
        if isinstance(value, Value):
            same(rows, run.rows, value)
    return Run(rows, run.numbers, Chosen.of(count), run.loop)


def _is_uneven(x: list[Any], y: list[Any]) -> bool:
    """Whether a list has more or fewer elements after a step in a way that a stack has."""
    both = len(x) == len(y) == 1 and type(x[0]) is Stack and type(y[0]) is Stack
    if both and y[0].least > x[0].least:
        y[0] = y[0].having(y[0].count, x[0].least)
    if flatten(x)[1] == flatten(y)[1]:
        return False
    return any(type(v) is Stack for v in (*x, *y)) or _appended(x, y) is None


def _has_more(y: list[Any]) -> bool:
    """Whether elements may have been put behind others."""
    return any(type(v) in GROWN and type(v) is not Stack for v in y) or (
        len(y) > 1 and type(y[0]) is Stack
    )


def _uneven() -> CaptureError:
    return refused(
        "a loop",
        "as many elements of one type appended in every step",
        "others in a later step",
        "append the same in every step, or read the list after the loop",
    )


def lists_in(x: Any) -> Iterator[list[Any]]:
    """The lists in a structure."""
    if type(x) in (list, tuple):
        if type(x) is list:
            yield x
        for v in x:
            yield from lists_in(v)
    elif isinstance(x, dict):
        for v in x.values():
            yield from lists_in(v)


def _appended(before: Any, after: Any) -> list[Any] | None:
    """What a list has more than before, if it could be the rows of a tensor."""
    if type(before) is not list or type(after) is not list or len(after) <= len(before):
        return None
    if flatten(before)[1] != flatten(after[: len(before)])[1]:
        return None
    more = after[len(before) :]
    return None if row_type(more) is None else more


def _count(x: list[Any]) -> Any:
    """How many elements there are, if that does not depend on values."""
    if any(type(v) is Maybe for v in x):
        return None
    return sum(v.rows.type.shape[0] if type(v) is Run else 1 for v in x)
