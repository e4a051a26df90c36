"""What a loop carries that is one of several things: which, is found by running its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.capture.refusal import refused
from weft.capture.things import is_fit, opened
from weft.capture.unions import Pick, as_pick, differ, empty, kinds_of, reaches, spread
from weft.control.region import Region

Place = tuple[int, ...]


class Unions:
    """The places in a loop's state that hold one of several things, and which."""

    def __init__(self) -> None:
        self.kinds: dict[Place, list[Any]] = {}

    def widened(self, state: Any) -> Any:
        """The state before a step."""

        def wide(place: Place, x: Any, _: Any) -> Any:
            kinds = self.kinds.get(place)
            return None if kinds is None else as_pick(x, kinds, [*map(empty, kinds)], None)

        return _walk((), state, state, wide) if self.kinds else state

    def find(self, before: Any, after: Any) -> bool:
        """Learn from a step; whether there is anything new."""
        found = False

        def learn(place: Place, x: Any, y: Any) -> Any:
            nonlocal found
            if not (type(x) is Pick or type(y) is Pick or differ(x, y)):
                return None
            parts = [p for v in (x, y) for p in spread(v)[1].values()]
            if all(map(is_fit, parts)):
                known = self.kinds.get(place, [])
                kinds = kinds_of([*known, *map(empty, parts)])
                if len(kinds) > max(1, len(known)):
                    self.kinds[place], found = kinds, True
            return y

        _walk((), before, after, learn)
        return found

    def of_step(self, before: Any, after: Any, body: Region) -> Any:
        """The state after a step."""

        def as_before(place: Place, x: Any, y: Any) -> Any:
            kinds = self.kinds.get(place)
            if kinds is None:
                return None
            for p in spread(y)[1].values():
                if reaches(p, body):
                    raise refused(
                        "a loop",
                        "functions and objects that hold nothing a step has computed",
                        f"a {type(p).__name__} made in the loop that does",
                        "make it before the loop, or carry the tensors",
                    )
            return as_pick(y, kinds, [*map(empty, kinds)], body)

        return _walk((), before, after, as_before) if self.kinds else after


def _walk(place: Place, x: Any, y: Any, f: Callable[[Place, Any, Any], Any]) -> Any:
    """The second of two structures, with what `f` gives of parts that it gives something of."""
    found = f(place, x, y)
    if found is not None:
        return found
    one, two = opened(x), opened(y)
    if one is None or two is None or one[0] != two[0]:
        return y
    pairs = zip(one[1], two[1], strict=True)
    parts = [_walk((*place, i), a, b, f) for i, (a, b) in enumerate(pairs)]
    return two[0].build(parts) if any(a is not b for a, b in zip(parts, two[1], strict=True)) else y
