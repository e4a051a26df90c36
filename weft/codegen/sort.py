"""Kernels that sort rows, and that pick the first k of them."""

from __future__ import annotations

from weft.codegen.extern import TRUE, Kernel
from weft.codegen.radix import Steps
from weft.codegen.sort_keys import Order
from weft.codegen.text import Text, Value, Variable, i64, module, vector
from weft.schedule.extern import POLL
from weft.schedule.sort import SHORT, Sort, TopK

STATE = 64  # bytes before the counts
LANES = 32  # elements that are compared with the k-th so far at once


def lower(spec: Sort | TopK) -> str:
    if isinstance(spec, TopK):
        return module(_topk(spec))
    if not spec.shared:
        return module(_rows(spec))
    functions: list[Text] = [_load(spec), _count(spec), _offsets(spec), _move(spec), _store(spec)]
    return module(*functions, *([_restore(spec)] if spec.restores else []))


class _Sort(Kernel):
    """A function of a sorting kernel, its operands and parameters."""

    def __init__(self, spec: Sort, name: str) -> None:
        super().__init__(operands=1 + spec.values + spec.indices, name=name)
        self.spec = spec
        self.steps = Steps(self, Order(spec.dtype, spec.descending), spec.carries, spec.digit)
        self.rows, self.n, self.block, self.slot, self.a, self.b, self.chunks, self.chunk = (
            self.params(8)
        )
        self.memory = self.scratch_memory()

    def row_of(self, operand: int, row: Value) -> Value:
        element = "i64" if operand == 1 + self.spec.values else f"i{self.spec.dtype.bits}"
        return self.at(self.operand(operand), element, self.mul(row, self.n))

    def outs(self, row: Value) -> tuple[Value | None, Value | None]:
        """Where the row's values and indices go."""
        values = self.row_of(1, row) if self.spec.values else None
        return values, self.row_of(1 + self.spec.values, row) if self.spec.indices else None

    def slot_of(self, n: Value) -> tuple[Value, Value, Value, Value]:
        """A slot of scratch memory: state, counts, two arrays."""
        start = self.at(self.memory, "i8", self.mul(n, self.slot))
        return (
            start,
            self.at(start, "i8", STATE),
            self.at(start, "i8", self.a),
            self.at(start, "i8", self.b),
        )


def _rows(spec: Sort) -> Kernel:
    t = _Sort(spec, "kernel")
    with t.tasks() as task:
        _, counts, a, b = t.slot_of(task)
        first = t.mul(task, t.block)
        with t.loop(first, t.min(t.add(first, t.block), t.rows)) as row:
            x, (values, indices) = t.row_of(0, row), t.outs(row)
            odd = t.steps.load(x, 0, t.n, a, counts if spec.digit else None)
            if spec.digit:
                done = t.steps.sort(a, b, t.n, counts, counted=True)
            else:
                t.steps.ranks(a, b, t.n)
                done = b
            t.steps.store(done, 0, t.n, x, values, indices)
            if spec.restores and values is not None:
                with t.when(odd):
                    t.steps.restore(done, t.n, x, values)
    t.ret()
    return t


# A row shared by several tasks. Words of its state: 0 the bits of the keys that are done, 1 which
# array the items were in before the pass, 2 whether the pass leaves them there. Then a byte a
# chunk: whether some of it share a key with different bits.
FLAGS = 32


class _Shared(_Sort):
    """A function over parts of rows, or whole ones."""

    def __init__(self, spec: Sort, name: str, *, chunked: bool) -> None:
        super().__init__(spec, name)
        self.chunked = chunked

    def enter(self, task: Value) -> None:
        """What a task works on."""
        self.row, self.part = self.divmod(task, self.chunks) if self.chunked else (task, i64(0))
        self.low = self.mul(self.part, self.chunk)
        self.high = self.min(self.add(self.low, self.chunk), self.n)
        self.state, self.all_counts, *self.arrays = self.slot_of(self.row)
        self.counts = self.at(self.all_counts, "i32", self.mul(self.part, self.steps.stride))

    def get(self, word: int) -> Value:
        return self.word(self.state, word)

    def set(self, word: int, value: Value) -> None:
        self.store(value, self.at(self.state, "i64", word), 8)

    def flag(self, part: Value) -> Value:
        return self.at(self.at(self.state, "i8", FLAGS), "i8", part)

    def moved(self) -> Value:
        """Which array the items are in after the pass."""
        return self.op("xor", self.get(1), self.op("xor", self.get(2), i64(1)))

    def array(self, which: Value) -> Value:
        a, b = self.arrays
        return self.select(self.compare("icmp ne", which, i64(0)), b, a)


def _load(spec: Sort) -> Kernel:
    t = _Shared(spec, "load", chunked=True)
    with t.tasks() as task:
        t.enter(task)
        with t.when(t.compare("icmp eq", t.part, i64(0))):
            for word, value in enumerate((0, 0, 1)):
                t.set(word, i64(value))
        odd = t.steps.load(t.row_of(0, t.row), t.low, t.high, t.arrays[0], t.counts)
        t.store(t.convert("zext", odd, "i8"), t.flag(t.part), 1)
    t.ret()
    return t


def _offsets(spec: Sort) -> Kernel:
    t = _Shared(spec, "offsets", chunked=False)
    with t.tasks() as task:
        t.enter(task)
        t.set(1, t.moved())
        t.set(2, t.convert("zext", t.steps.offsets(t.all_counts, t.chunks, t.n), "i64"))
        t.set(0, t.add(t.get(0), spec.digit))
    t.ret()
    return t


