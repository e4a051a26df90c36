"""How often each part of an index function has to be computed: once, once a row, once a segment of
it, or at every index.

Let j be the last index. A comparison of values linear in j, with coefficients known now that differ
by 1 at most, changes at one place in the row; such places are the breaks between segments, and the
comparison is constant within one. A value linear in j within a segment is base + step * j with both
of them constant there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from weft.ops.scalar import Scalar, const, select, text, walk
from weft.types.dtype import bool_, int64

ONCE, ROW, SEGMENT, INNER = range(4)

_COMPARE = ("lt", "le", "eq", "ne")


class Linear(NamedTuple):
    """base + step * j; `known` is the step where it is known now."""

    base: Scalar
    step: Scalar
    known: int | None


class Stream(NamedTuple):
    """A load whose place is linear in j: slots of its place at j = 0, its step and its guard; and
    whether the op itself may skip elements.
    """

    node: Scalar
    start: int
    step: int
    guard: int | None
    skips: bool


def _number(n: int) -> Scalar:
    return const(n, int64)


class Levels:
    """The expression taken apart. `root` is what is left for every index: its leaves are slots and
    streams.
    """

    def __init__(self, root: Scalar, axis: int) -> None:
        self.axis = axis
        self.breaks: list[Scalar] = []
        self.streams: list[Stream] = []
        self.once: list[tuple[int, Scalar]] = []
        self.per_row: list[tuple[int, Scalar]] = []
        self.per_segment: list[tuple[int, Scalar]] = []
        self._level: dict[int, int] = {}
        self._linear: dict[int, Linear | None] = {}
        self._alive: list[Scalar] = []  # ids in the tables above stay those of living nodes
        self._slots: dict[int, Scalar] = {}
        self._inside: tuple[dict[int, Scalar], ...] = ({}, {}, {})  # per level: nodes as said there
        self._next = 0
        self.linear = all(self._fits(n) for n in walk([root]))
        if not self.linear:  # one element at a time: no segments
            self.breaks.clear()
            self._level.clear()
        self.root = self._cut(root)
        self.breaks = [self._cut(b) for b in {text(b): b for b in self.breaks}.values()]

    def _fits(self, n: Scalar) -> bool:
        """Whether a node can be had in vectors: linear places of loads, conditions constant in a
        segment.
        """
        self._note(n)
        if n.verb == "load" and self.level(n) == INNER:
            return all(
                self.as_linear(a) is not None if a.dtype is int64 else self.level(a) < INNER
                for a in n.args
            )
        # division of wide integers is done one by one anyway
        return not (n.verb in ("floordiv", "mod") and self.level(n) == INNER)

    def _note(self, n: Scalar) -> None:
        if (
            n.verb in _COMPARE
            and n.args[0].dtype is int64
            and max(map(self.level, n.args)) == INNER
        ):
            a, b = map(self.as_linear, n.args)
            if a is None or b is None or a.known is None or b.known is None:
                return
            slope = a.known - b.known
            if abs(slope) > 1 or max(self.level(a.base), self.level(b.base)) > ROW:
                return
            self._level[id(n)] = SEGMENT
            self._alive.append(n)
            if slope:
                d = a.base - b.base
                zero = -d if slope == 1 else d  # where a == b
                strict = (n.verb == "lt") == (slope == 1)
                places = (
                    [zero, zero + 1] if n.verb in ("eq", "ne") else [zero if strict else zero + 1]
                )
                self.breaks += places
                self._alive += places

    def level(self, n: Scalar) -> int:
        found = self._level.get(id(n))
        if found is None:
            if n.verb == "index":
                found = INNER if n.value == self.axis else ROW
            else:
                least = ROW if n.verb == "load" else ONCE
                found = max(map(self.level, n.args), default=least)
                found = max(found, least)
            self._level[id(n)] = found
            self._alive.append(n)
        return found

    def as_linear(self, n: Scalar) -> Linear | None:
        if id(n) not in self._linear:
            made = self._linear_of(n)
            self._linear[id(n)] = made
            self._alive += [n, *(made[:2] if made else ())]
        return self._linear[id(n)]

    def _linear_of(self, n: Scalar) -> Linear | None:
        if self.level(n) < INNER:
            return Linear(n, _number(0), 0)
        if n.verb == "index":
            return Linear(_number(0), _number(1), 1)
        if n.dtype is not int64 or n.verb not in ("add", "sub", "neg", "mul", "select"):
            return None
        if n.verb == "select":
            return self._choice(n)
        parts = [self.as_linear(a) for a in n.args]
        if any(p is None for p in parts):
            return None
        a = parts[0]
        assert a is not None
        if n.verb == "neg":
            return Linear(-a.base, -a.step, None if a.known is None else -a.known)
        b = parts[1]
        assert b is not None
        if n.verb == "mul":
            if b.known != 0:
                a, b = b, a
            if b.known != 0:
                return None
            factor = b.base.value if b.base.verb == "const" else None
            known = None if a.known is None or factor is None else a.known * factor
            return Linear(
                a.base * b.base, a.step * b.base if known is None else _number(known), known
            )
        sign = 1 if n.verb == "add" else -1
        known = None if a.known is None or b.known is None else a.known + sign * b.known
        base = a.base + b.base if sign == 1 else a.base - b.base
        if known is not None:
            return Linear(base, _number(known), known)
        return Linear(base, a.step + b.step if sign == 1 else a.step - b.step, None)

    def _choice(self, n: Scalar) -> Linear | None:
        cond, a, b = n.args[0], self.as_linear(n.args[1]), self.as_linear(n.args[2])
        if a is None or b is None or self.level(cond) == INNER:
            return None
        base = select(cond, a.base, b.base)
        if a.known is not None and a.known == b.known:
            return Linear(base, a.step, a.known)
        return Linear(base, select(cond, a.step, b.step), None)

    # taking apart

    def _slot(self, n: Scalar) -> int:
        """The number of the slot that holds a value of an outer level."""
        for number, node in self._slots.items():
            if node is n:
                return number
        self._next += 1
        number = self._next
        self._slots[number] = n
        level = self.level(n)

        def outer(m: Scalar) -> Scalar | None:
            return self._leaf_of(m) if self.level(m) < level else None

        inside = rewrite(n, outer, self._inside[level])
        (self.once, self.per_row, self.per_segment)[level].append((number, inside))
        return number

    def _leaf_of(self, n: Scalar) -> Scalar | None:
        """A leaf that stands for a value computed further out; literals and parameters stay as they
        are.
        """
        if n.verb == "const" or (n.verb == "param" and isinstance(n.value, int)):
            return None
        return Scalar("input", (), n.dtype, ("slot", self._slot(n)))

    def _cut(self, root: Scalar) -> Scalar:
        def replace(n: Scalar) -> Scalar | None:
            if self.level(n) < INNER:
                return self._leaf_of(n)
            if n.verb == "load" and self.linear:
                return self._streamed(n)
            return None

        return rewrite(root, replace)

    def _streamed(self, n: Scalar) -> Scalar:
        guard = n.args[-1] if n.args and n.args[-1].dtype is bool_ else None
        start, step, skips = _number(0), _number(0), False
        for axis, a in enumerate(n.args[:-1] if guard is not None else n.args):
            stride = Scalar("param", (), int64, (n.value, axis))
            part = self.as_linear(a)
            assert part is not None
            start, step = start + part.base * stride, step + part.step * stride
            skips = skips or part.known is None
        self._alive += [start, step]
        held = self._slot(start), self._slot(step)
        same = next((k for k, s in enumerate(self.streams) if s.node is n), None)
        if same is None:
            held_guard = None if guard is None else self._slot(guard)
            self.streams.append(Stream(n, *held, held_guard, skips))
            same = len(self.streams) - 1
        return Scalar("input", (), n.dtype, ("stream", same))


def rewrite(
    root: Scalar, replace: Callable[[Scalar], Scalar | None], known: dict[int, Scalar] | None = None
) -> Scalar:
    """`root` with every outermost node for which `replace` gives another one replaced. What is
    `known` of nodes that stay alive is used again and added to.
    """
    done = {} if known is None else known

    def visit(n: Scalar) -> Scalar:
        found = done.get(id(n))
        if found is None:
            found = replace(n)
            if found is None:
                args = tuple(map(visit, n.args))
                same = all(a is b for a, b in zip(args, n.args, strict=True))
                found = n if same else Scalar(n.verb, args, n.dtype, n.value)
            done[id(n)] = found
        return found

    return visit(root)
