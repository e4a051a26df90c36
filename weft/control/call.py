"""The ops of functions that call themselves: `recursion` defines them, `call` calls one.

- `recursion(*xs, *captured)`: functions that may call each other by name; the first is called. The
  last params of each, `captured` of them, are what they read of the outside: the same at every
  depth, so calls do not pass them.
- `call(*xs)`: the function `name` of the innermost recursion around it that has one; it gives
  values of the types `gives`. `site` says which call it is of those in the function.

The reverse of a function is a recursion of two, the reverse and the function itself: what calls of
one site gave on the way there is what those of that site in the reverse give again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from weft.control.nodes import RUN, Control, Regions, results_of, said_types, takes
from weft.errors import ProgramError, ShapeError
from weft.ir import Function
from weft.ops.define import register
from weft.ops.record import replay
from weft.types import TensorType

Signature = tuple[tuple[Any, ...], tuple[Any, ...]]  # types of what it is given, and gives


def _recursion_types(*types: Any, captured: int, regions: Regions = ()) -> Any:
    if not regions or not 0 <= captured <= len(types):
        expected = f"functions, which capture at most {len(types)} of the operands"
        raise ShapeError("recursion", expected=expected, got=f"{len(regions)}, {captured}")
    takes("recursion", regions[0], types)
    fixed = types[len(types) - captured :]
    known: dict[str, Signature] = {}
    for f in regions:
        own = tuple(p.type for p in f.params)
        count = len(own) - captured
        if own[count:] != fixed:
            raise ShapeError(f.name, expected=said_types(fixed), got=said_types(own[count:]))
        known[f.name] = own[:count], results_of(f)
    if len(known) < len(regions):
        names = ", ".join(f.name for f in regions)
        raise ProgramError("recursion", expected="functions of different names", got=names)
    for f in regions:
        _check_calls(f, known)
    return results_of(regions[0])


def _check_calls(f: Function, known: Mapping[str, Signature]) -> None:
    """That functions are called with what they take."""
    for n in f.order:
        if n.op is call and n.attr("name") in known:
            types, gives = known[n.attr("name")]
            given = tuple(i.type for i in n.inputs)
            for expected, got in ((types, given), (gives, n.attr("gives"))):
                if expected != got:
                    place = f"call of {n.attr('name')}"
                    raise ShapeError(place, expected=said_types(expected), got=said_types(got))
        inner = known
        if n.op is recursion:
            own = {r.name for r in n.regions}
            inner = {k: v for k, v in known.items() if k not in own}
        for r in n.regions:
            _check_calls(r, inner)


def _call_types(
    *types: Any, name: str, gives: tuple[TensorType, ...], site: int, regions: Regions = ()
) -> Any:
    if not gives:
        raise ShapeError(f"call of {name}", expected="a function with results", got="none")
    return gives


recursion = register(
    Control("recursion", infer=_recursion_types, doc="Functions that may call each other.")
)
call = register(Control("call", infer=_call_types, doc="A call of a function of the program."))


def calls(f: Function, name: str) -> bool:
    """Whether a function, or a piece of it, calls one of a name."""
    return any(
        (n.op is call and n.attr("name") == name)
        or any(
            calls(r, name)
            for r in n.regions
            if n.op is not recursion or name not in {g.name for g in n.regions}
        )
        for n in f.order
    )


# on real tensors


class _Scope(threading.local):
    """The functions that can be called now: each with what it captured, and those it can call."""

    names: Mapping[str, tuple[Function, Sequence[Any], Any]] = {}


_scope = _Scope()


def _run_recursion(xs: Sequence[Any], regions: Regions, captured: int) -> tuple[Any, ...]:
    fixed = tuple(xs[len(xs) - captured :])
    inner = dict(_scope.names)
    inner.update({f.name: (f, fixed, inner) for f in regions})
    return _within(inner, regions[0], xs)


def _run_call(xs: Sequence[Any], regions: Regions, name: str, **how: Any) -> tuple[Any, ...]:
    if name not in _scope.names:
        raise undefined(name)
    f, fixed, names = _scope.names[name]
    return _within(names, f, (*xs, *fixed))


def _within(names: Any, f: Function, xs: Sequence[Any]) -> tuple[Any, ...]:
    outer, _scope.names = _scope.names, names
    try:
        return replay(f, xs)
    finally:
        _scope.names = outer


def undefined(name: str) -> ProgramError:
    """The error of a call whose function is not there."""
    expected = f"a function {name} in a recursion around it"
    return ProgramError("call", expected=expected, got="none")


RUN.update({"recursion": _run_recursion, "call": _run_call})
