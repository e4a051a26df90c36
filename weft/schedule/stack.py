"""A stack of values that grows: what a loop of unknown length keeps for its reverse.

Its handle is three words of the arena: where its memory is, how many entries it has, how many bytes
it has room for. The engine zeroes handles before a program and frees the memory after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.buffer import Layout
from weft.schedule.launch import Launch, Phase
from weft.types import TensorType
from weft.types.dtype import bool_
from weft.types.record import dataclass

#: bytes of a handle
HANDLE = 24
_ALIGN = 64


@dataclass(frozen=True)
class Stack:
    """`what` is push, pop or more. Operands: the handle, then `count` values, or for more a bool.

    Params of push and pop: bytes of an entry; then, for each value, where it begins in an entry and
    its bytes. Of more: the number of entries to have more than.
    """

    what: str
    count: int

    def key(self) -> str:
        return f"stack {self.what} {self.count}"


def plan_push(values: Sequence[Layout]) -> Launch:
    """All of them, dense, become an entry."""
    return Launch((), (Phase(Stack("push", len(values)), 1),), _places(values))


def plan_pop(values: Sequence[Layout]) -> Launch:
    """The last entry goes back to where its values were."""
    return Launch((), (Phase(Stack("pop", len(values)), 1),), _places(values))


def plan_more(than: int) -> Launch:
    """Whether there are more entries than so many."""
    out = Layout.dense(TensorType((), bool_))
    return Launch((out,), (Phase(Stack("more", 1), 1),), (than,))


def _places(values: Sequence[Layout]) -> tuple[int, ...]:
    out: list[int] = []
    end = 0
    for v in values:
        out += (end, v.type.nbytes)
        end += -(-v.type.nbytes // _ALIGN) * _ALIGN
    return (max(end, _ALIGN), *out)
