"""Sums of values that a loop's steps put into lists, where a gradient of a gradient goes forth.

What a step has put is an element of the list, and what is added to it is added to the element: to a
row of the sum that the list as a whole has, in which the loop's way back begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.control.growing import Put, go_on
from weft.control.region import Region
from weft.control.store import neutral
from weft.ops.define import Value
from weft.ops.elementwise import where
from weft.ops.growing import put_rows


class Listed:
    """The values of a loop's steps that are elements of lists, of those whose sums are `asked` for:
    parts of the state that were `handed` on, and others `aside`.
    """

    def __init__(
        self, loop: Any, handed: Sequence[int], aside: Sequence[Any], asked: Sequence[Any]
    ) -> None:
        self.loop = loop
        known = [p for p in loop.put if loop.results[p.rows] in asked]
        #: by the parts of the state that they are
        self.carried: dict[int, Put] = {p.state: p for p in reversed(known) if p.state in handed}
        #: by the notes of the values
        self.appended: dict[Any, Put] = {p.note: p for p in reversed(known) if p.note in aside}
        put = (*self.appended.values(), *self.carried.values())
        #: the lists, by the parts of the state that they are: the notes of their results
        self.wholes = {p.rows: loop.results[p.rows] for p in put}
        self.sums: dict[int, Value] = {}  # as they are at the start of a step

    def always(self, e: Any) -> bool:
        """Whether a value, by its note in a step, is an element of some list at every step."""
        p = self.carried.get(self.loop.place.get(e))
        return p.spot is None if p is not None else e in self.appended and self.appended[e].always

    def start(self, forth: Region) -> list[Value]:
        """Params for the lists' sums."""
        self.sums = {r: forth.parameter(self.loop.outs[r].type) for r in self.wholes}
        return list(self.sums.values())

    def end(self, i: int, otherwise: Value) -> Value:
        """What the sum of a part of the state has come to when a step ends."""
        if i not in self.carried:
            return otherwise
        p = self.carried[i]
        row = p.read(self.sums[p.rows])
        return row if p.spot is None else where(p.here() < 0, otherwise, row)

    def begin(self, sums: dict[Any, Value]) -> None:
        """What the sums of the others have come to before it."""
        for e, p in self.appended.items():
            go_on(sums, e, p.read(self.sums[p.rows]))

    def apart(self, e: Any, x: Value, starts: bool) -> Value:
        """The sum of a value where it is no element, else nothing. `starts`: at the first step."""
        part = self.loop.place.get(e)
        if e in self.appended:
            missing = self.appended[e].here() < 0
        elif part in self.carried and not starts:
            missing = self.carried[part].last(self.loop.params) < 0
        else:
            return x
        return where(missing, x, neutral(x.type))  # type: ignore[no-any-return]

    def rows(
        self, found: dict[Any, Value], begun: dict[Any, Value], handed_on: dict[int, Value]
    ) -> list[Value]:
        """The sums that a step comes to."""
        leaves = self.loop.leaves
        ahead = [found.get(e, begun.get(e)) for e in self.appended]
        return [*ahead, *(found.get(leaves[i], handed_on[i]) for i in self.carried)]  # type: ignore[list-item]

    def put(self, rows: Sequence[Value], is_first: Value) -> list[Value]:
        """The lists' sums with them. Before the first step nothing was put."""
        out = dict(self.sums)
        left = iter(rows)
        for p in self.appended.values():
            out[p.rows] = put_rows(out[p.rows], p.here(), next(left))
        for p in self.carried.values():
            place = where(is_first, -1, p.last(self.loop.params))
            out[p.rows] = put_rows(out[p.rows], place, next(left))
        return list(out.values())

    def finish(self, found: dict[Any, Value], ended: dict[int, Value], sums: Any) -> None:
        """What the last step has put and left in the state is an element, or the loop's result."""
        for i, p in self.carried.items():
            place, whole, n = p.last(self.loop.outs), self.wholes[p.rows], self.loop.results[i]
            found[whole] = put_rows(found[whole], place, ended[i])
            if p.spot is not None:
                before = sums[n] if n in sums else neutral(ended[i].type)
                found[n] = where(place < 0, ended[i], before)
