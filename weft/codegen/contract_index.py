"""What every contraction kernel is written with: loops, the launch's params, and small functions
from a flattened index to offsets, in elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from weft.codegen.text import Text, Value, Variable, i64
from weft.schedule.contract_spec import ContractSpec

MAX_LABELS = 96  # three groups of labels of an operand of at most 32 axes
FEW, LONG = 8, 64  # words of a table that are written together, and so many behind each other
NO, YES, ONE = Value("i1", "false"), Value("i1", "true"), Value("i64", "1")


def arg(name: str, type_: str = "i64") -> Value:
    return Value(type_, f"%{name}")


def function(name: str, result: str, **args: str) -> Text:
    """A function of the module. Not inlined: it is called from several places, compiled once."""
    said = ", ".join(f"{kind} %{name}" for name, kind in args.items())
    return Text(f"internal {result} @{name}({said}) noinline nounwind")


def call(t: Text, result: str, name: str, *args: Value) -> Value:
    """Call a function of the same module."""
    said = f"call {result} @{name}({', '.join(map(str, args))})"
    if result == "void":
        t.emit(said)
        return Value("void", "")
    return t.let(result, said)


def leave(t: Text) -> None:
    """Return here; what is written next is not reached."""
    t.emit("ret void")
    t.label(t.fresh("dead"))


# arithmetic


def div(t: Text, a: Value, b: Value) -> Value:
    """a / b, neither negative."""
    return t.op("udiv", a, b) if b.name.isdigit() else call(t, "i64", "divide", a, b)


def rem(t: Text, a: Value, b: Value) -> Value:
    return t.op("urem", a, b) if b.name.isdigit() else t.sub(a, t.mul(div(t, a, b), b))


def equal(t: Text, a: Value, b: int | Value) -> Value:
    return t.compare("icmp eq", a, i64(b))


def fits(t: Text, a: Value, b: int | Value) -> Value:
    """a <= b."""
    return t.compare("icmp sle", a, i64(b))


def both(t: Text, *conditions: Value) -> Value:
    out = conditions[0]
    for c in conditions[1:]:
        out = t.op("and", out, c)
    return out


def invert(t: Text, condition: Value) -> Value:
    return t.op("xor", condition, YES)


def increase(t: Text, v: Variable, by: Value) -> None:
    v.set(t.add(v.get(), by))


# memory


def at(t: Text, pointer: Value, n: int | Value) -> Value:
    """The address of word `n`."""
    return t.at(pointer, "i64", n)


def get(t: Text, pointer: Value, n: int | Value) -> Value:
    return t.load("i64", at(t, pointer, n), 8)


def put(t: Text, value: Value, pointer: Value, n: int | Value) -> None:
    t.store(value, at(t, pointer, n), 8)


#: What most functions take: the frame, the launch's or a part's own; its params, so that nothing
#: depends on how many operands stand before them; the worker's scratch memory.
MEMORY = {"frame": "ptr", "params": "ptr", "slice": "ptr"}


#: What a task knows of the kernel it belongs to, in a table of pointers, so that kernels which only
#: differ in these share its code: the end of a tile ("finish" or "end"), what brings near that,
#: "pack_columns", zeros as many as a row of a tile; the tiles follow.
CODE = ("end", "foresee", "pack_columns", "zeros")


def memory() -> tuple[Value, ...]:
    return tuple(arg(name, kind) for name, kind in MEMORY.items())


class Frame:
    """The params of a launch, by name."""

    def __init__(self, t: Text, spec: ContractSpec) -> None:
        self.t, self.spec = t, spec
        self.address, self.params = arg("frame", "ptr"), arg("params", "ptr")

    def __getitem__(self, name: str) -> Value:
        return self.t.word(self.params, self.spec.header.index(name))

    def words(self, name: str) -> Value:
        """The params that another param points to."""
        return at(self.t, self.params, self[name])

    def group(self, name: str, operand: str | Value) -> tuple[Value, Value, Value]:
        """How many labels a group has, their sizes, and their strides in an operand, which may be
        said by its number.
        """
        t, here = self.t, self.words(f"{name}_at")
        if isinstance(operand, str):
            before = i64(self.spec.operands.index(operand) + 1)
        else:
            before = t.add(operand, 1)
        n = get(t, here, 0)
        return n, at(t, here, 1), at(t, here, t.add(t.mul(n, before), 1))

    def part(self, name: str) -> Value:
        """A part of the worker's scratch memory."""
        return self.t.at(arg("slice", "ptr"), "i8", self[name])

    def block(self, number: Value, kind: str) -> tuple[Value, Value]:
        """Where a block of rows ("row") or columns ("col") begins, and its size."""
        t, size, span = self.t, self[f"{kind}_block"], self[f"{kind}_span"]
        which = div(t, number, self[f"{kind}_span_blocks"])
        within = t.sub(number, t.mul(which, self[f"{kind}_span_blocks"]))
        start = t.mul(within, size)
        return t.add(t.mul(which, span), start), t.min(size, t.sub(span, start))


