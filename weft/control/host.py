"""Calls of Python from a program: what it prints, what it raises, functions of the user's.

`host(token, *xs)` gives (token, *results). A token is a tensor without elements. Every call takes
the one that the call before it gave, so calls run in order, through branches and loops too, and
none is left out. `said` is what Python is to do, an expression of `weft.control.said`; `gives` are
the types of what it comes to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.autodiff.mode import recording
from weft.buffer.interchange import copy_from_numpy
from weft.control.region import Region, close, own
from weft.control.said import Said, raises, value
from weft.errors import DTypeError, ShapeError
from weft.ir import Function, Location, Node, rewrite, user_location
from weft.ops.define import (
    Op,
    Value,
    as_node,
    capturing,
    closed,
    constant,
    installed,
    register,
    result,
)
from weft.types import TensorType
from weft.types.dtype import uint8

TOKEN = TensorType((0,), uint8)


def first_token() -> Node:
    """The token of a program's first call."""
    return _first


_first = Node(
    constant, (), (("value", copy_from_numpy(np.empty(0, np.uint8))), ("type", TOKEN)), TOKEN
)


class Host(Op):
    """The op: called on real tensors it does what is said, on symbols it becomes a node."""

    def __call__(self, *xs: Any, **attrs: Any) -> Any:
        if capturing.now is not None or any(
            isinstance(x, Value) and isinstance(x.data, Node) for x in xs
        ):
            return emit_host(xs, **attrs)
        said, gives = attrs["said"], attrs["gives"]
        if recording.get() and any(isinstance(x, Value) and x.note is not None for x in xs):
            taped = getattr(said[1].value, "taped", None) if said[0] == "apply" else None
            if taped is not None:
                return (xs[0], *taped([value(s, xs[1:]) for s in said[2]], gives))
        return (xs[0], *answers(said, gives, xs[1:]))


def answers(said: Said, gives: tuple[TensorType, ...], xs: Sequence[Any]) -> list[Any]:
    """What Python answers, as tensors of the types that were said."""
    with closed():
        found = value(said, xs)
        if raises(said):
            raise found
        if not gives:
            return []
        if not isinstance(found, tuple):
            found = (found,)
        if len(found) != len(gives):
            raise ShapeError("py_call", expected=f"{len(gives)} results", got=str(len(found)))
        return [_answer(x, t) for x, t in zip(found, gives, strict=True)]


def _answer(x: Any, type_: TensorType) -> Value:
    if type(x) in (int, float, bool):
        x = type_.dtype.np.type(x)
    out = x if isinstance(x, Value) else installed.lift(x)
    if out.type is not type_:
        raise DTypeError(
            "py_call",
            expected=f"{type_}, as `result` says",
            got=str(out.type),
            hint="convert it with .astype() or .reshape() inside the function",
        )
    return out


def _types(token: Any, *xs: Any, said: Said, gives: tuple[TensorType, ...]) -> Any:
    if token is not TOKEN:
        raise DTypeError("host", expected=f"a token, {TOKEN}", got=str(token))
    return (TOKEN, *gives)


host = register(Host("host", infer=_types, doc="A call of Python, in order.", effect=True))


def emit_host(
    xs: Sequence[Any],
    said: Said,
    gives: tuple[TensorType, ...] = (),
    loc: Location | None = None,
) -> tuple[Value, ...]:
    """The call as a node: the next token, and what Python gives."""
    inputs = tuple(as_node(x) for x in xs)
    loc = loc or user_location()
    node = Node(host, inputs, (("said", said), ("gives", gives)), TOKEN, loc)
    outs = tuple(
        installed.tensor(Node(result, (node,), (("position", i), ("type", t)), t, loc))
        for i, t in enumerate((TOKEN, *gives))
    )
    if isinstance(capturing.now, Region):
        own(capturing.now, outs)
    return outs


def again(
    name: str, pieces: Sequence[tuple[set[Node], Sequence[Node], Sequence[Node]]]
) -> tuple[list[Function], list[Node]]:
    """`close` for pieces that run a second time: what they printed is not printed again."""
    functions, captured = close(name, pieces)
    return [silent(f) for f in functions], captured


def silent(f: Function) -> Function:
    """`f` to be run a second time: calls that give nothing are left out, others in no order."""
    return rewrite(f, _silenced)


def _silenced(n: Node, inputs: tuple[Node, ...]) -> Node | None:
    if n.regions:
        regions = tuple([silent(r) for r in n.regions])
        if all(a is b for a, b in zip(regions, n.regions, strict=True)):
            return None
        return Node(n.op, inputs, n.attrs, n.type, n.loc, regions)
    if n.op is host:
        return Node(host, (first_token(), *inputs[1:]), n.attrs, n.type, n.loc)
    if n.op is result and n.inputs[0].op is host and n.attr("position") == 0:
        return first_token()
    return None
