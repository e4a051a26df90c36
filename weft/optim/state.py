"""The state of optimizers: that it is there, and what a saved one says.

Run as it is while a step is captured: what is made here was there before the program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from weft.autodiff.mode import no_grad
from weft.errors import StateError
from weft.ops.define import closed
from weft.tensor.creation import full
from weft.tensor.tensor import Tensor


class Complete:
    """Called, gives the parameters of a group the states that its numbers ask for and that they
    don't have yet: momentum, say, may be 0 at first. One that isn't asked for any more stays.

    An object and no function of the optimizer, which a program would have to look at as a whole.
    """

    def __init__(
        self,
        state: dict[Tensor, dict[str, Tensor]],
        groups: list[dict[str, Any]],
        slots: Callable[[Mapping[str, Any]], dict[str, float]],
    ) -> None:
        self.state, self.groups, self.slots = state, groups, slots

    def __call__(self, number: int) -> None:
        group = self.groups[number]
        slots = self.slots(group)
        for p in group["params"]:
            have = self.state.get(p)
            if have is None or not slots.keys() <= have.keys():
                self.state[p] = with_states(p, slots, have or {})


def with_states(
    p: Tensor, slots: Mapping[str, float], have: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """What a parameter has, and fresh cells for those of the slots it has not."""
    with no_grad(), closed():
        fresh = {k: full(p.shape, v, dtype=p.dtype) for k, v in slots.items() if k not in have}
    return {**have, **fresh}


def entry(states: Mapping[Any, Any], n: Any) -> Mapping[str, Any]:
    """The state of a parameter; its number may have become a string in a file."""
    found: Mapping[str, Any] = states.get(n, states.get(str(n), {}))
    return found


def steps_made(place: str, entry: Mapping[str, Any]) -> int:
    """The steps a parameter has made; if nothing says so, none, or one where there is state."""
    if "step" not in entry:
        return int(any(v is not None for v in entry.values()))
    try:
        count = float(entry["step"])
    except (TypeError, ValueError):
        count = math.nan
    if not (count >= 0 and count.is_integer()):
        got = repr(entry["step"])[:60]
        raise StateError(place, expected="a count of steps for each parameter", got=got)
    return int(count)
