"""What two paths of a program leave behind, as one.

A path leaves values in variables, in tensors that were given another value, in gradients and in
containers. Where both leave the same it is known; where they leave tensors of one type, a branch
chooses; anything else is an error that shows both.
"""

from __future__ import annotations

import dataclasses
import dis
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from types import CodeType
from typing import Any

from weft.autodiff.backward import constant
from weft.capture.chosen import TYPES, Chosen, Flag, as_chosen
from weft.capture.guards import same
from weft.capture.refusal import refused
from weft.capture.runs import aligned, later
from weft.capture.structure import flatten
from weft.control.region import Region, content_of, refill
from weft.errors import CaptureError
from weft.ir import user_location
from weft.ops.define import Value, capturing, data_of, installed
from weft.types import TensorType


class Undefined:
    """What a variable without a value has."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()


class Unfit:
    """What stands for something that no program gives."""

    def used(self, *_: Any, **__: Any) -> Any:
        """Told when it is needed for what it can't do: an error."""
        raise NotImplementedError

    def said(self, say: Callable[[Any], Any]) -> Any:
        """As an expression that Python works out, made by `say` of its parts."""
        return self.used()


class Unjoined(Unfit):
    """What a variable has that two paths left in ways that can't be one. Using it is an error."""

    def __init__(self, error: CaptureError) -> None:
        object.__setattr__(self, "error", error)

    def used(self, *_: Any, **__: Any) -> Any:
        raise object.__getattribute__(self, "error")

    __getattr__ = __setattr__ = __call__ = __iter__ = __len__ = __bool__ = used
    __getitem__ = __setitem__ = __contains__ = __index__ = __int__ = __float__ = used
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = used
    __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = used
    __matmul__ = __rmatmul__ = __and__ = __rand__ = __or__ = __ror__ = __neg__ = __abs__ = used
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __hash__ = used
    __str__ = __repr__ = __format__ = used


def is_undefined(x: Any) -> bool:
    return type(x) in (Undefined, Unjoined)


class Slots:
    """Places beside variables that some path gave another value: tensors, gradients, containers."""

    def __init__(self) -> None:
        self.tensors: dict[int, Value] = {}
        self.leaves: dict[Any, None] = {}
        self.containers: dict[int, Any] = {}

    def add(self, region: Region, own: Collection[int] = ()) -> bool:
        """Note what a region changed, but for tensors of its `own`; whether any of it is new."""
        before = len(self)
        for key, (x, _, _) in region.written.items():
            if key not in own:
                self.tensors[key] = x
        self.leaves.update(dict.fromkeys(region.grads))
        for key, (x, _) in region.changed.items():
            self.containers[key] = x
        return len(self) > before

    def __len__(self) -> int:
        return len(self.tensors) + len(self.leaves) + len(self.containers)

    def held(self) -> dict[Any, Any]:
        """What they hold now, by place."""
        out: dict[Any, Any] = {}
        for key, x in self.tensors.items():
            out[key] = installed.tensor(data_of(x), x.note)
        for leaf in self.leaves:
            out[leaf] = _grad(leaf)
        for key, x in self.containers.items():
            out[key] = _content(x)
        return out

    def values(self, held: dict[Any, Any]) -> list[Any]:
        """What they held at the end of a path; what it did not change, what they hold now."""
        every = self.held() | held
        places = (self.tensors, self.leaves, self.containers)
        return [[every[k] for k in place] for place in places]

    def leaves_still(self, paths: Sequence[Sequence[Any]]) -> list[Value]:
        """Tensors that every path leaves without a history, by what `values` gave of each: what an
        update inside no_grad() gave them is theirs, and doesn't come of what they held before.
        """
        ends = zip(self.tensors.values(), *(tensors for tensors, _, _ in paths), strict=True)
        return [x for x, *found in ends if x.leaf and all(y.note is x.leaf for y in found)]

    def put(self, values: Sequence[Any]) -> None:
        """Give them what `values` gave, or what it was joined to."""
        held, grads, content = values
        now = capturing.now
        for x, new in zip(self.tensors.values(), held, strict=True):
            assign(x, new)
        for leaf, grad in zip(self.leaves, grads, strict=True):
            if now is not None:
                now.write_grad(leaf)
            leaf.grad = grad
        for x, new in zip(self.containers.values(), content, strict=True):
            if isinstance(now, Region):
                now.change(x, None)
            refill(x, new)


