"""What is known of numbers of the program on a path: `n == 2` holds where a branch tested it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.buffer import Buffer
from weft.buffer.interchange import read_number
from weft.ir import Node
from weft.ops.define import Value, capturing, constant, data_of
from weft.ops.elementwise import equal, logical_not, logical_or
from weft.types import TensorType

#: a number, some values, and whether it is one of them or none
Fact = tuple[Node, frozenset[int], bool]


def said_by(condition: Any) -> Fact | None:
    """What it says of a number that a condition holds, if it says just that."""
    op, inputs = condition.op, condition.inputs
    if op is logical_not:
        found = said_by(inputs[0])
        return None if found is None else (found[0], found[1], not found[2])
    if op is equal and inputs[1].op is constant and _is_whole(inputs[0]):
        value = inputs[1].attr("value")
        value = read_number(value) if isinstance(value, Buffer) else value
        return (inputs[0], frozenset([value]), True) if type(value) is int else None
    if op is logical_or:
        one, two = map(said_by, inputs)
        if one and two and one[0] is two[0] and one[2] and two[2]:
            return one[0], one[1] | two[1], True
    return None


def _is_whole(n: Node) -> bool:
    return isinstance(n.type, TensorType) and n.type.shape == () and n.type.dtype.is_int


def assume(condition: Value, holds: bool, path: Any) -> None:
    """Say that on a path of the program a condition holds, or does not."""
    found = said_by(data_of(condition))
    if found is not None and hasattr(path, "facts"):
        number, values, inside = found
        path.facts.append((number, values, inside is holds))


def _known(number: Node, path: Any) -> Iterator[Fact]:
    while path is not None:
        yield from (f for f in getattr(path, "facts", ()) if f[0] is number)
        path = getattr(path, "parent", None)


def decided(condition: Value) -> bool | None:
    """Whether a condition holds, if that is known here."""
    found = said_by(data_of(condition))
    if found is None:
        return None
    number, values, inside = found
    for _, others, among in _known(number, capturing.now):
        if among and (others <= values or not others & values):
            return (others <= values) is inside
        if not among and values <= others:
            return not inside
    return None


def possible(number: Any, count: int, path: Any = None) -> list[int]:
    """Which of so many values a number may have, here or on a path."""
    if not isinstance(number, Value):
        return [number]
    found = set(range(count))
    for _, values, inside in _known(data_of(number), path or capturing.now):
        found = found & values if inside else found - values
    return sorted(found)
