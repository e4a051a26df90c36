"""The variables, lists and dicts of a loop: which have no value before it, which stay one list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.capture import perhaps
from weft.capture.join import UNDEFINED, Unjoined, is_undefined
from weft.capture.perhaps import Perhaps, Unsure
from weft.capture.refusal import refused
from weft.capture.source.reads import CONTAINERS, guards
from weft.control.region import Region


class Again(Exception):
    """What a loop changes is known better now."""


class Held:
    """A list, dict or set that a variable holds, whatever is in it."""

    def __init__(self, x: Any) -> None:
        self.x = x


def held_object(x: Any) -> Any:
    return x.x if type(x) is Held else x


class Variables:
    """What is known of a loop's variables, of these names."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.dicts: list[tuple[dict[Any, Any], dict[Any, Any]]] = []  # which it gives keys: before
        self.rebound: set[int] = set()  # variables that have another list after a step
        self.objects: dict[int, Held] = {}
        self.begun: dict[int, Any] = {}  # variables that a step may define: what they are before

    def drop(self) -> None:
        """Leave dicts as they were found."""
        for x, content in reversed(self.dicts):
            perhaps.refilled(x, content)

    # variables that may have no value

    def defined_before(self, now: Sequence[Any]) -> list[Any]:
        """The variables when the loop begins."""
        return [self.begun.get(i, x) if x is UNDEFINED else x for i, x in enumerate(now)]

    def defined(self, before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
        """The variables after a step, of which some are defined that were not before."""
        out = list(after)
        for i, (x, y) in enumerate(zip(before, after, strict=True)):
            known = type(y) is not Unjoined and type(self.names[i]) is Unsure
            if type(x) is Perhaps or (y is UNDEFINED and x is not y and known):
                if type(x) is not Perhaps:
                    self.begun[i] = Perhaps(x, True)
                    raise Again
                _, out[i] = perhaps.sides(x, y, ())
            elif x is UNDEFINED and y is not UNDEFINED and known:
                self.begun[i] = perhaps.missing(y)
                raise Again
            elif is_undefined(x):
                out[i] = x
        return out

    # variables that hold one list, dict or set all the time: what is in it is a place of its own

    def held(self, i: int, x: Any) -> Any:
        if type(x) not in CONTAINERS or i in self.rebound:
            return x
        return self.objects.setdefault(id(x), Held(x))

    def kept(self, i: int, x: Any, body: Region) -> Any:
        """A variable at the end of a step."""
        if type(x) in CONTAINERS and i not in self.rebound and id(x) not in self.objects:
            self.rebound.add(i)
            raise Again
        if type(x) not in CONTAINERS or i not in self.rebound:
            return self.held(i, x)
        if id(x) in guards().made and id(x) not in body.objects:
            raise refused(
                "a loop",
                "variables that hold one list, or a new one in every step",
                f"{self.names[i]}, which has one that there was before",
                "use one name for the list, or copy it: list(x)",
            )
        return x

    def find_keys(self, before: Sequence[Any], after: Sequence[Any]) -> bool:
        """Have dicts hold the keys that a step gives them; whether there are any."""
        found = False
        for x, y in zip(before, after, strict=True):
            if type(x) is not dict or type(y) is not dict:
                continue
            more = {k: perhaps.missing(v) for k, v in y.items() if k not in x}
            gone = {k: Perhaps(v, True) for k, v in x.items() if k not in y}
            gone = {k: x[k] if type(x[k]) is Perhaps else v for k, v in gone.items()}
            if more or any(type(x[k]) is not Perhaps for k in gone):
                self.dicts.append((x, dict(x)))
                perhaps.refilled(x, {**x, **gone, **more})
                found = True
            elif perhaps.depends(x) and not found:
                filled = {k: perhaps.sides(v, y.get(k, UNDEFINED), ())[1] for k, v in x.items()}
                y.clear()
                y.update(filled)
        return found
