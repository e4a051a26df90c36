"""The steps that sorting kernels are made of, each written for a range of a row."""

from __future__ import annotations

from collections.abc import Callable

from weft.codegen.extern import TRUE, Kernel
from weft.codegen.sort_keys import Items, Order, constant
from weft.codegen.text import Value, i64, vector
from weft.schedule.extern import POLL
from weft.schedule.sort import SHORT, count_bytes

EVERY = i64(POLL)
FALSE = Value("i1", "false")
#: digits whose counts are added up at once
GROUP = 16
#: items that are ranked at once
RANKED = 16


class Steps:
    """Steps over items of `digit` bits a pass; counts are i32."""

    def __init__(self, t: Kernel, order: Order, indices: bool, digit: int) -> None:
        self.t, self.order, self.items, self.digit = t, order, Items(order, indices), digit
        self.size, self.stride = 1 << digit, count_bytes(digit) // 4

    def element(self, x: Value, at: Value) -> Value:
        return self.t.load(
            self.order.raw, self.t.at(x, self.order.raw, at), self.order.dtype.itemsize
        )

    def clear(self, counts: Value) -> None:
        t = self.t
        with t.loop(0, self.size, 16) as d:
            t.store(Value("<16 x i32>", "zeroinitializer"), t.at(counts, "i32", d), 4)

    def tally(self, counts: Value, digit: Value) -> None:
        """counts[digit] += 1"""
        t = self.t
        p = t.at(counts, "i32", digit)
        t.store(t.op("add", t.load("i32", p, 4), Value("i32", "1")), p, 4)

    def load(
        self, x: Value, low: int | Value, high: Value, to: Value, counts: Value | None
    ) -> Value:
        """Items of elements low .. high - 1, their first digits counted; whether one shares a key
        with different bits.
        """
        t = self.t
        odd = t.variable(FALSE)
        if counts is not None:
            self.clear(counts)
        with t.polled(low, high, EVERY) as (a, b), t.loop(a, b) as i:
            key, shares = self.order.key(t, self.element(x, i))
            item = self.items.make(t, key, i)
            self.items.put(t, item, to, i)
            odd.set(t.op("or", odd.get(), shares))
            if counts is not None:
                self.tally(counts, self.items.digit(t, item, i64(0), self.digit))
        return odd.get()

    def count(
        self, source: Value, low: int | Value, high: Value, shift: Value, counts: Value
    ) -> None:
        t = self.t
        self.clear(counts)
        with t.polled(low, high, EVERY) as (a, b), t.loop(a, b) as i:
            self.tally(counts, self.items.digit(t, self.items.get(t, source, i), shift, self.digit))

    def offsets(self, counts: Value, chunks: Value, n: Value) -> Value:
        """Turn counts into places: by digit, then by chunk. Gives whether all digits are equal, so
        nothing would move.
        """
        t = self.t
        kind = vector("i32", GROUP)
        nothing = constant(kind, 0)
        carry, same = t.variable(nothing), t.variable(constant(vector("i1", GROUP), 0))
        whole = t.splat(t.convert("trunc", n, "i32"), GROUP)
        with t.loop(0, self.size, GROUP) as d:
            total = t.variable(nothing)
            with t.loop(0, chunks) as c:
                total.set(t.op("add", total.get(), t.load(kind, self._counts(counts, c, d), 4)))
            same.set(t.op("or", same.get(), t.compare("icmp eq", total.get(), whole)))
            sums = self._running(total.get())
            base = t.variable(t.op("add", t.op("sub", sums, total.get()), carry.get()))
            with t.loop(0, chunks) as c:
                p = self._counts(counts, c, d)
                many = t.load(kind, p, 4)
                t.store(base.get(), p, 4)
                base.set(t.op("add", base.get(), many))
            last = t.let(
                kind,
                f"shufflevector {sums}, {kind} poison, <{GROUP} x i32> splat (i32 {GROUP - 1})",
            )
            carry.set(t.op("add", carry.get(), last))
        return t.any(same.get())

    def _counts(self, counts: Value, chunk: Value, digit: Value) -> Value:
        return self.t.at(counts, "i32", self.t.add(self.t.mul(chunk, self.stride), digit))

    def _running(self, v: Value) -> Value:
        """Sums of each lane and those before it."""
        step = 1
        while step < GROUP:
            lanes = ", ".join(f"i32 {GROUP + n - step if n >= step else n}" for n in range(GROUP))
            moved = self.t.let(
                v.type, f"shufflevector {v.type} zeroinitializer, {v}, <{GROUP} x i32> <{lanes}>"
            )
            v = self.t.op("add", v, moved)
            step *= 2
        return v

    def move(
        self, source: Value, to: Value, low: int | Value, high: Value, shift: Value, counts: Value
    ) -> None:
        t = self.t
        with t.polled(low, high, EVERY) as (a, b), t.loop(a, b) as i:
            item = self.items.get(t, source, i)
            p = t.at(counts, "i32", self.items.digit(t, item, shift, self.digit))
            place = t.load("i32", p, 4)
            t.store(t.op("add", place, Value("i32", "1")), p, 4)
            self.items.put(t, item, to, t.convert("zext", place, "i64"))

    def sort(self, a: Value, b: Value, n: Value, counts: Value, *, counted: bool) -> Value:
        """Sort `n` items of `a`, with `b` to move to and fro; gives where they are. `counted`: the
        first digit already is.
        """
        t = self.t
        source, to = t.variable(a), t.variable(b)
        if not counted:
            self.count(a, 0, n, i64(0), counts)
        bits = self.order.dtype.bits
        with t.loop(0, bits, self.digit) as shift:
            with t.when(t.op("xor", self.offsets(counts, i64(1), n), TRUE)):
                here, there = source.get(), to.get()
                self.move(here, there, 0, n, shift, counts)
                source.set(there)
                to.set(here)
            after = t.add(shift, self.digit)
            with t.when(t.lt(after, bits)):
                self.count(source.get(), 0, n, after, counts)
        return source.get()

    def ranks(self, a: Value, b: Value, n: Value) -> None:
        """Sort a few items with indices from `a` to `b`: each goes where as many are before it.
        Both may be written a bit past n.
        """
        t, items = self.t, self.items
        narrow = self.order.key_bits == 32
        rank = t.scratch("i64", SHORT + RANKED)
        with t.loop(0, n, RANKED) as i:
            mine = self._keys(a, i)
            numbers = t.op("add", t.iota(RANKED), t.splat(i, RANKED))
            sums = t.variable(constant(vector("i64", RANKED), 0))
            with t.loop(0, n) as j:
                # an item with its index in the low bits is less or more than any other, as a whole
                other = t.splat(t.load("i64", t.at(a, items.type, j), 8), RANKED)
                before = t.compare("icmp ult", other, mine)
                if not narrow:
                    tie = t.op(
                        "and",
                        t.compare("icmp eq", other, mine),
                        t.compare("icmp slt", t.splat(j, RANKED), numbers),
                    )
                    before = t.op("or", before, tie)
                sums.set(t.op("add", sums.get(), t.convert("zext", before, vector("i64", RANKED))))
            t.store(sums.get(), t.at(rank, "i64", i), 8)
        with t.loop(0, n) as i:
            items.put(t, items.get(t, a, i), b, t.load("i64", t.at(rank, "i64", i), 8))

    def _keys(self, a: Value, i: Value) -> Value:
        """RANKED whole items, or the keys of pairs."""
        t, kind = self.t, vector("i64", RANKED)
        if self.order.key_bits == 32:
            return t.load(kind, t.at(a, "i64", i), 8)
        pairs = t.load(vector("i64", 2 * RANKED), t.at(a, self.items.type, i), 16)
        lanes = ", ".join(f"i32 {2 * n}" for n in range(RANKED))
        return t.let(
            kind, f"shufflevector {pairs}, {pairs.type} poison, <{RANKED} x i32> <{lanes}>"
        )

    def store(
        self,
        source: Value,
        low: int | Value,
        high: Value,
        x: Value,
        values: Value | None,
        indices: Value | None,
    ) -> None:
        """Write values and indices of sorted items."""
        t, raw = self.t, self.order.raw
        width = self.order.dtype.itemsize
        with t.polled(low, high, EVERY) as (a, b), t.loop(a, b) as i:
            item = self.items.get(t, source, i)
            key = self.items.key(t, item)
            if values is not None:
                to = t.at(values, raw, i)
                t.store(self.order.element(t, key), to, width)
                if self.items.indices and self.order.dtype.is_float:
                    with t.seldom(self._any(key)):
                        t.store(self.element(x, self.items.index(t, item)), to, width)
            if indices is not None:
                t.store(self.items.index(t, item), t.at(indices, "i64", i), 8)

    def _any(self, key: Value) -> Value:
        zero, nan = (self.t.compare("icmp eq", key, k) for k in self.order.shared_keys)
        return self.t.op("or", zero, nan)

    def restore(self, source: Value, n: Value, x: Value, values: Value) -> None:
        """Zeros and NaNs have keys in common: put their own bits where they are, in the operand's
        order.
        """
        t, raw, width = self.t, self.order.raw, self.order.dtype.itemsize
        places = [t.variable(self.first(source, n, key)) for key in self.order.shared_keys]
        with t.polled(0, n, EVERY) as (a, b), t.loop(a, b) as i:
            x_i = self.element(x, i)
            key, _ = self.order.key(t, x_i)
            for shared, place in zip(self.order.shared_keys, places, strict=True):
                with t.seldom(t.compare("icmp eq", key, shared)):
                    t.store(x_i, t.at(values, raw, place.get()), width)
                    place.set(t.add(place.get(), 1))

    def first(self, source: Value, n: Value, key: Value) -> Value:
        """Where the first sorted item is whose key isn't less."""
        return lower_bound(
            self.t,
            n,
            lambda i: self.t.compare(
                "icmp ult", self.items.key(self.t, self.items.get(self.t, source, i)), key
            ),
        )


def lower_bound(t: Kernel, n: Value, before: Callable[[Value], Value]) -> Value:
    """The first of 0 .. n that isn't `before`, which holds for a beginning of the range."""
    low, many = t.variable(i64(0)), t.variable(n)
    with t.endless() as leave:
        size = many.get()
        leave(t.compare("icmp eq", size, i64(0)))
        half = t.op("lshr", size, i64(1))
        yes = before(t.add(low.get(), half))
        after = t.add(t.add(low.get(), half), 1)
        low.set(t.select(yes, after, low.get()))
        many.set(t.select(yes, t.sub(t.sub(size, half), 1), half))
    return low.get()
