"""Functions that call themselves on paths of branches and loops: functions of the program.

Every call of a user's function is entered here. One that is met again, in a branch or loop on
tensors inside of itself, with arguments of the same structure and types, is run on symbols: its
own calls become nodes, `weft.control.recursion`. What these give is not known at first: the body
is run for the paths that do without (`Unknown` ends the others), then again, until it gives what
its calls were taken to give. Tensors, gradients and containers from outside that it changes go in
and come out with it, as they do with a loop.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from weft.autodiff.mode import enable_grad, recording
from weft.capture.chosen import TYPES, Chosen, as_chosen
from weft.capture.effects import Raised, finishing, handling, root
from weft.capture.guards import same
from weft.capture.join import UNDEFINED, Slots, as_value, is_number, said
from weft.capture.refusal import refused
from weft.capture.source.paths import raising, ran
from weft.capture.source.reads import CONTAINERS, made
from weft.capture.source.signals import Left, Unknown
from weft.capture.structure import Form, flatten
from weft.control.recursion import Recursive
from weft.control.region import Region
from weft.errors import CaptureError
from weft.ops.define import Value, capturing
from weft.types import TensorType
from weft.types.dtype import bool_

_ROUNDS = 12  # of finding out what a function takes, gives and changes
_UNROLLED = 4  # calls inside each other after which numbers among the arguments may be symbols
_DEEP = 12  # calls inside each other after which what goes wrong is taken to be their number
_WHAT = "a function that calls itself"

Args = tuple[tuple[Any, ...], dict[str, Any]]


class Entry:
    """A call of a function that is being run; of one that is run on symbols, its outline."""

    def __init__(self, f: Any, given: Args, outline: Outline | None = None) -> None:
        self.f, self.given, self.outline = f, given, outline
        self.now = capturing.now
        self.cells = _cells(f, given)


def entered(f: Any, converted: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
    """`converted(*args, **kwargs)`, where `f` is the user's function that it was made from."""
    trace = root()
    if trace is None:
        return converted(*args, **kwargs)
    given = (args, kwargs)
    running = trace.running
    for e in reversed(running):
        if e.f is f and e.outline is not None and e.outline.fits(given):
            return e.outline.called(given)
    inner = max((i + 1 for i, e in enumerate(running) if e.outline is not None), default=0)
    before = [e for e in running[inner:] if e.f is f]
    if not before and _names_itself(f) and f not in trace.unrolled:
        outline = Outline(f, converted, given, whole=True)
        try:
            return outline.run()
        except (CaptureError, _Unrolled) as e:
            if type(e) is _Unrolled and e.of is not outline:
                raise
            trace.unrolled.append(f)
    elif before and f not in trace.endless and _recurs(before, f, given):
        try:
            return Outline(f, converted, given).run()
        except CaptureError as error:  # call by call, then
            trace.endless[f] = error
    running.append(Entry(f, given))
    try:
        return converted(*args, **kwargs)
    except CaptureError as error:
        if len(before) == _DEEP and f not in trace.endless:
            changed = _changed(before[-1], given)
            if changed:
                hint = "write into tensors of full size"
                expected = "arguments of the same types at every depth"
                raise refused(_WHAT, expected, changed, hint) from error
        raise
    finally:
        running.pop()


def _names_itself(f: Any) -> bool:
    """Whether a function reads a variable, from inside, that is itself."""
    name, code = f.__name__, f.__code__
    if name in code.co_freevars:
        return any(value is f for _, value in _closure(f))
    found = f.__globals__.get(name) if _reads(code, name) else None
    return found is f or (found is not None and getattr(found, "__wrapped__", None) is f)


@functools.lru_cache(4096)
def _reads(code: types.CodeType, name: str) -> bool:
    inner = (c for c in code.co_consts if inspect.iscode(c))
    return name in code.co_names or any(_reads(c, name) for c in inner)


def _recurs(before: list[Entry], f: Any, given: Args) -> bool:
    """Whether a call is one of those before it again, but for what tensors hold."""
    leaves, form = flatten(given)
    alike = 0
    for e in before:
        others, other = flatten(e.given)
        if e.now is capturing.now or form != other or not _same_cells(e.cells):
            continue
        pairs = list(zip(others, leaves, strict=True))
        if all(_is_like(x, y) for x, y in pairs):
            return True
        alike += all(_is_like(x, y) or (is_number(x) and is_number(y)) for x, y in pairs)
    return alike >= _UNROLLED


