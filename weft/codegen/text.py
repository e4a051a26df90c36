"""Writing LLVM IR as text: values, structured loops and branches.

Kernels are explicit vector code, so LLVM's cheap passes suffice; text is faster to make than an
object graph and reads as what it is. Mutable variables are stack slots, which SROA turns into
registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Value(NamedTuple):
    """A typed LLVM value: `Value("i64", "%3")`, or a literal such as `Value("i64", "8")`."""

    type: str
    name: str

    def __str__(self) -> str:
        return " ".join(self)


def i64(n: int | Value) -> Value:
    return n if isinstance(n, Value) else Value("i64", str(n))


def vector(element: str, lanes: int) -> str:
    return element if lanes == 1 else f"<{lanes} x {element}>"


def lanes_of(type_: str) -> int:
    return int(type_[1:].split(" ", 1)[0]) if type_[0] == "<" else 1


def element_of(type_: str) -> str:
    return type_[1:-1].split(" x ", 1)[1] if type_[0] == "<" else type_


#: says of a function, as the first line in it, that it takes none of a kernel's time: a module of
#: such is compiled as fast as can be
SELDOM = "; seldom"


class Text:
    """One LLVM function being written. `declares` collects the intrinsics it calls."""

    def __init__(self, signature: str, runs_seldom: bool = False) -> None:
        self.signature, self.runs_seldom = signature, runs_seldom
        self.lines: list[str] = ["entry:"]
        self.allocas: list[str] = []
        self.declares: dict[str, str] = {}
        self._next = 0

    def finish(self) -> str:
        said = [SELDOM] if self.runs_seldom else []
        body = [*said, self.lines[0], *self.allocas, *self.lines[1:]]
        return f"define {self.signature} {{\n" + "\n".join(body) + "\n}\n"

    def emit(self, line: str) -> None:
        self.lines.append("  " + line)

    def fresh(self, prefix: str = "v") -> str:
        self._next += 1
        return f"{prefix}{self._next}"

    def let(self, type_: str, expression: str) -> Value:
        self._next += 1  # most lines of a kernel come by here
        name = f"%v{self._next}"
        self.lines.append(f"  {name} = {expression}")
        return Value(type_, name)

    # arithmetic

    def op(self, name: str, a: Value, *rest: Value) -> Value:
        """An instruction whose operands and result share one type: `op("fadd", a, b)`."""
        return self.let(a.type, f"{name} {a}" + "".join(f", {r.name}" for r in rest))

    def add(self, a: Value, b: int | Value) -> Value:
        return self.op("add", a, i64(b))

    def sub(self, a: Value, b: int | Value) -> Value:
        return self.op("sub", a, i64(b))

    def mul(self, a: Value, b: int | Value) -> Value:
        return self.op("mul", a, i64(b))

    def compare(self, name: str, a: Value, b: Value) -> Value:
        """`compare("icmp slt", a, b)`."""
        return self.let(vector("i1", lanes_of(a.type)), f"{name} {a}, {b.name}")

    def lt(self, a: Value, b: int | Value) -> Value:
        return self.compare("icmp slt", a, i64(b))

    def select(self, cond: Value, a: Value, b: Value) -> Value:
        return self.let(a.type, f"select {cond}, {a}, {b}")

    def min(self, a: Value, b: int | Value) -> Value:
        return self.select(self.lt(a, b), a, i64(b))

    def convert(self, name: str, a: Value, to: str) -> Value:
        """`convert("zext", a, "i64")`."""
        return self.let(to, f"{name} {a} to {to}")

    def call(self, result: str, function: str, *args: Value) -> Value:
        """Call an intrinsic or a C function, declaring it once. `result` may be "void"."""
        self.declares.setdefault(
            function, f"declare {result} @{function}({', '.join(a.type for a in args)})"
        )
        said = f"call {result} @{function}({', '.join(map(str, args))})"
        if result == "void":
            self.emit(said)
            return Value("void", "")
        return self.let(result, said)

    def splat(self, x: Value, lanes: int) -> Value:
        if lanes == 1:
            return x
        v = vector(x.type, lanes)
        one = self.let(v, f"insertelement {v} poison, {x}, i64 0")
        return self.let(v, f"shufflevector {one}, {v} poison, <{lanes} x i32> zeroinitializer")

    def iota(self, lanes: int) -> Value:
        """<0, 1, 2, …> as i64."""
        if lanes == 1:
            return Value("i64", "0")
        return Value(f"<{lanes} x i64>", "<" + ", ".join(f"i64 {n}" for n in range(lanes)) + ">")

    # memory

    def at(self, pointer: Value, element: str, offset: int | Value) -> Value:
        """The address `offset` elements behind `pointer`."""
        return self.let("ptr", f"getelementptr {element}, {pointer}, {i64(offset)}")

    def load(self, type_: str, pointer: Value, align: int) -> Value:
        return self.let(type_, f"load {type_}, {pointer}, align {align}")

    def store(self, value: Value, pointer: Value, align: int) -> None:
        self.emit(f"store {value}, {pointer}, align {align}")

    def word(self, frame: Value, n: int | Value) -> Value:
        """Word `n` of a frame, as i64."""
        return self.load("i64", self.at(frame, "i64", n), 8)

    def pointer(self, frame: Value, n: int | Value) -> Value:
        """Word `n` of a frame, as a pointer."""
        return self.load("ptr", self.at(frame, "i64", n), 8)

    def scratch(self, type_: str, count: int = 1, align: int = 64) -> Value:
        """Stack memory of the whole function."""
        name = "%" + self.fresh("s")
        self.allocas.append(f"  {name} = alloca {type_}, i64 {count}, align {align}")
        return Value("ptr", name)

    def variable(self, initial: Value) -> Variable:
        v = Variable(self, initial.type)
        v.set(initial)
        return v

    # control

    @contextmanager
    def loop(self, low: int | Value, high: int | Value, step: int | Value = 1) -> Iterator[Value]:
        """for i in range(low, high, step), step > 0."""
        i = self.variable(i64(low))
        body, out = (self.fresh(p) for p in ("body", "out"))
        self.branch(self.lt(i64(low), high), body, out)
        self.label(body)
        now = i.get()
        yield now
        after = self.add(now, step)
        i.set(after)
        self.branch(self.lt(after, high), body, out)
        self.label(out)

    @contextmanager
    def when(self, cond: Value) -> Iterator[None]:
        """if cond: …"""
        then, out = self.fresh("then"), self.fresh("out")
        self.branch(cond, then, out)
        self.label(then)
        yield
        self.emit(f"br label %{out}")
        self.label(out)

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def branch(self, cond: Value, yes: str, no: str) -> None:
        self.emit(f"br {cond}, label %{yes}, label %{no}")

    def ret(self, value: int | Value = 0) -> None:
        self.emit(f"ret {i64(value)}")


class Variable:
    """A mutable value."""

    def __init__(self, t: Text, type_: str) -> None:
        self.t, self.type = t, type_
        self.slot = t.scratch(type_)

    def get(self) -> Value:
        return self.t.load(self.type, self.slot, 64)

    def set(self, value: Value) -> None:
        self.t.store(value, self.slot, 64)


def module(*functions: Text) -> str:
    """The text of a module: declarations once, then the functions."""
    declares = {k: v for f in functions for k, v in f.declares.items()}
    return "\n".join([*declares.values(), *(f.finish() for f in functions)])
