"""Elements by a number that depends on tensors: `xs[i]`, `layers[i](x)`, `table[k]`.

Which one it is is known when the program runs, so all are there, with a branch between them. What
can be one value behind the branch is one; functions and objects stay apart until they are called,
or an attribute of theirs is read.
"""

from __future__ import annotations

import dataclasses
import operator
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from weft.capture import stacks
from weft.capture.chosen import Chosen, Flag
from weft.capture.join import blank, is_number
from weft.capture.perhaps import Perhaps, depends
from weft.capture.runs import is_grown
from weft.capture.source.calls import SPECIAL
from weft.capture.source.effects import error
from weft.capture.source.flow import choose, filled, or_
from weft.capture.source.ranges import as_index, is_counted, is_symbolic
from weft.capture.source.reads import (
    AUGMENTED,
    CONTAINERS,
    augment_item,
    changing,
    item,
    known,
    later,
    refuse,
    seen,
    set_item,
)
from weft.capture.source.symbolic import branch
from weft.capture.structure import flatten
from weft.capture.things import is_fit, is_value, kind_of
from weft.capture.unions import Pick, kinds_of, later as of_unions, moved, number, plain
from weft.control.build import truth
from weft.errors import CaptureError
from weft.ops.creation import full
from weft.ops.define import Value, capturing, data_of
from weft.ops.elementwise import equal, greater_equal, less, logical_and, where
from weft.tensor.tensor import Tensor
from weft.types.dtype import bool_, int64


def _nothing(*_: Any) -> None:
    """Binds no variable."""


def among(at: Value, ways: dict[int, Callable[[], Any]]) -> Any:
    """What the way of this number gives; ways may give tensors of different types."""
    found = _between(at, [(i, partial(_alone, f)) for i, f in ways.items()])
    known = type(found) is Pick and type(found.at) is int
    return found.parts[found.at] if known else found


def _alone(f: Callable[[], Any]) -> Any:
    """f() as one of several things, if it can be."""
    x = f()
    return Pick(0, [x]) if type(x) is not Pick and is_fit(x) else x


def _between(at: Value, ways: list[tuple[int, Callable[[], Any]]]) -> Any:
    if len(ways) == 1:
        return ways[0][1]()
    middle = len(ways) // 2 if len(ways) > _FEW else 1
    first, second = partial(_between, at, ways[:middle]), partial(_between, at, ways[middle:])
    at_first = equal(plain(at), number(ways[0][0])) if middle == 1 else less(at, ways[middle][0])
    return branch(at_first, first, second, tuple, _nothing, ())


_FEW = 3  # ways that are told apart one by one


def picked(at: Value, parts: dict[int, Any]) -> Any:
    """The part of this number."""
    found = kinds_of(list(parts.values()))
    kinds = [*map(kind_of, found)]
    places = {i: kinds.index(kind_of(x)) for i, x in parts.items()}
    values = []
    for place, one in enumerate(found):
        own = {i: parts[i] for i, p in places.items() if p == place}
        if len(own) == 1 or not is_value(one):
            values.append(one)
            continue
        ways = {i: own.get(i, blank(one)) for i in parts}
        values.append(among(at, {i: partial(_same, x) for i, x in ways.items()}))
    return values[0] if len(values) == 1 else Pick(moved(at, places), values)


def _same(x: Any) -> Any:
    return x


# by number and by key


def get(owner: Any, key: Any) -> Any:
    """`owner[key]`, of a list, tuple or dict, or of what was picked."""
    if type(owner) is Pick:
        plain_ = all(map(_is_plain, owner.parts)) and not is_symbolic(key)
        return (owner.read if plain_ else owner.each)(lambda x: item(x, key))
    if type(key) is Pick:
        return (key.read if _is_plain(owner) else key.each)(lambda k: item(owner, k))
    seen(owner)
    if isinstance(owner, dict):
        keys, at, found = _key(owner, key)
        unless(found, lambda: KeyError(key))
        return picked(at, {i: owner[k] for i, k in enumerate(keys)})
    return picked(_place(owner, key), dict(enumerate(owner)))


def _is_plain(owner: Any) -> bool:
    """Whether elements, if they are there, are there for certain."""
    return type(owner) in (list, tuple, dict, str) and not (is_grown(owner) or depends(owner))


_GROUPS = (str, list, tuple, dict, set, frozenset)


def get_or(owner: dict[Any, Any], key: Any, default: Any = None) -> Any:
    """`owner.get(key, default)`"""
    if type(key) is Pick:
        return key.each(lambda k: later.call(owner.get, k, default))
    seen(owner)
    keys, at, found = _key(owner, key)
    if not keys:
        return default
    value = partial(picked, at, {i: owner[k] for i, k in enumerate(keys)})
    return branch(found, value, partial(_same, default), tuple, _nothing, ())


def put(owner: Any, key: Any, value: Any) -> None:
    """`owner[key] = value`: the elements it is not keep theirs."""
    if type(owner) is Pick or type(key) is Pick:
        x, f = _picked_of(owner, key, lambda owner, key: set_item(owner, key, value))
        x.each(f)
        return
    changing(owner, f"an assignment to an element of a {type(owner).__name__}")
    keys, at = _places(owner, key)
    if not all(is_number(owner[k]) for k in keys):
        among(at, {i: partial(set_item, owner, k, value) for i, k in enumerate(keys)})
        return
    for i, k in enumerate(keys):
        old = partial(_same, owner[k])
        owner[k] = branch(equal(at, i), partial(_same, value), old, tuple, _nothing, ())


