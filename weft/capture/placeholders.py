"""Graphs made by hand: placeholders, ordinary ops on them, and `build`.

From the first placeholder to `build`, calls on tensors become nodes; what makes tensors still makes
real ones. Tensors that the graph reads are inputs of the program, those that are given other values
(by an optimizer's step) are updated by it; they get their own values back when it is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.capture.capture import Captured, finish
from weft.capture.symbols import Symbols
from weft.capture.trace import Trace
from weft.errors import CaptureError, DTypeError
from weft.ir import Node
from weft.ops.define import Value, capturing, installed
from weft.tensor.arguments import sizes
from weft.types import Dim, TensorType, as_dtype
from weft.types.dtype import float32


def placeholder(name: str, shape: Any, dtype: Any = float32) -> Any:
    """A symbol for an input of a program to be built. Sizes that are None or a `Dim` are left
    open.

    >>> import weft as wf
    >>> x = wf.placeholder("x", (None, 2), wf.float32)
    >>> program = wf.build([x], x.sum(axis=0))
    >>> program(x=wf.tensor([[1.0, 2.0], [3.0, 4.0]])), program(x=wf.ones((5, 2)))
    (tensor([4., 6.]), tensor([5., 5.]))
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise DTypeError("placeholder", expected="a name", got=repr(name))
    said = shape if isinstance(shape, (tuple, list)) else (shape,)
    known = tuple(0 if n is None or isinstance(n, Dim) else n for n in said)
    type_ = TensorType(sizes(known, "placeholder"), as_dtype(dtype))  # or nothing is begun
    trace = capturing.now
    if trace is None:
        trace = Trace(by_hand=True).__enter__()
    if not isinstance(trace, Trace) or not trace.by_hand:
        raise CaptureError("placeholder", got="a call inside a function that is being captured")
    if trace.symbols is None:
        trace.symbols = Symbols()
    opened = _opened(trace.symbols, name, said, len(trace.names))
    node = trace.parameter(TensorType(sizes(opened, "placeholder"), type_.dtype))
    trace.names[node] = name
    return installed.tensor(node)


def _opened(symbols: Symbols, name: str, shape: Sequence[Any], leaf: int) -> Any:
    """A shape with symbols for the sizes that are left open; one for each name of a Dim."""
    out: list[Any] = []
    for axis, n in enumerate(shape):
        if n is None or isinstance(n, Dim):
            dim = Dim(f"{name}_{axis}") if n is None else n
            out.append(symbols.named(dim, (leaf, axis)))
        else:
            out.append(n)
        symbols.places[leaf, axis] = out[-1]
    return out


def captured(inputs: Any, outputs: Any) -> tuple[Captured, list[str]]:
    """What was built since the last program, as a captured call, and the names of its inputs."""
    given = list(inputs) if isinstance(inputs, Sequence) else [inputs]
    trace = capturing.now
    if (
        not isinstance(trace, Trace)
        or not trace.by_hand
        or not all(_known(trace, x) for x in given)
    ):
        raise CaptureError(
            "build", expected="inputs made by wf.placeholder", got=", ".join(map(_said, given))
        )
    try:
        firsts = list(range(len(given)))
        before = {i: x.data for i, x in enumerate(given)}
        unused = [n for n in trace.names if n not in before.values()]
        if trace.symbols is not None:
            numbers = {n: i for i, n in enumerate(trace.names)}
            trace.symbols.renumber({numbers[n]: i for i, n in before.items()})
        made = finish(trace, "program", outputs, given, firsts, before)
        reached = {*made.function.params, *made.function.order}
        missing = [trace.names[n] for n in unused if n in reached]
        if missing:
            raise CaptureError(
                "build", expected="every placeholder among the inputs", got=f"no {missing[0]!r}"
            )
        return made, [trace.names[x.data] for x in given]
    finally:
        trace.__exit__()
        trace.restore()


def _known(trace: Trace, x: Any) -> bool:
    return isinstance(x, Value) and isinstance(x.data, Node) and x.data in trace.names


def _said(x: Any) -> str:
    return str(getattr(x, "type", type(x).__name__))
