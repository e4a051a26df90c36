"""Elements by a number that depends on tensors: `xs[i]`, `layers[i](x)`, `table[k]`.

Which one it is is known when the program runs, so all are there, with a branch between them. What
can be one value behind the branch is one; functions and objects stay apart until they are called,
or an attribute of theirs is read.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from weft.capture import stacks
from weft.capture.chosen import Chosen, Flag
from weft.capture.join import Unfit, is_number
from weft.capture.perhaps import Perhaps
from weft.capture.source.calls import SPECIAL
from weft.capture.source.effects import error
from weft.capture.source.flow import choose, filled, or_
from weft.capture.source.ranges import as_index, is_counted, is_symbolic
from weft.capture.source.reads import changing, item, known, later, refuse, seen, set_item
from weft.capture.source.symbolic import branch
from weft.capture.structure import flatten
from weft.control.build import truth
from weft.ops.creation import full
from weft.ops.define import Value, data_of
from weft.ops.elementwise import equal, greater_equal, less, logical_and, where
from weft.tensor.tensor import Tensor
from weft.types.dtype import bool_, int64


class Pick(Unfit):
    """One of several objects, by a number of the program."""

    __slots__ = ("at", "parts")

    def __init__(self, at: Value, parts: Sequence[Any]) -> None:
        self.at, self.parts = at, parts

    def each(self, f: Callable[[Any], Any]) -> Any:
        """What `f` gives of the one it is."""
        return among(self.at, [partial(f, x) for x in self.parts])

    def part(self, f: Callable[[Any], Any]) -> Any:
        """Likewise, of an `f` that only reads."""
        try:
            found = [f(x) for x in self.parts]
        except (AttributeError, LookupError):
            return self.each(f)
        return picked(self.at, found)

    def used(self, *_: Any, **__: Any) -> Any:
        names = ", ".join(dict.fromkeys(type(x).__name__ for x in self.parts))
        raise refuse(
            f"an object ({names}) picked by a number that depends on tensors, used otherwise than "
            "by a call, an attribute or an index",
            "use it in a branch of its own: if i == 0: ...",
        )

    __iter__ = __len__ = __bool__ = __contains__ = __hash__ = __enter__ = __exit__ = used
    __str__ = __repr__ = __format__ = __index__ = __int__ = __float__ = __setitem__ = used


def _binary(name: str, f: Callable[[Any, Any], Any]) -> None:
    setattr(Pick, f"__{name}__", lambda p, other: p.each(lambda x: f(x, other)))
    setattr(Pick, f"__r{name}__", lambda p, other: p.each(lambda x: f(other, x)))


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_"):
    _binary(_name.rstrip("_"), getattr(operator, _name))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _binary(_name, getattr(operator, _name))


def _nothing(*_: Any) -> None:
    """Binds no variable."""


def among(at: Value, ways: Sequence[Callable[[], Any]]) -> Any:
    """What the way of this number gives."""
    return _between(at, ways, 0, len(ways))


def _between(at: Value, ways: Sequence[Callable[[], Any]], low: int, high: int) -> Any:
    if high - low == 1:
        return ways[low]()
    middle = (low + high) // 2
    first = partial(_between, at, ways, low, middle)
    second = partial(_between, at, ways, middle, high)
    return branch(less(at, middle), first, second, tuple, _nothing, ())


def picked(at: Value, parts: Sequence[Any]) -> Any:
    """The element of this number."""
    if any(x is None for x in parts):
        raise refuse(
            "an element that may be None, picked by a number that depends on tensors", _NONE
        )
    if len(parts) == 1 or all(x is parts[0] for x in parts):
        return parts[0]
    if all(map(_is_value, parts)) and len({_kinds(x) for x in parts}) == 1:
        return among(at, [partial(_same, x) for x in parts])
    return Pick(at, parts)


_NONE = "give every element a value of one kind, or branch on the number"


def _same(x: Any) -> Any:
    return x


def _kinds(x: Any) -> Any:
    """Which of Python's numbers, and the form they are in."""
    leaves, form = flatten(x)
    return form, tuple([SPECIAL[type](v) for v in leaves])


def _is_value(x: Any) -> bool:
    """Whether something consists of tensors and numbers alone."""
    return all(isinstance(v, Value) or type(v) in (bool, int, float) for v in flatten(x)[0])


# by number and by key


def get(owner: Any, key: Any) -> Any:
    """`owner[key]`, of a list, tuple or dict, or of what was picked."""
    if type(owner) is Pick:
        return owner.part(lambda x: item(x, key))
    seen(owner)
    if isinstance(owner, dict):
        keys, at, found = _key(owner, key)
        unless(found, lambda: KeyError(key))
        return picked(at, [owner[k] for k in keys])
    return picked(_place(owner, key), owner)


def get_or(owner: dict[Any, Any], key: Any, default: Any = None) -> Any:
    """`owner.get(key, default)`"""
    seen(owner)
    keys, at, found = _key(owner, key)
    if not keys:
        return default
    value = partial(picked, at, [owner[k] for k in keys])
    return branch(found, value, partial(_same, default), tuple, _nothing, ())


def put(owner: Any, key: Any, value: Any) -> None:
    """`owner[key] = value`: the elements it is not keep theirs."""
    changing(owner, f"an assignment to an element of a {type(owner).__name__}")
    keys, at = _places(owner, key)
    if not all(is_number(owner[k]) for k in keys):
        among(at, [partial(set_item, owner, k, value) for k in keys])
        return
    for i, k in enumerate(keys):
        old = partial(_same, owner[k])
        owner[k] = branch(equal(at, i), partial(_same, value), old, tuple, _nothing, ())


