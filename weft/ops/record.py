"""Run a function into a graph, and a graph into calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from weft.errors import DTypeError
from weft.ir import Function
from weft.ops.define import (
    Op,
    Type,
    Types,
    Value,
    as_node,
    closed,
    constant,
    fresh,
    placeholder,
    result,
)
from weft.types import TensorType


def record(
    name: str, f: Callable[..., Any], types: tuple[Type, ...], attrs: dict[str, Any]
) -> Function:
    """The graph of `f` over inputs of `types`."""
    xs = [placeholder(t, i) for i, t in enumerate(types)]  # type: ignore[arg-type]
    with closed():
        out = f(*xs, **attrs)
        outs = out if isinstance(out, tuple) else (out,)
        return Function(name, tuple(x.data for x in xs), tuple(as_node(o) for o in outs))


def replay(
    f: Function, xs: Sequence[Any], call: Callable[[Op], Any] = lambda op: op
) -> tuple[Any, ...]:
    """Call the ops of `f` again, on other values; `call` may say what to call in an op's place."""
    env: dict[Any, Any] = dict(zip(f.params, xs, strict=True))
    for n in f.order:
        if n.op is constant:
            value = n.attr("value")
            env[n] = value if type(value) in (float, int, bool) else fresh(value)
        elif n.op is result:
            env[n] = env[n.inputs[0]][n.attr("position")]
        else:
            attrs = dict(n.attrs) | ({"regions": n.regions} if n.regions else {})
            env[n] = call(n.op)(*(env[i] for i in n.inputs), **attrs)  # type: ignore[arg-type]
    return tuple(env[r] for r in f.results)


def expanded(
    name: str, f: Callable[..., Any], types: tuple[Type, ...], attrs: dict[str, Any]
) -> Function:
    """The graph of `f` with every composite in it replaced by its body, to the bottom."""
    found = record(name, f, types, attrs)
    while any(n.op.body for n in found.order):  # type: ignore[attr-defined]
        found = record(name, partial(_expand_once, found), types, {})
    return found


def _expand_once(f: Function, *xs: Any) -> tuple[Any, ...]:
    return replay(f, xs, lambda op: op.body or op)


def infer_body(name: str, body: Callable[..., Any]) -> Callable[..., Types]:
    """The type rule of a composite: run the body on symbols and look."""

    def infer(*types: Type, **attrs: Any) -> Types:
        with closed():
            out = body(
                *(
                    placeholder(t, i) if isinstance(t, TensorType) else t(1)
                    for i, t in enumerate(types)
                ),
                **attrs,
            )
        outs = out if isinstance(out, tuple) else (out,)
        if not outs or not all(isinstance(o, Value) for o in outs):
            raise DTypeError(
                name,
                expected="a tensor, or a tuple of tensors, from its body",
                got=type(out).__name__,
            )
        return tuple(o.type for o in outs) if isinstance(out, tuple) else out.type

    return infer
