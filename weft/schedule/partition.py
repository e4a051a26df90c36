"""Which nodes of a graph become one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.buffer import Layout
from weft.ir import Function, Node
from weft.schedule.launch import Launch, Machine
from weft.types import DType


@dataclass(frozen=True, eq=False)
class Group:
    """Nodes for one kernel, operands before users; what it reads from outside, and which of its
    values are read outside.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]


def partition(f: Function) -> list[Group]:
    """The groups of a graph, in an order in which they can run."""
    return [Group((n,), n.inputs, (n,)) for n in f.order]


def plan_group(
    group: Group, layouts: Sequence[Layout | DType], machine: Machine
) -> Launch | None:
    """The launch of a group, or None where it has to be run node by node."""
    return None
