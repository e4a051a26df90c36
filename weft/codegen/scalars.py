"""Kernels of loops on numbers: see `weft.schedule.scalars`."""

from __future__ import annotations

from typing import Any

from weft.codegen.casts import cast
from weft.codegen.extern import OUT_OF_RANGE, Kernel
from weft.codegen.registers import register
from weft.codegen.text import Value, i64, module
from weft.codegen.verbs import emit
from weft.ops.scalar import Scalar
from weft.schedule.scalars_spec import Block, If, Let, Read, ScalarSpec
from weft.types.dtype import bool_, int64

#: steps of loops between two looks whether to stop
_POLL = 1 << 12


def lower(spec: ScalarSpec) -> str:
    return module(_Scalars(spec).write())


class _Scalars:
    """One kernel being written."""

    def __init__(self, spec: ScalarSpec) -> None:
        self.spec = spec
        inputs = spec.count + len(spec.sources)
        self.t = t = Kernel(operands=inputs + len(spec.block.gives))
        self.inputs = [t.operand(i) for i in range(inputs)]
        self.outs = [t.operand(inputs + i) for i in range(len(spec.block.gives))]
        self.params = t.params(spec.params)
        self.values: dict[int, Value] = {}
        self.steps = t.variable(i64(0))

    def write(self) -> Kernel:
        t, spec = self.t, self.spec
        for i in range(spec.count):
            self.values[i] = t.read(spec.dtypes[i], self.inputs[i], 0)
        for out, r in zip(self.outs, self._block(spec.block), strict=True):
            t.write(spec.dtypes[r], self.values[r], out, 0)
        t.ret()
        return t

    def _block(self, block: Block) -> tuple[int, ...]:
        for line in block.lines:
            if isinstance(line, Let):
                for i, v in enumerate(emit(self.t, line.roots, 1, self._leaf)):
                    self.values[line.first + i] = v
            elif isinstance(line, Read):
                self._read(line)
            elif isinstance(line, If):
                self._if(line)
            else:
                self._while(line)
        return block.gives

    def _leaf(self, n: Scalar, _: list[Value]) -> Value:
        if n.verb == "param":
            return self.params[n.value]
        return self.values[n.value]

    def _read(self, line: Read) -> None:
        t, dtypes = self.t, self.spec.dtypes
        given = cast(t, self.values[line.where], dtypes[line.where], int64)
        front, size = given, self.params[line.size]
        if dtypes[line.where].kind == "i":
            below = t.compare("icmp slt", given, i64(0))
            front = t.select(below, t.op("add", given, size), given)
        t.fail(t.compare("icmp uge", front, size), OUT_OF_RANGE, given)
        source = self.inputs[self.spec.count + line.source]
        self.values[line.to] = t.read(dtypes[line.to], source, front)

    def _variables(self, first: int, gives: tuple[int, ...]) -> list[Any]:
        """Places for values that paths of control give, bools as bytes."""
        t, out = self.t, []
        for i, _ in enumerate(gives):
            dtype = self.spec.dtypes[first + i]
            out.append(t.variable(Value(register(dtype, 1), _ZERO[dtype.kind])))
        return out

    def _if(self, line: If) -> None:
        t = self.t
        places = self._variables(line.first, line.yes.gives)
        then, other, out = (t.fresh(p) for p in ("then", "else", "out"))
        t.branch(self.values[line.condition], then, other)
        for label, block in ((then, line.yes), (other, line.no)):
            t.label(label)
            for place, r in zip(places, self._block(block), strict=True):
                place.set(self.values[r])
            t.emit(f"br label %{out}")
        t.label(out)
        for i, place in enumerate(places):
            self.values[line.first + i] = place.get()

    def _while(self, line: Any) -> None:
        t = self.t
        places = self._variables(line.first, line.inits)
        for place, r in zip(places, line.inits, strict=True):
            place.set(self.values[r])
        with t.endless() as leave:
            for i, place in enumerate(places):
                self.values[line.first + i] = place.get()
            (go,) = self._block(line.test)
            leave(t.op("xor", self.values[go], Value(register(bool_, 1), "true")))
            done = t.add(self.steps.get(), 1)
            self.steps.set(done)
            with t.seldom(t.compare("icmp uge", done, i64(_POLL))):
                self.steps.set(i64(0))
                t.poll()
            after = [self.values[r] for r in self._block(line.body)]
            for place, v in zip(places, after, strict=True):
                place.set(v)


_ZERO = {"f": "0.0", "i": "0", "u": "0", "b": "false"}
