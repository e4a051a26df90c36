"""One program for all lengths: where a size does nothing but end loops.

A loop over the rows of an argument reads one row a step, and how many there are says only when it
ends. Such a program need not be made for each length: it takes the length as a number, and the
argument as if it had any number of rows. That is right if every row that is read is there, so rows
must be taken by a counter of a loop that goes on while the counter is less than the length.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from weft.buffer import Buffer, Layout
from weft.capture.capture import Captured
from weft.capture.instantiate import filled, instantiate
from weft.capture.numbers import sizes_reader
from weft.capture.values import Values
from weft.ir import Function, Node
from weft.ops.define import installed, parameter
from weft.types import TensorType
from weft.types.expression import ITSELF, Symbol, Terms
from weft.types.record import dataclass
from weft.types.size import Size

#: rows that an argument is said to have
ROWS = 1 << 32


@dataclass(frozen=True)
class Roomy:
    """What such a program is given besides: sizes, and of some inputs that they have any number of
    rows.
    """

    wide: tuple[tuple[int, Layout], ...]
    read: Callable[[Sequence[Any]], list[int]]

    def given(self, leaves: Sequence[Any], xs: list[Any]) -> list[Any]:
        """The inputs of a call."""
        for i, layout in self.wide:
            data = xs[i].data
            xs[i] = installed.tensor(Buffer(layout, data.address, data.owner))
        return xs + self.read(leaves)

    def fits(self, leaves: Sequence[Any], arguments: Sequence[int]) -> bool:
        """Whether rows lie one after the other."""
        return all(leaves[arguments[i]].data.layout.is_dense for i, _ in self.wide)


class Rows(Values):
    """The values of a call but for one size, an atom of expressions, that is left open."""

    def __init__(self, captured: Captured, leaves: Sequence[Any], left: int) -> None:
        symbols = captured.symbols
        assert symbols is not None
        super().__init__(symbols.table, symbols.steps, leaves)
        self.open = {left}
        for i, atom in enumerate(symbols.table.atoms):
            if not isinstance(atom, Symbol) and self._is_open((*atom.a, *atom.b)):
                self.open.add(i)

    def of(self, x: Any) -> Any:
        return x if type(x) is Size and self._is_open(x.terms) else super().of(x)

    def _is_open(self, terms: Terms) -> bool:
        return any(i in self.open for m, _ in terms for i in m)

    @property
    def others(self) -> tuple[int, ...]:
        """What the program is made for."""
        return tuple([n for i, n in enumerate(self.atoms) if i not in self.open])


def candidates(captured: Captured) -> list[int]:
    """Sizes that such a program could leave open: how many rows some argument has."""
    symbols = captured.symbols
    if symbols is None or captured.slopes or captured.found:
        return []
    if any(axis == ITSELF for _, axis in symbols.places):
        return []
    rows = [n for (_, axis), n in symbols.places.items() if axis == 0 and type(n) is Size]
    single = [n.terms[0][0][0] for n in rows if len(n.terms) == 1 and len(n.terms[0][0]) == 1]
    return list(dict.fromkeys(single))


def roomy(captured: Captured, leaves: Sequence[Any], left: int) -> Captured | None:
    """The program for any value of a size, and for those that others have in a call; None if it has
    to be made for each.
    """
    whole = instantiate(captured, leaves, Rows(captured, leaves, left))
    f, symbols = whole.function, captured.symbols
    assert symbols is not None
    count = len(captured.inputs.arguments)
    if any(_open(p.type) and (i >= count or not _rows(p.type)) for i, p in enumerate(f.params)):
        return None
    try:
        filled(_Refuse(), (whole.drawn, *(o.value for o in whole.outputs)))
        _Found().function(f, {p: p.type.shape[0] for p in f.params if _open(p.type)}, {})
    except _Needed:
        return None
    made, sizes = _Wide(f).made()
    wide = [
        (i, Layout.dense(q.type))
        for i, (p, q) in enumerate(zip(f.params, made.params, strict=False))
        if _open(p.type)
    ]
    given = Roomy(tuple(wide), sizes_reader(symbols, sizes))
    return dataclasses.replace(whole, function=made, roomy=given)


class _Needed(Exception):
    """A size matters for more than the end of a loop."""


def _open(t: Any) -> bool:
    return isinstance(t, TensorType) and _any_open(t.shape)


def _rows(t: TensorType) -> bool:
    return not _any_open(t.shape[1:])


def _any_open(sizes: Sequence[Any]) -> bool:
    return any(type(n) is Size for n in sizes)


def _is_size(n: Node) -> bool:
    return n.op.name == "constant" and type(n.attr("value")) is Size


class _Found:
    """Goes through a function, its loops included, and raises where a size matters."""

    def function(self, f: Function, rows: dict[Node, Any], counters: dict[Node, Any]) -> None:
        """`rows`: params that have so many rows; `counters`: params that are less than a size."""
        for r in f.results:
            if r in rows or _is_size(r):
                raise _Needed
        for n in f.order:
            if n.op is parameter:
                continue
            if n.regions:
                if n.op.name == "cond":
                    self.branch(n, rows, counters)
                else:
                    self.loop(n, rows)
                continue
            taken = n.inputs[0] if n.op.name == "take" and n.attr("axis") == 0 else None
            for i in n.inputs:
                if i in rows and not _one(n):
                    counted = i is taken and n.inputs.count(i) == 1
                    if not (counted and _same(rows[i], counters.get(n.inputs[1]))):
                        raise _Needed
                if _is_size(i) and getattr(n.op, "scalar", None) is None:
                    raise _Needed
            if not _is_size(n):
                settled(n)

    def branch(self, n: Node, rows: dict[Node, Any], counters: dict[Node, Any]) -> None:
        settled(n)
        for f in n.regions:
            given = dict(zip(f.params, n.inputs[1:], strict=True))
            inner, own = (
                {p: known[x] for p, x in given.items() if x in known} for known in (rows, counters)
            )
            self.function(f, inner, own)

    def loop(self, n: Node, rows: dict[Node, Any]) -> None:
        if n.op.name not in ("while", "while_grad") or any(i in rows for i in self.state(n)):
            raise _Needed
        settled(n)
        known, count = self.counters(n), self.captured(n)
        end = len(n.inputs) - self.end(n)
        given = n.inputs[end - count : end]
        for i, f in enumerate(n.regions):
            if i == 4:  # a loop without steps reads nothing of the outside
                self.function(f, {}, {})
                if any(_is_size(x) for x in f.order):
                    raise _Needed
                continue
            captured = f.params[len(f.params) - count :] if count else ()
            inner = {p: rows[x] for p, x in zip(captured, given, strict=True) if x in rows}
            own = {f.params[j]: size for j, size in known.items() if i > 0}
            self.function(f, inner, own)

    def state(self, n: Node) -> tuple[Node, ...]:
        count = len(n.regions[1].results)
        return n.inputs[:count]

    def end(self, n: Node) -> int:
        return int(n.op.name == "while_grad")

    def captured(self, n: Node) -> int:
        """How many of the last operands are what regions read of the outside."""
        return len(n.regions[1].params) - len(n.regions[1].results)

    def counters(self, n: Node) -> dict[int, Any]:
        """Which parts of the state go up from 0 or more, and stay below a size in every step."""
        test, body = n.regions[:2]
        (go,) = test.results
        if go.op.name != "less" or not _is_size(go.inputs[1]) or go.inputs[0] not in test.params:
            return {}
        j = test.params.index(go.inputs[0])
        if j >= len(body.results):
            return {}
        after, start = body.results[j], n.inputs[j]
        up = after.op.name == "add" and after.inputs[0] is body.params[j]
        return (
            {j: go.inputs[1].attr("value")}
            if up and _least(after.inputs[1], 1) and _least(start, 0)
            else {}
        )


def _least(n: Node, least: int) -> bool:
    """Whether a node is a number that is not less."""
    if n.op.name == "full":
        (n,) = n.inputs
    value = n.attr("value") if n.op.name == "constant" else None
    return type(value) is int and value >= least


def _one(n: Node) -> bool:
    """Whether a node is a row that is known to be there: a guard says so."""
    if n.op.name != "basic_index":
        return False
    start, size, step = (n.attr(name)[0] for name in ("starts", "sizes", "steps"))
    return all(type(x) is int for x in (start, size)) and start >= 0 and size == step == 1


def _same(a: Any, b: Any) -> bool:
    return type(a) is Size and type(b) is Size and a.terms == b.terms


def settled(n: Node) -> None:
    """Raises if a node's type or attributes have sizes that are open."""
    filled(_Refuse(), (n.type, *(v for _, v in n.attrs)))


