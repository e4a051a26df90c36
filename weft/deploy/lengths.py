"""Programs with sizes that they find out themselves: how many elements a list has when a loop that
depends on values is over.

A program of known sizes is made for every length that occurs. Which it is, a smaller one says
first: the loop without what it does besides, with no room for the list. So the loop runs twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from weft.buffer import Buffer
from weft.buffer.interchange import read_number
from weft.capture.capture import Captured, Output
from weft.capture.instantiate import instantiate
from weft.capture.stacks import ENDED
from weft.capture.structure import LEAF
from weft.control.host import silent
from weft.errors import CaptureError, ShapeError
from weft.ir import Function, Node
from weft.ops.define import Value, constant
from weft.runtime.executable import Executable, fits, unchanged
from weft.types.expression import ITSELF

#: programs of one function that are kept
KEPT = 256
#: rows that a stack has at least
_LEAST = 8

Build = Callable[[Captured], Executable]


class Lengths:
    """A program that finds sizes, and its instances at the sizes of calls."""

    direct = False

    def __init__(self, captured: Captured, build: Build) -> None:
        assert captured.symbols is not None
        self.captured, self.build, self.symbols = captured, build, captured.symbols
        self.made: dict[Any, Executable] = {}
        self.rooms: dict[int, int] = {}  # what was enough so far
        self.latest = threading.local()  # arguments that were looked at, with what was found

    def full(self, leaves: list[Any]) -> list[Any]:
        """The arguments of a call, and what the program finds in it."""
        while True:  # until no room has grown: a loop may end by any of them
            known = dict(self.rooms)
            out = self._full(leaves)
            if len(self.captured.rooms) < 2 or known == self.rooms:
                return out

    def _full(self, leaves: list[Any]) -> list[Any]:
        out = list(leaves)
        for i, node in enumerate(self.captured.found):
            known = _constant(node)
            if known is not None:
                out.append(known)
                continue
            room = self.rooms.get(i, 0)
            while True:
                given = [*out, room] if i in self.captured.rooms else out
                counter = self._made(("count", i), given, partial(self._counting, node))
                n = int(counter(given).item())
                if i not in self.captured.rooms:
                    n = max(n, 0)  # of a path that is not taken it may be anything
                    break
                n %= ENDED
                if n <= room:
                    n = room
                    break
                room = max(_LEAST, 1 << (n - 1).bit_length())
            if i in self.captured.rooms:
                self.rooms[i] = n
            out.append(n)
        return out

    def _counting(self, node: Node | None) -> Captured:
        """The program of one size."""
        captured = self.captured
        assert node is not None
        f = silent(Function(captured.function.name, captured.function.params, (node,)))
        return replace(
            captured, function=f, form=LEAF, outputs=(Output(result=0),), writes=(), drawn=0,
            counter=None, noted=(), seeds=(), slopes=(), sums=(), spent=(),
        )  # fmt: skip

    def _made(self, what: Any, leaves: list[Any], captured: Callable[[], Captured]) -> Executable:
        """A program at the sizes of these arguments; those not found yet are none, and rooms are
        what was enough so far.
        """
        late = range(len(leaves) - self.symbols.arguments, len(self.symbols.found))
        every = [*leaves, *[self.rooms.get(i, 0) for i in late]]
        sizes = [every[i] for i, a in self.symbols.places if a == ITSELF]
        key = (what, *sizes, *[x.type for x in leaves if isinstance(x, Value)])
        found = self.made.get(key)
        if found is None:
            if len(self.made) >= KEPT:
                self.made.clear()
            try:
                found = self.build(instantiate(captured(), every))
            except ShapeError as e:  # of a path that may not be taken
                name = self.captured.function.name
                hint = "keep lists that shrink out of it, or run it eagerly"
                raise CaptureError(
                    name, expected="lists that every path has elements of", got=str(e), hint=hint
                ) from e
            self.made[key] = found
        return found

    def at(self, full: list[Any]) -> Executable:
        """The program for arguments and what was found."""
        return self._made("whole", full, lambda: self.captured)

    # what is asked of any program, and of any that has instances

    def fits(self, leaves: list[Any]) -> bool:
        """Whether the program is right for a call."""
        self.latest.call = None
        if not (unchanged(self.captured) and fits(self.captured, leaves)):
            return False
        if self.symbols.failure(leaves) is not None:
            return False
        full = self.full(leaves)
        self.latest.call = leaves, full
        return self.symbols.failure(full) is None

    fit = fits

    def for_call(self, programs: dict[Any, list[Any]], key: Any, leaves: list[Any]) -> Lengths:
        """Itself, for calls of another kind too."""
        programs.setdefault(key, []).append(self)
        return self

    @property
    def found(self) -> tuple[int, ...] | None:
        """What was found in the call that was looked at last, if it came to that."""
        call = self.latest.call
        return None if call is None else self.sizes(call[1])

    def prepare(self) -> None:
        """Make the program for the call that was looked at last, if it came to that."""
        if self.latest.call is not None:
            self.at(self.latest.call[1])

    def sizes(self, full: list[Any]) -> tuple[int, ...]:
        """What was found, of all."""
        return tuple(full[self.symbols.arguments :])

    def __call__(self, leaves: list[Any]) -> Any:
        call = getattr(self.latest, "call", None)
        full = call[1] if call is not None and call[0] is leaves else self.full(leaves)
        self.latest.call = None
        return self.at(full)(full)


def _constant(node: Node | None) -> int | None:
    """What a size is that no call changes."""
    if node is None or node.op is not constant:
        return None
    value = node.attr("value")
    return int(read_number(value)) if isinstance(value, Buffer) else int(value)