# loops


@dataclass
class Cursor:
    """Where a loop of uneven steps stands; its body sets `step`."""

    now: Value
    step: Value = ONE


@contextmanager
def walk(t: Text, low: int | Value, high: Value) -> Iterator[Cursor]:
    """while now < high: …; now += step"""
    i = t.variable(i64(low))
    head, body, out = (t.fresh(p) for p in ("head", "body", "out"))
    t.emit(f"br label %{head}")
    t.label(head)
    cursor = Cursor(i.get())
    t.branch(t.lt(cursor.now, high), body, out)
    t.label(body)
    yield cursor
    i.set(t.add(cursor.now, cursor.step))
    t.emit(f"br label %{head}")
    t.label(out)


@contextmanager
def repeat(t: Text, more: Variable) -> Iterator[None]:
    """do … while more != 0"""
    body, out = t.fresh("body"), t.fresh("out")
    t.emit(f"br label %{body}")
    t.label(body)
    yield
    t.branch(t.compare("icmp ne", more.get(), i64(0)), body, out)
    t.label(out)


@contextmanager
def down(t: Text, n: Value) -> Iterator[Value]:
    """for i in reversed(range(n))"""
    with t.loop(0, n) as i:
        yield t.sub(t.sub(n, 1), i)


# functions


@cache
def divide_function() -> Text:
    """divide(a, b): LLVM writes much code for a division; once is enough."""
    t = function("divide", "i64", a="i64", b="i64")
    t.runs_seldom = True
    t.ret(t.op("udiv", arg("a"), arg("b")))
    return t


@cache
def offset_function() -> Text:
    """offset(index, n, sizes, strides): where the element of a flattened index lies."""
    t = function("offset", "i64", index="i64", n="i64", sizes="ptr", strides="ptr")
    left, total = t.variable(arg("index")), t.variable(i64(0))
    with down(t, arg("n")) as i:
        size = get(t, arg("sizes", "ptr"), i)
        q = div(t, left.get(), size)
        own = t.sub(left.get(), t.mul(q, size))
        increase(t, total, t.mul(own, get(t, arg("strides", "ptr"), i)))
        left.set(q)
    t.ret(total.get())
    return t


