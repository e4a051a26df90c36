"""Running a function into a graph.

While a trace is open every op called in its thread becomes a node, whatever it is called on.
Tensors from outside that are read (parameters, buffers, an optimizer's state) become inputs of the
program; those that are given another value become outputs too, and get their old value back when
the trace ends: a trace leaves nothing behind.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from weft.autodiff.tape import Leaf
from weft.buffer import Buffer
from weft.capture.aliases import Aliases
from weft.capture.guards import Guards
from weft.capture.symbols import Symbols
from weft.control.region import draw_from
from weft.errors import CaptureError
from weft.ir import Function, Node
from weft.ops.creation import full
from weft.ops.define import Call, Value, as_node, capturing, installed, parameter, record_call
from weft.ops.elementwise import add
from weft.types import TensorType
from weft.types.dtype import int64
from weft.types.size import Number, is_symbolic

#: a size that a program finds is taken for this one at first: no literal is likely to equal it
_USUAL = 67


@dataclass(eq=False)
class Cell:
    """A place outside that holds a value: a tensor's own, or the gradient of a leaf."""

    owner: Any  # a Tensor, or a Leaf
    node: Node | None = None  # the input that reads it; None: written before it was read
    stand: Any = None  # what stands for a gradient that was read
    before: Any = None  # what it held: (data, note) or a gradient
    written: bool = False
    empty: bool = False  # a gradient that was looked at, and there was none
    argument: int | None = None  # it is the gradient of that argument

    @property
    def is_grad(self) -> bool:
        return isinstance(self.owner, Leaf)

    def value(self) -> Any:
        """The tensor whose data the place holds now, or None."""
        return self.owner.grad if self.is_grad else self.owner


@dataclass
class Draws:
    """Random numbers taken in the course of a trace."""

    key: Value
    offset: Value
    params: tuple[Node, ...]
    at: int = 0  # where the next is taken
    count: int = 0  # taken in all
    cell: Any = None  # a tensor that holds the next counter, once that depends on tensors


