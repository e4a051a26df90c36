"""Nodes, functions and modules: frozen, and a node is its value."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import count
from typing import Any, ClassVar, Protocol

import numpy as np

from weft.buffer import Buffer
from weft.buffer.interchange import to_numpy
from weft.errors import ProgramError
from weft.ir.location import Location
from weft.ir.sizes import canonical, same_type
from weft.types import TensorType

MOST_RESULTS = 1 << 16


class OpLike(Protocol):
    @property
    def name(self) -> str: ...


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One operation and the value it produces.

    `op` is an Op record, of which this room knows the name only. `type` of a Python number, which
    parameters and constants may be, is its class. An op with several results is a node whose users
    are picks: nodes with that one operand and the attributes `position` and `type`.
    """

    op: OpLike
    inputs: tuple[Node, ...]
    attrs: tuple[tuple[str, Any], ...]
    type: TensorType
    loc: Location | None = None
    regions: tuple[Function, ...] = ()  # closed: what they read of the outside are inputs

    def attr(self, name: str) -> Any:
        return dict(self.attrs)[name]

    def __repr__(self) -> str:
        operands = ", ".join([i.op.name for i in self.inputs])
        type_ = getattr(self.type, "__name__", self.type)
        return f"<Node {self.op.name}({operands}) : {type_}>"

    @property
    def is_pick(self) -> bool:
        """Whether this is one of the results of an op that has several."""
        attrs = self.attrs
        if len(attrs) != 2 or len(self.inputs) != 1 or attrs[0][0] != "position":
            return False
        position = attrs[0][1]
        return type(position) is int and 0 <= position < MOST_RESULTS

    @property
    def name(self) -> str:
        """What the user called the value, if anything."""
        return self.loc.name if self.loc is not None else ""


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """A closed function: its results reach its params and nothing else.

    Equal functions have the same structure: ops, attributes, types, names and places. `order` has
    every node but the params, operands before users.
    """

    name: str
    params: tuple[Node, ...]
    results: tuple[Node, ...]
    order: tuple[Node, ...] = field(init=False)
    to_text: ClassVar[Callable[[Any], str]]  # the printer installs itself, the writer of
    to_python: ClassVar[Callable[..., str]]  # Python source too

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", tuple(postorder(self.results, self.params)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Function):
            return NotImplemented
        return self is other or _same_function(self, other)

    def __hash__(self) -> int:
        return hash((self.name, len(self.params), len(self.results), len(self.order)))

    def __repr__(self) -> str:
        counts = f"{len(self.params)} params, {len(self.order)} nodes"
        return f"<Function {self.name}: {counts}, {len(self.results)} results>"

    def __str__(self) -> str:
        return Function.to_text(self)


@dataclass(frozen=True, slots=True)
class Module:
    """The functions of one text, each closed; the first is where the program starts."""

    functions: tuple[Function, ...]
    _named: dict[str, Function] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        named = {f.name: f for f in self.functions}
        if len(named) < len(self.functions) or not named:
            names = ", ".join(f.name for f in self.functions)
            raise ProgramError("module", expected="functions of different names", got=names or "0")
        object.__setattr__(self, "_named", named)

    @property
    def entry(self) -> Function:
        return self.functions[0]

    def __getitem__(self, name: str) -> Function:
        return self._named[name]

    def __str__(self) -> str:
        return Function.to_text(self)


def postorder(ends: Sequence[Node], params: Sequence[Node] = ()) -> Iterator[Node]:
    """Every node that `ends` need but the params, operands before users; what the first of them
    needs comes first.
    """
    seen = set(params)
    stack: list[Any] = [*reversed(ends)]
    while stack:
        node = stack.pop()
        if node is None:  # before a node whose operands are through
            yield stack.pop()
        elif node not in seen:
            seen.add(node)
            if node.inputs:
                stack += (node, None, *node.inputs[::-1])
            else:
                yield node


# structure


def _same_function(f: Function, g: Function) -> bool:
    if f.name != g.name or len(f.params) != len(g.params):
        return False
    numbers, others = _numbered(f), _numbered(g)
    if [numbers[r] for r in f.results] != [others[r] for r in g.results]:
        return False
    several = {n.inputs[0] for n in f.order if n.is_pick}
    left = [n for n in f.order if not n.is_pick]
    right = [n for n in g.order if not n.is_pick]
    if len(left) != len(right):
        return False
    picks, theirs = (
        {number[n]: n for n in reversed(h.order) if n.is_pick}
        for number, h in ((numbers, f), (others, g))
    )
    return (
        all(map(_same_node, f.params, g.params))
        and picks.keys() == theirs.keys()
        and all(
            [numbers[i] for i in a.inputs] == [others[i] for i in b.inputs]
            and _same_node(a, b, a in several)
            for a, b in zip(left, right, strict=True)
        )
        and all(_same_pick(n, theirs[key]) for key, n in picks.items())
    )


def _numbered(f: Function) -> dict[Node, tuple[int, ...]]:
    """Every value of a function by its place; two picks of one result are one value."""
    fresh = count()
    out: dict[Node, tuple[int, ...]] = {}
    for p in f.params:
        out[p] = (next(fresh),)
    for n in f.order:
        out[n] = (*out[n.inputs[0]], n.attr("position")) if n.is_pick else (next(fresh),)
    return out


def _same_pick(a: Node, b: Node) -> bool:
    return a.op is b.op and same_type(a.type, b.type) and a.name == b.name


def _same_node(a: Node, b: Node, several: bool = False) -> bool:
    """Equal but for operands; the node behind several results has no name of its own."""
    return (
        a.op is b.op
        and same_type(a.type, b.type)
        and len(a.attrs) == len(b.attrs)
        and all(
            m == n and same_value(v, w) for (m, v), (n, w) in zip(a.attrs, b.attrs, strict=True)
        )
        and (_unnamed(a.loc) == _unnamed(b.loc) if several else a.loc == b.loc)
        and a.regions == b.regions
    )


def _unnamed(loc: Location | None) -> tuple[Any, ...]:
    place = loc or Location()
    return place.file, place.line, place.column, place.end_column, place.text


def same_value(a: Any, b: Any) -> bool:
    """Attributes that are equal to the bit: 0.0 and -0.0 differ, 1 and True differ, NaN is NaN."""
    a, b = canonical(a), canonical(b)
    if type(a) is not type(b):
        return False
    if isinstance(a, TensorType):
        return same_type(a, b)
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same_value, a, b))
    if isinstance(a, Buffer):
        return a.layout.type is b.layout.type and elements(a) == elements(b)
    if is_dataclass(a) and not isinstance(a, type):
        return all(same_value(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return bool(a == b)


def elements(b: Buffer) -> bytes:
    """The elements of a buffer in row-major order."""
    return np.ascontiguousarray(to_numpy(b)).tobytes()


def exact(attrs: Any) -> Any:
    """Attributes such that only the same are equal: 1, 1.0 and True differ, as do 0.0 and -0.0."""
    if isinstance(attrs, tuple):
        return tuple([exact(a) for a in attrs])
    if isinstance(attrs, float):
        return float, attrs.hex()
    if isinstance(attrs, (bool, int)):
        return type(attrs), attrs
    if isinstance(attrs, Buffer):
        return id(attrs)
    return attrs
