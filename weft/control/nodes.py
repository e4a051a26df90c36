"""The ops: `cond`, `while` and `while_grad`, whose regions say what they do.

- `cond(p, *xs)`: one of two functions of `xs`, as the bool `p` says.
- `while(*state, *captured)`: (test, body) functions of both; body gives the next state.
- `while_grad(*state, *cotangents, *sums, *captured, end)`: the reverse of a loop, one of whose
  results is `end`; see `weft.control.gradient`.

A call always has several results, even if it is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.control.region import Region, own
from weft.errors import DTypeError, ProgramError, ShapeError
from weft.ir import Function, Node, user_location
from weft.ops.define import (
    Op,
    Value,
    as_node,
    capturing,
    installed,
    register,
    result,
)
from weft.ops.record import replay
from weft.types import TensorType
from weft.types.dtype import bool_

Regions = tuple[Function, ...]
BOOL = TensorType((), bool_)


class Control(Op):
    """An op with regions: called with `regions=`, on symbols it becomes a node."""

    def __call__(self, *xs: Any, **attrs: Any) -> Any:
        regions: Regions = attrs.pop("regions", ())
        if capturing.now is not None or any(isinstance(x, Value) and is_node(x) for x in xs):
            return AGAIN[self.name](xs, regions, **attrs)
        return RUN[self.name](xs, regions, **attrs)


def is_node(x: Value) -> bool:
    return isinstance(x.data, Node)


def emit(op: Op, xs: Sequence[Any], regions: Regions, attrs: dict[str, Any]) -> tuple[Value, ...]:
    """The call as a node; the tape is not told."""
    inputs = tuple(as_node(x) for x in xs)
    types = op.infer(*(i.type for i in inputs), regions=regions, **attrs)
    loc = user_location()
    node = Node(op, inputs, tuple(attrs.items()), types[0], loc, regions)  # type: ignore[index]
    outs = tuple(
        installed.tensor(Node(result, (node,), (("position", i), ("type", t)), t, loc))
        for i, t in enumerate(types)  # type: ignore[arg-type]
    )
    if isinstance(capturing.now, Region):
        own(capturing.now, outs)
    return outs


#: how a call runs on real tensors, and again on symbols, by the op's name
RUN: dict[str, Any] = {}
AGAIN: dict[str, Any] = {}


# types


def takes(place: str, f: Function, types: Sequence[Any], what: str = "operands") -> None:
    """That a function is given what it takes."""
    wanted = tuple(p.type for p in f.params)
    if wanted != tuple(types):
        expected = f"{what} {said_types(wanted)}, as the parameters of fn {f.name}"
        raise ShapeError(place, expected=expected, got=said_types(types))


def gives(place: str, f: Function, types: Sequence[Any], what: str) -> None:
    """That a function's results have these types, of which `what` says why."""
    if results_of(f) != tuple(types):
        expected = f"fn {f.name} to give {said_types(types)}, {what}"
        raise ShapeError(place, expected=expected, got=said_types(results_of(f)))


def split(place: str, regions: Regions, *names: str) -> Regions:
    """The regions of a call, which are called so in errors."""
    if len(regions) != len(names):
        expected = f"{len(names)} regions: {', '.join(names[:-1])} and {names[-1]}"
        raise ProgramError(place, expected=expected, got=str(len(regions)))
    return regions


def said_types(types: Sequence[Any]) -> str:
    return ", ".join(t.__name__ if isinstance(t, type) else str(t) for t in types) or "nothing"


def results_of(f: Function) -> tuple[Any, ...]:
    return tuple(r.type for r in f.results)


def _cond_types(*types: Any, regions: Regions = ()) -> Any:
    if types[:1] != (BOOL,):
        got = said_types(types[:1])
        raise DTypeError("cond", expected=f"a condition, {BOOL}, as the first operand", got=got)
    yes, no = split("cond", regions, "one for true", "one for false")
    for r in (yes, no):
        takes("cond", r, types[1:], "operands behind the condition:")
    gives("cond", no, results_of(yes), "as the other region does")
    return _some("cond", yes)


