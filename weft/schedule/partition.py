"""Which nodes of a graph become one kernel.

Nodes are looked at from the results back. One that computes element by element joins the kernel of
its users, if they are all in one, or if the others can wait for that kernel; a reduction joins the
kernel that spreads it over the rows it came from, or the one that goes on with its results; a
contraction the one that goes on with its results. So producers flow into consumers, the values
between them never touch memory, and no kernel ever waits for itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from weft.buffer import Layout
from weft.ir import Function, Node
from weft.ir.node import exact
from weft.ops.contraction import Window
from weft.ops.define import Op, constant, parameter
from weft.ops.monoids import PLACES
from weft.ops.movement import broadcast_to, reshape
from weft.schedule.beside import LEAST, MOST as MOST_PRODUCTS, products
from weft.schedule.fuse import plan_function
from weft.schedule.launch import Launch, Machine
from weft.types import DType, TensorType
from weft.types.record import dataclass

#: nodes of one kernel: beyond this, registers spill and compiling takes long
MOST = 64


@dataclass(frozen=True, eq=False)
class Group:
    """Nodes for one kernel, operands before users; what it reads from outside, and which of its
    values are read outside.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    kind: str = "single"


def partition(f: Function) -> list[Group]:
    """The groups of a graph, in an order in which they can run."""
    return _Partition(f.order, f.results).groups()


def smaller(group: Group) -> list[Group]:
    """A group that no kernel can do, as several: without what gave it its kind."""
    without = {"rows": "rows", "fold": "fold", "contract": "contract"}.get(group.kind, "map")
    return _Partition(group.nodes, group.outputs, without).groups()


def plan_group(
    group: Group,
    layouts: Sequence[Layout | DType],
    machine: Machine,
    fixed: frozenset[int] = frozenset(),
) -> tuple[Launch, tuple[int, ...]] | None:
    """The launch of a group and which of its inputs that takes, in order; None where the group has
    to be run in parts. Of `fixed` inputs, see `Launch.ahead`.
    """
    return plan_function(as_function(group), layouts, machine, fixed)


def as_function(group: Group) -> Function:
    """A group as a function of its inputs."""
    env: dict[Node, Node] = {}
    for i, n in enumerate(group.inputs):
        env[n] = Node(parameter, (), (("position", i), ("type", n.type)), n.type)
    params = tuple(env.values())
    for n in group.nodes:
        inputs = tuple([env.get(i, i) for i in n.inputs])
        env[n] = Node(n.op, inputs, n.attrs, n.type, n.loc)
    return Function("kernel", params, tuple([env[o] for o in group.outputs]))


def look(group: Group, layouts: Sequence[Layout | DType]) -> Any:
    """What the launch of a group follows from: groups that look alike have the same."""
    numbers = {n: i for i, n in enumerate(group.inputs)}
    said = []
    for n in group.nodes:
        inputs = tuple([numbers[i] if i in numbers else exact(i.attrs) for i in n.inputs])
        said.append((n.op, inputs, exact(n.attrs), n.type))
        numbers[n] = len(numbers)
    outputs = tuple([numbers[n] for n in group.outputs])
    return tuple(said), outputs, tuple([n.type for n in group.inputs]), tuple(layouts)


@dataclass(eq=False)
class _Kernel:
    """A group in the making."""

    number: int
    kind: str  # single, map, fold, rows, contract
    shape: Any = None  # of the elements it goes over
    kept: Any = None  # what a reduction leaves of it, axes of one element included
    rows: Any = None  # the same without them
    product: Node | None = None  # the contraction it goes on from
    nodes: list[Node] = field(default_factory=list)


