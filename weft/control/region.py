"""Running a piece of a function into a graph of its own.

While a region is open it is the capture under way. Nodes made meanwhile are its own; all others
that its results lead to are captured: `close` makes them parameters. Tensors that were there before
and are given another value, gradients likewise, are noted and get their old value back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CellType
from typing import Any

from weft.autodiff.tape import next_serial
from weft.errors import CaptureError
from weft.ir import Function, Node, user_location
from weft.ops.define import (
    Call,
    Value,
    capturing,
    constant,
    data_of,
    installed,
    parameter,
)
from weft.types.size import Number


class Region:
    """A capture inside another one, or inside none."""

    def __init__(self) -> None:
        self.parent: Any = capturing.now
        self.nodes: set[Node] = set()
        self.objects: dict[int, Any] = {}  # objects made meanwhile, held so that ids stay theirs
        self.written: dict[int, tuple[Value, Any, Any]] = {}  # tensor, what it held, its note
        self.grads: dict[Any, Any] = {}  # leaf -> the gradient it had
        self.changed: dict[int, tuple[Any, Any]] = {}  # object, what it consisted of
        self.types: dict[Any, Any] = {}  # of values with notes that were read, by note
        self.leaves: set[Any] = set()  # notes of its own parameters
        self.starts: dict[Any, Any] = {}  # of these: notes of what they are at first, if known
        self.facts: list[Any] = []  # of numbers: see `weft.capture.facts`
        self.since = next_serial[0]()  # notes made before are another's
        #: of one that pulls others back: notes made from here on, and before it, are theirs
        self.origin: int | None = getattr(self.parent, "origin", None)
        self.by_hand: bool = self.parent is not None and self.parent.by_hand
        self.inside: int = 0 if self.parent is None else self.parent.inside

    @property
    def guards(self) -> Any:
        return getattr(self.parent, "guards", None)

    @property
    def aliases(self) -> Any:
        return getattr(self.parent, "aliases", None)

    def pulls(self, other: Region) -> None:
        """Say that it pulls another one back."""
        starts = [n for n in (self.origin, other.origin, other.since) if n is not None]
        self.origin = min(starts)

    # what `weft.ops.define.Capture` asks for

    def takes(self, xs: tuple[Any, ...]) -> bool:
        return self.parent is not None and bool(self.parent.takes(xs))

    def read(self, x: Value) -> Node:
        if self.parent is not None:
            return self.parent.read(x)  # type: ignore[no-any-return]
        return Node(constant, (), (("value", x.data), ("type", x.type)), x.type)

    def write(self, x: Value) -> None:
        self.keep(x)
        if self.aliases is not None:
            self.aliases.changed(x)

    def keep(self, x: Value) -> None:
        if x.data not in self.nodes:
            self.written.setdefault(id(x), (x, x.data, x.note))

    def read_grad(self, leaf: Any) -> Any:
        if leaf in self.grads or leaf in self.leaves or self.parent is None:
            return leaf.grad
        return self.parent.read_grad(leaf)

    def write_grad(self, leaf: Any) -> None:
        if leaf not in self.grads and leaf not in self.leaves:
            self.grads[leaf] = leaf.grad  # not what stands for it: that is put back here

    def own_leaf(self, leaf: Any) -> None:
        self.leaves.add(leaf)
        if self.parent is not None:
            self.parent.own_leaf(leaf)

    def number(self, read: Callable[[], float]) -> Any:
        return read() if self.parent is None else self.parent.number(read)

    def scalar(self, x: Number) -> Node:
        return self.parent.scalar(x)  # type: ignore[no-any-return]

    def position(self) -> Any:
        return 0 if self.parent is None else self.parent.position()

    def rewind(self, position: Any) -> None:
        if self.parent is not None:
            self.parent.rewind(position)

    def counter(self) -> tuple[Value, Value]:
        """Key and counter of the random generator, which are the whole capture's."""
        if self.parent is None:
            loc = user_location()
            raise CaptureError(
                f"random numbers at {loc}" if loc else "random numbers",
                expected="a generator",
                got="a branch or loop of a graph made by hand",
                hint="draw them before it, or compile the function",
            )
        return self.parent.counter()  # type: ignore[no-any-return]

    def draw(self, count: int) -> tuple[Any, Any]:
        return draw_from(self, count)

    # objects

    def change(self, x: Any, name: str | None) -> None:
        """Told before Python changes a list, dict, set, object or variable."""
        if id(x) in self.objects:
            return
        if type(x) in CHANGING:
            self.changed.setdefault(id(x), (x, content_of(x)))
        elif isinstance(getattr(x, "__dict__", None), dict):
            inside = x.__dict__
            self.changed.setdefault(id(inside), (inside, dict(inside)))
        else:
            loc = user_location()
            raise CaptureError(
                f"a branch or loop on tensors at {loc}",
                expected="objects that can be set back",
                got=f"a change of a {type(x).__name__}",
            )

    # the block

    def __enter__(self) -> Region:
        capturing.now = self
        return self

    def __exit__(self, *_: object) -> None:
        capturing.now = self.parent
        if isinstance(self.parent, Region):
            self.parent.types.update(self.types)

    def parameter(self, type_: Any) -> Value:
        """A value that the piece is run on."""
        return installed.tensor(Node(parameter, (), (("position", 0), ("type", type_)), type_))

    def close(self) -> None:
        """What was made meanwhile is only known by what it became a part of."""
        if self.aliases is not None:
            self.aliases.close(self)

    def restore(self) -> None:
        """Give everything what it held before."""
        for x, data, note in self.written.values():
            x.data, x.note = data, note
        for leaf, grad in self.grads.items():
            leaf.grad = grad
        for x, before in self.changed.values():
            refill(x, before)