def assign(x: Value, new: Value) -> None:
    """Give a tensor the value that it was found to have."""
    data = data_of(new)
    if x.data is not data:
        if capturing.now is not None:
            capturing.now.keep(x)
        x.data, x.note = data, new.note if new.note is not None else x.leaf


def _grad(leaf: Any) -> Any:
    return leaf.grad if capturing.now is None else capturing.now.read_grad(leaf)


def _content(x: Any) -> Any:
    """What a container consists of, as a structure."""
    return tuple(sorted(x, key=repr)) if isinstance(x, set) else content_of(x)


Choose = Callable[[list[Value], list[Value]], Sequence[Value]]
Paths = Sequence[Callable[..., Any]]
RESULT = "the result"


def join(
    what: str,
    a: Any,
    b: Any,
    names: Sequence[str],
    choose: Choose,
    paths: Paths = (),
    ends: Sequence[dict[Any, Any]] = ({}, {}),
    left: Sequence[bool] = (False, False),
    perhaps: Callable[[Any, Any], tuple[Any, Any]] | None = None,
    regions: Sequence[Region] = (),
) -> Any:
    """One (result, variables, places) out of two: `choose` makes values out of pairs of one type;
    `ends` are what tensors changed in place held at the end of each path.

    Variables that can't be one are an error only if they are used; it names the lines on which the
    `paths` assign them. What a path that leaves the function (`left`) has not defined is nobody's;
    `perhaps` says what variables are that other paths do not define. What the paths' `regions` have
    not made was there before.
    """
    pairs = _Pairs(ends, regions)
    result = _pair(what, RESULT, *pairs.held(a[0], b[0]), pairs, paths)
    variables = []
    for name, x, y in zip(names, a[1], b[1], strict=True):
        mark = len(pairs.chosen)
        x, y = pairs.held(x, y)
        if x is UNDEFINED and left[0] and not is_undefined(y):
            x = blank(y)
        elif y is UNDEFINED and left[1] and not is_undefined(x):
            y = blank(x)
        if perhaps is not None and type(name) is not str:
            x, y = perhaps(x, y)
        if is_undefined(x) or is_undefined(y):
            variables.append(_half(what, name, x, y, paths))
            continue
        try:
            variables.append(_pair(what, name, x, y, pairs, paths))
        except CaptureError as e:
            pairs.forget(mark)
            variables.append(lambda _, e=e: Unjoined(e))
    places = _pair(what, "a value assigned in place", *pairs.held(a[2], b[2]), pairs)
    made = pairs.made(choose)
    return result(made), [v(made) for v in variables], places(made)