def _is_like(x: Any, y: Any) -> bool:
    """Whether arguments are the same, or tensors of one type."""
    if isinstance(x, Value) and isinstance(y, Value):
        return x.type is y.type and (type(x) is Chosen) is (type(y) is Chosen)
    return same(x, y)


def _changed(before: Entry, given: Args) -> str:
    """How the type of some argument is another one than in the call before."""
    pairs = zip(flatten(before.given)[0], flatten(given)[0], strict=False)
    tensors = ((x, y) for x, y in pairs if isinstance(x, Value) and isinstance(y, Value))
    return next((f"{said(x)}, then {said(y)}" for x, y in tensors if x.type is not y.type), "")


def _closure(f: Any) -> list[tuple[Any, Any]]:
    """The variables from outside that a function reads, and what they hold."""
    return [(cell, _content(cell)) for cell in f.__closure__ or ()]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNDEFINED


def _cells(f: Any, given: Args) -> list[tuple[Any, Any]]:
    """The variables from outside that a call may read or assign to: its function's, and those of
    the functions that these and its arguments are.
    """
    stack, found = [f, *flatten(given)[0]], {}
    while stack:
        x = stack.pop()
        for cell, value in _closure(x) if type(x) is types.FunctionType else ():
            if id(cell) not in found:
                found[id(cell)] = cell, value
                stack.append(value)
    return list(found.values())


def _same_cells(before: list[tuple[Any, Any]]) -> bool:
    """Whether variables hold what they held."""
    return all(same(_content(cell), x) for cell, x in before)


def _put_back(before: list[tuple[Any, Any]]) -> None:
    for cell, x in before:
        if x is not UNDEFINED:
            cell.cell_contents = x
        elif _content(cell) is not UNDEFINED:
            del cell.cell_contents


class _Again(Left):
    """What a function takes, gives or changes is known better now."""


class _Unrolled(Left):
    """A function calls itself as Python says, if at all: it is run call by call."""


class _Leaf(NamedTuple):
    """What a leaf of a result is: a tensor, a number that is one, or the same thing always."""

    type: TensorType | None
    number: bool = False
    value: Any = None


