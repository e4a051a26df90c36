"""Nodes and functions: frozen, and a node is its value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from weft.ir.location import Location
from weft.types import TensorType


class OpLike(Protocol):
    @property
    def name(self) -> str: ...


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One operation and the value it produces."""

    op: OpLike
    inputs: tuple[Node, ...]
    attrs: tuple[tuple[str, Any], ...]
    type: TensorType
    loc: Location | None = None
    regions: tuple[Function, ...] = ()  # closed: what they read of the outside are inputs

    def attr(self, name: str) -> Any:
        return dict(self.attrs)[name]


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """A closed function: its results reach its params and nothing else."""

    name: str
    params: tuple[Node, ...]
    results: tuple[Node, ...]
    order: tuple[Node, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", tuple(_postorder(self.params, self.results)))

    def __str__(self) -> str:
        names = {p: f"%{i}" for i, p in enumerate(self.params)}
        lines = [f"fn {self.name}({', '.join(f'{names[p]}: {p.type}' for p in self.params)}) {{"]
        for n in self.order:
            names[n] = f"%{len(names)}"
            said = [names[i] for i in n.inputs] + [f"{k}={v}" for k, v in n.attrs]
            lines.append(f"  {names[n]}: {n.type} = {n.op.name} {', '.join(said)}".rstrip())
        return "\n".join([*lines, f"  return {', '.join(names[r] for r in self.results)}", "}"])


def _postorder(params: tuple[Node, ...], results: tuple[Node, ...]) -> Iterator[Node]:
    """Every node but the params, operands before users."""
    seen = set(params)
    stack = [(r, False) for r in reversed(results)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((i, False) for i in reversed(node.inputs))
