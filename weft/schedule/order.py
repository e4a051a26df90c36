"""The order in which kernels run.

Of those that can, one whose result is of use next; of these, the one that leaves least memory in
use. So a gradient is used as soon as it is there, what a layer kept for it is let go, and what is
computed a second time is computed when it is wanted.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Node
from weft.schedule.partition import Group
from weft.types import TensorType

#: kinds of kernels whose results may lie where operands did
IN_PLACE = ("map", "rows")


def arrange(groups: Sequence[Group], results: Sequence[Node]) -> list[Group]:
    """The groups in an order in which they can run."""
    return _Order(groups, results).run()


def most(groups: Sequence[Group], results: Sequence[Node]) -> int:
    """Bytes of the values between groups that are in use at once, at most, in this order."""
    order = _Order(groups, results)
    live = peak = 0
    for i, g in enumerate(order.groups):
        made = [_bytes(n) for n in g.outputs if n not in order.kept]
        gone = []
        for n in order.reads[i]:
            order.left[n] -= 1
            if not order.left[n] and n not in order.kept:
                gone.append(_bytes(n))
        live += sum(made)
        in_place = g.kind in IN_PLACE or getattr(g.nodes[0].op, "scalar", None) is not None
        over = [gone.pop(gone.index(n)) for n in made if in_place and n in gone]
        live -= sum(over)
        peak = max(peak, live)
        live -= sum(gone)
    return peak


class _Order:
    def __init__(self, groups: Sequence[Group], results: Sequence[Node]) -> None:
        self.groups = [g for g in groups if not _is_view(g)]
        self.maker: dict[Node, int] = {n: i for i, g in enumerate(self.groups) for n in g.nodes}
        self.source: dict[Node, Node] = {}  # of a view: the value whose memory it is
        self.views: dict[Node, list[Group]] = {}  # by that value
        for g in groups:
            if _is_view(g):
                of = self.held(g.inputs[0])
                self.source[g.nodes[0]] = of
                self.views.setdefault(of, []).append(g)
        self.reads: list[list[Node]] = []  # per group: the values in memory that it reads
        self.left: dict[Node, int] = {}  # per value: groups that have still to read it
        for g in self.groups:
            held = dict.fromkeys(self.held(n) for n in g.inputs)
            self.reads.append([n for n in held if n in self.maker])
            for n in self.reads[-1]:
                self.left[n] = self.left.get(n, 0) + 1
        self.kept = {self.held(r) for r in results}  # in memory of their own to the end
        self.waits = [{self.maker[n] for n in reads} for reads in self.reads]
        self.product = [any(n.op.contract for n in g.nodes) for g in self.groups]  # type: ignore[attr-defined]
        self.simple = [all(n.op.scalar for n in g.nodes) for g in self.groups]  # type: ignore[attr-defined]
        self.turn = self._turns()
        self.opens: list[list[int]] = [[] for _ in self.groups]
        for i, w in enumerate(self.waits):
            for p in w:
                self.opens[p].append(i)

    def held(self, n: Node) -> Node:
        return self.source.get(n, n)

    def _turns(self) -> list[int]:
        """For each group the first call of Python that needs it, by number: what comes behind an
        effect in the program, and might fail, is not run before it. Empty where there is none.
        """
        calls = [i for i, g in enumerate(self.groups) if any(map(_is_effect, g.nodes))]
        if not calls:
            return []
        none = len(self.groups)
        turn = [none] * none
        place = self._ordered(calls)
        for number, i in enumerate(place):
            stack = [i]
            while stack:
                k = stack.pop()
                if turn[k] == none:
                    turn[k] = number
                    stack += self.waits[k]
        return turn

    def _ordered(self, calls: list[int]) -> list[int]:
        """Calls of Python in the order of their tokens."""
        left, out = set(calls), []
        done: set[int] = set()
        for i in calls:
            stack = [(i, False)]
            while stack:
                k, ready = stack.pop()
                if ready:
                    if k in left:
                        left.discard(k)
                        out.append(k)
                elif k not in done:
                    done.add(k)
                    stack.append((k, True))
                    stack += [(w, False) for w in self.waits[k]]
        return out

    def run(self) -> list[Group]:
        ready = {i for i, w in enumerate(self.waits) if not w}
        out = [g for of, views in self.views.items() if of not in self.maker for g in views]
        while ready:
            first = ready
            if self.turn:
                soonest = min(self.turn[i] for i in ready)
                first = {i for i in ready if self.turn[i] == soonest}
            useful = [i for i in first if self._useful(i, ready)]
            i = max(useful or first, key=lambda i: (self._gain(i), -i))
            ready.remove(i)
            out.append(self.groups[i])
            for n in self.groups[i].nodes:
                out += self.views.get(n, ())
            for n in self.reads[i]:
                self.left[n] -= 1
            for k in self.opens[i]:
                self.waits[k].discard(i)
                if not self.waits[k]:
                    ready.add(k)
        return out

    def _useful(self, i: int, ready: set[int]) -> bool:
        """Whether some kernel needs this one and otherwise only what is there or could be next. Of
        one that goes by elements, a product is of no use as long as nothing could go on from it.
        """
        opens = self.opens[i]
        return not opens or any(
            self.waits[k] <= ready
            and not (self.simple[i] and self.product[k] and self._idle(k, ready | {i, k}))
            for k in opens
        )

    def _idle(self, k: int, ready: set[int]) -> bool:
        opens = self.opens[k]
        return bool(opens) and not any(self.waits[m] <= ready for m in opens)

    def _gain(self, i: int) -> int:
        """Bytes that running a group gives back, less those it takes."""
        freed = sum(_bytes(n) for n in self.reads[i] if self.left[n] == 1 and n not in self.kept)
        return freed - sum(_bytes(n) for n in self.groups[i].outputs if n not in self.kept)


def _is_effect(n: Node) -> bool:
    """Whether a node calls Python, itself or in its regions."""
    if n.regions:
        return any(_is_effect(v) for r in n.regions for v in r.order)
    return bool(getattr(n.op, "effect", False))


def _is_view(g: Group) -> bool:
    op = g.nodes[0].op
    alone = len(g.nodes) == 1
    return alone and (getattr(op, "view", None) is not None or op.name == "result")


def _bytes(n: Node) -> int:
    return n.type.nbytes if isinstance(n.type, TensorType) else 0