class Outline:
    """A function that calls itself, being captured: from its first call on, if that is the `whole`
    of it and it does so on tensors; else from a call of itself on.
    """

    def __init__(
        self, f: Any, converted: Callable[..., Any], given: Args, whole: bool = False
    ) -> None:
        self.f, self.converted, self.given, self.whole = f, converted, given, whole
        name = f.__name__ if f.__name__.isidentifier() else "function"
        self.slots = Slots()
        self.lifted: set[int] = set()  # numbers among the arguments that are symbols
        self.skips = False  # whether loops that call it are left out to find that out
        self.form: Form | None = None  # of what it gives and changes
        self.gives: list[_Leaf] = []
        self.found: list[Any] = []  # what it gave when it was run last
        self.it = Recursive(_fresh(name), ())
        self.recording = recording.get()
        self.cells = _cells(f, given)
        self.blocks = len(finishing.stack), len(handling.stack)
        self.handled = bool(handling.stack)
        self.guarded = any(self.blocks)  # whether it, or a call of it, stands in try or with

    def run(self) -> Any:
        """Capture it; what this call gives."""
        for _ in range(_ROUNDS):
            try:
                return self._round()
            except _Again as e:
                if e.of is not self:
                    raise
        raise refused(_WHAT, "arguments and results that keep their types", "others at each depth")

    def _round(self) -> Any:
        start = [self.given, self.slots.values({})]
        leaves, self.taken = flatten(start)
        self.leaves = leaves
        self.count = flatten(self.given)[1].count
        self.at = [i for i, x in enumerate(leaves) if isinstance(x, Value) or i in self.lifted]
        inits = [as_chosen(leaves[i]) for i in self.at]
        self.it.gives = tuple(g.type for g in self.gives if g.type is not None)
        with enable_grad():  # what it passes on keeps its history inside no_grad() too
            region, params = self.it.start([x.type for x in inits])
        stands = list(leaves)
        for i, x, p in zip(self.at, inits, params, strict=True):
            stands[i] = Chosen.of(p) if type(x) is Chosen else p
        stand = self.taken.build(stands)
        _own(stand[0])
        own = {id(x) for x in stands if isinstance(x, Value)}

        def body() -> tuple[Any, Any]:
            self.slots.put(stand[1])
            args, kwargs = stand[0]
            result = raising(lambda: self.converted(*args, **kwargs))
            return result, self.slots.held()

        running = root().running
        running.append(Entry(self.f, stand[0], self))
        unknown = self.met = False
        try:
            result, held = ran(_WHAT, region, body)
        except Unknown as e:
            if e.of is not self:
                raise
            unknown = True
        except Raised as e:
            raise refused(_WHAT, "a path that ends", f"a {type(e.error).__name__}") from e
        finally:
            running.pop()
            error = self._changed(region, stand[0], stands, own)
            more = self.slots.add(region, own)
            region.restore()
            _put_back(self.cells)
        if self.whole and not self.met:
            raise _Unrolled(self)
        if error is not None:
            raise error
        if more:
            self.form = None
            raise _Again(self)
        if unknown and not self.skips:
            self.skips = True
            raise _Again(self)
        if unknown:
            got = "calls of itself on every path, whatever tensors hold"
            raise refused(_WHAT, "a path that ends", got)
        self._named_once(leaves)
        with region:
            found = flatten([result, self.slots.values(held)])
            self.found = found[0]
            values = self._values(*found)
        if not self.it.ended(values):
            raise _Again(self)
        with enable_grad():
            outs = self.it.emit(inits)
        return self._put(outs, leaves)

    def _changed(
        self, region: Region, given: Any, stands: list[Any], own: set[int]
    ) -> CaptureError | None:
        """The error of a body that changes what only its caller could."""
        leaves, form = flatten([given, ()])
        moved = form.children[0] != self.taken.children[0] or any(
            a is not b for a, b in zip(leaves, stands, strict=False)
        )
        if moved or own & region.written.keys():
            hint = "return what changes: x = x + y, not x += y"
            return refused(
                _WHAT, "arguments that keep what they hold", "one changed in place", hint
            )
        if not _same_cells(self.cells):
            hint = "pass it as an argument, and return it"
            return refused(_WHAT, "variables of its own", "an assignment to one from outside", hint)
        if self.guarded and root().token is not None and id(root().token) in self.slots.tensors:
            expected = "no print, raise or assert inside try and with"
            return refused(_WHAT, expected, "calls inside of one")
        if self.handled:
            return refused(_WHAT, "calls of it outside of try", "one whose errors are handled")
        return None

    # calls of it

    def fits(self, given: Args) -> bool:
        """Whether a call inside is one of this function."""
        fits = self._fits(given)
        if self.whole and (not fits or capturing.now is self.it.region):
            raise _Unrolled(self)
        return fits

    def _fits(self, given: Args) -> bool:
        leaves, form = flatten(given)
        if form != self.taken.children[0] or not _same_cells(self.cells):
            return False
        if recording.get() is not self.recording:  # inside no_grad() it is another function
            return False
        for i, (x, y) in enumerate(zip(self.leaves, leaves, strict=False)):
            if i in self.at:
                symbol = as_chosen(x)
                if not _is_like(symbol, _as(symbol, y)):
                    return False
            elif not same(x, y):
                if self.whole or not (is_number(x) and is_number(y)):
                    return False
                self.lifted.add(i)
                raise _Again(self)
        return True

    def called(self, given: Args) -> Any:
        """What such a call gives, as a node."""
        self.met = True
        self.handled |= self.blocks[1] != len(handling.stack)
        self.guarded |= self.blocks != (len(finishing.stack), len(handling.stack))
        if self.form is None:
            raise Unknown(self)
        leaves, form = flatten([given, self.slots.values({})])
        if form != self.taken:
            raise refused(
                _WHAT,
                "lists, dicts and objects from outside that keep their structure",
                "another one at each depth",
                "write into a tensor of full size",
            )
        for i, x in enumerate(leaves[self.count :], self.count):
            if not _is_like(self.leaves[i], x):
                got = f"{said(self.leaves[i])}, then {said(x)}"
                expected = "what it changes outside to be tensors that keep their types"
                raise refused(_WHAT, expected, got)
        self._named_once(leaves)
        xs = [_as(as_chosen(self.leaves[i]), leaves[i]) for i in self.at]
        with enable_grad():
            outs = self.it.call(xs)
        return self._put(outs, leaves)

    # what it gives

    def _values(self, found: list[Any], form: Form) -> list[Value]:
        """The tensors that it gives, of the types that its calls were taken to give."""
        if self.form is None:
            self.form, self.gives = form, [_leaf(x) for x in found]
            raise _Again(self)
        if form != self.form:
            expected, hint = "results of one structure", "return the same structure on every path"
            raise refused(_WHAT, expected, "another one at each depth", hint)
        wider = [_joined(g, x) for g, x in zip(self.gives, found, strict=True)]
        if wider != self.gives:
            self.gives = wider
            raise _Again(self)
        pairs = zip(self.gives, found, strict=True)
        return [_as_given(g, x) for g, x in pairs if g.type is not None]

    def _put(self, outs: Any, given: list[Any]) -> Any:
        """What it gives, put together; what it changes, put in place. A tensor that it gives may be
        one that it was given, or one from outside.
        """
        assert self.form is not None
        left, aliases = iter(outs), root().aliases
        leaves: list[Any] = []
        for g, found in zip(self.gives, self.found, strict=True):
            made = g.value if g.type is None else next(left)
            if g.number:
                made = Chosen.of(made)
            elif g.type is not None:
                tensors = (x for x in given[: self.count] if isinstance(x, Value))
                same_type = [x for x in tensors if x.type is g.type]
                aliases.join(aliases.now(), made, *same_type, found)
            leaves.append(made)
        result, kept = self.form.build(leaves)
        self.slots.put(kept)
        _own(result)
        return result

    def _named_once(self, leaves: list[Any]) -> None:
        """Refuse arguments that are tensors which the function changes."""
        aliases = root().aliases
        for x in leaves[: self.count]:
            for y in self.slots.tensors.values():
                if isinstance(x, Value) and aliases.may_be_one(x, y):
                    hint = "pass x.clone()"
                    expected = "arguments that it does not change under another name"
                    raise refused(_WHAT, expected, f"a {x.type} that has two names", hint)


