"""What holds of a program as a whole: functions that are called are there, and what is read as a
store is one.

A store holds addresses. So the words that `put` and `get` are given come from `put`, from zeros,
or through branches, loops and calls from either, never from outside or from arithmetic; and
whatever is put where one is read has the types that are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.buffer import Buffer
from weft.buffer.interchange import to_numpy
from weft.control.call import call, recursion
from weft.control.nodes import cond, said_types, while_, while_grad
from weft.control.store import STORE, get, put
from weft.errors import ProgramError
from weft.ir import Function, Node
from weft.ir.language import Fault
from weft.ir.sizes import same_type
from weft.ops.define import constant, result
from weft.ops.language import LANGUAGE

Key = tuple[Node, int]  # a node, and which of its results
Called = Mapping[str, tuple[Function, int]]  # functions by name; how many params were captured


def faults(f: Function) -> Iterator[Fault]:
    """What a program breaks of this."""
    yield from uncalled(f, {})
    yield from of_another_loop(f)
    yield from misused(f)


LANGUAGE.rules.append(faults)


def uncalled(f: Function, known: Called) -> Iterator[Fault]:
    """Calls of functions that are not there."""
    for n in f.order:
        if n.op is call and n.attr("name") not in known:
            yield Fault(f, n, f"a function {n.attr('name')} in a recursion around it", "none")
        inner = _inside(n, known)
        for r in n.regions:
            yield from uncalled(r, inner)


def of_another_loop(f: Function) -> Iterator[Fault]:
    """Reverses of a loop whose state is not what they say: they read what it keeps."""
    for n in f.order:
        end = n.inputs[-1] if n.op is while_grad else n
        if n.op is while_grad and end.op is result and end.inputs[0].op is while_:
            loop, kept = end.inputs[0], n.attr("kept")
            state = [x.type for x in loop.inputs[: len(loop.regions[1].results)]]
            parts = [state[i] for i in kept if 0 <= i < len(state)]
            if parts != [x.type for x in n.inputs[: len(kept)]] or list(kept) != sorted(set(kept)):
                got = f"parts {', '.join(map(str, kept))} of {said_types(state)}"
                yield Fault(f, n, "parts of the loop's state, as its first operands", got)
        for r in n.regions:
            yield from of_another_loop(r)


def _inside(n: Node, known: Called) -> Called:
    if n.op is not recursion:
        return known
    return {**known, **{r.name: (r, n.attr("captured")) for r in n.regions}}


def check_stores(f: Function) -> None:
    """Raise unless what is read as a store is one."""
    for fault in misused(f):
        loc = fault.node.loc
        place = f"{fault.node.op.name} in fn {fault.function.name}"
        place += f" at {loc}" if loc is not None and loc.file else ""
        raise ProgramError(place, expected=fault.expected, got=fault.got, hint=fault.hint)


def misused(f: Function) -> Iterator[Fault]:
    """Reads of stores that are none, or have something else in them."""
    if _uses(f):
        flow = _Flow()
        for p in f.params:
            flow.no_store(p, f"a parameter of fn {f.name}")
        flow.walk(f, {})
        yield from flow.faults()


def _uses(f: Function) -> bool:
    return any(n.op is get or n.op is put or any(map(_uses, n.regions)) for n in f.order)


class _Use(NamedTuple):
    function: Function
    node: Node
    key: Key
    entry: tuple[Any, ...]  # types of what is put, or was
    stores: dict[int, Node]  # those of its parts that are stores themselves
    deep: bool  # in a function that calls itself


class _Flow:
    """Values of the type of stores, those that may be the same in one class."""

    def __init__(self) -> None:
        self.parent: dict[Key, Key] = {}
        self.other: dict[Key, str] = {}  # values that are no store, and what they are
        self.uses: list[_Use] = []

    def find(self, k: Key) -> Key:
        while (up := self.parent.setdefault(k, k)) != k:
            self.parent[k] = k = self.parent[up]
        return k

    def join(self, a: Node | Key, b: Node | Key) -> bool:
        """Say that two values may be one; whether that is news."""
        left, right = (x if isinstance(x, tuple) else _key(x) for x in (a, b))
        for one, onto in ((left, right), (right, left)):
            if one[0].op is constant:  # one node may stand for zeros of several kinds
                if not _is_zeros(one[0]):
                    self.other[onto] = "a constant that is not zeros"
                return False
        left, right = self.find(left), self.find(right)
        self.parent[left] = right
        return left != right

    def no_store(self, n: Node, what: str) -> None:
        if n.type is STORE:
            self.other[_key(n)] = what

    def walk(self, f: Function, known: Called) -> None:
        for n in f.order:
            if n.op is put or n.op is get:
                self._use(f, n, bool(known))
            elif n.op in _JOINS:
                for a, b in _joined(n, known):
                    if b.type is STORE:
                        self.join(a, b)
            elif n.op is result:
                if n.inputs[0].op not in _JOINS:
                    self.no_store(n, f"a result of {n.inputs[0].op.name}")
            elif n.op is not constant:
                self.no_store(n, f"a result of {n.op.name}")
            inner = _inside(n, known)
            for r in n.regions:
                self.walk(r, inner)

    def _use(self, f: Function, n: Node, deep: bool) -> None:
        store, own = n.inputs[0], (n, -1)  # what it puts to or reads of, a constant too
        self.join(own, store)
        if n.op is put:
            self.join(n, own)
            entry: tuple[Any, ...] = tuple([i.type for i in n.inputs[1:]])
            parts = dict(enumerate(n.inputs[1:]))
        else:
            entry = dict(n.attrs).get("entry") or (n.type,)
            parts = {dict(n.attrs).get("part", 0): n}
            if n.type is STORE:
                self.join(n, n.inputs[2])
        stores = {i: x for i, x in parts.items() if x.type is STORE}
        self.uses.append(_Use(f, n, own, entry, stores, deep))

    def _join_parts(self) -> None:
        """Stores that are put into stores come out of them again."""
        changed = True
        while changed:
            changed, known = False, dict[tuple[Key, int], Node]()
            for use in self.uses:
                for i, x in use.stores.items():
                    at = self.find(use.key), i
                    changed |= self.join(x, known.setdefault(at, x))

    def faults(self) -> Iterator[Fault]:
        self._join_parts()
        other = {self.find(k): what for k, what in self.other.items()}
        first: dict[Key, _Use] = {}
        added: dict[Key, bool] = {}
        for use in self.uses:
            at = self.find(use.key)
            hint = "a store is zeros, or what put gives"
            if at in other:
                yield Fault(use.function, use.node, "a store", other[at], hint)
            entry = first.setdefault(at, use).entry
            if len(entry) != len(use.entry) or not all(map(same_type, entry, use.entry)):
                expected = f"entries of {said_types(entry)}, as elsewhere in this store"
                yield Fault(use.function, use.node, expected, said_types(use.entry))
            if use.node.op is put and added.setdefault(at, use.deep) is not use.deep:
                expected = "a store that is added to inside a recursion, or outside, and not both"
                yield Fault(use.function, use.node, expected, "both")


def _key(n: Node) -> Key:
    return (n.inputs[0], n.attr("position")) if n.op is result else (n, 0)


def _is_zeros(n: Node) -> bool:
    value = n.attr("value")
    return isinstance(value, Buffer) and not np.any(to_numpy(value))


def _outs(n: Node, results: Sequence[Node]) -> Iterator[tuple[Node | Key, Node]]:
    return (((n, i), r) for i, r in enumerate(results))


_JOINS = {cond, while_, while_grad, recursion, call}


def _joined(n: Node, known: Called) -> Iterator[tuple[Node | Key, Node]]:
    """The values in and around a node that may be the same."""
    xs = n.inputs
    if n.op is cond:
        for r in n.regions:
            yield from zip(r.params, xs[1:], strict=True)
            yield from _outs(n, r.results)
    elif n.op is while_:
        test, body = n.regions
        yield from zip(test.params, xs, strict=True)
        yield from zip(body.params, xs, strict=True)
        yield from zip(xs, body.results, strict=False)
        yield from _outs(n, body.results)
    elif n.op is while_grad:
        yield from _of_reverse(n)
    elif n.op is recursion:
        captured = n.attr("captured")
        yield from zip(n.regions[0].params, xs, strict=True)
        yield from _outs(n, n.regions[0].results)
        for r in n.regions:
            fixed = len(r.params) - captured
            yield from zip(r.params[fixed:], xs[len(xs) - captured :], strict=True)
    elif n.op is call and n.attr("name") in known:
        f, captured = known[n.attr("name")]
        yield from zip(f.params[: len(f.params) - captured], xs, strict=True)
        yield from _outs(n, f.results)


def _of_reverse(n: Node) -> Iterator[tuple[Node | Key, Node]]:
    test, body, step, last, none = n.regions
    state, slopes, inner = (n.attr(k) for k in ("state", "slopes", "inner"))
    sums = state + slopes
    rest = sums + len(last.results)
    begin, gs, totals = n.inputs[:state], n.inputs[state:sums], n.inputs[sums:rest]
    fixed = n.inputs[rest:-1]
    parts = [totals[i] for i in inner]
    for f, given in (
        (test, (*begin, *fixed)),
        (body, (*begin, *fixed)),
        (step, (*begin, *gs, *parts, *fixed)),
        (last, (*begin, *gs, *totals, *fixed)),
        (none, (*gs, *totals)),
    ):
        yield from zip(f.params, given, strict=True)
    yield from zip(begin, body.results, strict=True)
    yield from zip((*gs, *parts), step.results, strict=True)
    yield from _outs(n, last.results)
    yield from _outs(n, none.results)