def augment(owner: Any, key: Any, how: Callable[[Any, Any], Any], value: Any) -> None:
    """`owner[key] += value` and the like: a tensor that is there is changed in place."""
    keys, at = _places(owner, key)
    if all(is_number(owner[k]) for k in keys):
        put(owner, key, how(get(owner, key), value))
    else:
        among(at, [partial(_augment, owner, k, how, value) for k in keys])


def _augment(owner: Any, key: Any, how: Callable[[Any, Any], Any], value: Any) -> None:
    set_item(owner, key, how(item(owner, key), value))


def _places(owner: Any, key: Any) -> tuple[list[Any], Value]:
    """The places of a list or dict that may be written to, and the number of the one that is."""
    if not isinstance(owner, dict):
        return list(range(len(owner))), _place(owner, key)
    keys, at, found = _key(owner, key)
    if not keys:
        raise refuse("a key that depends on tensors, added to a dict", _ADDED)
    unless(found, lambda: KeyError(key))
    return keys, at


_ADDED = "give the dict all its keys before"


def _place(owner: Any, key: Any) -> Value:
    """A place in a sequence, negative ones counted from its end."""
    kind, count = type(owner).__name__, len(owner)
    if not (key.type.size == 1 and (key.type.dtype.is_int or key.type.dtype is bool_)):
        got = SPECIAL[type](key).__name__
        raise TypeError(f"{kind} indices must be integers or slices, not {got}")
    at = Tensor(data_of(as_index(key)))
    if is_counted(at):
        raise refuse("an element picked by the counter of a loop", "go through the elements")
    inside = logical_and(greater_equal(at, -count), less(at, count))
    unless(inside if count else False, lambda: IndexError(f"{kind} index out of range"))
    found: Value = where(less(at, 0), at + count, at)
    return found


def _key(owner: dict[Any, Any], key: Any) -> tuple[list[Any], Any, Any]:
    """The keys that are numbers, the place of the one that is equal, and whether there is one."""
    keys = [k for k in owner if type(k) in (bool, int, float)]
    same = [key == k for k in keys]
    at: Any = full(0, shape=(), dtype=int64)
    for i, yes in enumerate(same[1:], 1):
        at = where(yes, i, at)
    return keys, at, or_(*[partial(_same, x) for x in same]) if same else False


def unless(fine: Any, made: Callable[[], BaseException]) -> None:
    """An error of the program where it is not fine."""

    def fails() -> Any:
        raise error(made())

    if is_symbolic(fine):
        branch(fine, lambda: None, fails, tuple, _nothing, ())
    elif not fine:
        fails()


# what was picked


def is_dynamic(owner: Any, key: Any) -> bool:
    """Whether an element is picked by a number of the program, or of what was."""
    if type(owner) is Pick:
        return True
    if not is_symbolic(key):
        return False
    get_ = getattr(type(owner), "__getitem__", None)
    if get_ is dict.__getitem__:  # a tensor is a key by who it is
        return type(key) in (Chosen, Flag)
    return get_ in (list.__getitem__, tuple.__getitem__)


def contains(x: Any, group: Any) -> Any:
    """`x in group`"""
    users = later.method(group, "__contains__")
    if users is not None:
        found = filled(later.call(users, group, x))
        return Flag.of(truth(found, "in")) if is_symbolic(found) else bool(found)
    if type(group) is dict and not is_symbolic(x) and type(group.get(x)) is Perhaps:
        flag = group[x].flag
        return Flag.of(flag) if isinstance(flag, Value) else flag
    hashed = isinstance(group, dict | set | frozenset)
    if not is_symbolic(x) or (hashed and type(x) not in (Chosen, Flag)):
        return x in seen(group)
    if not (hashed or isinstance(group, list | tuple)):
        return x in group
    return or_(lambda: False, *[partial(_is_one, x, y) for y in seen(group) if _may_equal(y)])


def identical(x: Any, y: Any) -> Any:
    """`x is y`"""
    if type(x) is Pick:
        return x.each(lambda v: identical(v, y))
    return y.each(lambda v: known(x) is v) if type(y) is Pick else known(x) is known(y)


def _is_one(x: Any, y: Any) -> Any:
    found: Any = x is y or x == y
    return Flag.of(truth(found, "in")) if is_symbolic(found) else found


def _may_equal(x: Any) -> bool:
    return isinstance(x, Value) or type(x) in (bool, int, float)


def _index(x: Any) -> Any:
    """`operator.index(x)`"""
    dynamic = is_symbolic(x) and x.type.size == 1 and x.type.dtype.is_int
    return Chosen.of(as_index(x)) if dynamic else operator.index(x)


def _of_each(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of an object, of whichever was picked."""
    plain = SPECIAL.get(f, f)

    def of_each(*args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) is Pick:
            return args[0].each(lambda x: plain(x, *args[1:], **kwargs))
        return plain(*args, **kwargs)

    return of_each


SPECIAL.update({f: _of_each(f) for f in (isinstance, callable, len)})
SPECIAL[operator.index] = _index
later.pick, later.is_dynamic = Pick, is_dynamic
later.contains, later.identical = contains, identical
later.get, later.get_or, later.put, later.augment = get, get_or, put, augment
stacks.later.unless = later.unless = unless
later.choose = choose
