"""Kernels that write by index."""

from __future__ import annotations

from collections.abc import Callable

from weft.codegen.extern import Kernel, call_copy, copy_function
from weft.codegen.scan import better
from weft.codegen.text import Value, i64, module
from weft.codegen.verbs import cast, register
from weft.schedule.scatter import Scatter
from weft.types.dtype import DType

#: parameters all functions have: elements of the result, elements of a block, n
COMMON = 3
#: indices checked at once
LANES = 8


def lower(spec: Scatter) -> str:
    functions = [_fill(spec), _kernel(spec), *([_finish(spec)] if spec.widened else [])]
    return module(*([copy_function()] if spec.based and not spec.widened else []), *functions)


def _operands(t: Kernel, spec: Scatter) -> tuple[Value, Value, Value]:
    """index, source, out"""
    shift = int(spec.based)
    return t.operand(shift), t.operand(shift + 1), t.operand(shift + 2)


def _function(spec: Scatter, name: str) -> Kernel:
    return Kernel(operands=4 if spec.based else 3, name=name)


def _running(spec: Scatter) -> DType:
    """What is kept while indices are run through."""
    return spec.dtype.compute if spec.widened else spec.dtype


def _blocks(t: Kernel, body: Callable[[Value, Value], None]) -> Kernel:
    """A function over the whole result, a block a task."""
    size, block = t.params(2)
    with t.tasks() as task:
        low = t.mul(task, block)
        body(low, t.min(t.add(low, block), size))
    t.ret()
    return t


def _fill(spec: Scatter) -> Kernel:
    t = _function(spec, "fill")
    out = t.scratch_memory() if spec.widened else _operands(t, spec)[2]
    keep = _running(spec)

    def body(low: Value, high: Value) -> None:
        if spec.based and not spec.widened:
            width = i64(spec.dtype.itemsize)
            at, size = t.mul(low, width), t.mul(t.sub(high, low), width)
            return call_copy(t, t.at(out, "i8", at), t.at(t.operand(0), "i8", at), size)

        def one(i: Value, w: int) -> None:
            kept = register(keep, w)
            value = Value(kept, "zeroinitializer")
            if spec.based:
                value = cast(t, t.read(spec.dtype, t.operand(0), i, w), spec.dtype, keep)
            t.write(keep, value, out, i, w)

        return t.strip(low, high, (64 // keep.itemsize, 1), one)

    return _blocks(t, body)


def _finish(spec: Scatter) -> Kernel:
    t = _function(spec, "finish")
    sums, out, keep = t.scratch_memory(), _operands(t, spec)[2], _running(spec)

    def one(i: Value, w: int) -> None:
        t.write(spec.dtype, cast(t, t.read(keep, sums, i, w), keep, spec.dtype), out, i, w)

    return _blocks(t, lambda low, high: t.strip(low, high, (64 // keep.itemsize, 1), one))


def _kernel(spec: Scatter) -> Kernel:
    t = _function(spec, "kernel")
    {"rows": _rows, "along": _along, "single": _single}[spec.style](t, spec, _put(t, spec))
    t.ret()
    return t


Put = Callable[..., None]


def _put(t: Kernel, spec: Scatter) -> Put:
    """The writer of out[to] op= source[at]."""
    _, source, out = _operands(t, spec)
    keep = _running(spec)
    if spec.widened:
        out = t.scratch_memory()

    def put(to: Value, at: Value, w: int = 1) -> None:
        new = cast(t, t.read(spec.dtype, source, at, w), spec.dtype, keep)
        if spec.op == "add":
            new = t.op("fadd" if keep.is_float else "add", t.read(keep, out, to, w), new)
        elif spec.op != "assign":
            old, wide = t.read(keep, out, to, w), keep.compute
            takes = better(t, spec.op, wide, cast(t, new, keep, wide), cast(t, old, keep, wide))
            new = t.select(takes, new, old)
        t.write(keep, new, out, to, w)

    return put


def _rows(t: Kernel, spec: Scatter, put: Put) -> None:
    index = _operands(t, spec)[0]
    _, _, n, outer, k, inner, block, ranges, height, every = t.params(COMMON + 7)
    lanes = 64 // _running(spec).itemsize
    with t.tasks() as task:
        which, part = t.divmod(task, ranges)
        first, low = t.mul(which, block), t.mul(part, height)
        last = t.min(t.add(first, block), outer)
        start, j = t.variable(t.mul(first, n)), t.variable(i64(0))
        with t.polled(t.mul(first, k), t.mul(last, k), every) as (a, b), t.loop(a, b) as row:
            place = t.checked_index(spec.index, index, j.get(), n)
            with t.when(t.compare("icmp ult", t.sub(place, low), height)):
                to, at = t.mul(t.add(start.get(), place), inner), t.mul(row, inner)
                t.strip(
                    0, inner, (4 * lanes, lanes, 1), lambda i, w: put(t.add(to, i), t.add(at, i), w)
                )
            t.turn(j, k, start, n)


def _along(t: Kernel, spec: Scatter, put: Put) -> None:
    index = _operands(t, spec)[0]
    _, _, n, outer, k, inner, block, segments, columns, every = t.params(COMMON + 7)
    with t.tasks() as task:
        which, part = t.divmod(task, segments)
        first, left = t.mul(which, block), t.mul(part, columns)
        last = t.min(t.add(first, block), outer)
        right = t.min(t.add(left, columns), inner)
        start, j = t.variable(t.mul(first, n)), t.variable(i64(0))
        with t.polled(t.mul(first, k), t.mul(last, k), every) as (a, b), t.loop(a, b) as row:
            with t.loop(left, right) as i:
                at = t.add(t.mul(row, inner), i)
                place = t.checked_index(spec.index, index, at, n)
                put(t.add(t.mul(t.add(start.get(), place), inner), i), at)
            t.turn(j, k, start, n)


def _single(t: Kernel, spec: Scatter, put: Put) -> None:
    index = _operands(t, spec)[0]
    _, _, n, rows, length, stride, base, column, block, segments, segment, every = t.params(
        COMMON + 9
    )
    with t.tasks() as task:
        which, part = t.divmod(task, segments)
        first, low = t.mul(which, block), t.mul(part, segment)
        last = t.min(t.add(first, block), rows)
        with (
            t.loop(first, last) as row,
            t.polled(low, t.min(t.add(low, segment), length), every) as (a, b),
        ):
            start, indices, at = t.mul(row, base), t.mul(row, stride), t.mul(row, length)
            v = t.variable(a)
            with t.endless() as leave:  # whole vectors, until one has a bad index
                now = v.get()
                after = t.add(now, LANES)
                leave(t.lt(b, after))
                _, front, bad = t.index(spec.index, index, t.add(indices, now), n, LANES)
                leave(t.any(bad))
                for lane in range(LANES):
                    one = t.let("i64", f"extractelement {front}, i64 {lane}")
                    here = t.add(now, lane)
                    put(t.add(t.add(start, one), t.mul(here, column)), t.add(at, here))
                v.set(after)
            with t.loop(v.get(), b) as now:
                place = t.checked_index(spec.index, index, t.add(indices, now), n)
                put(t.add(t.add(start, place), t.mul(now, column)), t.add(at, now))
