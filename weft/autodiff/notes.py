"""What the tape is made of: how values came about, and where that leads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from weft.buffer import Buffer
from weft.ops.define import Call, Value, capturing
from weft.types import TensorType


class Leaf:
    """Where a gradient ends: the `grad` of a tensor that requires one."""

    __slots__ = ("grad",)
    serial = -1

    def __init__(self) -> None:
        self.grad: Value | None = None


def new_leaf(x: Value) -> Leaf:
    """A leaf for a tensor; if it is part of a graph, the capture under way is told whose it is."""
    out = Leaf()
    if capturing.now is not None and not isinstance(x.data, Buffer):
        capturing.now.own_leaf(out)
    return out


def inner_leaf() -> Leaf:
    """A leaf that is nobody's but the transform's that made it: its gradient is no state."""
    out = Leaf()
    if capturing.now is not None:
        capturing.now.own_leaf(out)
    return out


class Note:
    """How a value came about. `saved` is None once the note has been used up."""

    __slots__ = ("call", "output", "parents", "saved", "serial")

    def __init__(
        self,
        call: Call,
        parents: tuple[Any, ...],
        saved: tuple[Any, ...] | None,
        output: Any,
        serial: int,
    ) -> None:
        self.call, self.parents, self.saved, self.output, self.serial = (
            call,
            parents,
            saved,
            output,
            serial,
        )


class Continued(Call):
    """A call whose gradient goes on with the sums that cotangents have come to so far: control
    flow, whose own contributions must be added one by one, as if its ops stood in the tape.

    `pull(xs, g, parents, sums)` takes the operands, the cotangents of results by position, the
    parents whose cotangents are wanted (None for others) and their sums so far (None: nothing yet);
    it gives the new sums by parent.
    """

    __slots__ = ("owes", "pull")
    pull: Callable[..., dict[Any, Value]]
    owes: bool  # whether it takes, and gives to leaves, sums that are not added up yet


class Part(Call):
    """A call that gives a part of its first operand which in eager code is a value of its own: its
    cotangents are added there one by one as they arrive.

    `widen(g)` is the cotangent of the operand with one of the part in it and -0.0 elsewhere,
    `read(sum)` the part's sum in the operand's, `put(sum, total)` the operand's with another one.
    """

    __slots__ = ("put", "read", "was", "widen")
    widen: Callable[[Value], Value]
    read: Callable[[Value], Value]
    put: Callable[[Value, Value], Value]
    was: Any  # what the value's note was before it became a part, if it was a value before


#: whether a value that has become a part is followed there; gradients of gradients follow it to
#: where it was before
parting: ContextVar[bool] = ContextVar("weft_parting", default=True)


class apart:
    """A block in which what has become a part is not followed there; it may be entered again."""

    def __enter__(self) -> None:
        self.token = parting.set(False)

    def __exit__(self, *problem: object) -> None:
        parting.reset(self.token)


def leads_to(n: Note) -> tuple[Any, ...]:
    """Where cotangents of a note go."""
    call = n.call
    if call.__class__ is Part and call.was is not None and not parting.get():
        return (call.was,)
    return n.parents


class Row(Call):
    """A call that puts its operands behind each other; in eager code they stay values of their own:
    cotangents go on to each of them as they arrive.

    `split` has a function per operand for its part of a cotangent, `join(sums)` is the whole's sum,
    of which those of some operands may be missing.
    """

    __slots__ = ("join", "split")
    split: Sequence[Callable[[Value], Value]]
    join: Callable[[Sequence[Value | None]], Value]


class Pick(NamedTuple):
    """One result of a note whose call had several. Control flow has others: what a path computed on
    the way, by its note there.
    """

    note: Note
    position: Any

    @property
    def serial(self) -> int:
        return self.note.serial


class Absent:
    """Stands for the data of a value that a gradient does not read: its type is known, its
    elements are gone.
    """

    __slots__ = ("type",)

    def __init__(self, type_: TensorType) -> None:
        self.type = type_


next_serial: list[Callable[[], int]] = [
    itertools.count().__next__
]  # the runtime puts its native counter here


#: calls whose results have no sums of their own: parts of lists, and what is put together of them
PARTS = (Part, Row)


def frontier(
    roots: Sequence[Any],
    since: int,
    parts_since: int | None = None,
    types: dict[Any, Any] | None = None,
) -> list[Any]:
    """The notes older than `since`, and leaves, that newer ones lead to. Older `PARTS` are gone
    through if they were made since `parts_since`; `types` is told of what they are parts of.
    """
    parts_since = since if parts_since is None else parts_since
    found: dict[Any, None] = {}
    seen: set[Any] = set()
    stack = [r for r in reversed(roots) if r is not None]
    while stack:
        target = stack.pop()
        if target in seen:
            continue
        seen.add(target)
        n = target.note if isinstance(target, Pick) else target
        if isinstance(n, Leaf) or (
            n.serial < since and (n.serial < parts_since or n.call.__class__ not in PARTS)
        ):
            found[target] = None
            continue
        if types is not None and n.call.__class__ in PARTS:
            to = leads_to(n)
            of = n.call.types if to is n.parents else (n.call.out,)
            types.update(zip(to, of, strict=True))
        stack.extend(p for p in reversed(leads_to(n)) if p is not None)
    return list(found)


def note_of(target: Any) -> Any:
    return target.note if target.__class__ is Pick else target
