"""A program of symbolic sizes at the sizes of one call."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from weft.buffer import Buffer, Layout
from weft.capture.capture import Captured
from weft.capture.values import Values
from weft.ir import Function, Node
from weft.types import TensorType
from weft.types.expression import ITSELF
from weft.types.size import Number, is_symbolic


class _Filled:
    """Puts the values of a call in the place of symbols."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.types: dict[TensorType, TensorType] = {}
        self.nodes: dict[Node, Node] = {}

    def type(self, t: Any) -> Any:
        if not isinstance(t, TensorType):
            return t
        found = self.types.get(t)
        if found is None:
            symbolic = any(is_symbolic(n) for n in t.shape)
            sizes = [self.values.of(n) for n in t.shape] if symbolic else ()
            found = TensorType(sizes, t.dtype) if symbolic else t
            self.types[t] = found
        return found

    def value(self, x: Any) -> Any:
        """An attribute, or anything that the function gave, with plain numbers."""
        kind = type(x)
        if kind is int or kind is str or kind is bool or kind is float:
            return x
        if isinstance(x, Buffer):
            return self.buffer(x)
        if is_symbolic(x):
            live = isinstance(x, Number) and not x.is_sized  # another one in every call
            return x if live else self.values.of(x)
        if kind is tuple:
            parts = [self.value(v) for v in x]
            return x if all(a is b for a, b in zip(parts, x, strict=True)) else tuple(parts)
        if kind is TensorType:
            return self.type(x)
        if kind is Function:
            return self.function(x)
        if dataclasses.is_dataclass(x) and not isinstance(x, type):
            fields = {f.name: getattr(x, f.name) for f in dataclasses.fields(x) if f.init}
            changed = {k: w for k, v in fields.items() if (w := self.value(v)) is not v}
            return dataclasses.replace(x, **changed) if changed else x
        return x

    def buffer(self, x: Buffer) -> Buffer:
        """A constant: one number everywhere, if it has sizes that are open."""
        type_ = self.type(x.layout.type)
        if type_ is x.layout.type:
            return x
        return Buffer(Layout(type_, x.layout.strides), x.address, x.owner)

    def node(self, n: Node) -> Node:
        found = self.nodes.get(n)
        if found is None:
            inputs = tuple([self.nodes[i] for i in n.inputs])
            attrs = tuple([(k, self.value(v)) for k, v in n.attrs])
            regions = tuple([self.function(r) for r in n.regions])
            found = Node(n.op, inputs, attrs, self.type(n.type), n.loc, regions)
            self.nodes[n] = found
        return found

    def function(self, f: Function) -> Function:
        for n in (*f.params, *f.order):
            self.node(n)
        params, results = ([self.nodes[n] for n in ns] for ns in (f.params, f.results))
        return Function(f.name, tuple(params), tuple(results))


def filled(values: Any, x: Any) -> Any:
    """An attribute, a type or a tuple of such with plain numbers: those that `values.of` gives."""
    return _Filled(values).value(x)


def with_names(captured: Captured) -> Function:
    """The program with names for the sizes that are left open."""
    assert captured.symbols is not None
    return _Filled(captured.symbols.names()).function(captured.function)


def instantiate(
    captured: Captured, leaves: Sequence[Any], values: Values | None = None
) -> Captured:
    """A captured call whose program is for the sizes of these arguments, or for such `values`."""
    symbols = captured.symbols
    assert symbols is not None
    filled = _Filled(symbols.values(leaves) if values is None else values)
    f = captured.function
    slopes = [g for _, g in captured.slopes]
    later = (*captured.seeds, *(s for _, s in captured.sums))
    whole = filled.function(Function(f.name, (*f.params, *later), (*f.results, *slopes)))
    params, results = len(f.params), len(f.results)
    seeds = params + len(captured.seeds)
    return dataclasses.replace(
        captured,
        function=Function(f.name, whole.params[:params], whole.results[:results]),
        seeds=whole.params[params:seeds],
        sums=tuple((k, s) for (k, _), s in zip(captured.sums, whole.params[seeds:], strict=True)),
        slopes=tuple(
            (i, g) for (i, _), g in zip(captured.slopes, whole.results[results:], strict=True)
        ),
        outputs=tuple(
            dataclasses.replace(o, value=filled.value(o.value)) for o in captured.outputs
        ),
        drawn=filled.value(captured.drawn),
        exact=tuple((i, leaves[i]) for i, axis in symbols.places if axis == ITSELF),
        found=(),
    )
