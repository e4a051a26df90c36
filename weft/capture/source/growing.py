"""Lists that a loop of the program appends to.

The loop's state has a tensor with a row for every element that will be appended, and how many have
been. What a step appends is put into its rows at the end of the step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from weft.capture.chosen import Chosen, as_chosen
from weft.capture.refusal import refused
from weft.capture.runs import (
    Maybe,
    Run,
    are_numbers,
    as_tensor,
    put,
    refilled,
    row_type,
    settle,
    size_to_find,
)  # fmt: skip
from weft.capture.structure import flatten
from weft.errors import CaptureError
from weft.ops.creation import full
from weft.ops.define import installed
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
    """The lists that grow in one loop of so many steps; None where that depends on values."""

    def __init__(self, steps: Any) -> None:
        self.steps = steps
        self.found: int | None = None  # the number of steps, where the program finds it
        self.begun: list[tuple[list[Any], Run]] = []

    def find(self, before: Any, after: Any) -> bool:
        """Make room in the lists that have more elements after a step; whether there are any."""
        found = False
        for x, y in zip(before, after, strict=True):
            more = _appended(x, y)
            if more is not None and not any(self._is_open(v) for v in x):
                self._begin(x, more)
                found = True
        return found

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

    def drop(self) -> None:
        """Leave the lists as they were found."""
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
        for x in lists_in(held) if self.begun else ():
            for i, v in enumerate(x):
                if self._is_open(v):
                    if v.loop.found is not None:
                        settle(v.loop.found, v.count)
                    elif self.found is not None:
                        settle(self.found, v.count // v.loop.rows)
                    x[i] = Run(v.rows, v.numbers)


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
    return Run(rows, run.numbers, Chosen.of(count), run.loop)


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
