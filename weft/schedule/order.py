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


def arrange(groups: Sequence[Group], results: Sequence[Node]) -> list[Group]:
    """The groups in an order in which they can run."""
    return _Order(groups, results).run()


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
        self.opens: list[list[int]] = [[] for _ in self.groups]
        for i, w in enumerate(self.waits):
            for p in w:
                self.opens[p].append(i)

    def held(self, n: Node) -> Node:
        return self.source.get(n, n)

    def run(self) -> list[Group]:
        ready = {i for i, w in enumerate(self.waits) if not w}
        out = [g for of, views in self.views.items() if of not in self.maker for g in views]
        while ready:
            useful = [i for i in ready if self._useful(i, ready)]
            i = max(useful or ready, key=lambda i: (self._gain(i), -i))
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
        """Whether some kernel needs this one and otherwise only what is there or could be next."""
        opens = self.opens[i]
        return not opens or any(self.waits[k] <= ready for k in opens)

    def _gain(self, i: int) -> int:
        """Bytes that running a group gives back, less those it takes."""
        freed = sum(_bytes(n) for n in self.reads[i] if self.left[n] == 1 and n not in self.kept)
        return freed - sum(_bytes(n) for n in self.groups[i].outputs if n not in self.kept)


def _is_view(g: Group) -> bool:
    op = g.nodes[0].op
    alone = len(g.nodes) == 1
    return alone and (getattr(op, "view", None) is not None or op.name == "result")


def _bytes(n: Node) -> int:
    return n.type.nbytes if isinstance(n.type, TensorType) else 0
