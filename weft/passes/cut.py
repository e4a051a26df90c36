"""A minimum cut: the cheapest set of nodes that separates where values come from from where they
are needed. Dinic's algorithm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

FREE = 1 << 62  # a capacity that no cut pays


def cheapest(
    cost: Mapping[T, int], edges: Iterable[tuple[T, T]], sources: Iterable[T], sinks: Iterable[T]
) -> set[T]:
    """Nodes of least total cost such that every path from a source to a sink goes through one.

    >>> sorted(cheapest({"a": 5, "b": 1, "c": 3}, [("a", "b"), ("b", "c")], ["a"], ["c"]))
    ['b']
    >>> sorted(cheapest({"x": 9, "y": 2, "z": 2}, [("x", "y"), ("x", "z")], ["x"], ["y", "z"]))
    ['y', 'z']
    """
    number = {n: i for i, n in enumerate(cost)}
    net = _Net(2 * len(number) + 2)
    source, sink = 2 * len(number), 2 * len(number) + 1
    for n, i in number.items():
        net.edge(2 * i, 2 * i + 1, cost[n])
    for a, b in edges:
        net.edge(2 * number[a] + 1, 2 * number[b], FREE)
    for n in sources:
        net.edge(source, 2 * number[n], FREE)
    for n in sinks:
        net.edge(2 * number[n] + 1, sink, FREE)
    while net.levels(source, sink):
        net.fill(source, sink)
    seen = net.level
    return {n for n, i in number.items() if seen[2 * i] >= 0 and seen[2 * i + 1] < 0}


class _Net:
    """A flow network: edge e and its reverse e ^ 1."""

    def __init__(self, count: int) -> None:
        self.out: list[list[int]] = [[] for _ in range(count)]
        self.to: list[int] = []
        self.room: list[int] = []
        self.level: list[int] = []

    def edge(self, a: int, b: int, capacity: int) -> None:
        for start, end, room in ((a, b, capacity), (b, a, 0)):
            self.out[start].append(len(self.to))
            self.to.append(end)
            self.room.append(room)

    def levels(self, source: int, sink: int) -> bool:
        """Distances from the source along edges with room; whether the sink has one."""
        self.level = [-1] * len(self.out)
        self.level[source] = 0
        queue = deque([source])
        while queue:
            a = queue.popleft()
            for e in self.out[a]:
                b = self.to[e]
                if self.room[e] and self.level[b] < 0:
                    self.level[b] = self.level[a] + 1
                    queue.append(b)
        return self.level[sink] >= 0

    def fill(self, source: int, sink: int) -> None:
        """Send what fits along shortest paths, one path at a time."""
        next_edge = [0] * len(self.out)
        path: list[int] = []
        a = source
        while True:
            if a == sink:
                flow = min(self.room[e] for e in path)
                for e in path:
                    self.room[e] -= flow
                    self.room[e ^ 1] += flow
                path, a = [], source
                continue
            edges = self.out[a]
            while next_edge[a] < len(edges):
                e = edges[next_edge[a]]
                if self.room[e] and self.level[self.to[e]] == self.level[a] + 1:
                    break
                next_edge[a] += 1
            else:
                if not path:
                    return
                e = path.pop()
                a = self.to[e ^ 1]
                next_edge[a] += 1
                continue
            path.append(e)
            a = self.to[e]