@cache
def table_function() -> Text:
    """table(out, start, count, n, sizes, strides): the offsets of `count` flattened indices from
    `start` on; n >= 1.

    Once the labels but the first have taken all their values, offsets are earlier ones, moved on.
    """
    words = {"start": "i64", "count": "i64", "n": "i64"}
    t = function("table", "void", out="ptr", **words, sizes="ptr", strides="ptr")
    out, sizes, strides = (arg(name, "ptr") for name in ("out", "sizes", "strides"))
    last = t.sub(arg("n"), 1)
    period = t.variable(i64(1))
    with t.loop(1, arg("n")) as i:
        period.set(t.mul(period.get(), get(t, sizes, i)))
    count = t.select(equal(t, last, 0), arg("count"), t.min(arg("count"), period.get()))
    counters = t.scratch("i64", MAX_LABELS)
    left, base = t.variable(arg("start")), t.variable(i64(0))
    with down(t, arg("n")) as i:
        size = get(t, sizes, i)
        q = div(t, left.get(), size)
        own = t.sub(left.get(), t.mul(q, size))
        put(t, own, counters, i)
        increase(t, base, t.mul(own, get(t, strides, i)))
        left.set(q)
    inner, by = get(t, sizes, last), get(t, strides, last)
    steps = t.mul(t.iota(FEW), t.splat(by, FEW))
    with walk(t, 0, count) as j:
        j.step = t.min(t.sub(inner, get(t, counters, last)), t.sub(count, j.now))
        _line(t, at(t, out, j.now), base.get(), by, j.step, steps)
        increase(t, base, t.mul(by, j.step))
        put(t, t.add(get(t, counters, last), j.step), counters, last)
        digit, more = t.variable(last), t.variable(i64(1))
        with repeat(t, more):  # an odometer: full digits start again and move the next one
            d = digit.get()
            size = get(t, sizes, d)
            full = both(t, fits(t, size, get(t, counters, d)), t.lt(i64(0), d))
            more.set(t.convert("zext", full, "i64"))
            with t.when(full):
                up = t.sub(d, 1)
                put(t, i64(0), counters, d)
                put(t, t.add(get(t, counters, up), 1), counters, up)
                back = t.mul(size, get(t, strides, d))
                increase(t, base, t.sub(get(t, strides, up), back))
                digit.set(up)
    # a vector is read long after it was written: stores under way can't be read in parts
    some = t.select(equal(t, count, 0), ONE, count)
    first, times = get(t, strides, 0), div(t, t.add(some, LONG - 1), some)
    near = t.min(t.mul(count, times), arg("count"))
    with t.loop(count, near) as j:
        put(t, t.add(get(t, out, t.sub(j, count)), first), out, j)
    rest, later, by = t.sub(arg("count"), near), at(t, out, near), t.mul(first, times)
    vectors, all_by = _whole(t, rest), t.splat(by, FEW)
    with t.loop(0, vectors, FEW) as j:
        t.store(t.add(t.load(all_by.type, at(t, out, j), 8), all_by), at(t, later, j), 8)
    with t.loop(vectors, rest) as j:
        put(t, t.add(get(t, out, j), by), later, j)
    t.emit("ret void")
    return t


def _line(t: Text, out: Value, start: Value, by: Value, count: Value, steps: Value) -> None:
    """start, start + by, …; `steps` are the first few numbers times `by`."""
    vectors = _whole(t, count)
    with t.loop(0, vectors, FEW) as i:
        first = t.splat(t.add(start, t.mul(by, i)), FEW)
        t.store(t.add(first, steps), at(t, out, i), 8)
    with t.loop(vectors, count) as i:
        put(t, t.add(start, t.mul(by, i)), out, i)


def _whole(t: Text, n: Value) -> Value:
    """How many of so many words fill vectors of FEW."""
    return t.op("and", n, i64(-FEW))


@cache
def ranges_function() -> Text:
    """ranges(start, count, n, sizes, lows, highs): for each label the least and greatest value it
    takes in `count` flattened indices from `start` on; count >= 1.
    """
    words = {"start": "i64", "count": "i64", "n": "i64"}
    t = function("ranges", "void", **words, sizes="ptr", lows="ptr", highs="ptr")
    n, sizes, lows, highs = arg("n"), *(arg(name, "ptr") for name in ("sizes", "lows", "highs"))
    low, high = t.variable(arg("start")), t.variable(t.sub(t.add(arg("start"), arg("count")), 1))
    with down(t, n) as i:
        size = get(t, sizes, i)
        below, above = (div(t, x.get(), size) for x in (low, high))
        least, most = (t.sub(x.get(), t.mul(q, size)) for x, q in ((low, below), (high, above)))
        fixed = equal(t, below, above)  # every label outside this one takes a single value
        put(t, t.select(fixed, least, i64(0)), lows, i)
        put(t, t.select(fixed, most, t.sub(size, 1)), highs, i)
        low.set(below)
        high.set(above)
    t.emit("ret void")
    return t
