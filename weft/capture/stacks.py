"""Lists that grow, shrink and are read where the program decides how long they are.

All elements lie behind one another in tensors of more rows than there are elements, and a number of
the program counts them. In a loop the tensors keep their size, which a first run of the program has
found to be enough (`weft.deploy.lengths`): a loop that comes to have more elements than rows ends
there, having said how many it had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from weft.autodiff.mode import enable_grad
from weft.capture.chosen import TYPES, Chosen, Flag, as_chosen
from weft.capture.refusal import refused
from weft.capture.runs import GROWN, Maybe, Run, later as of_runs, refilled, same, size_to_find
from weft.capture.structure import LEAF, SPECIAL, Form, flatten
from weft.control import growing
from weft.control.region import Region
from weft.ir import user_location
from weft.ops.creation import arange, full
from weft.ops.define import Value, as_node, capturing, data_of, installed
from weft.ops.elementwise import add, astype, maximum, where
from weft.ops.growing import put_rows
from weft.tensor import manipulation
from weft.tensor.tensor import Tensor
from weft.types import TensorType
from weft.types.dtype import bool_, int64

#: what the number of a room is more where the program ends by an error that a stack raises
ENDED = 1 << 40
_NUMBERS = {**TYPES, bool: TensorType((), bool_)}


class Room:
    """Rows for the elements of a stack in a loop: so many that the program is said to need. `cell`
    holds how many it did need so far.
    """

    def __init__(self) -> None:
        self.number, self.size = size_to_find(anywhere=True)
        self.cell = installed.tensor(as_node(installed.lift(np.int64(0))))

    @staticmethod
    def here() -> Room:
        """The room of the stacks of a line."""
        trace, line = _root(), user_location()
        known: Room | None = trace.rooms.get(line)
        if known is None:
            known = trace.rooms[line] = Room()
        return known

    def need(self, count: Any) -> None:
        """Note how many elements there are."""
        self._put(maximum(installed.tensor(self.cell.data), count))

    def end(self, unless: Value | None = None) -> None:
        """Have loops end here where the program raises."""
        more = _number(ENDED)
        more = more if unless is None else where(unless, _number(0), more)
        self._put(add(installed.tensor(self.cell.data), more))

    def _put(self, count: Value) -> None:
        assert capturing.now is not None
        capturing.now.keep(self.cell)
        self.cell.data = data_of(count)

    def is_enough(self) -> Value:
        rows = full(self.size, shape=(), dtype=int64)
        return installed.tensor(self.cell.data) <= rows  # type: ignore[no-any-return]


def _root() -> Any:
    trace: Any = capturing.now
    while isinstance(trace, Region):
        trace = trace.parent
    return trace


def rooms() -> list[Room]:
    """Those of the program so far."""
    trace = _root()
    return [] if trace is None else list(trace.rooms.values())


class Stack:
    """The first elements of a list: rows of tensors, one for each leaf of an element's structure.
    `kinds`: what the leaves are to Python code; `least`: how many there are at least; `most`: at
    most, where there is no `room`, and the rows may be put into larger tensors.
    """

    __slots__ = ("count", "form", "kinds", "least", "most", "room", "rows")

    def __init__(
        self, form: Form, kinds: tuple[type, ...], rows: Sequence[Value], count: Chosen,
        least: int, most: Any, room: Room | None,
    ) -> None:  # fmt: skip
        self.form, self.kinds, self.rows, self.count = form, kinds, tuple(rows), count
        self.least, self.most, self.room = least, most, room

    def having(
        self, count: Chosen, least: int, rows: Sequence[Value] | None = None, more: Any = 0
    ) -> Stack:
        """The same with another number of elements, or other ones."""
        rows = self.rows if rows is None else rows
        most = None if self.room is not None else self.most + more
        return Stack(self.form, self.kinds, rows, count, max(least, 0), most, self.room)

    def at(self, i: Any) -> Any:
        """Element i, which there is."""
        at = i if isinstance(i, Value) else _number(i)
        parts = []
        for kind, rows in zip(self.kinds, self.rows, strict=True):
            row = growing.element(rows, installed.tensor(data_of(at)))
            same(row, rows)
            parts.append(kind.of(row) if kind in (Chosen, Flag) else row)
        return self.form.build(parts)

    def __eq__(self, other: object) -> bool:
        got = "a comparison of a list whose length depends on values"
        raise refused("a list", "its elements to be read one by one", got, "compare its elements")

    __hash__ = object.__hash__


def _parts(x: Stack) -> tuple[Form, Sequence[Any]]:
    leaves = (*x.rows, x.count)
    names = (x.form, x.kinds, x.least, x.most, x.room)
    return Form(Stack, names, (LEAF,) * len(leaves)), leaves


def _built(form: Form, leaves: Sequence[Any]) -> Stack:
    inner, kinds, *rest = form.names
    return Stack(inner, kinds, leaves[:-1], leaves[-1], *rest)


SPECIAL[Stack] = _parts, _built


def _number(n: Any) -> Value:
    return full(n, shape=(), dtype=int64)  # type: ignore[no-any-return]


def is_stack(x: Any) -> bool:
    return type(x) is list and any(type(v) is Stack for v in x)


# what elements are


Spec = tuple[Form, tuple[type, ...], tuple[TensorType, ...]]


def spec(x: Sequence[Any]) -> Spec | None:
    """The structure, kinds and types of every element, if they are the same."""
    found = {_spec(v) for v in x}
    return found.pop() if len(found) == 1 else None


def _spec(v: Any) -> Spec | None:
    if type(v) is Stack:
        return v.form, v.kinds, tuple(TensorType(r.type.shape[1:], r.type.dtype) for r in v.rows)
    if type(v) is Run:
        if v.count is not None:
            return None
        type_ = TensorType(v.rows.type.shape[1:], v.rows.type.dtype)
        return LEAF, (Chosen if v.numbers else Tensor,), (type_,)
    leaves, form = flatten(v.value if type(v) is Maybe else v)
    leaves = [as_chosen(x) if type(x) is not bool else x for x in leaves]
    if not _is_fixed(form) or not leaves:
        return None
    if not all(isinstance(x, Value) or type(x) is bool for x in leaves):
        return None
    kinds = tuple(Flag if type(x) is bool else type(x) for x in leaves)
    kinds = tuple(k if k in (Chosen, Flag) else Tensor for k in kinds)
    return form, kinds, tuple(x.type if isinstance(x, Value) else _NUMBERS[bool] for x in leaves)


def _is_fixed(form: Form) -> bool:
    """Whether a structure is of tuples alone, which nobody changes."""
    if form.kind is None:
        return True
    plain = isinstance(form.kind, type) and issubclass(form.kind, tuple)
    return plain and all(map(_is_fixed, form.children))


def _values(v: Any) -> list[Value]:
    """The leaves of an element as plain tensors."""
    out = []
    for x in flatten(v.value if type(v) is Maybe else v)[0]:
        x = installed.lift(x) if type(x) is bool else as_chosen(x)
        out.append(installed.tensor(data_of(x), x.note))
    return out


# a list as a stack


@enable_grad()
def stacked(x: list[Any], found: Spec | None = None) -> Stack:
    """All elements of a list as a stack, which the list is from now on."""
    if len(x) == 1 and type(x[0]) is Stack:
        return x[0]
    found = found or spec(x)
    if found is None:
        raise refused(
            "a list whose length depends on values",
            "elements of one type, that are tensors, numbers, or tuples of them",
            "others",
            "append elements of one type, and keep others in a list of their own",
        )
    with _home(x):
        first = x[0] if x and type(x[0]) is Stack else empty(found, None)
        more = x[1:] if x and type(x[0]) is Stack else x
        stack: Stack = absorbed(first, more)
        refilled(x, [stack])
    return stack


def empty(found: Spec, room: Room | None) -> Stack:
    """A stack without elements."""
    form, kinds, types = found
    n = 0 if room is None else room.size
    rows = [full(0, shape=(n, *t.shape), dtype=t.dtype) for t in types]
    return Stack(form, kinds, rows, Chosen.of(_number(0)), 0, None if room else 0, room)


@enable_grad()
def enlarged(stack: Stack, n: Any) -> Stack:
    """A stack with rows for so many elements at least."""
    more = n - stack.rows[0].type.shape[0]
    if stack.room is not None or more <= 0:
        return stack
    return stack.having(stack.count, stack.least, [_longer(r, more) for r in stack.rows])


@enable_grad()
def alike_before(x: list[Any], a: list[Any], b: list[Any]) -> bool:
    """Have a list be a stack that two paths leave as stacks of one size, where they left `a` and
    `b`, which are not. Whether there was one.
    """
    stacks = [v for y in (a, b) for v in y if type(v) is Stack]
    if not stacks or len({_rows(y) for y in (a, b)}) == 1:
        return False
    elements = spec([*x, *stacks])
    if elements is None:
        return False
    room = next((s.room for s in stacks if s.room is not None), None)
    if room is not None:
        refilled(x, [absorbed(empty(elements, room), list(x))])
    else:
        n = max(s.rows[0].type.shape[0] for s in stacks)
        refilled(x, [enlarged(stacked(x, elements), n)])
    return True


def _rows(x: list[Any]) -> Any:
    """How many rows a stack has, and which room; None: it is none."""
    found = (v for v in x if type(v) is Stack)
    return next(((str(v.rows[0].type.shape[0]), id(v.room)) for v in found), None)


@enable_grad()
def absorbed(stack: Stack, more: Sequence[Any]) -> Stack:
    """A stack with more elements."""
    slots = _slots(more) if stack.room is None else 0
    if stack.room is None:
        stack = enlarged(stack, stack.most + slots)
    rows, count, least = list(stack.rows), installed.tensor(stack.count.data), stack.least
    for v in more:
        if type(v) in (Stack, Run):
            parts = v.rows if type(v) is Stack else (v.rows,)
            rows = [put_rows(r, count, _plain(p)) for r, p in zip(rows, parts, strict=True)]
            n = v.count if type(v) is Stack else _number(v.rows.type.shape[0])
            count = add(count, installed.tensor(n.data))
            least += v.least if type(v) is Stack else 0
            before: Sequence[Value] = parts
        else:
            at = count
            before = _values(v)
            if type(v) is Maybe:
                flag = v.flag if isinstance(v.flag, Value) else installed.lift(v.flag)
                at = where(flag, count, _number(-1))
                count = add(count, astype(flag, dtype=int64))
            else:
                count = count + 1
                least += 1
            rows = [put_rows(r, at, p) for r, p in zip(rows, before, strict=True)]
        leaves = before if type(v) in (Stack, Run) else _leaves(v)
        if type(v) not in (Stack, Run, Maybe):
            for r, p in zip(rows, leaves, strict=True):
                if isinstance(p, Value):
                    growing.name(p, r, at)
        for r, old, p in zip(rows, stack.rows, leaves, strict=True):
            if isinstance(p, Value):
                same(r, old, p)
    if more and stack.room is not None:
        stack.room.need(count)
    return stack.having(Chosen.of(count), least, rows, slots)


def _leaves(v: Any) -> list[Any]:
    return flatten(v.value if type(v) is Maybe else v)[0]


def _plain(x: Value) -> Value:
    return installed.tensor(data_of(x), x.note)


def _slots(x: Sequence[Any]) -> Any:
    """How many elements there may be."""
    total: Any = 0
    for v in x:
        if type(v) is Stack:
            total = total + v.rows[0].type.shape[0]
        else:
            total = total + (v.rows.type.shape[0] if type(v) is Run else 1)
    return total


def _longer(rows: Value, n: Any) -> Value:
    more = full(0, shape=(n, *rows.type.shape[1:]), dtype=rows.type.dtype)
    return manipulation.concat([rows, more])


@contextmanager
def _home(x: list[Any]) -> Iterator[None]:
    """Where the elements of a list come from: outside of the paths that have not changed it."""
    inside = capturing.now
    now: Any = inside
    while isinstance(now, Region) and id(x) not in now.changed and id(x) not in now.objects:
        now = now.parent
    capturing.now = now
    try:
        yield
    finally:
        capturing.now = inside


# reading and changing


class _Later:
    """What a later module gives: the program raises what is made, unless a flag holds."""

    unless: Callable[[Any, Callable[[], BaseException]], None]


later = _Later()


def _checked(stack: Stack, fine: Any, error: Callable[[], BaseException]) -> None:
    if stack.room is not None:
        stack.room.end(fine)
    later.unless(fine, error)


def element(x: list[Any], i: Any) -> Any:
    """`x[i]`"""
    if not isinstance(i, Value) and i < 0 and all(_is_one(v) for v in x[i:]) and len(x) >= -i:
        return x[i]
    stack = stacked(x)
    return stack.at(_place(stack, i, "list index out of range"))


@enable_grad()
def put(x: list[Any], i: Any, value: Any) -> None:
    """`x[i] = value`"""
    stack = stacked(x)
    at = _place(stack, i, "list assignment index out of range")
    if _spec(value) != _spec(stack):
        raise refused("a list", "an element of the type of the others", "another one")
    rows = []
    for r, p, leaf in zip(stack.rows, _values(value), _leaves(value), strict=True):
        rows.append(put_rows(r, at, p))
        if isinstance(leaf, Value):
            same(rows[-1], r, leaf)
    refilled(x, [stack.having(stack.count, stack.least, rows)])


def _place(stack: Stack, i: Any, says: str) -> Value:
    """The row of an element, counted from the end where it is negative."""
    count = installed.tensor(stack.count.data)
    if not isinstance(i, Value):
        i = int(i)
        if not (0 <= i < stack.least or -stack.least <= i < 0):
            _checked(stack, count > i if i >= 0 else count >= -i, lambda: IndexError(says))
        return _number(i) if i >= 0 else count + i
    at: Any = installed.tensor(data_of(i))
    fine = (at < count) & (at >= -count)
    _checked(stack, fine, lambda: IndexError(says))
    return where(at < 0, at + count, at)  # type: ignore[no-any-return]


def _is_one(v: Any) -> bool:
    return type(v) not in (Run, Maybe, Stack)


@enable_grad()
def pop(x: list[Any], at: Any = -1) -> Any:
    """`x.pop(at)`"""
    if not isinstance(at, Value) and at == -1 and x and _is_one(x[-1]):
        last = x[-1]
        refilled(x, x[:-1])
        return last
    stack = stacked(x)
    if stack.least < 1:
        count = installed.tensor(stack.count.data)
        _checked(stack, count > 0, lambda: IndexError("pop from empty list"))
    place = _place(stack, at, "pop index out of range")
    found = stack.at(place)
    rows: Sequence[Value] = stack.rows
    if isinstance(at, Value) or at != -1:
        n = stack.rows[0].type.shape[0]
        numbers = arange(0, 1, size=n, dtype=int64)
        taken = where(numbers >= place, where(numbers + 1 < n, numbers + 1, numbers), numbers)
        rows = [_plain(r[taken]) for r in stack.rows]
        for new, old in zip(rows, stack.rows, strict=True):
            same(new, old)
    left = Chosen.of(installed.tensor(stack.count.data) - 1)
    refilled(x, [stack.having(left, stack.least - 1, rows)])
    return found


def emptied(x: list[Any]) -> None:
    """`x.clear()`"""
    x[:] = [v.having(Chosen.of(_number(0)), 0) for v in x if type(v) is Stack]


def alike(a: Any, b: Any) -> tuple[Any, Any]:
    """What two paths leave, with as many elements at least as both have."""
    if type(a) is not Stack:
        return a, b
    least = min(a.least, b.least)
    if a.room is not None or b.room is not None:
        return a.having(a.count, least), b.having(b.count, least)
    most = max(a.most, b.most)
    one = a.having(a.count, least, more=most - a.most)
    return one, b.having(b.count, least, more=most - b.most)


@enable_grad()
def exact(x: list[Any]) -> Run:
    """All elements of a list as a run, of as many rows as there are elements."""
    stack = stacked(x)
    if stack.form != LEAF or stack.kinds[0] is Flag:
        raise refused(
            "a list whose length depends on values",
            "to be gone through by a loop, or read by index",
            "another use of its elements, which are tuples",
            "keep the parts in a list each",
        )
    number, n = size_to_find()
    _root().found[number] = data_of(stack.count)
    rows = stack.rows[0][:n]
    same(rows, stack.rows[0])
    return Run(rows, stack.kinds[0] is Chosen)


GROWN.add(Stack)
of_runs.put, of_runs.prepare, of_runs.alike = put, stacked, alike
of_runs.is_stack, of_runs.element, of_runs.pop, of_runs.exact = is_stack, element, pop, exact
