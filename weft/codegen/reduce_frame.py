"""What the forms of a reduction share: the params, the task at hand, walking positions, reading
inputs, writing results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from weft.codegen.reduce_monoid import Monoid, State, group_of, write
from weft.codegen.registers import memory
from weft.codegen.text import Text, Value, i64, lanes_of
from weft.codegen.verbs import Leaf, emit
from weft.ops.scalar import Scalar, walk
from weft.schedule.reduce_spec import OPERANDS, ReduceSpec
from weft.types.dtype import DType


class Span(NamedTuple):
    """`length` positions that follow each other along the innermost axis."""

    first: Value
    length: Value
    offsets: list[Value]  # of the first position, per operand
    steps: list[Value]  # from one position to the next


class Axis(NamedTuple):
    size: Value
    strides: list[Value]


class Frame:
    """The function being written, its params by name and its operands' pointers."""

    def __init__(self, spec: ReduceSpec) -> None:
        self.spec = spec
        own = "ptr %frame, ptr %params, ptr %out, i64 %lo, i64 %hi"
        self.t = t = Text(f"internal i64 @phase({own}) noinline nounwind")
        frame, params = Value("ptr", "%frame"), Value("ptr", "%params")
        self.words = {name: t.word(params, i) for i, name in enumerate(spec.words())}
        self.monoid = Monoid(t, spec.monoid, spec.acc)
        rules = [] if spec.rule is None else [spec.rule]
        used = [n.dtype.compute for n in walk(rules) if n.verb != "param"]
        wide = spec.states if spec.form == "columns" else (spec.acc,)
        self.group = group_of(*wide, *used)  # lanes of a vector
        n = len(spec.inputs)
        held = t.pointer(frame, 2)
        if spec.resumed:
            self.inputs = [t.at(held, "i8", self.words[f"from{i}"]) for i in range(n)]
        else:
            self.inputs = [t.pointer(frame, OPERANDS + i) for i in range(n)]
        if spec.epilogue is None:
            self.outputs = [t.at(held, "i8", self.words[f"to{i}"]) for i in range(len(spec.states))]
        else:
            self.outputs = [Value("ptr", "%out")]
        w = self.words
        self.kept = [
            Axis(w[f"k{a}"], [w[f"k{a}.{i}"] for i in (*range(n), "out")]) for a in range(spec.kept)
        ]
        self.reduced = [
            Axis(w[f"r{a}"], [w[f"r{a}.{i}"] for i in range(n)]) for a in range(spec.reduced)
        ]

    def entry(self) -> Text:
        """The kernel: the phase on its params and the last operand."""
        t = Text("i64 @kernel(ptr %frame, i64 %lo, i64 %hi, i64 %worker)", runs_seldom=True)
        frame, params = Value("ptr", "%frame"), OPERANDS + self.spec.operands
        own = (t.at(frame, "i64", params + self.spec.first), t.pointer(frame, params - 1))
        ends = (Value("i64", "%lo"), Value("i64", "%hi"))
        said = ", ".join(map(str, (frame, *own, *ends)))
        t.ret(t.let("i64", f"call i64 @phase({said})"))
        return t

    @contextmanager
    def task(self) -> Iterator[tuple[Value, Value, Value, Value, Value, Value]]:
        """For each task: positions low..high, reduced elements begin..end, offset of its results,
        column block.
        """
        t, w = self.t, self.words
        with t.loop(Value("i64", "%lo"), Value("i64", "%hi")) as task:
            column = i64(0)
            if self.spec.form == "columns":
                column, task = (
                    t.op("urem", task, w["column_blocks"]),
                    t.op("udiv", task, w["column_blocks"]),
                )
            split, block = t.op("udiv", task, w["blocks"]), t.op("urem", task, w["blocks"])
            low = t.mul(block, w["block"])
            begin = t.mul(split, w["share"])
            high = t.min(t.add(low, w["block"]), w["positions"])
            yield (
                low,
                high,
                begin,
                t.min(t.add(begin, w["share"]), w["count"]),
                t.mul(split, w["hop"]),
                column,
            )

    def element(self, i: int, offset: Value) -> Value:
        """Address of an element of input `i`."""
        return self.t.at(self.inputs[i], memory(self.spec.inputs[i]), offset)

    def value(self, loads: Sequence[Value], index: Value | None) -> State:
        """What is reduced: the rule of the inputs' elements, or accumulators read back."""
        if self.spec.rule is None:
            return list(loads)
        (out,) = emit(self.t, [self.spec.rule], lanes_of(loads[0].type), self.leaf(loads))
        return [out] if index is None else [out, index]

    def leaf(self, loads: Sequence[Value]) -> Leaf:
        def leaf(n: Scalar, _: list[Value]) -> Value:
            if n.verb == "param":
                return self.t.splat(self.words[f"n{n.value}"], lanes_of(loads[0].type))
            return loads[n.value]

        return leaf

    def absorb(self, state: State, new: State) -> State:
        """`state` and one more value (or accumulator), later in order."""
        if self.spec.rule is None:
            return self.monoid.join(state, new)
        return self.monoid.take(state, new[0], new[1] if len(new) > 1 else None)

    def emit_result(self, state: State, offset: Value, mask: Value | None = None) -> None:
        """Write accumulators, or what the epilogue makes of them, to the results at `offset`."""
        for pointer, d, value in zip(
            self.outputs, self.result_dtypes, self.results(state), strict=True
        ):
            write(self.t, value, d, self.t.at(pointer, memory(d), offset), mask)

    @property
    def result_dtypes(self) -> tuple[DType, ...]:
        return self.spec.states if self.spec.epilogue is None else (self.spec.epilogue.dtype,)

    def results(self, state: State) -> State:
        if self.spec.epilogue is None:
            return state
        done = self.monoid.finish(state)
        return emit(self.t, [self.spec.epilogue], lanes_of(done.type), self.leaf([done]))


@contextmanager
def spans(t: Text, low: Value, high: Value, axes: Sequence[Axis], operands: int) -> Iterator[Span]:
    """Positions low..high-1 of a nest, cut where the innermost axis starts anew."""
    if not axes:
        zero = [i64(0)] * operands
        with t.when(t.lt(low, high)):
            yield Span(low, t.sub(high, low), zero, zero)
        return
    steps = axes[-1].strides
    if len(axes) == 1:
        with t.when(t.lt(low, high)):
            yield Span(low, t.sub(high, low), [t.mul(low, s) for s in steps], steps)
        return
    now = t.variable(low)
    head, body, out = (t.fresh(p) for p in ("head", "body", "out"))
    t.emit(f"br label %{head}")
    t.label(head)
    first = now.get()
    t.branch(t.lt(first, high), body, out)
    t.label(body)
    at, offsets = unravel(t, first, axes, operands)
    length = t.min(t.sub(axes[-1].size, at), t.sub(high, first))
    yield Span(first, length, offsets, steps)
    now.set(t.add(first, length))
    t.emit(f"br label %{head}")
    t.label(out)


def unravel(
    t: Text, position: Value, axes: Sequence[Axis], operands: int
) -> tuple[Value, list[Value]]:
    """A position's index along the innermost axis, and its offset in each operand."""
    offsets, rest, innermost = [i64(0)] * operands, position, i64(0)
    for number in range(len(axes) - 1, -1, -1):
        axis = axes[number]
        at = t.op("urem", rest, axis.size) if number else rest
        rest = t.op("udiv", rest, axis.size) if number else rest
        innermost = at if number == len(axes) - 1 else innermost
        offsets = [t.add(o, t.mul(at, s)) for o, s in zip(offsets, axis.strides, strict=True)]
    return innermost, offsets