class _Partition:
    def __init__(self, order: Sequence[Node], results: Sequence[Node], without: str = "") -> None:
        self.order, self.without = order, without
        self.index = {n: i for i, n in enumerate(order)}
        self.results = set(results)
        self.users: dict[Node, list[Node]] = {n: [] for n in order}
        for n in order:
            for i in dict.fromkeys(n.inputs):
                if i in self.users:
                    self.users[i].append(n)
        self.kernels: list[_Kernel] = []
        self.reach: list[int] = []  # of each kernel: those that wait for it, as bits
        self.home: dict[Node, _Kernel] = {}
        for n in reversed(order):
            self._settle(n)

    # where a node goes

    def _settle(self, n: Node) -> None:
        users = list(dict.fromkeys(self.home[u] for u in self.users[n]))
        some = users
        if self._ends_rows(n, users):
            some = [k for k in users if k.kind == "map"]
        for k in sorted(some, key=lambda k: k.number, reverse=True):
            if len(k.nodes) < MOST and self._may_join(n, k, users):
                kind = self._joins(n, k)
                if kind and kind != self.without and self.without != "map":
                    k.kind = kind
                    if n.op.contract is not None:  # type: ignore[attr-defined]
                        k.product = n
                    self._join(n, k, users)
                    return
        self._found(n, users)

    def _ends_rows(self, n: Node, users: list[_Kernel]) -> bool:
        """Whether a value is computed from reductions of rows and read by one over everything, as
        that of all a softmax gives: the kernel of these rows should end with it, or with a map.
        """
        shape = getattr(n.type, "shape", None)
        wider = [k for k in users if k.kind == "fold" and k.rows is not None and k.shape == shape]
        if not n.op.scalar or not wider or self._inside(n, wider[0]):  # type: ignore[attr-defined]
            return False
        stack, seen = [n], {n}
        while stack and len(seen) < MOST:
            for i in stack.pop().inputs:
                op: Op = i.op  # type: ignore[assignment]
                if op.fold and i.inputs[0].type.shape == shape:
                    if not self._fold_joins(i, op, wider[0]):
                        return True
                elif i not in seen and (op.scalar or op is broadcast_to or op is reshape):
                    seen.add(i)
                    stack.append(i)
        return False

    def _may_join(self, n: Node, k: _Kernel, users: list[_Kernel]) -> bool:
        """Whether the other users can wait for the kernel."""
        bit = 1 << k.number
        return all(u is k or not self.reach[u.number] & bit for u in users)

    def _joins(self, n: Node, k: _Kernel) -> str:
        """What kind a kernel is that computes a node too; empty if it can't."""
        if k.kind == "single" or (k.product is not None and n in k.product.inputs):
            return ""
        op: Op = n.op  # type: ignore[assignment]
        shape = getattr(n.type, "shape", None)
        if op is broadcast_to or op.scalar is not None:
            if shape == k.shape:
                return self._wide_joins(n, op, k)
            return self._narrow_joins(n, op, k)
        if op is reshape and k.kind == "rows":
            turns = {shape, n.inputs[0].type.shape} == {k.kept, k.rows}
            return k.kind if turns and self._inside(n, k) else ""
        if op.fold:
            return self._fold_joins(n, op, k)
        if op.contract is not None and k.kind == "map" and shape == k.shape:
            return "" if self._has_twin(n, k) or _in_parts(n) else "contract"
        return ""

    def _wide_joins(self, n: Node, op: Op, k: _Kernel) -> str:
        """The same for a node that has a number for each element."""
        if self._inside(n, k):
            return k.kind
        if op is broadcast_to or (k.kind == "fold" and k.rows is None):
            return ""  # the kernel would have to write it
        return "rows" if k.kind == "fold" else k.kind

    def _narrow_joins(self, n: Node, op: Op, k: _Kernel) -> str:
        """The same for a node that has one number for each row."""
        inside = self._inside(n, k)
        if k.kind == "rows":
            fits = n.type.shape in (k.kept, k.rows)
            return k.kind if fits and (inside or (op.scalar and self._fold_under(n, k))) else ""
        if k.kind in ("map", "fold") and op.scalar is not None:
            fold = self._fold_under(n, k)
            if fold is not None and self._fold_joins(fold, fold.op, k):  # type: ignore[arg-type]
                return "rows" if n.type.shape in (k.kept, k.rows) else ""
        return ""

    def _fold_under(self, n: Node, k: _Kernel) -> Node | None:
        """The reduction of what a kernel goes over that a number per row is computed from."""
        stack, seen = [n], {n}
        while stack and len(seen) < MOST:
            for i in stack.pop().inputs:
                op: Op = i.op  # type: ignore[assignment]
                if op.fold and i.inputs[0].type.shape == k.shape:
                    return i
                if i not in seen and (op.scalar or op is reshape) and i.type.size <= n.type.size:
                    seen.add(i)
                    stack.append(i)
        return None

    def _has_twin(self, n: Node, k: _Kernel) -> bool:
        """Whether a kernel goes on from two contractions, neither of which fills the threads: then
        they run at the same time.
        """
        if not LEAST <= products(n) <= MOST_PRODUCTS:
            return False
        others = {i for m in k.nodes for i in m.inputs if i is not n and i in self.users}
        return any(
            getattr(i.op, "contract", None) is not None and LEAST <= products(i) <= MOST_PRODUCTS
            for i in others
        )

    def _inside(self, n: Node, k: _Kernel) -> bool:
        return n not in self.results and all(self.home[u] is k for u in self.users[n])

    def _fold_joins(self, n: Node, op: Op, k: _Kernel) -> str:
        full = n.inputs[0].type.shape
        axes = n.attr("axes")
        trailing = tuple(range(len(full) - len(axes), len(full)))
        if op.fold in PLACES or not full or axes != trailing:
            return ""
        rows = full[: len(full) - len(axes)]
        kept = rows + (1,) * len(axes)
        if k.kind == "map" and k.shape == full and full not in (rows, kept):
            k.rows, k.kept = rows, kept
            return "rows"
        same = k.kind in ("rows", "fold") and (k.shape, k.rows, k.kept) == (full, rows, kept)
        return "rows" if same else ""

    def _join(self, n: Node, k: _Kernel, users: list[_Kernel]) -> None:
        self.home[n] = k
        k.nodes.append(n)
        new = 0
        for u in users:
            if u is not k:
                new |= 1 << u.number | self.reach[u.number]
        if new & ~self.reach[k.number]:
            bit = 1 << k.number
            for i, seen in enumerate(self.reach):
                if i == k.number or seen & bit:
                    self.reach[i] = seen | new

    def _found(self, n: Node, users: list[_Kernel]) -> None:
        """A kernel of its own, that others may join."""
        op: Op = n.op  # type: ignore[assignment]
        kind, shape = "single", None
        if op.scalar is not None and isinstance(n.type, TensorType):
            kind, shape = "map", n.type.shape
        k = _Kernel(len(self.kernels), kind, shape)
        if op.fold and op.fold not in PLACES:
            k.kind, k.shape = "fold", n.inputs[0].type.shape
            axes, count = n.attr("axes"), len(k.shape) - len(n.attr("axes"))
            if axes == tuple(range(count, len(k.shape))):
                k.rows, k.kept = k.shape[:count], k.shape[:count] + (1,) * len(axes)
        self.kernels.append(k)
        k.nodes.append(n)
        self.home[n] = k
        reach = 0
        for u in users:
            reach |= 1 << u.number | self.reach[u.number]
        self.reach.append(reach)

    # the result

    def groups(self) -> list[Group]:
        waits: dict[int, set[int]] = {k.number: set() for k in self.kernels}
        opens: dict[int, list[int]] = {k.number: [] for k in self.kernels}
        for n in self.order:
            k = self.home[n].number
            for i in n.inputs:
                if i in self.home and self.home[i].number != k:
                    p = self.home[i].number
                    if p not in waits[k]:
                        waits[k].add(p)
                        opens[p].append(k)
        last = {k.number: self.index[k.nodes[0]] for k in self.kernels}
        ready = [(last[k], k) for k, w in waits.items() if not w]
        heapq.heapify(ready)
        out: list[Group] = []
        while ready:
            _, number = heapq.heappop(ready)
            out.append(self._group(self.kernels[number]))
            for k in opens[number]:
                waits[k].discard(number)
                if not waits[k]:
                    heapq.heappush(ready, (last[k], k))
        assert len(out) == len(self.kernels)
        return out

    def _group(self, k: _Kernel) -> Group:
        nodes = sorted(k.nodes, key=self.index.__getitem__)
        own = set(nodes)
        # numbers written in the program belong to the kernel that reads them
        inputs = dict.fromkeys(
            i for n in nodes for i in n.inputs if i not in own and not _literal(i)
        )
        outputs = [
            n for n in nodes if n in self.results or any(u not in own for u in self.users[n])
        ]
        if len(nodes) == 1:
            return Group((nodes[0],), nodes[0].inputs, (nodes[0],))
        return Group(tuple(nodes), tuple(inputs), tuple(outputs), k.kind)


def _in_parts(n: Node) -> bool:
    """Whether a contraction falls into parts whose results lie in every so manieth place, as the
    gradient of a convolution with strides does: what goes on from it would go by single elements.
    """
    op: Op = n.op  # type: ignore[assignment]
    c = op.contract(*(i.type for i in n.inputs), **dict(n.attrs))  # type: ignore[misc]
    return any(isinstance(axis, Window) and axis.step > 1 for axis in (*c.a, *c.b))


def _literal(n: Node) -> bool:
    return n.op is constant and not isinstance(n.type, TensorType)