def _leaf(x: Any) -> _Leaf:
    if isinstance(x, Value):
        return _Leaf(x.type, type(x) is Chosen)
    return _Leaf(None, value=x)


def _joined(known: _Leaf, x: Any) -> _Leaf:
    """What a leaf is that was taken to be `known`, and is found to be `x`."""
    if known.type is None:
        if same(known.value, x):
            return known
        if is_number(known.value) and is_number(x):
            x = as_chosen(x)
            kind = x.kind if type(known.value) is int else float
            return _Leaf(TYPES[kind], True)
        if type(known.value) is bool and type(x) is bool:
            return _Leaf(TensorType((), bool_))
        if isinstance(x, Value) and isinstance(as_value(known.value, x.type), Value):
            return _Leaf(x.type)
        got = f"{said(known.value)} and {said(x)}"
        raise refused(_WHAT, "results that are the same, or tensors of one type", got)
    if isinstance(_as_given(known, x), Value):
        return known
    if known.number and isinstance(x, Value) and x.type.shape == ():
        return _Leaf(x.type, type(x) is Chosen)
    got = f"{known.type} and {said(x)}"
    hint = "convert one with .astype() or .reshape()"
    raise refused(_WHAT, "results of one type at every depth", got, hint)


def _as_given(g: _Leaf, x: Any) -> Any:
    """A result as a tensor of the type that is known of it; None where it is none."""
    assert g.type is not None
    if g.number:
        x = as_chosen(x)
        return x if type(x) is Chosen and x.type is g.type else None
    if not isinstance(x, Value):
        x = as_value(x, g.type)
    return x if isinstance(x, Value) and x.type is g.type else None


def _as(symbol: Any, y: Any) -> Any:
    """An argument as what the function takes there, if it can be."""
    if isinstance(y, Value):
        return y
    return as_chosen(y) if type(symbol) is Chosen else as_value(y, symbol.type)


def _own(x: Any) -> None:
    """Say of containers in a structure that they are the capture's own."""
    if type(x) in CONTAINERS:
        made(x)
    if type(x) in (list, tuple, dict):
        for v in x.values() if type(x) is dict else x:
            _own(v)


def _fresh(name: str) -> str:
    """A name that no function around has."""
    taken = {e.outline.it.name for e in root().running if e.outline is not None}
    number = 2
    while (said_ := name if number == 2 else f"{name}_{number - 1}") in taken:
        number += 1
    return said_
