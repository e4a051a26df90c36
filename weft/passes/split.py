"""A graph with a gradient in it, cut into the part that runs now and the part that runs later."""

from __future__ import annotations

from weft.ir import Function, Node
from weft.ops.define import constant, parameter


def split(whole: Function, inputs: int, results: int) -> tuple[Function, Function, int]:
    """`whole` takes `inputs` and then cotangents; it gives `results` and then gradients.

    Gives the forward function, whose further results are values saved for the gradient; the
    gradient, of the inputs, the saved values and the cotangents; and how many are saved.
    """
    own, seeds = whole.params[:inputs], whole.params[inputs:]
    later: set[Node] = set(seeds)
    for n in whole.order:
        if any(i in later for i in n.inputs):
            later.add(n)
    saved: dict[Node, None] = {}
    for n in whole.order:
        if n in later:
            saved.update(dict.fromkeys(i for i in n.inputs if i not in later))
    saved.update(dict.fromkeys(g for g in whole.results[results:] if g not in later))
    kept = [s for s in saved if s not in own and s.op is not constant]
    forward = Function(whole.name, own, (*whole.results[:results], *kept))
    stands: dict[Node, Node] = {}
    for s in kept:
        stands[s] = Node(parameter, (), (("position", 0), ("type", s.type)), s.type, s.loc)
    env: dict[Node, Node] = {p: p for p in whole.params} | stands
    for n in whole.order:
        if n in env:
            continue
        if n in later or n.op is constant:
            env[n] = Node(n.op, tuple(env[i] for i in n.inputs), n.attrs, n.type, n.loc, n.regions)
    gradient = Function(
        f"{whole.name}_gradient",
        (*own, *stands.values(), *seeds),
        tuple(env[g] for g in whole.results[results:]),
    )
    return forward, gradient, len(kept)
