"""Operators for control flow: Python's own unless a condition is symbolic."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from weft.capture.chosen import TYPES, Chosen, Flag
from weft.capture.effects import happened
from weft.capture.join import UNDEFINED, Unjoined
from weft.capture.pythonic import rounded, whole
from weft.capture.source.calls import SPECIAL
from weft.capture.source.reads import guards, known, later, refuse, seen
from weft.capture.source.signals import BREAK, CONTINUE, Return, Signal
from weft.capture.source.symbolic import Loop, branch, loop
from weft.capture.structure import flatten
from weft.control.build import truth
from weft.control.nodes import BOOL
from weft.errors import CaptureError, DTypeError, ShapeError
from weft.ir import Node
from weft.ops.creation import full
from weft.ops.define import Value, capturing, constant, data_of, installed, real
from weft.ops.elementwise import astype, logical_not, logical_or
from weft.ops.movement import reshape
from weft.tensor.tensor import Tensor
from weft.types.dtype import bool_, float64, int64
from weft.types.size import Size

Thunk = Callable[[], Any]
Put = Callable[..., None]
Names = tuple[str, ...]
_UNROLLED = 8  # steps of a range after which a break on tensors makes it a loop of the program
_LONG = 16  # steps of a range beyond which it is a loop of the program wherever it can be


def load(read: Thunk) -> Any:
    """A variable's value, or UNDEFINED."""
    try:
        return read()
    except NameError:
        return UNDEFINED


def is_symbolic(x: Any) -> bool:
    return isinstance(x, Value) and isinstance(real(x), Node)


def given(x: Any) -> Any:
    """What a function returns: it may hold nothing that two paths left in different ways."""
    if capturing.now is not None:
        for v in flatten(x)[0]:
            if type(v) is Unjoined:
                v.used()
    return x


def test(x: Any) -> bool:
    """The truth of a value that has to be known now."""
    if is_symbolic(x):
        raise refuse(
            "a condition on a tensor inside with, try or a comprehension",
            "move the branch out of it",
        )
    return bool(seen(x))


# statements


def if_(condition: Any, then: Thunk, otherwise: Thunk, get: Thunk, put: Put, names: Names) -> Any:
    if is_symbolic(condition):
        return branch(condition, then, otherwise, get, put, names)
    return then() if seen(condition) else otherwise()


def while_(check: Thunk, body: Thunk, get: Thunk, put: Put, names: Names, live: Names) -> Any:
    while True:
        done = happened()
        more = check()
        if is_symbolic(more):
            return loop(more, done != happened(), check, body, get, put, names)
        if not seen(more):
            return None
        signal = body()
        if type(signal) is Signal:
            return loop(None, False, check, body, get, put, names, signal)
        if signal is not None:
            return signal


def for_(items: Any, body: Any, get: Thunk, put: Put, names: Names, live: Names) -> Any:
    if isinstance(items, Range):
        return counted(items, body, get, put, names, None)
    if is_long(items):
        try:
            plain = Range(items.start, items.stop, items.step)
            return counted(plain, body, get, put, names, None, known=True)
        except CaptureError:  # step by step, then
            pass
    steps = iter(iterate(items))
    left = len(items) if isinstance(items, range) else 0

    def go_on() -> Any:
        nonlocal left
        for x in steps:
            left -= 1
            signal = body(x)
            if type(signal) is not Signal:
                if signal is not None:
                    return signal
            elif left > _UNROLLED:
                rest = Range(x + items.step, items.stop, items.step)
                return counted(rest, body, get, put, names, signal)
            else:
                stop = logical_or(as_value(signal.broke), as_value(signal.returns))
                return branch(stop, partial(_same, signal), go_on, get, put, names)
        return None

    return go_on()


def _same(x: Any) -> Any:
    return x


def as_value(x: Any) -> Value:
    return x if isinstance(x, Value) else installed.lift(x)


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
    return type(items) is range and len(items) > _LONG and now is not None and not now.by_hand


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

    return Loop(more, step, get_all, put_all, (*names, "the index"), signal, checkpoint).run()


def iterate(items: Any) -> Any:
    return seen(items)


def returned(signal: Any) -> Any:
    return signal.returns if type(signal) is Signal else type(signal) is Return


def returned_value(signal: Any) -> Any:
    return signal.value


def broke(signal: Any) -> Any:
    return signal.broke if type(signal) is Signal else signal is BREAK


def skipped(signal: Any) -> Any:
    return signal.skips if type(signal) is Signal else signal is CONTINUE


def completed(signal: Any) -> Any:
    if type(signal) is Signal:
        return logical_not(logical_or(as_value(signal.broke), as_value(signal.returns)))
    return signal is None


# expressions


def and_(*parts: Thunk) -> Any:
    return _lazy(parts, False)


def or_(*parts: Thunk) -> Any:
    return _lazy(parts, True)