@dataclass
class Trace:
    """A trace under way, and afterwards what it found."""

    params: list[Node] = field(default_factory=list)
    cells: dict[int, Cell] = field(default_factory=dict)  # by id of the owner
    numbers: list[tuple[Node, Callable[[], Any]]] = field(default_factory=list)
    arguments: dict[int, Value] = field(default_factory=dict)  # by id of the caller's tensor
    leaves: dict[Leaf, tuple[int, Value]] = field(default_factory=dict)  # of arguments: which
    scalars: dict[int, tuple[Node, Number]] = field(default_factory=dict)  # of arguments, by step
    symbols: Symbols | None = None
    places: dict[Any, int] = field(default_factory=dict)  # leaves of arguments: which of the call's
    own_leaves: set[Leaf] = field(default_factory=set)  # of tensors made meanwhile
    draws: Draws | None = None
    names: dict[Node, str] = field(default_factory=dict)  # of placeholders
    by_hand: bool = False
    inside: int = 0
    token: Any = None  # a tensor that holds the last token, once Python is called
    running: list[Any] = field(default_factory=list)  # functions, see capture/source/recursion.py
    unrolled: list[Any] = field(default_factory=list)  # those that are run call by call
    #: why one can't be of the program
    endless: dict[Any, CaptureError] = field(default_factory=dict)
    found: list[Node | None] = field(default_factory=list)  # what sizes are that a program finds
    rooms: dict[Any, Any] = field(default_factory=dict)  # of stacks, by line
    facts: list[Any] = field(default_factory=list)  # of numbers: see `weft.capture.facts`
    hints: tuple[int, ...] = ()  # what they are in the call at hand

    def takes(self, xs: tuple[Any, ...]) -> bool:
        """Whether a call on these operands becomes a node."""
        return not self.by_hand or any(
            isinstance(x, Value)
            and (self.inside or x.note is not None or not isinstance(x.data, Buffer))
            for x in xs
        )

    guards: Guards = field(default_factory=Guards)  # what converted code read from outside
    aliases: Aliases = field(default_factory=Aliases)

    # inputs

    def parameter(self, type_: Any) -> Node:
        """A new input."""
        node = Node(parameter, (), (("position", len(self.params)), ("type", type_)), type_)
        self.params.append(node)
        return node

    def argument(self, x: Value, type_: TensorType | None = None, place: int = 0) -> Value:
        """What stands for a tensor that the function is called with, of a type that may have
        symbols in it.
        """
        known = self.arguments.get(id(x))
        if known is None:
            known = installed.tensor(self.parameter(type_ or x.type))
            if x.note is not None:
                known.note = known.leaf = Leaf()
                self.leaves[known.leaf] = len(self.params) - 1, x
                self.places[known.leaf] = place
            self.arguments[id(x)] = known
        return known

    def find(self) -> tuple[int, Any] | None:
        """The number of a size that the program will have found once it has run, and a symbol for
        it; `found` says later what it is.
        """
        if self.symbols is None or self.by_hand:
            return None
        k = len(self.found)
        self.found.append(None)
        hint = self.hints[k] if k < len(self.hints) else _USUAL
        return k, self.symbols.find(hint)

    @property
    def settled(self) -> list[Node]:
        """What sizes are, as far as it is known of all."""
        return list(itertools.takewhile(lambda n: n is not None, self.sizes))  # type: ignore[arg-type]

    @property
    def sizes(self) -> list[Node | None]:
        """What sizes are that the program finds."""
        needed = {room.number: as_node(room.cell) for room in self.rooms.values()}
        return [needed.get(i, n) for i, n in enumerate(self.found)]

    # what `weft.ops.define.Capture` asks for

    def read(self, x: Value) -> Node:
        if id(x) in self.arguments:
            node: Node = self.arguments[id(x)].data
            return node
        cell = self._cell(x)
        if cell.node is None:
            if not (x.note is None or isinstance(x.note, Leaf)):
                raise CaptureError(
                    "capture",
                    expected="tensors from outside that are parameters or constants",
                    got=f"{x.type} with a history of its own",
                    hint="pass it as an argument, or detach() it",
                )
            cell.node = self.parameter(x.type)
        return cell.node

    def write(self, x: Value) -> None:
        self.keep(x)
        self.aliases.changed(x)

    def keep(self, x: Value) -> None:
        if not isinstance(x.data, Buffer):
            return
        cell = self._cell(x)
        cell.before, cell.written = (x.data, x.note), True

    def own_leaf(self, leaf: Leaf) -> None:
        self.own_leaves.add(leaf)

    def read_grad(self, leaf: Leaf) -> Any:
        if leaf in self.own_leaves:
            return leaf.grad
        cell = self._cell(leaf)
        if cell.written:
            return leaf.grad
        of = self.leaves.get(leaf)
        grad = leaf.grad if of is None else of[1].leaf and of[1].leaf.grad
        if grad is None:
            cell.empty = True
            return None
        if cell.node is None:
            cell.node = self.parameter(grad.type)
            cell.stand = installed.tensor(cell.node)  # one: it may be given another value
        return cell.stand

    def write_grad(self, leaf: Leaf) -> None:
        if leaf in self.own_leaves:
            return
        cell = self._cell(leaf)
        of = self.leaves.get(leaf)
        if of is not None and of[1].leaf is None:
            raise CaptureError(
                "backward()",
                expected="a gradient that ends inside the captured function",
                got="an argument with a history of its own",
                hint="call backward() outside, or detach() the argument",
            )
        if not cell.written:
            cell.before, cell.written = leaf.grad, True

    def number(self, read: Callable[[], Any]) -> Any:
        value = read()
        if is_symbolic(value):
            return value  # set from an argument in the course of the call
        node = self.parameter(type(value))
        self.numbers.append((node, read))
        return installed.tensor(node)

    def scalar(self, x: Number) -> Node:
        found = self.scalars.get(x.step)
        if found is None:
            found = self.scalars[x.step] = self.parameter(x.__class__), x
        return found[0]

    def draw(self, count: int) -> tuple[Any, Any]:
        draws = self._draws()
        if draws.cell is not None:
            return draw_from(self, count)
        at = draws.at
        draws.at += count
        draws.count = max(draws.count, draws.at)
        return draws.key, self._counter(at)

    def _draws(self) -> Draws:
        if self.draws is None:
            params = tuple(self.parameter(int) for _ in range(2))
            key, offset = (full(installed.tensor(p), shape=(), dtype=int64) for p in params)
            self.draws = Draws(key, offset, params)
        return self.draws

    def _counter(self, at: int) -> Value:
        draws = self._draws()
        return add(draws.offset, at) if at else draws.offset

    def counter(self) -> tuple[Value, Value]:
        """The generator's key, and the tensor that holds its counter from now on."""
        inside, capturing.now = capturing.now, self
        try:
            draws = self._draws()
            if draws.cell is None:
                draws.cell = installed.tensor(self._counter(draws.at).data)
        finally:
            capturing.now = inside
        return draws.key, draws.cell

    def position(self) -> Any:
        if self.draws is None or self.draws.cell is None:
            return self.draws.at if self.draws else 0
        return self.draws.cell.data

    def rewind(self, position: Any) -> None:
        if self.draws is None:
            return
        if self.draws.cell is not None:
            known = isinstance(position, Node)
            assert capturing.now is not None
            capturing.now.keep(self.draws.cell)
            self.draws.cell.data = position if known else self._counter(position).data
        else:
            self.draws.at = position

    def _cell(self, owner: Any) -> Cell:
        found = self.cells.get(id(owner))
        if found is None:
            found = self.cells[id(owner)] = Cell(owner)
            if isinstance(owner, Leaf):
                found.argument = self.places.get(owner)
        return found

    # the block

    def __enter__(self) -> Trace:
        if capturing.now is not None:
            raise CaptureError("capture", got="a capture inside another one")
        capturing.now = self
        _doors.open()
        return self

    def __exit__(self, *_: object) -> None:
        capturing.now = None
        _doors.close()

    def restore(self) -> None:
        """Give every place outside what it held before."""
        if self.symbols is not None:
            self.symbols.close()
        for cell in self.cells.values():
            if not cell.written:
                continue
            if cell.is_grad:
                cell.owner.grad = cell.before
            else:
                cell.owner.data, cell.owner.note = cell.before
            cell.before = None  # a program outlives the values it was captured with

    def state(self) -> list[tuple[Cell, Node | None, bool]]:
        """The places that were written, and the node each holds at the end (None: no gradient);
        whether it is the gradient there before that was given another value.
        """
        out: list[tuple[Cell, Node | None, bool]] = []
        for cell in self.cells.values():
            stand = (
                cell.stand
            )  # unclear: the gradient may be another tensor by now, which is written
            if stand is not None and not (
                stand.data is cell.node or id(stand.data) in self.aliases.unclear
            ):
                out.append((cell, as_node(cell.stand), True))
            if cell.written:
                value = cell.value()
                same = value is not None and value is cell.stand
                out += [] if same else [(cell, None if value is None else as_node(value), False)]
        return out

    def function(self, name: str, results: list[Node]) -> Function:
        return Function(name, tuple(self.params), tuple(results))


class _Doors:
    """While any trace is open, launches by a known plan go through here: those of the tracing
    thread become nodes, those of others run.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.native: Callable[..., Any]

    def open(self) -> None:
        with self.lock:
            if self.count == 0:
                self.native, installed.launch = installed.launch, self.launch
            self.count += 1

    def close(self) -> None:
        with self.lock:
            self.count -= 1
            if self.count == 0:
                installed.launch = self.native

    def launch(self, plan: Any, *xs: Any) -> Any:
        c = capturing.now
        if c is None or not c.takes(xs):
            return self.native(plan, *xs)
        call: Call = plan.call
        return record_call(call.op, xs, call.attrs)


_doors = _Doors()
