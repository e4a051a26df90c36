"""Branches and loops whose conditions are symbols: every path is run once, into a region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.capture.join import UNDEFINED, Slots, as_value, join, refused
from weft.capture.structure import flatten
from weft.control.build import build_cond, build_while, state_params, truth
from weft.control.region import Region
from weft.errors import CaptureError
from weft.ops.define import Value, data_of, installed

Thunk = Callable[[], Any]
_ROUNDS = 8  # of finding out what a loop changes


def ran(what: str, region: Region, f: Thunk) -> Any:
    """What a path gives. An error on a path that may never be taken is no error yet."""
    try:
        with region:
            return f()
    except CaptureError:
        region.restore()
        raise
    except Exception as e:
        region.restore()
        raise refused(what, "a path that can be captured", f"{type(e).__name__}: {e}") from e


def branch(
    condition: Value,
    then: Thunk,
    otherwise: Thunk,
    get: Thunk,
    put: Callable[..., None],
    names: Sequence[str],
) -> Any:
    """What `then` or `otherwise` gives; variables and all else they change are joined."""
    pred = truth(condition, "if")
    before = get()
    regions, slots, ends = [], Slots(), []
    for f in (then, otherwise):
        region = Region()
        result = ran("a branch", region, f)
        ends.append((result, get()))
        regions.append(region)
        slots.add(region)
        ends[-1] = (*ends[-1], _held(region, slots))
        region.restore()
        put(*before)
    # what only the second path changed has its old value on the first
    sides = [
        (signal_of(result), list(after), _completed(held, slots))
        for result, after, held in ends
    ]
    if any(isinstance(s[0], Signal) for s in sides):
        sides = [(as_signal(s[0]), *s[1:]) for s in sides]
        sides = _filled(sides)

    def choose(left: list[Value], right: list[Value]) -> Sequence[Value]:
        pieces = [(r, (), values) for r, values in zip(regions, (left, right), strict=True)]
        return build_cond(pred, pieces)

    with_values = join("a branch", sides[0], sides[1], names, choose)
    result, after, held = with_values
    put(*after)
    slots.put(held)
    return result


def _held(region: Region, slots: Slots) -> dict[int, Any]:
    """What the places a region changed hold at its end."""
    with region:
        tensors, grads, content = slots.values()
    out: dict[int, Any] = dict(zip(slots.tensors, tensors, strict=True))
    out.update({id(leaf): g for leaf, g in zip(slots.leaves, grads, strict=True)})
    out.update(dict(zip(slots.containers, content, strict=True)))
    return out


def _completed(held: dict[int, Any], slots: Slots) -> list[Any]:
    tensors, grads, content = slots.values()  # restored: what they held before
    return [
        [held.get(k, v) for k, v in zip(slots.tensors, tensors, strict=True)],
        [held.get(id(leaf), g) for leaf, g in zip(slots.leaves, grads, strict=True)],
        [held.get(k, v) for k, v in zip(slots.containers, content, strict=True)],
    ]


# signals


class Signal(tuple[Any, Any, Any]):
    """How the body of a loop ended, where that depends on tensors: whether it broke off, whether
    the function returns, and what.
    """

    __slots__ = ()
    _fields = ("broke", "returns", "value")

    def __new__(cls, broke: Any, returns: Any, value: Any) -> Signal:
        return super().__new__(cls, (broke, returns, value))

    @property
    def broke(self) -> Any:
        return self[0]

    @property
    def returns(self) -> Any:
        return self[1]

    @property
    def value(self) -> Any:
        return self[2]
