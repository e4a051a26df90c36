"""Kernels for running sums, products, maxima and minima."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from weft.codegen.extern import Kernel
from weft.codegen.registers import memory
from weft.codegen.text import Value, Variable, i64, module
from weft.codegen.verbs import cast, register
from weft.schedule.scan import COLUMNS, Scan
from weft.types.dtype import DType, int64

#: rows whose chains run side by side, to hide the latency of one
SIDE_BY_SIDE = 4


def lower(spec: Scan) -> str:
    return module(_rows(spec) if spec.rows else _columns(spec))


def better(t: Kernel, op: str, dtype: DType, new: Value, old: Value) -> Value:
    """Whether a running maximum (minimum) takes the new element: larger (smaller), or the first
    NaN.
    """
    if dtype.is_float:
        wins = t.compare(f"fcmp {'ugt' if op == 'max' else 'ult'}", new, old)
        return t.op("and", wins, t.compare("fcmp ord", old, old))
    sign = "s" if dtype.kind == "i" else "u"
    return t.compare(f"icmp {sign}{'gt' if op == 'max' else 'lt'}", new, old)


class _Chain:
    """Steps of a scan in registers of any width."""

    def __init__(self, t: Kernel, spec: Scan) -> None:
        self.t, self.spec, self.dtype = t, spec, spec.result.compute
        self.sums = spec.op in ("add", "mul")
        self.x, self.values = t.operand(0), t.operand(1)
        self.indices = t.operand(2) if spec.indices else None

    def of(self, start: Value) -> _Chain:
        """The same on a row: elements count from there."""
        t, row = self.t, copy(self)
        row.x = t.at(self.x, memory(self.spec.source), start)
        row.values = t.at(self.values, memory(self.spec.result), start)
        row.indices = None if self.indices is None else t.at(self.indices, "i64", start)
        return row

    def get(self, at: Value, lanes: int = 1) -> Value:
        x = self.t.read(self.spec.source, self.x, at, lanes)
        # through the result's dtype: an int8 result of an int64 operand wraps before it runs
        return cast(
            self.t,
            cast(self.t, x, self.spec.source, self.spec.result),
            self.spec.result,
            self.dtype,
        )

    def put(self, at: Value, value: Value, index: Value | None, lanes: int = 1) -> None:
        self.t.write(
            self.spec.result,
            cast(self.t, value, self.dtype, self.spec.result),
            self.values,
            at,
            lanes,
        )
        if self.indices is not None and index is not None:
            self.t.write(int64, index, self.indices, at, lanes)

    def step(
        self, value: Value, index: Value | None, new: Value, here: Value
    ) -> tuple[Value, Value | None]:
        """The running value and its index after `new`, which is element `here`."""
        t, op = self.t, self.spec.op
        if self.sums:
            return t.op(("f" if self.dtype.is_float else "") + op, value, new), None
        takes = better(t, op, self.dtype, new, value)
        return t.select(takes, new, value), t.select(
            takes, here, index
        ) if index is not None else None

    def place(self, n: Value, length: Value) -> Value:
        """Where the scan is after `n` steps."""
        return self.t.sub(self.t.sub(length, 1), n) if self.spec.reverse else n


def _rows(spec: Scan) -> Kernel:
    t = Kernel(operands=3 if spec.indices else 2)
    chain = _Chain(t, spec)
    rows, length, block, every = t.params(4)

    def run(row: Value, count: int) -> None:
        chains = [chain.of(t.mul(t.add(row, n), length)) for n in range(count)]
        at = chain.place(i64(0), length)
        running: list[tuple[Variable, Variable | None]] = []
        for c in chains:
            first = c.get(at)
            running.append((t.variable(first), t.variable(at) if spec.indices else None))
            c.put(at, first, at)
        with t.polled(1, length, every) as (low, high), t.loop(low, high) as n:
            _step_rows(t, chains, running, chain.place(n, length))

    with t.tasks() as task:
        first = t.mul(task, block)
        t.strip(first, t.min(t.add(first, block), rows), (SIDE_BY_SIDE, 1), run)
    t.ret()
    return t


def _step_rows(
    t: Kernel,
    chains: Sequence[_Chain],
    running: Sequence[tuple[Variable, Variable | None]],
    at: Value,
) -> None:
    # all loads before the first store, which might alias them for all LLVM knows
    news = [chain.get(at) for chain in chains]
    for chain, new, (value, index) in zip(chains, news, running, strict=True):
        if chain.sums:
            value.set(chain.step(value.get(), None, new, at)[0])
        else:
            with t.seldom(
                better(t, chain.spec.op, chain.dtype, new, value.get())
            ):  # keeps the comparison off the chain
                value.set(new)
                if index is not None:
                    index.set(at)
        chain.put(at, value.get(), index.get() if index else None)


def _columns(spec: Scan) -> Kernel:
    t = Kernel(operands=3 if spec.indices else 2)
    chain = _Chain(t, spec)
    outer, length, inner, block, segments, columns, every = t.params(7)
    values = t.scratch(register(chain.dtype), COLUMNS)  # the running row, unrounded
    indices = t.scratch("i64", COLUMNS) if spec.indices else None
    widths = (64 // chain.dtype.itemsize, 1)

    def begin(origin: Value, at: Value, count: Value) -> None:
        def body(i: Value, w: int) -> None:
            first = chain.get(t.add(origin, i), w)
            t.write(chain.dtype, first, values, i, w)
            if indices is not None:
                t.write(int64, t.splat(at, w), indices, i, w)
            chain.put(t.add(origin, i), first, t.splat(at, w), w)

        t.strip(0, count, widths, body)

    def go_on(origin: Value, at: Value, count: Value) -> None:
        def body(i: Value, w: int) -> None:
            old = t.read(int64, indices, i, w) if indices is not None else None
            new = chain.get(t.add(origin, i), w)
            v, j = chain.step(t.read(chain.dtype, values, i, w), old, new, t.splat(at, w))
            t.write(chain.dtype, v, values, i, w)
            if indices is not None and j is not None:
                t.write(int64, j, indices, i, w)
            chain.put(t.add(origin, i), v, j, w)

        t.strip(0, count, widths, body)

    with t.tasks() as task:
        which, part = t.divmod(task, segments)
        first = t.mul(which, block)
        skip = t.mul(part, columns)
        count = t.min(columns, t.sub(inner, skip))
        with t.loop(first, t.min(t.add(first, block), outer)) as o:
            start = t.add(t.mul(t.mul(o, length), inner), skip)
            at = chain.place(i64(0), length)
            begin(t.add(start, t.mul(at, inner)), at, count)
            with t.polled(1, length, every) as (low, high), t.loop(low, high) as n:
                at = chain.place(n, length)
                go_on(t.add(start, t.mul(at, inner)), at, count)
    t.ret()
    return t