def augment(owner: Any, key: Any, how: str, value: Any) -> None:
    """`owner[key] += value` and the like: a tensor that is there is changed in place."""
    if type(owner) is Pick or type(key) is Pick:
        x, f = _picked_of(owner, key, lambda owner, key: augment_item(owner, key, how, value))
        x.each(f)
        return
    keys, at = _places(owner, key)
    if all(is_number(owner[k]) for k in keys):
        put(owner, key, AUGMENTED[how](get(owner, key), value))
    else:
        ways = enumerate(partial(_augment, owner, k, AUGMENTED[how], value) for k in keys)
        among(at, dict(ways))


def _augment(owner: Any, key: Any, how: Callable[[Any, Any], Any], value: Any) -> None:
    set_item(owner, key, how(item(owner, key), value))


def _picked_of(owner: Any, key: Any, f: Callable[[Any, Any], Any]) -> tuple[Pick, Any]:
    """What is one of several things, and `f` of the one it is."""
    if type(owner) is Pick:
        return owner, lambda x: f(x, key)
    return key, lambda k: f(owner, k)


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
    if type(owner) is Pick or type(key) is Pick:
        return True
    if not is_symbolic(key):
        return False
    get_ = getattr(type(owner), "__getitem__", None)
    if get_ is dict.__getitem__:  # a tensor is a key by who it is
        return type(key) in (Chosen, Flag)
    return get_ in (list.__getitem__, tuple.__getitem__)


def contains(x: Any, group: Any) -> Any:
    """`x in group`"""
    if type(x) is Pick or type(group) is Pick:
        one, other = (x, group) if type(x) is Pick else (group, x)
        plain_ = all(type(v) in _GROUPS for v in ((group,) if one is x else one.parts))
        f = (lambda v: contains(v, other)) if one is x else (lambda v: contains(other, v))
        return (one.read if plain_ else one.each)(f)
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
        return x.read(lambda v: identical(v, y))
    if type(y) is Pick:
        return y.read(lambda v: identical(x, v))
    if x is not y and all(isinstance(v, Value) and not is_number(v) for v in (x, y)):
        aliases = getattr(capturing.now, "aliases", None)
        if aliases is not None and aliases.may_be_one(x, y):
            raise refuse("`is` between tensors that may be one", "a number that says which it is")
    return known(x) is known(y)


def _is_one(x: Any, y: Any) -> Any:
    found: Any = x is y or x == y
    return Flag.of(truth(found, "in")) if is_symbolic(found) else found


def _may_equal(x: Any) -> bool:
    return isinstance(x, Value) or type(x) in (bool, int, float)


def _index(x: Any) -> Any:
    """`operator.index(x)`"""
    dynamic = is_symbolic(x) and x.type.size == 1 and x.type.dtype.is_int
    return Chosen.of(as_index(x)) if dynamic else operator.index(x)


def _of_one(f: Callable[..., Any], how: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arguments of which one may be one of several things."""
    of_one = SPECIAL.get(f, f)

    def run(*args: Any, **kwargs: Any) -> Any:
        one = next((x for x in args if type(x) is Pick), None)
        if one is None:
            return of_one(*args, **kwargs)
        return how(one, lambda x: run(*[x if a is one else a for a in args], **kwargs))

    return run


def pick_among(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pick | None:
    """What is one of several things among the arguments of a function that has to know it."""
    owner, name = getattr(f, "__self__", None), getattr(f, "__name__", "")
    keeps = f is flatten or (isinstance(owner, _KEEPING) and name in _KEPT)
    if isinstance(f, type):
        keeps = issubclass(f, BaseException) or dataclasses.is_dataclass(f) or hasattr(f, "_fields")
    if keeps:
        return None
    deep = not isinstance(f, type) and not isinstance(owner, CONTAINERS)
    return _first([*args, *kwargs.values()], deep)


_KEEPING, _KEPT = (list, deque), ("append", "appendleft", "extend", "insert")


def _first(x: Any, deep: bool) -> Pick | None:
    for v in x.values() if type(x) is dict else x:
        found = _first(v, deep) if deep and type(v) in (list, tuple, dict) else v
        if type(found) is Pick:
            return found
    return None


def instead(x: Any, one: Pick, new: Any) -> Any:
    """The same structure with another thing in the place of one."""
    if type(x) is dict:
        return {k: instead(v, one, new) for k, v in x.items()}
    if type(x) in (list, tuple):
        return type(x)([instead(v, one, new) for v in x])
    return new if x is one else x


_READING = (isinstance, callable, len, type)
_COMPUTING = (int, float, round, divmod, max, min, range, getattr, hasattr, operator.index)
SPECIAL[operator.index] = _index
SPECIAL[bool] = _of_one(bool, lambda one, _: filled(one))
SPECIAL.update({f: _of_one(f, Pick.read) for f in _READING})
SPECIAL.update({f: _of_one(f, Pick.each) for f in _COMPUTING})
later.pick_among, later.instead = pick_among, instead
later.pick, later.is_dynamic = Pick, is_dynamic
later.contains, later.identical = contains, identical
later.get, later.get_or, later.put, later.augment = get, get_or, put, augment
stacks.later.unless = later.unless = unless
later.choose, later.error = choose, error
of_unions.among, of_unions.picked, of_unions.error = among, picked, error
of_unions.is_refusal = lambda e: isinstance(e, CaptureError)
