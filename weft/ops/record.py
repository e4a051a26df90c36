"""Run a function into a graph, and a graph into calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.ir import Function
from weft.ops.define import Type, Types, Value, constant, installed, placeholder, result
from weft.types import TensorType


def record(name: str, f: Callable[..., Any], types: tuple[Type, ...], attrs: dict[str, Any]) -> Function:
    """The graph of `f` over inputs of `types`."""
    xs = [placeholder(t, i) for i, t in enumerate(types)]  # type: ignore[arg-type]
    out = f(*xs, **attrs)
    outs = out if isinstance(out, tuple) else (out,)
    return Function(name, tuple(x.data for x in xs), tuple(o.data for o in outs))  # type: ignore[misc]


def replay(f: Function, xs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Call the ops of `f` again, on other values."""
    env: dict[Any, Any] = dict(zip(f.params, xs, strict=True))
    for n in f.order:
        if n.op is constant:
            value = n.attr("value")
            env[n] = value if type(value) in (float, int, bool) else installed.tensor(value)
        elif n.op is result:
            env[n] = env[n.inputs[0]][n.attr("position")]
        else:
            env[n] = n.op(*(env[i] for i in n.inputs), **dict(n.attrs))  # type: ignore[operator]
    return tuple(env[r] for r in f.results)


def infer_body(body: Callable[..., Any]) -> Callable[..., Types]:
    """The type rule of a composite: run the body on symbols and look."""

    def infer(*types: Type, **attrs: Any) -> Types:
        out = body(*(placeholder(t, i) if isinstance(t, TensorType) else t(1) for i, t in enumerate(types)), **attrs)
        return tuple(o.type for o in out) if isinstance(out, tuple) else out.type

    return infer


def is_symbolic(x: Value) -> bool:
    return not hasattr(x.data, "layout")
