"""Large products that are kept over the peak of a program are computed again behind it.

What a training step needs at most lies there where the gradient begins: everything that was kept
for it. Of the large products among that, those with the fewest multiplications per byte are not
kept but computed a second time when they are wanted, as long as that adds little work and the peak
is lower for it. The bits are the same: it is the same sum, in the same order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from weft.ir import Function, Node
from weft.ops.define import Op, constant
from weft.schedule.beside import products
from weft.types import TensorType

#: bytes below which a product is not worth computing twice
LARGE = 16 << 20
#: of all that a program multiplies, how much may be done again
WORK = 0.04
#: steps between two readings that are near each other
NEAR = 6
#: of the bytes that are not kept, how much the peak must fall by
GAIN = 0.5


class Again(NamedTuple):
    """Values in one place in memory that are computed again: for uses from a step on."""

    at: int
    values: tuple[Node, ...]  # the product, or views of it
    nodes: frozenset[Node]  # what they are computed by
    bytes: int
    work: int


def relieve(
    f: Function,
    when: dict[Node, int],
    last: dict[Node, int],
    peak: Callable[[list[Again]], int],
) -> list[Again]:
    """What to compute again in `f`, whose nodes run at the steps `when` and are read for the last
    time at the steps `last`. `peak` says the bytes in use at most if that is done.
    """
    chosen: list[Again] = []
    found = sorted(
        _Products(f, when, last).found(), key=lambda x: (x.work / x.bytes, x.bytes, -x.at)
    )
    left = WORK * sum(products(n) for n in f.order if _op(n).contract is not None) if found else 0
    for one in found:
        if one.work <= left:
            chosen.append(one)
            left -= one.work
    now = peak([]) if chosen else 0
    while chosen and peak(chosen) > now - GAIN * sum(x.bytes for x in chosen):
        del chosen[len(chosen) // 2 :]
    return chosen


class _Products:
    """The large products of a function that wait long to be read again."""

    def __init__(self, f: Function, when: dict[Node, int], last: dict[Node, int]) -> None:
        self.order, self.results, self.last = f.order, f.results, last
        self.views: dict[Node, list[Node]] = {}  # by the value whose memory they are
        self.reads: dict[Node, list[int]] = {}  # steps at which a node itself is read
        self.source: dict[Node, Node] = {}  # of a view: that value
        for n in f.order:
            if _is_view(n):
                of = self.source[n] = self.source.get(n.inputs[0], n.inputs[0])
                self.views.setdefault(of, []).append(n)
            else:
                for i in n.inputs:
                    self.reads.setdefault(i, []).append(when[n])

    def found(self) -> Iterator[Again]:
        for n in self.order:
            held = (n, *self.views.get(n, ()))
            if _is_large(n) and n not in self.source and not any(v in self.results for v in held):
                yield from self._again(n, [v for v in held if v in self.reads])

    def _again(self, n: Node, values: list[Node]) -> Iterator[Again]:
        steps = sorted({at for v in values for at in self.reads[v]})
        wait, at = max(((b - a, b) for a, b in itertools.pairwise(steps)), default=(0, 0))
        late = tuple([v for v in values if any(r >= at for r in self.reads[v])])
        made = self._made(n, late, at) if wait > NEAR else None
        if made is not None:
            work = [products(m) for m in made if _op(m).contract is not None]
            if len(work) == 1:
                yield Again(at, late, made, n.type.nbytes, work[0])

    def _made(self, n: Node, values: tuple[Node, ...], at: int) -> frozenset[Node] | None:
        """The ops that make values, which lie where `n` does, of what else is in memory at a
        step: its product and what went on from it.
        """
        found: set[Node] = set()
        stack = list(values)
        while stack:
            v = stack.pop()
            if v in found:
                continue
            op = _op(v)
            found.add(v)
            if not (op.scalar or op.contract or op.view):
                return None
            for i in v.inputs:
                of = self.source.get(i, i)
                if i.op is constant or (of is not n and self.last.get(of, 1 << 60) >= at):
                    continue
                if op.contract:
                    return None
                stack.append(i)
        return frozenset(found)


def _op(n: Node) -> Op:
    return n.op  # type: ignore[return-value]


def _is_large(n: Node) -> bool:
    return isinstance(n.type, TensorType) and n.type.nbytes >= LARGE


def _is_view(n: Node) -> bool:
    return _op(n).view is not None
