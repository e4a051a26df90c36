"""What a loop computes on its way and its reverse would compute again: contractions, and sums of
these, are kept with the state, if they take not much more memory than that does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.ir import Function, Node
from weft.ir.node import exact
from weft.ir.rewrite import replace, uses
from weft.ops.define import parameter
from weft.types import TensorType

#: how much more than a state all that is kept of a step may be
MORE = 4


class Again(NamedTuple):
    """Values of a loop's body, and the same values in a step of its reverse."""

    there: tuple[Node, ...]
    back: tuple[Node, ...]

    @property
    def types(self) -> list[TensorType]:
        return [n.type for n in self.there]

    def read(self, step: Function) -> Function:
        """The step of the reverse taking these behind its params."""
        stands = {
            n: Node(parameter, (), (("position", 0), ("type", n.type)), n.type) for n in self.back
        }
        f = replace(step, stands)
        return Function(f.name, (*f.params, *stands.values()), f.results)


def kept_again(loop: Node, reverse: Node) -> Again:
    """What a loop keeps for its reverse besides its state."""
    body, step = loop.regions[1], reverse.regions[2]
    count, kept, state = len(body.results), reverse.attr("kept"), reverse.attr("state")
    around = state + reverse.attr("slopes") + len(reverse.attr("inner"))
    fixed = reverse.inputs[len(reverse.inputs) - 1 - len(step.params) + around : -1]
    names: dict[Any, int] = {}
    given = [*(("state", i) for i in range(count)), *loop.inputs[count:]]
    there = {name: n for n, name in _named(body, given, names).items()}
    own = [*(("state", i) for i in kept), *(("back", i) for i in range(around - state)), *fixed]
    back = _named(step, own, names)
    found = [n for n in _ends(step, state, around) if back.get(n) in there]
    size = sum(n.type.nbytes for n in found)
    if size > MORE * sum(step.params[i].type.nbytes for i in range(state)):
        return Again((), ())
    return Again(tuple(there[back[n]] for n in found), tuple(found))


def _named(f: Function, given: Sequence[Any], names: dict[Any, int]) -> dict[Node, int]:
    """A number for every value of a function without regions: the same for the same expression."""
    out = {
        p: names.setdefault(("param", x), len(names)) for p, x in zip(f.params, given, strict=True)
    }
    for n in f.order:
        if n not in out and not n.regions and all(i in out for i in n.inputs):
            key = (n.op, exact(n.attrs), n.type, tuple([out[i] for i in n.inputs]))
            out[n] = names.setdefault(key, len(names))
    return out


def _ends(step: Function, state: int, around: int) -> list[Node]:
    """The contractions of a step that are computed of the state alone, or of what else is the same
    on the way there, each as what it is added up to.
    """
    later = set(step.params[state:around])
    for n in step.order:
        if any(i in later for i in n.inputs):
            later.add(n)
    users, found = uses(step), dict[Node, None]()
    for n in step.order:
        if n in later or getattr(n.op, "contract", None) is None:
            continue
        end = n
        while len(users[end]) == 1 and end not in step.results:
            (u,) = users[end]
            if u in later or u.op.name != "add" or u.type is not n.type:
                break
            end = u
        found[end] = None
    return list(found)