class _Refuse:
    """In the place of the values of a call: there are none."""

    def of(self, x: Any) -> Any:
        raise _Needed


class _Wide:
    """The function with wide params, and sizes as params behind the others."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.sizes: list[Size] = []
        self._collect(f)

    def _collect(self, f: Function) -> None:
        for n in f.order:
            if _is_size(n) and all(n.attr("value").terms != s.terms for s in self.sizes):
                self.sizes.append(n.attr("value"))
            for r in n.regions:
                self._collect(r)

    def made(self) -> tuple[Function, list[Size]]:
        numbers = [_param(int) for _ in self.sizes]
        made = self._function(self.f, numbers)
        return Function(made.name, (*made.params, *numbers), made.results), self.sizes

    def _function(self, f: Function, numbers: Sequence[Node]) -> Function:
        known: dict[Node, Node] = {}
        for p in f.params:
            known[p] = _param(_widened(p.type)) if _open(p.type) else p
        for n in f.order:
            if n in known:
                continue
            if _is_size(n):
                terms = n.attr("value").terms
                (known[n],) = (
                    x for x, s in zip(numbers, self.sizes, strict=True) if s.terms == terms
                )
                continue
            inputs = tuple([known[i] for i in n.inputs])
            if n.regions:
                known[n] = self._loop(n, inputs, numbers)
            else:
                known[n] = n if inputs == n.inputs else Node(n.op, inputs, n.attrs, n.type, n.loc)
        params, results = (tuple(known[x] for x in xs) for xs in (f.params, f.results))
        return Function(f.name, params, results)

    def _loop(self, n: Node, inputs: tuple[Node, ...], numbers: Sequence[Node]) -> Node:
        """Every region but the one for a loop without steps takes the sizes too."""
        regions = []
        for i, f in enumerate(n.regions):
            own = [_param(int) for _ in numbers]
            made = self._function(f, own)
            more = () if i == 4 else tuple(own)
            regions.append(Function(made.name, (*made.params, *more), made.results))
        end = len(inputs) - (n.op.name == "while_grad")
        inputs = (*inputs[:end], *numbers, *inputs[end:])
        return Node(n.op, inputs, n.attrs, n.type, n.loc, tuple(regions))


def _param(type_: Any) -> Node:
    return Node(parameter, (), (("position", 0), ("type", type_)), type_)


def _widened(t: TensorType) -> TensorType:
    return TensorType((ROWS, *t.shape[1:]), t.dtype)