class _Pairs:
    """What is to be chosen between. The same two tensors are one pair wherever they are met."""

    def __init__(self, ends: Sequence[dict[Any, Any]], regions: Sequence[Region]) -> None:
        self.ends, self.regions = ends, regions
        self.aliases = getattr(capturing.now, "aliases", None)
        self.time = 0 if self.aliases is None else self.aliases.now()
        self.chosen: list[tuple[Value, Value]] = []
        self.of: list[tuple[Any, Any]] = []  # what each was made of
        self.known: dict[tuple[int, int], int] = {}

    def end(self, side: int, x: Any) -> Any:
        """What a tensor was when its path ended."""
        return self.ends[side].get(id(x), x) if isinstance(x, Value) else x

    def held(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Two structures in which lists, dicts, sets and dataclasses are what they were when their
        path ended, but for two of which it depends on the path which it is.
        """
        if x is y or later.are_two(x, y, self.regions):
            return x, y
        return _held(x, self.ends[0]), _held(y, self.ends[1])

    def before(self, x: Value) -> bool:
        """Whether a tensor was there before the paths, and holds what it held."""
        if not self.regions or any(id(x) in held for held in self.ends):
            return False
        return not any(data_of(x) in r.nodes for r in self.regions)

    def add(self, x: Any, y: Any, alike: Callable[[], tuple[Value, Value]]) -> int:
        both = isinstance(x, Value) and isinstance(y, Value)
        place = (id(x), id(y))
        if both and place in self.known:
            return self.known[place]
        self.chosen.append(alike())
        self.of.append((x, y))
        if both:
            self.known[place] = len(self.chosen) - 1
        return len(self.chosen) - 1

    def forget(self, mark: int) -> None:
        del self.chosen[mark:], self.of[mark:]
        self.known = {place: n for place, n in self.known.items() if n < mark}

    def made(self, choose: Choose) -> Sequence[Value]:
        if not self.chosen:
            return ()
        found = choose([x for x, _ in self.chosen], [y for _, y in self.chosen])
        return [self.one_of(x, *parts) for x, parts in zip(found, self.of, strict=True)]

    def one_of(self, value: Value, *parts: Any) -> Value:
        """A tensor of this value that may be any of the parts."""
        out = installed.tensor(value.data, value.note)
        if self.aliases is not None:
            self.aliases.join(self.time, out, *parts)
        return out


def _held(x: Any, held: dict[Any, Any]) -> Any:
    if dataclasses.is_dataclass(x) and isinstance(getattr(x, "__dict__", None), dict):
        inside = _held(x.__dict__, held)
        if inside is x.__dict__:
            return x
        out: Any = object.__new__(type(x))
        out.__dict__.update(inside)
        return out
    content = held.get(id(x), x) if type(x) in (list, dict, set) else x
    if isinstance(content, dict):
        parts: Any = {k: _held(v, held) for k, v in content.items()}
        kept = content is x and all(v is content[k] for k, v in parts.items())
    elif isinstance(content, list | tuple) and type(x) is not set:
        parts = [_held(v, held) for v in content]
        kept = content is x and all(map(operator.is_, parts, content))
    else:
        return x if content is x else set(content)
    if kept:
        return x
    if isinstance(x, tuple):
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return parts


def _half(what: str, name: str, x: Any, y: Any, paths: Paths) -> Any:
    if x is UNDEFINED and y is UNDEFINED:
        return lambda _: UNDEFINED
    if type(x) is Unjoined or type(y) is Unjoined:
        return lambda _: x if type(x) is Unjoined else y
    line = next((f" (line {n})" for f in paths if (n := assigned_at(f, name))), "")
    expected = f"{name} to be defined on both paths, if it is used"
    hint = f"give {name} a value before"
    error = refused(what, expected, f"one path only{line}", hint)
    return lambda _: Unjoined(error)


def _pair(what: str, name: str, a: Any, b: Any, pairs: _Pairs, paths: Paths = ()) -> Any:
    """A function of the chosen values that gives the one structure out of two."""
    if a is b:
        return lambda _: a
    left, form = flatten(a)
    right, other = flatten(b)
    one, two = (a, b) if form == other else aligned(a, b, pairs.before)
    one, two = later.united(one, two, pairs.regions)
    if one is not a or two is not b:
        (left, form), (right, other) = flatten(one), flatten(two)
    if form != other:
        raise refused(
            what,
            f"{name} to have one structure on both paths",
            _both(map(_outline, _first_other(a, b)), name, paths),
            "give every path lists of one length and results of one form",
        )
    out: list[Any] = list(left)
    at: dict[int, int] = {}
    kinds: dict[int, type[Chosen] | type[Flag]] = {}
    for i, (x, y) in enumerate(zip(left, right, strict=True)):
        if x is y or same(x, y):
            continue
        u, v = pairs.end(0, x), pairs.end(1, y)
        both = isinstance(x, Value) and isinstance(y, Value)
        if both and data_of(u) is data_of(v) and u.note is v.note:
            out[i] = x if type(x) in (Chosen, Flag) else pairs.one_of(u, x, y)
            continue
        at[i] = pairs.add(x, y, partial(_alike, what, name, u, v, paths))
        if all(map(is_number, (x, y))):
            kinds[i] = Chosen
        elif all(type(v) in (bool, Flag) for v in (x, y)):
            kinds[i] = Flag

    def build(made: Sequence[Value]) -> Any:
        for i, n in at.items():
            out[i] = kinds[i].of(made[n]) if i in kinds else made[n]
        return form.build(out)

    return build


def _alike(what: str, name: str, x: Any, y: Any, paths: Paths) -> tuple[Value, Value]:
    """Two values as tensors of one type."""
    if type(x) is bool and type(y) is bool:
        return installed.lift(x), installed.lift(y)
    if is_number(x) and is_number(y):
        x, y = as_chosen(x), as_chosen(y)
    if isinstance(x, Value) and type(y) in (bool, int, float):
        y = as_value(y, x.type)
    elif isinstance(y, Value) and type(x) in (bool, int, float):
        x = as_value(x, y.type)
    if isinstance(x, Value) and isinstance(y, Value) and x.type is y.type:
        return x, y
    raise refused(
        what,
        f"{name} to be the same, or tensors of one type, on both paths",
        _both(map(said, (x, y)), name, paths),
        "convert one with .astype() or .reshape(), or write the number as a tensor",
    )


def blank(x: Any) -> Any:
    """The same structure with zeros for tensors: what nobody will read."""
    leaves, form = flatten(x)
    return form.build([_zeros(v) if isinstance(v, Value) else v for v in leaves])


def _zeros(x: Value) -> Value:
    made = constant(0, x.type)
    return type(x).of(made) if isinstance(x, Chosen | Flag) else made


def is_number(x: Any) -> bool:
    """Whether something is an int or a float to Python code."""
    return type(x) is Chosen or type(x) in TYPES


def as_value(number: Any, type_: TensorType) -> Any:
    """A number as a tensor without axes, if the type holds it; else the number."""
    if type_.shape != ():
        return number
    dtype = type_.dtype
    if type(number) is bool:
        fits = dtype.kind == "b"
    else:
        fits = dtype.is_float or (type(number) is int and dtype.is_int and dtype.itemsize == 8)
    return installed.lift(dtype.np.type(number)) if fits else number


def said(x: Any) -> str:
    if isinstance(x, Value):
        return str(x.type)
    return repr(x) if type(x) in (int, float, bool, str) else f"a {type(x).__name__}"


def _both(values: Iterable[str], name: str, paths: Paths) -> str:
    """What two paths left in a variable, with the line of each where one is known."""
    lines = [assigned_at(f, name) for f in paths]
    if not any(lines):
        return " and ".join(values)
    told = [f"line {n}" if n else "from before" for n in lines]
    return " and ".join(f"{v} ({n})" for v, n in zip(values, told, strict=True))


def _first_other(a: Any, b: Any) -> tuple[Any, Any]:
    """The innermost parts of two structures at which their forms differ first."""
    if type(a) is type(b) and isinstance(a, list | tuple) and len(a) == len(b):
        for x, y in zip(a, b, strict=True):
            if flatten(x)[1] != flatten(y)[1]:
                return _first_other(x, y)
    return a, b


def assigned_at(path: Callable[..., Any], name: str) -> int | None:
    """The last line on which a piece of the user's code gives a variable its value, or its own
    result.
    """
    code, loc = getattr(path, "__code__", None), user_location()
    if code is None or loc is None or code.co_filename != loc.file:
        return None
    return max(_assignments(code, name), default=None)


def _assignments(code: CodeType, name: str) -> Iterator[int]:
    for at in dis.get_instructions(code):
        line = None if at.positions is None else at.positions.lineno
        stores = at.opname.startswith("STORE_") and at.argval == name
        if line and (stores or (name == RESULT and at.opname.startswith("RETURN_"))):
            yield line
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and name != RESULT:
            yield from _assignments(inner, name)


def _outline(x: Any) -> str:
    if isinstance(x, list | tuple | dict):
        return f"a {type(x).__name__} of {len(x)}"
    return said(x)
