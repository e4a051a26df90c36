"""The gradient of a planned call as launches.

An op's vjp says a gradient in ops; for a call on operands of given layouts these are the same
launches every time. They are found once, from the vjp asked on symbols, and made from then on
without asking it, looking up plans or choosing what to sum.

Calls with Python numbers among their operands are left out: what their vjp says may depend on the
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.buffer import Layout
from weft.ir import Node
from weft.ir.node import postorder
from weft.ops.define import Value, constant, fresh, installed, parameter, result

#: the position of a call's result, and of its cotangent, among the parameters of its vjp
OUTPUT = 62
COTANGENT = 63
#: longer gradients win nothing
MOST = 16

Arrive = Callable[[Any, Value], None]  # (parent, its cotangent)
Wanted = tuple[bool, ...] | None  # which operands; None: all
Step = tuple[Any, tuple[int, ...], tuple[int, ...]]  # plan, slots of its operands, slots done with
Part = tuple[int, tuple[Step, ...], int, tuple[int, ...]]


class Steps:
    """The launches for cotangents of one layout onto some of the operands.

    Values stand in slots: the cotangent, `constants`, what the note kept (`reads`: positions of
    operands, or OUTPUT), then a result per launch. `parts`: for each operand that is wanted, its
    position, the launches, the slot of its cotangent, and the slots done with.
    """

    __slots__ = ("constants", "parts", "reads")

    def __init__(
        self, constants: tuple[Any, ...], reads: tuple[int, ...], parts: tuple[Part, ...]
    ) -> None:
        self.constants, self.reads, self.parts = constants, reads, parts

    def run(self, n: Any, g: Value, arrive: Arrive, launch: Callable[..., Any]) -> None:
        """Hand over the cotangent of every wanted operand of a note as soon as it is there."""
        tensor, saved, parents = installed.tensor, n.saved, n.parents
        slots = [g, *self.constants]
        for i in self.reads:
            slots.append(tensor(n.output if i == OUTPUT else saved[i]))
        at = slots.__getitem__
        for position, steps, slot, done in self.parts:
            for what, operands, over in steps:
                slots.append(launch(what, *map(at, operands)))
                for k in over:
                    slots[k] = None
            arrive(parents[position], slots[slot])
            for k in done:
                slots[k] = None


class Pullback:
    """The gradient of a call: `cotangents` are graphs over its parameters, by operand."""

    __slots__ = ("cotangents", "found")

    def __init__(self, cotangents: Sequence[Any]) -> None:
        self.cotangents = tuple([c.data if isinstance(c, Value) else None for c in cotangents])
        self.found: dict[tuple[Layout, Wanted], Steps | None] = {}

    def run(self, n: Any, g: Value, wanted: Wanted, arrive: Arrive) -> bool:
        """Hand over the cotangents of a note's operands; False if they are not that simple."""
        key = g.data.layout, wanted
        try:
            steps = self.found[key]
        except KeyError:
            return self._first(key, n, g, arrive)
        if steps is None:
            return False
        steps.run(n, g, arrive, installed.launch)
        return True

    def _first(self, key: tuple[Layout, Wanted], n: Any, g: Value, arrive: Arrive) -> bool:
        """Call the ops, and note which plans they had."""
        self.found[key] = None  # other threads ask the vjp meanwhile
        steps = _steps(self.cotangents, key[1])
        if steps is None:
            return False
        plans: dict[Node, Any] = {}

        def call(node: Node, *xs: Any) -> Any:
            attrs = dict(node.attrs)
            out = node.op(*xs, **attrs)  # type: ignore[operator]
            where = [x.data.layout if isinstance(x, Value) else x.__class__ for x in xs]
            plans[node] = node.op.plans.get((*where, *attrs.values()))  # type: ignore[attr-defined]
            return out

        steps.run(n, g, arrive, call)
        if None not in plans.values():
            parts = [
                (i, tuple([(plans[what], *rest) for what, *rest in launches]), slot, done)
                for i, launches, slot, done in steps.parts
            ]
            self.found[key] = Steps(steps.constants, steps.reads, tuple(parts))
        return True


def _steps(cotangents: Sequence[Node | None], wanted: Wanted) -> Steps | None:
    """The calls of a gradient, nodes in the place of their plans."""
    ends = [
        (i, c) for i, c in enumerate(cotangents) if c is not None and (wanted is None or wanted[i])
    ]
    order = list(postorder([c for _, c in ends]))
    calls = [n for n in order if n.op is not parameter and n.op is not constant]
    if len(calls) > MOST or any(n.op is result or n.regions for n in calls):
        return None
    constants = [n for n in order if n.op is constant]
    operands = [n for n in order if n.op is parameter and n.attr("position") != COTANGENT]
    slots: dict[Node, int] = {n: 0 for n in order if n.op is parameter}  # the cotangent's
    slots |= {n: 1 + k for k, n in enumerate([*constants, *operands, *calls])}
    reads = tuple([n.attr("position") for n in operands])
    return Steps(tuple(map(_value, constants)), reads, _parts(ends, slots, calls))


def _value(n: Node) -> Any:
    value = n.attr("value")
    return value if type(value) in (float, int, bool) else fresh(value)


def _parts(
    ends: list[tuple[int, Node]], slots: dict[Node, int], calls: list[Node]
) -> tuple[Part, ...]:
    """The calls by operand, and what is done with after each."""
    made = {slots[n] for n in calls}
    backwards = list(reversed(list(enumerate(ends))))
    first = {n: k for k, (_, end) in backwards for n in postorder([end])}  # who needs it first
    left: set[int] = set()  # slots that something further on reads
    parts: list[Part] = []
    for k, (position, end) in backwards:
        done = tuple(made & {slots[end]} - left)
        left.add(slots[end])
        steps: list[Step] = []
        for n in reversed([n for n in calls if first[n] == k]):
            operands = tuple([slots[i] for i in n.inputs])
            steps.append((n, operands, tuple(made & set(operands) - left)))
            left.update(operands)
        parts.append((position, tuple(reversed(steps)), slots[end], done))
    return tuple(reversed(parts))
