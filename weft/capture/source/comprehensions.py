"""Comprehensions and sums: loops that are expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.capture.chosen import as_chosen
from weft.capture.refusal import refused
from weft.capture.source.calls import OF_SEQUENCES
from weft.capture.source.flow import Thunk, iterate, nothing
from weft.capture.source.ranges import Range, counted, is_symbolic
from weft.capture.source.reads import changing, made, seen
from weft.capture.source.sequences import sequence
from weft.capture.source.symbolic import branch
from weft.capture.stacks import is_stack
from weft.errors import CaptureError
from weft.ops.define import Value, capturing


def comprehension(items: Any, piece: Callable[[Any], list[Any]], lists: bool = False) -> Any:
    """A list of what `piece` makes of items, or of `lists` that it makes; a loop of the program has
    it make it of one at a time.
    """

    def of(xs: Any) -> list[Any]:
        return [v for part in piece(xs) for v in part] if lists else piece(xs)

    found = sequence(items)
    if found is None:
        return of(iterate(items))
    out: list[Any] = made([])

    def step(i: Any) -> None:
        changing(out, "a comprehension")
        out.extend(of([found.at(i)]))

    try:
        counted(Range(0, found.length), step, tuple, nothing, (), None)
    except CaptureError:  # step by step, then
        return of(iterate(items))
    if found.least and is_stack(out) and not lists:
        out[0] = out[0].having(out[0].count, found.least)
    return out


def kept(condition: Any, value: Thunk) -> list[Any]:
    """The value, if the condition holds."""
    if not is_symbolic(condition):
        return [value()] if seen(condition) else []
    out: list[Any] = made([])

    def add() -> None:
        changing(out, "a comprehension")
        out.append(value())

    branch(condition, add, lambda: None, tuple, nothing, ())
    return out


def gathered(f: Any, items: Thunk, whole: Thunk) -> Any:
    """What a function is given to go through: all at once, where that is what it does."""
    gathers = f in (sum, list, tuple, max, min, sorted, set)
    return whole() if gathers and capturing.now is not None else items()


def _sum(items: Any, /, start: Any = 0) -> Any:
    """`sum`, where it is better a loop of the program."""
    found = sequence(items)
    if found is None:
        return NotImplemented
    if isinstance(found.length, Value):
        if found.least < 1:
            raise refused("sum", "a list that has an element at least", "one that may have none")
    elif found.length < 1:
        return NotImplemented
    total = start + found.at(as_chosen(0))

    def step(i: Any) -> None:
        nonlocal total
        total = total + found.at(i)

    def put(value: Any) -> None:
        nonlocal total
        total = value

    try:
        counted(Range(1, found.length), step, lambda: (total,), put, ("the sum",), None)
    except CaptureError:
        return NotImplemented
    return total


OF_SEQUENCES[sum] = _sum
