"""Ranges whose bounds depend on tensors or on open sizes, and loops of the program over ranges."""

from __future__ import annotations

import operator
from typing import Any, ClassVar

from weft.capture.chosen import Chosen
from weft.capture.source.calls import SPECIAL
from weft.capture.source.loops import Loop
from weft.capture.source.reads import refuse
from weft.capture.source.sequences import LONG
from weft.capture.source.symbolic import Put, Thunk
from weft.errors import DTypeError
from weft.ir import Node
from weft.ops.creation import full
from weft.ops.define import Value, capturing, constant, data_of, real
from weft.ops.elementwise import astype
from weft.ops.movement import reshape
from weft.types.dtype import int64
from weft.types.size import Size

Names = tuple[str, ...]


def is_symbolic(x: Any) -> bool:
    return isinstance(x, Value) and isinstance(real(x), Node)


class Range:
    """A range whose bounds depend on tensors or on sizes that are open: a loop of the program.

    Anything else than a loop needs its numbers, which sizes have and tensors don't.
    """

    def __init__(self, start: Any, stop: Any, step: Any = 1) -> None:
        if isinstance(step, Value):
            raise refuse("a range whose step is a tensor", "give it a Python step")
        if step == 0:
            raise ValueError("range() arg 3 must not be zero")
        self.start, self.stop, self.step = start, stop, step

    @property
    def count(self) -> Any:
        """How many numbers, where that is known before the program runs."""
        if any(isinstance(x, Value) for x in (self.start, self.stop)):
            return None
        by = self.step if self.step > 0 else -self.step
        along = self.stop - self.start if self.step > 0 else self.start - self.stop
        n = along if by == 1 else (along + by - 1) // by
        return n if n > 0 else 0

    def _numbers(self) -> range:
        bounds = (self.start, self.stop, self.step)
        if any(isinstance(x, Value) for x in bounds):
            raise refuse(
                "a comprehension or function over a range of tensors", "write it as a loop"
            )
        return range(*map(operator.index, bounds))

    def __iter__(self) -> Any:
        return iter(self._numbers())

    def __reversed__(self) -> Any:
        return reversed(self._numbers())

    def __len__(self) -> int:
        return len(self._numbers())

    def __getitem__(self, i: Any) -> Any:
        return self._numbers()[i]


def _range(*args: Any) -> Any:
    if not any(is_symbolic(x) or type(x) is Size for x in args):
        return range(*args)  # sizes that are open make a loop too: one program for every length
    for x in args:
        if isinstance(x, Value) and (x.type.size != 1 or not x.type.dtype.is_int):
            raise DTypeError("range", expected="integers", got=str(x.type))
    args = tuple(as_index(x) for x in args)
    return Range(0, *args) if len(args) == 1 else Range(*args)


def as_index(x: Any) -> Any:
    """A tensor of one integer as int64 without axes."""
    if not isinstance(x, Value):
        return x
    x = x if x.type.dtype is int64 else astype(x, dtype=int64)
    return x if x.type.shape == () else reshape(x, shape=())


def is_long(items: Any) -> bool:
    """Whether a range is better a loop of the program than gone through while it is captured."""
    now = capturing.now
    return type(items) is range and len(items) > LONG and now is not None and not now.by_hand


class counting:
    """A step of a loop over known numbers, of which one is this node."""

    nodes: ClassVar[list[Node]] = []

    def __init__(self, node: Node | None) -> None:
        self.node = node

    def __enter__(self) -> None:
        if self.node is not None:
            counting.nodes.append(self.node)

    def __exit__(self, *_: object) -> None:
        if self.node is not None:
            counting.nodes.remove(self.node)


def is_counted(x: Value) -> bool:
    """Whether a number would be known if such loops were gone through step by step."""
    todo, seen_, found = [data_of(x)], set(), False
    while todo:
        n = todo.pop()
        if n in counting.nodes:
            found = True
        elif n not in seen_ and n.op is not constant:
            if not n.inputs or n.regions:
                return False
            seen_.add(n)
            todo += n.inputs
    return found


def counted(
    items: Range,
    body: Any,
    get: Thunk,
    put: Put,
    names: Names,
    signal: Any,
    checkpoint: int | bool | None = None,
    known: bool = False,
) -> Any:
    """A loop of the program over a range; `known`, one that could be gone through as well."""
    now = full(items.start, shape=(), dtype=int64)

    def more() -> Any:
        return now < items.stop if items.step > 0 else now > items.stop

    def step() -> Any:
        nonlocal now
        i = Chosen.of(now)
        now = now + items.step
        with counting(i.data if known else None):
            return body(i)

    def get_all() -> tuple[Any, ...]:
        return (*get(), now)

    def put_all(*values: Any) -> None:
        nonlocal now
        put(*values[:-1])
        now = values[-1]

    steps = items.count if signal is None else None
    return Loop(
        more, step, get_all, put_all, (*names, "the index"), signal, checkpoint, steps, not known
    ).run()


SPECIAL[range] = _range