def _while_types(*types: Any, regions: Regions = ()) -> Any:
    test, body = split("while", regions, "test", "body")
    takes("while", test, types)
    takes("while", body, types)
    gives("while", test, (BOOL,), "as a test does")
    gives("while", body, types[: len(body.results)], "the types of the first operands, its state")
    return _some("while", body)


def _some(place: str, f: Function) -> Any:
    if not f.results:
        raise ShapeError(place, expected=f"results of fn {f.name}", got="none")
    return results_of(f)


cond = register(Control("cond", infer=_cond_types, doc="One of two functions, as a bool says."))
while_ = register(
    Control("while", infer=_while_types, doc="A function again while another is true.")
)


def _while_grad_types(
    *types: Any,
    state: int,
    slopes: int,
    inner: tuple[int, ...],
    kept: tuple[int, ...],
    checkpoint: int,
    regions: Regions = (),
) -> Any:
    place = "while_grad"
    test, body, step, last, none = split(place, regions, "test", "body", "step", "last", "none")
    rest = state + slopes + len(last.results)
    if not (0 < state == len(kept) and slopes >= 0 and rest < len(types) and checkpoint >= 0):
        raise ShapeError(place, expected=f"{rest + 1} operands or more", got=str(len(types)))
    begin, gs, sums = types[:state], types[state : state + slopes], types[state + slopes : rest]
    fixed = types[rest:-1]
    parts = tuple(sums[i] for i in inner)
    takes(place, test, (*begin, *fixed))
    takes(place, body, (*begin, *fixed))
    takes(place, step, (*begin, *gs, *parts, *fixed))
    takes(place, last, (*begin, *gs, *sums, *fixed))
    takes(place, none, (*gs, *sums))
    gives(place, test, (BOOL,), "as a test does")
    gives(place, body, begin, "the types of the first operands, its state")
    gives(place, step, (*gs, *parts), "the types of its cotangents and sums")
    gives(place, last, sums, "the types of the sums")
    gives(place, none, sums, "the types of the sums")
    return _some(place, last)


while_grad = register(Control("while_grad", infer=_while_grad_types, doc="The reverse of a loop."))


# on real tensors


def _run_cond(xs: Sequence[Any], regions: Regions) -> tuple[Any, ...]:
    return replay(regions[0] if xs[0] else regions[1], xs[1:])


def _run_while(xs: Sequence[Any], regions: Regions) -> tuple[Any, ...]:
    test, body = regions
    count = len(body.results)
    state, captured = tuple(xs[:count]), tuple(xs[count:])
    while replay(test, (*state, *captured))[0]:
        state = replay(body, (*state, *captured))
    return state


def _run_while_grad(
    xs: Sequence[Any],
    regions: Regions,
    state: int,
    slopes: int,
    inner: tuple[int, ...],
    **how: Any,
) -> tuple[Any, ...]:
    test, body, step, last, none = regions
    start, count = tuple(xs[:state]), len(last.results)
    gs, sums = list(xs[state : state + slopes]), list(xs[state + slopes : state + slopes + count])
    captured = tuple(xs[state + slopes + count : -1])
    now, states = start, []
    while replay(test, (*now, *captured))[0]:
        states.append(now)
        now = replay(body, (*now, *captured))
    if not states:
        return replay(none, (*gs, *sums))
    for past in reversed(states[1:]):
        out = replay(step, (*past, *gs, *(sums[i] for i in inner), *captured))
        gs = list(out[:slopes])
        for i, total in zip(inner, out[slopes:], strict=True):
            sums[i] = total
    return replay(last, (*start, *gs, *sums, *captured))


RUN.update({"cond": _run_cond, "while": _run_while, "while_grad": _run_while_grad})