def _lazy(parts: tuple[Thunk, ...], decides: bool) -> Any:
    """The first part that decides, else the last: parts behind it are not computed."""
    value = parts[0]()
    for i, part in enumerate(parts[1:], 1):
        if is_symbolic(value):
            rest = lambda i=i: _lazy(parts[i:], decides)
            keep = lambda v=value: v
            then, otherwise = (keep, rest) if decides else (rest, keep)
            return branch(value, then, otherwise, tuple, _nothing, ())
        if bool(seen(value)) is decides:
            return value
        value = part()
    return value


def _nothing(*_: Any) -> None:
    """Binds no variable."""


def not_(x: Any) -> Any:
    return Flag.of(logical_not(truth(x, "not"))) if is_symbolic(x) else not seen(x)


def choose(condition: Any, then: Thunk, otherwise: Thunk) -> Any:
    return if_(condition, then, otherwise, tuple, _nothing, ())


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "is": lambda a, b: _identical(a, b),
    "is not": lambda a, b: not_(_identical(a, b)),
    "in": lambda a, b: later.contains(a, b),
    "not in": lambda a, b: not_(later.contains(a, b)),
}


def _identical(a: Any, b: Any) -> Any:
    if type(b) is bool and is_symbolic(a):
        raise refuse(f"a test whether a tensor is {b}", "compare with ==, or test it by itself")
    return later.identical(a, b)


def compare(left: Any, symbols: tuple[str, ...], *rights: Thunk) -> Any:
    """`left < right < …`, each operand computed once, and none after a comparison that fails."""
    right = rights[0]()
    value = _COMPARE[symbols[0]](left, right)
    if len(symbols) == 1:
        return value
    return and_(lambda: value, lambda: compare(right, symbols[1:], *rights[1:]))


def _int(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and is_symbolic(args[0]) and not args[0].type.dtype.is_float:
        x = args[0]
        return item(astype(x, dtype=int64) if x.type.dtype is bool_ else x)
    if len(args) == 1 and is_symbolic(args[0]):
        return whole(item(args[0]))
    return int(*args, **kwargs)


def _divmod(a: Any, b: Any) -> Any:
    if any(type(x) is Chosen for x in (a, b)):
        return a // b, a % b
    return divmod(a, b)


def _float(*args: Any) -> Any:
    if len(args) == 1 and is_symbolic(args[0]):
        x = item(args[0])
        return x if x.kind is float else Chosen.of(astype(Tensor(x.data), dtype=float64))
    return float(*args)


def _bool(*args: Any) -> Any:
    symbolic = args and is_symbolic(args[0])
    return Flag.of(truth(args[0], "bool()")) if symbolic else bool(*map(seen, args))


def item(x: Any) -> Any:
    """`x.item()`: the one element of a tensor as a number."""
    if not is_symbolic(x):
        return x.item()
    if x.type.dtype is bool_:
        return Flag.of(truth(x, "item()"))
    if x.type.size != 1:
        raise ShapeError("item()", expected="a tensor of one element", got=str(x.type))
    kind = float if x.type.dtype.is_float else int
    plain = Tensor(x.data)
    wide = plain if plain.dtype is TYPES[kind].dtype else astype(plain, dtype=TYPES[kind].dtype)
    return Chosen.of(wide if wide.type.shape == () else reshape(wide, shape=()))


def _isinstance(x: Any, kinds: Any) -> bool:
    known(x)
    if type(x) is Chosen:
        return issubclass(x.kind, kinds)
    if type(x) is Flag:
        return issubclass(bool, kinds)
    if is_symbolic(x) and x.type is BOOL and isinstance(True, kinds) and kinds is not object:
        raise refuse("a test whether a condition on tensors is a Python bool")
    g = guards()
    if g is not None:
        g.kind(x)
    return isinstance(x, kinds)


def _type(*args: Any) -> Any:
    number = len(args) == 1 and type(known(args[0])) in (Chosen, Flag)
    return args[0].kind if number else type(*args)


def _extreme(pick: Any, better: Any) -> Any:
    """`max` or `min` of tensors, as Python goes through them."""

    def extreme(*args: Any, **kwargs: Any) -> Any:
        items = list(iterate(args[0])) if len(args) == 1 else list(args)
        if kwargs or not any(map(is_symbolic, items)):
            return pick(*args, **kwargs)
        best = items[0]
        for x in items[1:]:
            best = choose(better(x, best), partial(_same, x), partial(_same, best))
        return best

    return extreme


def _whether(lazily: Any, plain: Any) -> Any:
    """`any` or `all` of conditions."""

    def whether(items: Any) -> Any:
        found = list(iterate(items))
        if not any(map(is_symbolic, found)):
            return plain(found)
        return lazily(*(partial(_as_truth, x) for x in found))

    return whether


def _as_truth(x: Any) -> Any:
    return truth(x, "a condition") if is_symbolic(x) else bool(x)


SPECIAL.update({max: _extreme(max, operator.gt), min: _extreme(min, operator.lt)})
SPECIAL.update({any: _whether(or_, any), all: _whether(and_, all)})
SPECIAL.update(
    {
        isinstance: _isinstance,
        type: _type,
        range: _range,
        round: rounded,
        divmod: _divmod,
        int: _int,
        float: _float,
        bool: _bool,
        Tensor.item: item,
    }
)
