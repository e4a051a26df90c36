"""Lists that have grown in loops: many elements that lie behind one another in one tensor.

A loop that appends to a list leaves a `Run` in it, in place of the elements it has appended. What
reads the list as a whole (`stack`, `len`, an index, another loop) reads the tensor; to anything
else it is spelled out, which needs its length.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from weft.autodiff.backward import constant
from weft.autodiff.mode import enable_grad, no_grad
from weft.capture.chosen import TYPES, Chosen, Flag, as_chosen
from weft.capture.refusal import Left, refused
from weft.capture.structure import LEAF, SPECIAL, Form, flatten
from weft.control import growing
from weft.control.region import Region
from weft.ops.creation import full
from weft.ops.define import Value, capturing, data_of, installed
from weft.ops.elementwise import astype, where
from weft.ops.growing import PLACE, put_rows
from weft.ops.movement import permute_dims, reshape
from weft.tensor import manipulation
from weft.types import TensorType, normalize_axis
from weft.types.dtype import int64


def same(x: Value, *others: Value) -> None:
    """Say that a tensor may be one of the elements that others are made of."""
    aliases = getattr(capturing.now, "aliases", None)
    if aliases is not None:
        aliases.join(aliases.now(), x, *others)


class Run:
    """Elements of a list, the rows of a tensor. `numbers`: whether to Python code they are numbers.
    `count`: how many of the rows are elements, as a number of the program; None: all. `loop`: where
    the loop is not over that appends them, what it knows of them.
    """

    __slots__ = ("count", "loop", "numbers", "rows")

    def __init__(
        self, rows: Value, numbers: bool = False, count: Chosen | None = None, loop: Any = None
    ) -> None:
        self.rows, self.numbers, self.count, self.loop = rows, numbers, count, loop

    def at(self, i: Any) -> Any:
        """Element i, which there is."""
        at = i if isinstance(i, Value) else full(i, shape=(), dtype=int64)
        row = growing.element(self.rows, installed.tensor(data_of(at)))
        same(row, self.rows)
        return Chosen.of(row) if self.numbers else row

    def checked(self, i: Value) -> Any:
        """Element i, counted from the end where it is negative; an error where there is none."""
        i = installed.tensor(data_of(i))
        found = self.rows[i]
        if i.type is not PLACE:
            return found
        front = where(i < 0, i + self.rows.type.shape[0], i)
        row = growing.element(self.rows, front, found)
        same(row, self.rows)
        return Chosen.of(row) if self.numbers else row

    def __eq__(self, other: object) -> bool:
        got = "a comparison of a list that grew in a loop"
        raise refused("a list", "its elements to be read one by one", got, "compare its elements")

    __hash__ = object.__hash__


def _parts(x: Run) -> tuple[Form, Sequence[Any]]:
    leaves = (x.rows,) if x.count is None else (x.rows, x.count)
    return Form(Run, (x.numbers, x.loop), (LEAF,) * len(leaves)), leaves


def _built(form: Form, leaves: Sequence[Any]) -> Run:
    numbers, loop = form.names
    return Run(leaves[0], numbers, leaves[1] if len(leaves) > 1 else None, loop)


SPECIAL[Run] = _parts, _built


class Maybe:
    """An element that a list has if a flag says so: one path has appended it, another has not."""

    __slots__ = ("flag", "value")

    def __init__(self, value: Any, flag: Any) -> None:
        self.value, self.flag = value, flag

    @property
    def count(self) -> Chosen:
        """1 or 0, as a number of the program."""
        return Chosen.of(astype(_flag(self.flag), dtype=int64))

    __eq__ = Run.__eq__
    __hash__ = object.__hash__


def _maybe_parts(x: Maybe) -> tuple[Form, Sequence[Any]]:
    leaves, form = flatten(x.value)
    return Form(Maybe, (form,), (LEAF,) * (len(leaves) + 1)), [*leaves, x.flag]


SPECIAL[Maybe] = (
    _maybe_parts,
    lambda form, leaves: Maybe(form.names[0].build(leaves[:-1]), leaves[-1]),
)

#: what stands for elements in lists that have not all of theirs one by one
GROWN: set[type] = {Run, Maybe}


class Absent:
    """Stands for an element that is not there, and has no value that could be."""


class Read(Left):
    """Ends a path that reads a list in the loop in which it grows."""


class _Later:
    """What a later module gives, of lists whose lengths the program decides."""

    is_stack: Callable[[Any], bool]
    element: Callable[[list[Any], Any], Any]
    pop: Callable[[list[Any], Any], Any]
    exact: Callable[[list[Any]], Run]
    put: Callable[[list[Any], Any, Any], None]
    perhaps: type
    sides: Callable[[Any, Any], tuple[Any, Any]]
    united: Callable[[Any, Any, Sequence[Any]], tuple[Any, Any]]
    are_two: Callable[[Any, Any, Sequence[Any]], bool]
    merged: Callable[[dict[Any, Any], dict[Any, Any]], tuple[Any, Any]]
    prepare: Callable[[list[Any]], Any]
    alike: Callable[[Any, Any], tuple[Any, Any]]


later = _Later()


def is_unclear(x: list[Any]) -> bool:
    """Whether it depends on values how many elements a list has."""
    return later.is_stack(x) or any(type(v) is Maybe for v in x)


def is_open(x: list[Any]) -> bool:
    """Likewise, where nobody finds it out before."""
    return later.is_stack(x) or (isinstance(capturing.now, Region) and is_unclear(x))


def _never(x: Value) -> bool:
    return False


def aligned(a: Any, b: Any, before: Callable[[Value], bool] = _never) -> tuple[Any, Any]:
    """What two paths leave, with elements that lists have on one of them alone marked in both.
    Tensors that were there `before` are what they are on both.
    """
    if type(a) is later.perhaps or type(b) is later.perhaps:
        return later.sides(a, b)
    if type(a) is Maybe or type(b) is Maybe:
        return _marked(a), _marked(b)
    if type(a) in GROWN and type(a) is type(b):
        return later.alike(a, b)
    if type(a) is not type(b) or type(a) not in (list, tuple, dict):
        return a, b
    if type(a) is dict:
        if tuple(a) != tuple(b):
            return later.merged(a, b)
        pairs = {k: aligned(a[k], b[k], before) for k in a}
        return {k: v for k, (v, _) in pairs.items()}, {k: v for k, (_, v) in pairs.items()}
    if len(a) != len(b) and type(a) is tuple:
        return a, b
    n = min(len(a), len(b))
    both = [aligned(x, y, before) for x, y in zip(a[:n], b[:n], strict=True)]
    both += [(_marked(x), _blank(x, before)) for x in a[n:]]
    both += [(_blank(y, before), _marked(y)) for y in b[n:]]
    return type(a)(x for x, _ in both), type(a)(y for _, y in both)


def _marked(x: Any) -> Any:
    if type(x) is bool:
        x = Flag.of(installed.lift(x))
    if type(x) is tuple and x:
        parts = [_marked(v) for v in x]
        return Maybe(tuple(v.value for v in parts), True) if _are_maybe(parts) else x
    return Maybe(as_chosen(x), True) if isinstance(x, Value) or type(x) in TYPES else x


def _are_maybe(x: list[Any]) -> bool:
    return all(type(v) is Maybe for v in x)


def _blank(x: Any, before: Callable[[Value], bool]) -> Any:
    """Stands for an element that is not there."""
    if type(x) is Maybe:
        return Maybe(_blank(x.value, before).value, False)
    if type(x) is tuple and x:
        parts = [_blank(v, before) for v in x]
        return Maybe(tuple(v.value for v in parts), False) if _are_maybe(parts) else Absent()
    x = Flag.of(installed.lift(x)) if type(x) is bool else as_chosen(x)
    if not isinstance(x, Value):
        return Absent()
    if before(x):
        return Maybe(x, False)
    zeros = constant(0, x.type)
    kind: Any = type(x)
    return Maybe(kind.of(zeros) if kind in (Chosen, Flag) else zeros, False)


def is_grown(x: Any) -> bool:
    """Whether something is a list that has not all of its elements one by one."""
    return type(x) is list and any(type(v) in GROWN for v in x)


def length(x: list[Any]) -> Any:
    """How many elements a list has."""
    total: Any = sum(type(v) not in GROWN for v in x)
    for v in x:
        if type(v) in GROWN:
            total = total + (v.rows.type.shape[0] if v.count is None else v.count)
    return total


def element(x: list[Any], i: Any) -> Any:
    """`x[i]`"""
    if is_open(x):
        return later.element(x, i)
    if isinstance(i, Value):
        return joined(x).checked(i)
    i = i if type(i) is not bool else int(i)
    parts = [joined(x)] if any(type(v) is Maybe for v in x) else x
    at = i
    if i < 0:
        at, parts = -i - 1, parts[::-1]
    for v in parts:
        n = 1
        if type(v) is Run:
            _known(v)
            n = v.rows.type.shape[0]  # type: ignore[assignment]
        if at < n:
            if type(v) is not Run:
                return v
            return v.at(at if i >= 0 else n - 1 - at)
        at = at - n
    raise IndexError("list index out of range")


def joined(x: list[Any]) -> Run:
    """All elements as one run."""
    if len(x) == 1 and type(x[0]) is Run:
        _known(x[0])
        return x[0]
    if later.is_stack(x):
        run = later.exact(x)
    else:
        numbers = are_numbers(x)
        if any(type(v) is Maybe for v in x):
            rows = _those_there(x)
        else:
            with no_grad():
                rows = manipulation.concat(list(_tensors(x)))
            rows = growing.behind(rows, [as_tensor(v) for v in x])
        run = Run(rows, numbers)
    if not isinstance(capturing.now, Region) or id(x) in capturing.now.objects:
        x[:] = [run]  # what reads it next reads the same
    return run


def _those_there(x: list[Any]) -> Value:
    """The elements that are there, of such as may not be."""
    type_ = row_type(x)
    if type_ is None:
        raise refused("a list", "elements of one type", "others", "append tensors of one type")
    number, n = size_to_find()
    rows: Value = full(0, shape=(n, *type_.shape), dtype=type_.dtype)
    rows, count = put(rows, installed.lift(np.int64(0)), x)
    settle(number, count)
    return rows


@enable_grad()
def put(rows: Value, count: Value, x: list[Any]) -> tuple[Value, Value]:
    """Rows with elements from `count` on, and how many there are then."""
    for v in x:
        if type(v) is Maybe:
            flag = _flag(v.flag)
            at = where(flag, count, installed.lift(np.int64(-1)))
            rows = put_rows(rows, at, as_tensor(v.value))
            count = count + astype(flag, dtype=int64)
        else:
            rows = put_rows(rows, count, as_tensor(v))
            count = count + (v.rows.type.shape[0] if type(v) is Run else 1)
    return rows, count


def _flag(x: Any) -> Value:
    return x if isinstance(x, Value) else installed.lift(x)


def as_tensor(v: Any) -> Value:
    """An element, or a run of them, as a plain tensor."""
    if type(v) is Run:
        _known(v)
        return v.rows
    x = as_chosen(v)
    return installed.tensor(data_of(x), x.note)


def row_type(x: list[Any]) -> TensorType | None:
    """The type of every element, if they have one."""
    types = {_type(v) for v in x}
    return types.pop() if len(types) == 1 and len({are_numbers([v]) for v in x}) == 1 else None


def _type(v: Any) -> TensorType | None:
    if type(v) is Run:
        t = v.rows.type
        return TensorType(t.shape[1:], t.dtype) if v.count is None else None
    v = v.value if type(v) is Maybe else v
    if type(v) is Flag:
        return None
    return v.type if isinstance(v, Value) else TYPES.get(type(v))


def are_numbers(x: list[Any]) -> bool:
    """Whether elements are numbers to Python code."""
    v = x[0].value if type(x[0]) is Maybe else x[0]
    return v.numbers if type(v) is Run else type(v) is Chosen or not isinstance(v, Value)


def size_to_find(anywhere: bool = False) -> tuple[int, Any]:
    """The number of a size that is known when the program has run so far, and a symbol for it."""
    trace: Any = capturing.now
    while anywhere and isinstance(trace, Region):
        trace = trace.parent
    outside = trace is None or trace.by_hand or isinstance(trace, Region)
    found = None if outside else trace.find()
    if found is None:
        raise refused(
            "a list",
            "a length that depends on values to be asked for outside of branches and loops",
            "a list that grows, or is read, inside of one",
            "move it outside, or write into a tensor of full size",
        )
    return found  # type: ignore[no-any-return]


def settle(number: int, count: Value) -> None:
    """Say what a size is."""
    trace: Any = capturing.now
    while isinstance(trace, Region):
        trace = trace.parent
    trace.found[number] = data_of(count)


def _tensors(x: list[Any]) -> Iterator[Value]:
    """The elements as tensors of many."""
    waiting: list[Any] = []
    for v in x:
        if type(v) is not Run:
            waiting.append(v)
            continue
        _known(v)
        if waiting:
            yield manipulation.stack(waiting)
        waiting = []
        yield v.rows
    if waiting:
        yield manipulation.stack(waiting)


def is_uniform(x: list[Any]) -> bool:
    """Whether all elements are tensors of one type."""
    return row_type(x) is not None and not are_numbers(x)


def stack(x: list[Any], axis: int = 0) -> Value:
    """`wf.stack` of a uniform list."""
    rows = growing.together(joined(x).rows)
    axis = normalize_axis(axis, rows.type.ndim, "stack")
    return rows if axis == 0 else _moved(rows, axis)


def concat(x: list[Any], axis: int = 0) -> Value:
    """`wf.concat` of a uniform list."""
    rows = growing.together(joined(x).rows)
    axis = normalize_axis(axis, rows.type.ndim - 1, "concat")
    apart = rows if axis == 0 else _moved(rows, axis)
    shape: Any = apart.type.shape
    whole = (*shape[:axis], math.prod(shape[axis : axis + 2]), *shape[axis + 2 :])
    return reshape(apart, shape=whole)  # type: ignore[no-any-return]


def _moved(rows: Value, axis: int) -> Value:
    """The first axis moved behind others."""
    axes = tuple(range(1, rows.type.ndim))
    return permute_dims(rows, axes=(*axes[:axis], 0, *axes[axis:]))  # type: ignore[no-any-return]


def spelled_out(x: Any, deep: bool = True) -> Any:
    """The same with every element of a list for itself, and of lists in it; `x` where it is so
    already.
    """
    if type(x) in (list, tuple):
        if type(x) is list and is_unclear(x):
            x = [joined(x)]
        parts = [spelled_out(v) if deep else v for v in x]
        if any(type(v) is Run for v in x):
            parts = [w for v in parts for w in (_elements(v) if type(v) is Run else (v,))]
        elif all(a is b for a, b in zip(parts, x, strict=True)):
            return x
        return type(x)(parts)
    if type(x) is dict and deep and any(type(v) in (list, tuple, dict) for v in x.values()):
        found = {k: spelled_out(v) for k, v in x.items()}
        return x if all(v is x[k] for k, v in found.items()) else found
    return x


def settled(x: Any) -> Any:
    """A structure to be returned: its lists hold no elements that may not be there."""
    if type(x) is list and is_unclear(x):
        return [joined(x)]
    if type(x) in (list, tuple):
        parts = [settled(v) for v in x]
        return x if all(a is b for a, b in zip(parts, x, strict=True)) else type(x)(parts)
    if type(x) is dict:
        found = {k: settled(v) for k, v in x.items()}
        return x if all(v is x[k] for k, v in found.items()) else found
    return x


def returned(x: Any) -> Any:
    """What a program gives, with the elements of its lists one by one."""
    if type(x) is list:
        parts = [v for w in x for v in (_each(w) if type(w) is Run else (w,))]
        return [returned(v) for v in parts]
    if type(x) is dict:
        return {k: returned(v) for k, v in x.items()}
    return tuple([returned(v) for v in x]) if type(x) is tuple else x


def _each(run: Run) -> Any:
    return (
        run.rows.tolist() if run.numbers else [run.rows[i] for i in range(run.rows.type.sizes[0])]
    )


def _elements(run: Run) -> list[Any]:
    _known(run)
    n: Any = run.rows.type.shape[0]
    return [run.at(i) for i in range(operator.index(n))]


def spell_out(x: Any) -> None:
    """Have a list itself hold its elements, one by one."""
    if is_grown(x):
        refilled(x, spelled_out(x, deep=False))


def refilled(x: list[Any], content: list[Any]) -> None:
    """Give a list other elements, with the capture under way told."""
    change = getattr(capturing.now, "change", None)
    if change is not None:
        change(x, None)
    x[:] = content


def pop(x: list[Any], at: Any = -1) -> Any:
    """`x.pop(at)`"""
    if is_unclear(x):
        return later.pop(x, at)
    run = x[-1]
    if type(run) is Run:
        _known(run)
    if type(run) is not Run or at != -1 or run.count is not None:
        spell_out(x)
        return x.pop(at)
    n = run.rows.type.shape[0]
    if n < 1:
        refilled(x, x[:-1])
        return pop(x)
    refilled(x, [*x[:-1], Run(run.rows[: n - 1], run.numbers)])
    return run.at(n - 1)


def _known(run: Run) -> None:
    """Raise if a list is still growing."""
    if run.count is not None:
        raise Read(run.loop)