def _move(spec: Sort) -> Kernel:
    t = _Shared(spec, "move", chunked=True)
    with t.tasks() as task:
        t.enter(task)
        with t.when(t.compare("icmp eq", t.get(2), i64(0))):
            source, to = t.array(t.get(1)), t.array(t.op("xor", t.get(1), i64(1)))
            t.steps.move(source, to, t.low, t.high, t.sub(t.get(0), spec.digit), t.counts)
    t.ret()
    return t


def _count(spec: Sort) -> Kernel:
    t = _Shared(spec, "count", chunked=True)
    with t.tasks() as task:
        t.enter(task)
        t.steps.count(t.array(t.moved()), t.low, t.high, t.get(0), t.counts)
    t.ret()
    return t


def _store(spec: Sort) -> Kernel:
    t = _Shared(spec, "store", chunked=True)
    with t.tasks() as task:
        t.enter(task)
        t.steps.store(t.array(t.moved()), t.low, t.high, t.row_of(0, t.row), *t.outs(t.row))
    t.ret()
    return t


def _restore(spec: Sort) -> Kernel:
    t = _Shared(spec, "restore", chunked=False)
    with t.tasks() as task:
        t.enter(task)
        odd = t.variable(Value("i8", "0"))
        with t.loop(0, t.chunks) as part:
            odd.set(t.op("or", odd.get(), t.load("i8", t.flag(part), 1)))
        with t.when(t.compare("icmp ne", odd.get(), Value("i8", "0"))):
            t.steps.restore(t.array(t.moved()), t.n, t.row_of(0, t.row), t.row_of(1, t.row))
    t.ret()
    return t


def _topk(spec: TopK) -> Kernel:
    t = Kernel(operands=3)
    steps = Steps(t, Order(spec.dtype, spec.descending), True, spec.digit)
    x, values, indices = (t.operand(n) for n in range(3))
    rows, n, k, most, block, slot, a_at, b_at = t.params(8)
    with t.tasks() as task:
        start = t.at(t.scratch_memory(), "i8", t.mul(task, slot))
        counts, a, b = t.at(start, "i8", STATE), t.at(start, "i8", a_at), t.at(start, "i8", b_at)
        first = t.mul(task, block)
        with t.loop(first, t.min(t.add(first, block), rows)) as row:
            here = t.at(x, steps.order.raw, t.mul(row, n))
            steps.load(here, 0, most, a, None)
            array, many, seen = t.variable(a), t.variable(most), t.variable(most)
            with t.endless() as leave:
                array.set(_sorted(steps, array.get(), (a, b), many.get(), counts))
                leave(t.compare("icmp eq", seen.get(), n))
                with t.when(t.compare("icmp sgt", n, i64(POLL))):
                    t.poll()
                many.set(k)
                _collect(steps, here, (array.get(), many, most), seen, n, k)
            to = t.mul(row, k)
            done = t.at(values, steps.order.raw, to), t.at(indices, "i64", to)
            steps.store(array.get(), 0, k, here, *done)
    t.ret()
    return t


def _sorted(
    steps: Steps, array: Value, arrays: tuple[Value, Value], many: Value, counts: Value
) -> Value:
    """Sort the items of one of two arrays, by whichever way suits; gives the array they are in."""
    t = steps.t
    other = t.select(t.compare("icmp eq", array, arrays[0]), arrays[1], arrays[0])
    done = t.variable(other)
    few = t.lt(many, SHORT + 1)
    with t.when(few):
        steps.ranks(array, other, many)
    with t.when(t.op("xor", few, TRUE)):
        done.set(steps.sort(array, other, many, counts, counted=False))
    return done.get()


def _collect(
    steps: Steps,
    x: Value,
    candidates: tuple[Value, Variable, Value],
    seen: Variable,
    n: Value,
    k: Value,
) -> None:
    """Go on from `seen`, adding what comes before the k-th candidate, until they are too many or a
    while has passed.
    """
    t, order, items = steps.t, steps.order, steps.items
    array, many, most = candidates
    limit = items.key(t, items.get(t, array, t.sub(k, 1)))
    end = t.min(t.add(seen.get(), POLL), n)

    def add(i: Value) -> None:
        key, _ = order.key(t, steps.element(x, i))
        items.put(
            t, items.make(t, key, i), array, many.get()
        )  # stays only where the next one goes behind it
        many.set(t.add(many.get(), t.convert("zext", t.compare("icmp ult", key, limit), "i64")))

    with t.endless() as leave:
        i = seen.get()
        after = t.add(i, LANES)
        leave(t.lt(end, after))
        leave(t.lt(most, t.add(many.get(), LANES)))
        kind = vector(order.raw, LANES)
        keys, _ = order.key(t, t.load(kind, t.at(x, order.raw, i), order.dtype.itemsize))
        before = t.compare("icmp ult", keys, t.splat(limit, LANES))
        with t.seldom(t.any(before)), t.loop(i, after) as j:
            add(j)
        seen.set(after)
    with t.when(t.lt(end, t.add(seen.get(), LANES))), t.loop(seen.get(), end) as i:
        with t.when(t.lt(many.get(), most)):
            add(i)
            seen.set(t.add(i, 1))
