"""What hand-written kernels are written with: the frame, ways out, strips of vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from weft.codegen.text import Text, Value, Variable, i64, lanes_of
from weft.codegen.verbs import cast, memory, register
from weft.types.dtype import DType, bool_, int64

#: what a kernel returns
OUT_OF_RANGE, INTERRUPTED = 1, 2

TRUE = Value("i1", "true")


class Kernel(Text):
    """A kernel function being written. `operands` is how many pointers the frame has before the
    parameters.
    """

    def __init__(self, operands: int, name: str = "kernel") -> None:
        super().__init__(f"i64 @{name}(ptr %frame, i64 %lo, i64 %hi, i64 %worker)")
        self.frame, self.worker = Value("ptr", "%frame"), Value("i64", "%worker")
        self.operands = operands

    def operand(self, n: int) -> Value:
        return self.pointer(self.frame, 3 + n)

    def scratch_memory(self) -> Value:
        return self.pointer(self.frame, 2)

    def params(self, count: int) -> list[Value]:
        return [self.word(self.frame, 3 + self.operands + n) for n in range(count)]

    @contextmanager
    def tasks(self) -> Iterator[Value]:
        """for task in range(lo, hi)"""
        with self.loop(Value("i64", "%lo"), Value("i64", "%hi")) as task:
            yield task

    def divmod(self, a: Value, b: Value) -> tuple[Value, Value]:
        """Quotient and remainder of numbers that are not negative."""
        q = self.op("udiv", a, b)
        return q, self.sub(a, self.mul(q, b))

    def unravel(self, row: Value, sizes: Sequence[Value]) -> list[Variable]:
        """The indices of a row, sizes[:-1] being those of the loops around it, as variables
        that `advance` counts up.
        """
        out, rest = [], row
        for n in reversed(sizes[1:-1]):
            rest, at = self.divmod(rest, n)
            out.append(self.variable(at))
        return [self.variable(rest), *reversed(out)] if len(sizes) > 1 else []

    def advance(self, place: Sequence[Variable], sizes: Sequence[Value]) -> None:
        """On to the next row."""
        carry = i64(1)
        for n, v in zip(reversed(sizes[:-1]), reversed(place), strict=True):
            after = self.add(v.get(), carry)
            around = self.compare("icmp eq", after, n)
            v.set(self.select(around, i64(0), after))
            carry = self.convert("zext", around, "i64")

    def turn(self, j: Variable, count: Value, start: Variable, by: Value) -> None:
        """j += 1; at `count` it begins again and `start` moves on `by`: two nested loops run as
        one.
        """
        after = self.add(j.get(), 1)
        around = self.compare("icmp eq", after, count)
        j.set(self.select(around, i64(0), after))
        start.set(self.add(start.get(), self.select(around, by, i64(0))))

    def fail(self, cond: Value, code: int, detail: Value | None = None) -> None:
        """Return `code` when `cond`, noting `detail` in the frame."""
        bad, good = self.fresh("bad"), self.fresh("good")
        self.branch(cond, bad, good)
        self.label(bad)
        if detail is not None:
            self.store(detail, self.frame, 8)
        self.ret(code)
        self.label(good)

    def poll(self) -> None:
        """Return when the launching thread was asked to stop."""
        function = self.pointer(self.frame, 1)
        said = self.let("i64", f"call i64 {function.name}({self.frame}, {self.worker})")
        self.fail(self.compare("icmp ne", said, i64(0)), INTERRUPTED)

    @contextmanager
    def polled(self, low: int | Value, high: Value, every: Value) -> Iterator[tuple[Value, Value]]:
        """range(low, high) in blocks [a, b) of up to `every`, polling before each but the first."""
        with self.loop(low, high, every) as a:
            with self.when(self.compare("icmp ne", a, i64(low))):
                self.poll()
            yield a, self.min(self.add(a, every), high)

    @contextmanager
    def endless(self) -> Iterator[Callable[[Value], None]]:
        """A loop left by calling what it yields with a condition."""
        head, out = self.fresh("head"), self.fresh("out")
        self.emit(f"br label %{head}")
        self.label(head)

        def leave(cond: Value) -> None:
            stay = self.fresh("stay")
            self.branch(cond, out, stay)
            self.label(stay)

        yield leave
        self.emit(f"br label %{head}")
        self.label(out)

    def strip(
        self,
        low: int | Value,
        high: Value,
        widths: Sequence[int],
        body: Callable[[Value, int], None],
    ) -> None:
        """`body(i, lanes)` over range(low, high), with the widest of `widths` as long as it fits,
        then the next. The last is 1.
        """
        i = self.variable(i64(low))
        for width in widths:
            with self.endless() as leave:
                now = i.get()
                after = self.add(now, width)
                leave(self.lt(high, after))
                body(now, width)
                i.set(after)

    @contextmanager
    def seldom(self, cond: Value) -> Iterator[None]:
        """if cond: …, as a branch that is expected not to be taken and stays a branch."""
        then, out = self.fresh("then"), self.fresh("out")
        self.emit(
            f'br {cond}, label %{then}, label %{out}, !prof !{{!"branch_weights", i32 1, i32 2000}}'
        )
        self.label(then)
        yield
        self.emit(f"br label %{out}")
        self.label(out)

    def any(self, mask: Value) -> Value:
        """Whether some lane holds."""
        bits = self.convert("bitcast", mask, f"i{lanes_of(mask.type)}")
        return self.compare("icmp ne", bits, Value(bits.type, "0"))

    # elements

    def read(self, dtype: DType, base: Value, offset: int | Value, lanes: int = 1) -> Value:
        """Elements in registers, from memory aligned as elements are."""
        x = self.load(memory(dtype, lanes), self.at(base, memory(dtype), offset), dtype.itemsize)
        return self.convert("trunc", x, register(bool_, lanes)) if dtype is bool_ else x

    def write(
        self, dtype: DType, value: Value, base: Value, offset: int | Value, lanes: int = 1
    ) -> None:
        if dtype is bool_:
            value = self.convert("zext", value, memory(bool_, lanes))
        self.store(value, self.at(base, memory(dtype), offset), dtype.itemsize)

    def index(
        self, dtype: DType, base: Value, offset: int | Value, size: Value, lanes: int = 1
    ) -> tuple[Value, Value, Value]:
        """An index operand's element: (as given, counted from the front, whether it is out of
        range).
        """
        given = cast(self, self.read(dtype, base, offset, lanes), dtype, int64)
        sizes = self.splat(size, lanes)
        front = given
        if dtype.kind == "i":
            zero = Value(given.type, "0" if lanes == 1 else "zeroinitializer")
            front = self.select(
                self.compare("icmp slt", given, zero), self.op("add", given, sizes), given
            )
        return given, front, self.compare("icmp uge", front, sizes)

    def checked_index(self, dtype: DType, base: Value, offset: int | Value, size: Value) -> Value:
        """The same, counted from the front; the kernel returns when it is out of range."""
        given, front, bad = self.index(dtype, base, offset, size)
        self.fail(bad, OUT_OF_RANGE, given)
        return front


def copy_function() -> Text:
    """`void @copy(to, from, bytes)`: short runs by overlapping halves, so that no byte outside is
    touched.
    """
    t = Text("internal void @copy(ptr noalias %to, ptr noalias %from, i64 %n) alwaysinline")
    to, source, n = Value("ptr", "%to"), Value("ptr", "%from"), Value("i64", "%n")

    def move(type_: str, offset: int | Value) -> None:
        t.store(t.load(type_, t.at(source, "i8", offset), 1), t.at(to, "i8", offset), 1)

    big, small = t.fresh("big"), t.fresh("small")
    t.branch(t.compare("icmp uge", n, i64(64)), big, small)
    t.label(big)
    last = t.sub(n, 64)
    quads = t.op("and", n, i64(-256))
    with t.loop(0, quads, 256) as i:
        for step in range(0, 256, 64):
            move("<16 x i32>", t.add(i, step))
    with t.loop(quads, last, 64) as i:
        move("<16 x i32>", i)
    move("<16 x i32>", last)
    t.emit("ret void")
    t.label(small)
    for half, type_ in ((32, "<8 x i32>"), (16, "<4 x i32>"), (8, "i64"), (4, "i32"), (2, "i16")):
        fits, less = t.fresh("fits"), t.fresh("less")
        t.branch(t.compare("icmp uge", n, i64(half)), fits, less)
        t.label(fits)
        # both loads first: the halves overlap
        tail = t.sub(n, half)
        a = t.load(type_, source, 1)
        b = t.load(type_, t.at(source, "i8", tail), 1)
        t.store(a, to, 1)
        t.store(b, t.at(to, "i8", tail), 1)
        t.emit("ret void")
        t.label(less)
    with t.when(t.compare("icmp ne", n, i64(0))):
        move("i8", 0)
    t.emit("ret void")
    return t


def call_copy(t: Text, to: Value, source: Value, n: Value) -> None:
    t.emit(f"call void @copy({to}, {source}, {n})")