def draw_from(capture: Any, count: int) -> tuple[Value, Value]:
    """Key and first counter of so many random numbers; the counter moves on."""
    key, cell = capture.counter()
    at = installed.tensor(cell.data)
    capture.keep(cell)
    cell.data = data_of(at + count)
    return key, at


#: what can be given another content; a cell holds a variable that functions share
CHANGING = (list, dict, set, CellType)


def content_of(x: Any) -> Any:
    """What a container has in it."""
    if type(x) is not CellType:
        return type(x)(x)
    try:
        return [x.cell_contents]
    except ValueError:
        return []


def refill(x: Any, content: Any) -> None:
    """Give a container other elements."""
    if type(x) is CellType:
        if content:
            x.cell_contents = content[0]
        else:
            del x.cell_contents
    elif type(x) is list:
        x[:] = content
    else:
        x.clear()
        x.update(content)


_note = installed.note


def _noted(call: Call, xs: tuple[Any, ...], outs: tuple[Value, ...]) -> None:
    now = capturing.now
    if isinstance(now, Region):
        own(now, outs)
        for x in xs:
            if isinstance(x, Value) and x.note is not None:
                now.types[x.note] = x.type
    _note(call, xs, outs)


installed.note = _noted


def own(region: Region, outs: Sequence[Value]) -> None:
    """Say that nodes are a region's."""
    for o in outs:
        region.nodes.add(o.data)
        if o.data.is_pick:
            region.nodes.add(o.data.inputs[0])


def close(
    name: str, pieces: Sequence[tuple[set[Node], Sequence[Node], Sequence[Node]]]
) -> tuple[list[Function], list[Node]]:
    """(nodes, params, results) of each piece as a closed function, and what they capture.

    All take the captured values behind their own params.
    """
    captured: dict[Node, None] = {}
    for nodes, params, results in pieces:
        inner = set(params)
        seen: set[Node] = set()
        stack = list(reversed(results))
        while stack:
            n = stack.pop()
            if n in seen or n in inner:
                continue
            seen.add(n)
            if n in nodes:
                stack.extend(reversed(n.inputs))
            elif n.op is not constant:
                captured[n] = None
    out = [_closed(name, params, results, list(captured)) for _, params, results in pieces]
    return out, list(captured)


def _closed(
    name: str,
    params: Sequence[Node],
    results: Sequence[Node],
    captured: Sequence[Node],
) -> Function:
    env: dict[Node, Node] = {}
    made = []
    for i, p in enumerate((*params, *captured)):
        loc = p.loc if p.op is parameter else None
        new = Node(parameter, (), (("position", i), ("type", p.type)), p.type, loc)
        env[p] = new
        made.append(new)
    stack = [(r, False) for r in reversed(results)]
    while stack:
        n, ready = stack.pop()
        if n in env:
            continue
        if ready or not n.inputs:
            inputs = tuple(env[i] for i in n.inputs)
            env[n] = Node(n.op, inputs, n.attrs, n.type, n.loc, n.regions) if inputs else n
        else:
            stack.append((n, True))
            stack.extend((i, False) for i in reversed(n.inputs))
    return Function(name, tuple(made), tuple(env[r] for r in results))
