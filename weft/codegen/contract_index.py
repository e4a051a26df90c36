"""Small functions every contraction kernel calls: from a flattened index to offsets, in elements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from weft.codegen.text import Text, Value, Variable, i64

MAX_LABELS = 96  # three groups of labels of an operand of at most 32 axes


def arg(name: str, type_: str = "i64") -> Value:
    return Value(type_, f"%{name}")


def function(name: str, result: str, **args: str) -> Text:
    """A function of the module. Not inlined: it is called from several places, and compiled once."""
    said = ", ".join(f"{kind} %{name}" for name, kind in args.items())
    return Text(f"internal {result} @{name}({said}) noinline nounwind")


def call(t: Text, result: str, name: str, *args: Value) -> Value:
    """Call a function of the same module."""
    said = f"call {result} @{name}({', '.join(map(str, args))})"
    if result == "void":
        t.emit(said)
        return Value("void", "")
    return t.let(result, said)


def div(t: Text, a: Value, b: Value) -> Value:
    """a / b, neither negative."""
    if b.name.isdigit():
        return t.op("udiv", a, b)
    return call(t, "i64", "divide", a, b)


def rem(t: Text, a: Value, b: Value) -> Value:
    if b.name.isdigit():
        return t.op("urem", a, b)
    return t.sub(a, t.mul(div(t, a, b), b))


def divide_function() -> Text:
    """divide(a, b): LLVM writes much code for a division; once is enough."""
    t = function("divide", "i64", a="i64", b="i64")
    t.ret(t.op("udiv", arg("a"), arg("b")))
    return t


def at(t: Text, pointer: Value, n: int | Value) -> Value:
    """The address of word `n`."""
    return t.at(pointer, "i64", n)


def get(t: Text, pointer: Value, n: int | Value) -> Value:
    return t.load("i64", at(t, pointer, n), 8)


def put(t: Text, value: Value, pointer: Value, n: int | Value) -> None:
    t.store(i64(value), at(t, pointer, n), 8)


@dataclass
class Cursor:
    """Where a loop of uneven steps stands; its body sets `step`."""

    now: Value
    step: Value = Value("i64", "1")


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


def increase(t: Text, v: Variable, by: Value) -> None:
    v.set(t.add(v.get(), by))


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


def table_function() -> Text:
    """table(out, start, count, n, sizes, strides): the offsets of `count` flattened indices from `start`. n >= 1."""
    t = function("table", "void", out="ptr", start="i64", count="i64", n="i64", sizes="ptr", strides="ptr")
    out, count, n, sizes, strides = arg("out", "ptr"), arg("count"), arg("n"), arg("sizes", "ptr"), arg("strides", "ptr")
    counters = t.scratch("i64", MAX_LABELS)
    left, base = t.variable(arg("start")), t.variable(i64(0))
    with down(t, n) as i:
        size = get(t, sizes, i)
        q = div(t, left.get(), size)
        own = t.sub(left.get(), t.mul(q, size))
        put(t, own, counters, i)
        increase(t, base, t.mul(own, get(t, strides, i)))
        left.set(q)
    last = t.sub(n, 1)
    inner, by = get(t, sizes, last), get(t, strides, last)
    with walk(t, 0, count) as j:
        j.step = t.min(t.sub(inner, get(t, counters, last)), t.sub(count, j.now))
        offset = t.variable(base.get())
        with t.loop(0, j.step) as i:
            put(t, offset.get(), out, t.add(j.now, i))
            increase(t, offset, by)
        base.set(offset.get())
        put(t, t.add(get(t, counters, last), j.step), counters, last)
        carry = t.variable(last)
        with walk(t, 0, i64(1)) as more:  # carry: an odometer
            c = carry.get()
            size, stride = get(t, sizes, c), get(t, strides, c)
            over = t.op("and", t.compare("icmp sge", get(t, counters, c), size), t.compare("icmp sgt", c, i64(0)))
            more.step = t.select(over, i64(0), i64(1))
            with t.when(over):
                put(t, i64(0), counters, c)
                up = t.sub(c, 1)
                put(t, t.add(get(t, counters, up), 1), counters, up)
                increase(t, base, t.sub(get(t, strides, up), t.mul(size, stride)))
                carry.set(up)
    t.emit("ret void")
    return t


def ranges_function() -> Text:
    """ranges(start, count, n, sizes, lows, highs): for each label the least and greatest value it takes; count >= 1."""
    t = function("ranges", "void", start="i64", count="i64", n="i64", sizes="ptr", lows="ptr", highs="ptr")
    n, sizes, lows, highs = arg("n"), arg("sizes", "ptr"), arg("lows", "ptr"), arg("highs", "ptr")
    last = t.sub(t.add(arg("start"), arg("count")), 1)
    for first, out in ((arg("start"), lows), (last, highs)):
        left = t.variable(first)
        with down(t, n) as i:
            size = get(t, sizes, i)
            q = div(t, left.get(), size)
            put(t, t.sub(left.get(), t.mul(q, size)), out, i)
            left.set(q)
    fixed = t.variable(Value("i1", "true"))  # every label outside this one takes a single value
    with t.loop(0, n) as i:
        low, high, before = get(t, lows, i), get(t, highs, i), fixed.get()
        fixed.set(t.op("and", before, t.compare("icmp eq", low, high)))
        put(t, t.select(before, low, i64(0)), lows, i)
        put(t, t.select(before, high, t.sub(get(t, sizes, i), 1)), highs, i)
    t.emit("ret void")
    return t
