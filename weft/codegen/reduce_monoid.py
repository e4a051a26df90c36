"""Monoids: identities, how two accumulators become one, and the lanes that a last axis is dealt to.

An accumulator ("state") is a list of values: one, or for arg-reductions a value and its index.
Shared by reductions and fused rows, so that both add up in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from weft.codegen.registers import literal, memory, register
from weft.codegen.text import Text, Value, i64, lanes_of, vector
from weft.codegen.verbs import emit
from weft.ops.monoids import MONOIDS, PLACES
from weft.ops.scalar import Scalar, input_, select
from weft.schedule.reduce_spec import LANES, SHORT, ReduceSpec
from weft.schedule.rows import RowSpec
from weft.types.dtype import DType, bool_, int64

State = list[Value]


class Monoid:
    """How accumulators of dtype `acc` start and join."""

    def __init__(self, t: Text, name: str, acc: DType) -> None:
        self.t, self.acc = t, acc
        self.arg = name in PLACES
        self.name = PLACES.get(name, name)
        self.rule = MONOIDS[self.name]

    @property
    def states(self) -> tuple[DType, ...]:
        return (self.acc, int64) if self.arg else (self.acc,)

    def neutral(self, lanes: int) -> Value:
        """The value that changes no accumulator."""
        return literal(self.rule.neutral(self.acc), self.acc, lanes)

    def start(self, lanes: int) -> State:
        """An accumulator of nothing. If all values equal the worst one, index 0 is right."""
        return (
            [self.neutral(lanes), literal(0, int64, lanes)] if self.arg else [self.neutral(lanes)]
        )

    def join(self, a: State, b: State) -> State:
        """Both, `a` before `b`. Of equal values the lower index wins; NaN is the extreme."""
        if not self.arg:
            return [self._emit(self.rule.join(*self._pair()), a[0], b[0])]
        x, y = self._pair()
        same = x.eq(y) | ((x.ne(x)) & (y.ne(y))) if self.acc.is_float else x.eq(y)
        tied = self._emit(same, a[0], b[0])
        wins = self._emit(self._beats(x, y), a[0], b[0])
        wins = self.t.op("or", wins, self.t.op("and", tied, self.t.compare("icmp slt", b[1], a[1])))
        return [self.t.select(wins, q, p) for p, q in zip(a, b, strict=True)]

    def take(self, a: State, value: Value, index: Value | None) -> State:
        """`a` and one more value, whose index is above all of `a`'s. Index vectors may have any
        integer type.
        """
        if not self.arg or index is None:
            return self.join(a, [value])
        wins = self._emit(self._beats(*self._pair()), a[0], value)
        return [self.t.select(wins, value, a[0]), self.t.select(wins, index, a[1])]

    def finish(self, state: State) -> Value:
        """The result of an accumulator. NaN has one form, since which of two NaNs an addition keeps
        is the machine's choice.
        """
        if self.arg:
            return state[1]
        if not self.acc.is_float or not self.rule.computes:
            return state[0]
        x, _ = self._pair()
        return self._emit(select(x.ne(x), x.like(math.nan), x), state[0], state[0])

    def _beats(self, x: Scalar, y: Scalar) -> Scalar:
        better = x < y if self.name == "max" else y < x
        return better | (y.ne(y) & x.eq(x)) if self.acc.is_float else better

    def _pair(self) -> tuple[Scalar, Scalar]:
        return input_(0, self.acc), input_(1, self.acc)

    def _emit(self, rule: Scalar, *values: Value) -> Value:
        (out,) = emit(self.t, [rule], lanes_of(values[0].type), lambda n, _: values[n.value])
        return out


class Lanes:
    """LANES accumulators in vectors of `group`. Element r of a chunk goes to lane r mod LANES."""

    def __init__(self, t: Text, monoid: Monoid, group: int) -> None:
        self.t, self.monoid, self.group = t, monoid, group
        self.starts = [monoid.neutral(group)]
        if monoid.arg:  # the step number stands for the index: CHUNK // LANES steps fit any width
            self.starts.append(Value(vector(f"i{monoid.acc.bits}", group), "zeroinitializer"))
        self.slots = [[t.variable(s) for s in self.starts] for _ in range(LANES // group)]

    def clear(self, groups: int) -> None:
        for slot in self.slots[:groups]:
            for variable, start in zip(slot, self.starts, strict=True):
                variable.set(start)

    def take(
        self, number: int, value: Value, step: Value | None = None, mask: Value | None = None
    ) -> None:
        """One more value for each lane of group `number`; where `mask` is false, none."""
        if mask is not None:
            value = self.t.select(mask, value, self.starts[0])
        index = None
        if self.monoid.arg:
            index = self.t.splat(self.step(step), self.group)  # type: ignore[arg-type]
        state = [variable.get() for variable in self.slots[number]]
        for variable, new in zip(
            self.slots[number], self.monoid.take(state, value, index), strict=True
        ):
            variable.set(new)

    def step(self, step: Value) -> Value:
        bits = self.monoid.acc.bits
        return step if bits == 64 else self.t.convert("trunc", step, f"i{bits}")

    def finish(self, groups: int, start: Value) -> State:
        """The lanes combined by halves: l with l + 32, then with l + 16, … Lanes of other groups
        hold nothing yet.
        """
        t = self.t
        states = [self._indexed(n, start) for n in range(groups)]
        while len(states) > 1:
            half = len(states) // 2
            states = [
                self.monoid.join(a, b) for a, b in zip(states[:half], states[half:], strict=True)
            ]
        (state,) = states
        lanes = self.group
        while lanes > 1:
            lanes //= 2
            state = self.monoid.join(
                [part(t, v, 0, lanes) for v in state], [part(t, v, lanes, lanes) for v in state]
            )
        return state

    def _indexed(self, number: int, start: Value) -> State:
        t, state = self.t, [variable.get() for variable in self.slots[number]]
        if not self.monoid.arg:
            return state
        wide = register(int64, self.group)
        step = state[1] if self.monoid.acc.bits == 64 else t.convert("zext", state[1], wide)
        lane = t.op(
            "add", t.iota(self.group), t.splat(t.add(start, number * self.group), self.group)
        )
        return [state[0], t.op("add", t.op("mul", step, literal(LANES, int64, self.group)), lane)]


def part(t: Text, v: Value, first: int, lanes: int) -> Value:
    """Lanes first, first + 1, … of a vector."""
    if lanes == 1:
        return t.let(v.type[1:-1].split(" x ")[1], f"extractelement {v}, i64 {first}")
    picked = ", ".join(f"i32 {first + k}" for k in range(lanes))
    return t.let(
        vector(v.type[1:-1].split(" x ")[1], lanes),
        f"shufflevector {v}, {v}, <{lanes} x i32> <{picked}>",
    )


def group_of(*dtypes: DType) -> int:
    """Lanes of a 512-bit vector of the widest of these."""
    return LANES * 8 // max(d.bits for d in dtypes)


def read(t: Text, d: DType, pointer: Value, lanes: int, mask: Value | None = None) -> Value:
    """Load `lanes` elements, or those of them that `mask` names (the rest are 0)."""
    m = memory(d, lanes)
    if mask is None:
        v = t.load(m, pointer, d.itemsize)
    else:
        there = Value("ptr", f"align {d.itemsize} {pointer.name}")
        name = f"llvm.masked.load.v{lanes}{overload(d)}.p0"
        v = t.call(m, name, there, mask, Value(m, "zeroinitializer"))
    return (
        t.compare("icmp ne", v, Value(m, "0" if lanes == 1 else "zeroinitializer"))
        if d is bool_
        else v
    )


def write(t: Text, value: Value, d: DType, pointer: Value, mask: Value | None = None) -> None:
    """Store a register of `d`, or the lanes that `mask` names."""
    lanes = lanes_of(value.type)
    if d is bool_:
        value = t.convert("zext", value, memory(d, lanes))
    if mask is None:
        t.store(value, pointer, d.itemsize)
    else:
        there = Value("ptr", f"align {d.itemsize} {pointer.name}")
        t.call("void", f"llvm.masked.store.v{lanes}{overload(d)}.p0", value, there, mask)


def overload(d: DType) -> str:
    """How an intrinsic's name spells the memory type of a dtype."""
    return {"float": "f32", "double": "f64"}.get(memory(d), memory(d))


def upto(t: Text, count: Value, lanes: int, first: int = 0) -> Value:
    """The mask of lanes l with first + l < count (count below 2**31)."""
    short = t.convert("trunc", count, "i32")
    lane = Value(
        vector("i32", lanes), "<" + ", ".join(f"i32 {first + k}" for k in range(lanes)) + ">"
    )
    return t.compare("icmp slt", lane, t.splat(short, lanes))


def lengths(t: Text, spec: ReduceSpec | RowSpec, count: Value, group: int) -> Iterator[bool]:
    """The code of rows of `count` elements, in each of the ways there are to go along one: whether
    it is at most one vector.
    """
    if spec.narrow and (not spec.short or group >= SHORT):
        yield spec.short
        return
    one = t.compare("icmp sle", count, i64(group))
    for few in (True, False):
        with t.when(one if few else t.op("xor", one, Value("i1", "true"))):
            yield few
