"""Cheap values that would be kept for long are computed again where they are needed late.

Training is where this matters: what a layer computes is read once when the next layer starts and
again when its gradient is taken. Of an elementwise value whose operands are in memory then anyway,
there is no need to keep both. Which values those are is read off the order the program runs in. Of
large products the same is said in `weft.schedule.relieve`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from weft.ir import Function, Node
from weft.ops.define import Op, constant
from weft.ops.movement import broadcast_to, reshape
from weft.schedule.order import arrange, most
from weft.schedule.partition import partition
from weft.schedule.relieve import NEAR, Again, relieve
from weft.types import TensorType

#: bytes below which nothing is gained
LEAST = 1 << 16
#: ops that a value is worth at most
WORK = 16


class Late(NamedTuple):
    """A value that is computed again: for its uses from a step on, by these nodes."""

    at: int
    nodes: frozenset[Node]


def recompute(f: Function) -> Function:
    """`f` with far uses of cheap values made uses of copies of them."""
    groups = arrange(partition(f), f.results)
    when = {n: i for i, g in enumerate(groups) for n in g.nodes}
    uses: dict[Node, list[Node]] = {}
    for n in f.order:
        for i in dict.fromkeys(n.inputs):
            uses.setdefault(i, []).append(n)
    last = _last_reads(f, when, uses)
    late: dict[Node, Late] = {}
    for n in f.order:
        at = _far(n, when, uses)
        made_of = None if at is None or n in f.results else _cheap(n, at, last, late)
        if at is not None and made_of is not None:
            late[n] = Late(at, frozenset(made_of))

    def peak(more: Sequence[Again]) -> int:
        g = _split(f, when, late | _those(more))
        return most(arrange(partition(g), g.results), g.results)

    late |= _those(relieve(f, when, last, peak))
    return _split(f, when, late) if late else f


def _those(products: Sequence[Again]) -> dict[Node, Late]:
    return {v: Late(x.at, x.nodes) for x in products for v in x.values}


def _last_reads(
    f: Function, when: dict[Node, int], uses: dict[Node, list[Node]]
) -> dict[Node, int]:
    """The last step at which each value's memory is read, through views too."""
    last: dict[Node, int] = {}
    for n in reversed(f.order):
        reads = [last[u] if _is_view(u) else when[u] for u in uses.get(n, ())]
        last[n] = max(reads, default=-1)
    for p in f.params:
        last[p] = 1 << 60
    return last


def _is_view(n: Node) -> bool:
    return getattr(n.op, "view", None) is not None


def _far(n: Node, when: dict[Node, int], uses: dict[Node, list[Node]]) -> int | None:
    """The step of the first use behind a long wait, if the value is worth it."""
    op: Op = n.op  # type: ignore[assignment]
    if op.scalar is None or not isinstance(n.type, TensorType) or n.type.nbytes < LEAST:
        return None
    steps = sorted({when[u] for u in uses.get(n, ())})
    gaps = [(b - a, b) for a, b in itertools.pairwise(steps)]
    wait, at = max(gaps, default=(0, 0))
    return at if wait > NEAR else None


def _cheap(n: Node, at: int, last: dict[Node, int], late: dict[Node, Late]) -> list[Node] | None:
    """The ops that make a value of what is in memory at a step; None if that is too much."""
    found: list[Node] = []
    stack = [n]
    while stack:
        v = stack.pop()
        if v in found:
            continue
        found.append(v)
        if len(found) > WORK:
            return None
        for i in v.inputs:
            held = last.get(i, 1 << 60) >= at and (i not in late or late[i].at > at)
            small = isinstance(i.type, TensorType) and i.type.nbytes * 16 <= n.type.nbytes
            if held or i.op is constant or (small and last.get(i, -1) >= 0):
                continue
            op: Op = i.op  # type: ignore[assignment]
            if op.scalar is None and op not in (broadcast_to, reshape):
                return None
            stack.append(i)
    return found


def _split(f: Function, when: dict[Node, int], late: dict[Node, Late]) -> Function:
    env: dict[Node, Node] = {p: p for p in f.params}
    again: dict[Node, Node] = {}

    def copied(n: Node, nodes: frozenset[Node]) -> Node:
        """A second computation of a value."""
        if n not in again:
            inputs = tuple(
                [
                    copied(i, nodes)
                    if i in nodes
                    else copied(i, late[i].nodes)
                    if i in late
                    else env[i]
                    for i in n.inputs
                ]
            )
            again[n] = Node(n.op, inputs, n.attrs, n.type, n.loc)
        return again[n]

    for n in f.order:
        inputs = tuple(
            [
                copied(i, late[i].nodes) if i in late and when[n] >= late[i].at else env[i]
                for i in n.inputs
            ]
        )
        same = all(a is b for a, b in zip(inputs, n.inputs, strict=True))
        env[n] = n if same else Node(n.op, inputs, n.attrs, n.type, n.loc, n.regions)
    return Function(f.name, f.params, tuple(env[r] for r in f.results))
