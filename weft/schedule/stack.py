"""Stacks of values that grow: what a loop of unknown length keeps for its reverse.

A stack keeps the state before every step, or, once it has as many entries as it may, before every
second, fourth, … step: it is thinned out, every second entry dropped, whenever it is full. The
states between two entries are computed again when the reverse gets there, onto a stack of their
own. A stack of 256 and a loop of 10,000 steps: 157 entries, and 64 states in between.

A handle is words of the arena (`Field`). The engine zeroes handles before a program and frees the
memory after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from weft.buffer import Layout
from weft.schedule.launch import Launch, Phase
from weft.types import TensorType
from weft.types.dtype import bool_, int64
from weft.types.record import dataclass


class Field(IntEnum):
    """Words of a handle."""

    MEMORY = 0
    COUNT = 1  # entries
    ROOM = 2  # bytes
    STRIDE = 3  # steps an entry stands for
    STEPS = 4  # whose states were given and not taken back
    MISSING = 5  # steps between the last entry taken back and the state wanted


#: the layout of a handle
HANDLE = Layout.dense(TensorType((len(Field),), int64))
_ALIGN = 64


@dataclass(frozen=True)
class Stack:
    """What is done to a stack of entries of `count` values.

    - clear (handle): there is nothing in it, from no steps.
    - keep (handle, *values): a step's state, which becomes an entry if it is one's turn. Params:
      the most entries, 0 for any number.
    - more (handle, bool): whether a field is more than a number. Params: the number, the field.
    - back (handle, *values): the last entry, taken back; says how many steps are missing from
      there.
    - last (handle, *values): the state before the last step, taken back, of a stack with every one.
    - short (handle, other, bool): whether the other has not more entries than steps are missing.
    - pop (handle, other, *values): the last entry of the other, taken back; one step less.

    Of keep, back, last and pop further params are: bytes of an entry; for each value, where it
    begins in an entry and its bytes.
    """

    what: str
    count: int = 0

    def key(self) -> str:
        return f"stack {self.what} {self.count}"


def plan_clear() -> Launch:
    return _launch("clear", 0, ())


def plan_keep(values: Sequence[Layout], most: int) -> Launch:
    return _launch("keep", len(values), (most, *_places(values)))


def plan_more(than: int, field: Field) -> Launch:
    return _launch("more", 0, (than, int(field)), _FLAG)


def plan_back(values: Sequence[Layout]) -> Launch:
    return _launch("back", len(values), _places(values))


def plan_last(values: Sequence[Layout]) -> Launch:
    return _launch("last", len(values), _places(values))


def plan_short() -> Launch:
    return _launch("short", 0, (), _FLAG)


def plan_pop(values: Sequence[Layout]) -> Launch:
    return _launch("pop", len(values), _places(values))


_FLAG = Layout.dense(TensorType((), bool_))


def _launch(what: str, count: int, params: tuple[int, ...], *outs: Layout) -> Launch:
    return Launch(outs, (Phase(Stack(what, count), 1),), params)


def _places(values: Sequence[Layout]) -> tuple[int, ...]:
    out: list[int] = []
    end = 0
    for v in values:
        out += (end, v.type.nbytes)
        end += -(-v.type.nbytes // _ALIGN) * _ALIGN
    return (max(end, _ALIGN), *out)


def entry(values: Sequence[Layout]) -> int:
    """Bytes of an entry."""
    return _places(values)[0]
