"""What loops of the program go through besides ranges: tensors, lists that grew in other loops, and
`enumerate`, `zip` and `reversed` of such.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from weft.capture.chosen import Chosen, as_chosen
from weft.capture.perhaps import Perhaps, depends
from weft.capture.refusal import refused
from weft.capture.runs import (
    GROWN,
    Maybe,
    concat,
    is_grown,
    is_open,
    is_unclear,
    is_uniform,
    joined,
    length,
    pop,
    stack,
)
from weft.capture.source.calls import GROWN_METHODS, OF_SEQUENCES, SPECIAL
from weft.capture.source.reads import changing, made
from weft.capture.stacks import emptied, stacked
from weft.ops.define import Value, capturing, data_of, installed
from weft.ops.elementwise import minimum
from weft.tensor import manipulation
from weft.types.size import Size

#: steps beyond which going through something is a loop of the program wherever it can be
LONG = 16


@dataclass
class Sequence:
    """So many elements, each made by its number."""

    length: Any
    at: Callable[[Any], Any]
    least: int = 0  # how many there are at least, if the program decides it

    def __len__(self) -> int:
        return operator.index(self.length)

    def __iter__(self) -> Iterator[Any]:
        return map(self.at, map(as_chosen, range(len(self))))


def sequence(x: Any) -> Sequence | None:
    """What a loop of the program goes through; None if it is better gone through while captured."""
    now = capturing.now
    if now is None or now.by_hand:
        return None
    if type(x) is Sequence:
        return x
    if isinstance(x, Value) and x.type.ndim:
        n: Any = x.type.shape[0]
        return Sequence(n, lambda i: x[i]) if type(n) is Size or n > LONG else None
    if not is_grown(x):
        return None
    if is_open(x):
        stack = stacked(x)
        return Sequence(stack.count, stack.at, stack.least)
    run = joined(x)
    n = run.rows.type.shape[0]
    return Sequence(n, run.at) if type(n) is Size or n > LONG else None


# functions of sequences


def _enumerate(items: Any, start: Any = 0) -> Any:
    found = sequence(items)
    if found is None:
        return NotImplemented
    at = lambda i: (i + start if start else i, found.at(i))
    return Sequence(found.length, at, found.least)


def _reversed(items: Any) -> Any:
    found = sequence(items)
    if found is None:
        return NotImplemented
    return Sequence(found.length, lambda i: found.at(found.length - 1 - i), found.least)


def _zip(*items: Any, strict: bool = False) -> Any:
    found = [sequence(x) for x in items]
    if not found or any(s is None for s in found):
        return NotImplemented
    n = found[0].length  # type: ignore[union-attr]
    for s in found[1:]:
        m = s.length  # type: ignore[union-attr]
        if isinstance(m, Value) or isinstance(n, Value):
            if strict:
                raise refused("zip", "lengths that are known", "some that depend on values")
            n = Chosen.of(minimum(*[_plain(k) for k in (m, n)]))
        elif m != n:
            if strict:
                return NotImplemented  # Python says what is wrong
            n = m if m < n else n
    return Sequence(n, lambda i: tuple([s.at(i) for s in found]))  # type: ignore[union-attr]


OF_SEQUENCES.update({builtins.enumerate: _enumerate, builtins.reversed: _reversed})
OF_SEQUENCES[builtins.zip] = _zip


def _plain(n: Any) -> Value:
    """A number as a plain tensor."""
    return installed.tensor(data_of(as_chosen(n)))


# functions and methods of lists that grew in loops


def _of_grown(f: Callable[..., Any], uniform: bool = False) -> Callable[..., Any]:
    def run(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_grown(x) or (uniform and not is_uniform(x)):
            return NotImplemented
        if uniform and joined(x).rows.type.shape[0] < 1:
            return NotImplemented  # Python says what is wrong
        return f(x, *args, **kwargs)

    return run


def _copied(x: list[Any]) -> list[Any]:
    return made(list(x))  # type: ignore[no-any-return]


def _concat(x: list[Any], *, axis: int | None = 0) -> Any:
    if axis is None:
        return NotImplemented
    return concat(x, axis)


def _len(x: Any) -> Any:
    if depends(x):
        there = [v.flag for v in x.values() if type(v) is Perhaps]
        return sum([Maybe(None, flag).count for flag in there], len(x) - len(there))
    return length(x) if is_grown(x) else len(x)


SPECIAL[len] = _len
OF_SEQUENCES[list] = _of_grown(_copied)
OF_SEQUENCES[manipulation.stack] = _of_grown(stack, uniform=True)
OF_SEQUENCES[manipulation.concat] = _of_grown(_concat, uniform=True)


def _append(x: list[Any], v: Any) -> None:
    changing(x, "list.append()")
    x.append(v)


def _extend(x: list[Any], more: Any) -> None:
    changing(x, "list.extend()")
    x.extend(more if type(more) is list else list(more))


def _pop(x: list[Any], at: Any = -1) -> Any:
    if is_unclear(x) and type(x[-1]) in GROWN:
        stacked(x)
    changing(x, "list.pop()")
    return pop(x, at)


def _clear(x: list[Any]) -> None:
    if is_unclear(x):
        stacked(x)
    changing(x, "list.clear()")
    emptied(x)


GROWN_METHODS.update({"append": _append, "extend": _extend, "pop": _pop, "clear": _clear})
GROWN_METHODS["copy"] = _copied
