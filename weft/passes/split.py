"""A graph with a gradient in it, cut into the part that runs now and the part that runs later.

What is kept for later is a minimum cut: of all sets of values from which the later part can be
computed with elementwise ops and views alone, the one with the fewest bytes.
"""

from __future__ import annotations

from weft.ir import Function, Node
from weft.ops.define import Op, constant, parameter
from weft.passes.cut import cheapest
from weft.types import TensorType


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
    needed = {i for n in whole.order if n in later for i in n.inputs if i not in later}
    needed |= {g for g in whole.results[results:] if g not in later}
    kept = _kept(whole, needed - set(own), set(own), set(whole.results[:results]))
    forward = Function(whole.name, own, (*whole.results[:results], *kept))
    stands = {
        s: Node(parameter, (), (("position", 0), ("type", s.type)), s.type, s.loc) for s in kept
    }
    env: dict[Node, Node] = {p: p for p in whole.params} | stands
    for n in whole.order:
        if n not in env and all(i in env for i in n.inputs):
            given = tuple([env[i] for i in n.inputs])
            env[n] = Node(n.op, given, n.attrs, n.type, n.loc, n.regions)
    gradient = Function(
        f"{whole.name}_gradient",
        (*own, *stands.values(), *seeds),
        tuple(env[g] for g in whole.results[results:]),
    )
    return forward, gradient, len(kept)


def _kept(whole: Function, needed: set[Node], own: set[Node], outputs: set[Node]) -> list[Node]:
    """The values to keep, in the order they are computed."""
    wanted = {n for n in needed if n.op is not constant}
    seen: set[Node] = set()
    stack = list(wanted)
    edges: list[tuple[Node, Node]] = []
    while stack:
        n = stack.pop()
        if n in seen:
            continue
        seen.add(n)
        if _cheap(n):
            for i in n.inputs:
                if i.op is not constant and i not in own:
                    edges.append((i, n))
                    stack.append(i)
    cost = {n: _bytes(n, outputs) for n in whole.order if n in seen}
    sources = [n for n in cost if not _cheap(n)]
    chosen = cheapest(cost, edges, sources, [n for n in cost if n in wanted])
    return [n for n in whole.order if n in chosen]


def _cheap(n: Node) -> bool:
    """Whether computing a node a second time costs next to nothing."""
    op: Op = n.op  # type: ignore[assignment]
    return (op.scalar is not None or op.view is not None) and isinstance(n.type, TensorType)


def _bytes(n: Node, outputs: set[Node]) -> int:
    """What keeping a value costs; one that is given back anyway, little."""
    size = n.type.nbytes if isinstance(n.type, TensorType) else 8
    return max(1, size // 8 if n in outputs else size)
