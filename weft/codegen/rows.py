"""Kernels of fused rows: see `weft.schedule.rows` for what they compute and `RowSpec.words` for
their params.

A row of at most one vector stays in registers from the first load to the last store. Longer rows
take one loop per level, a batch of rows level by level: so the end of one row's fold overlaps with
the start of the next row's. Where a level has little to compute it goes through the lanes' four or
more vectors at once, with accumulators in registers, and only what is left of the row vector by
vector, with accumulators on the stack; where it has much, all goes vector by vector: that is no
slower, and the code is short.
"""

from __future__ import annotations

from weft.codegen.reduce_frame import Span, spans
from weft.codegen.reduce_monoid import lengths, read, upto, write
from weft.codegen.registers import memory
from weft.codegen.rows_row import Kernel, Row
from weft.codegen.text import Value, module
from weft.codegen.verbs import emit
from weft.schedule.rows import BATCH, Map, RowSpec


def lower(spec: RowSpec) -> str:
    """The LLVM module of a row program."""
    k = Kernel(spec)
    t = k.t
    for few in lengths(t, spec, k.n, k.group):
        _rows(k, upto(t, k.n, k.group) if few else None)
    t.ret()
    return module(t)


def _rows(k: Kernel, mask: Value | None) -> None:
    """All rows of all tasks; `mask` is given where a row is at most one vector."""
    t, w, p = k.t, k.words, k.program
    with t.loop(Value("i64", "%lo"), Value("i64", "%hi")) as task:
        low = t.mul(task, w["block"])
        high = t.min(t.add(low, w["block"]), w["rows"])
        with spans(t, low, high, k.axes, len(p.inputs)) as span:
            if mask is not None:
                with t.loop(0, span.length) as j:
                    _row(k, span, j).short(mask)
            else:
                with t.loop(0, span.length, w["batch"]) as j:
                    _batch(k, span, j, t.min(t.sub(span.length, j), w["batch"]))


def _batch(k: Kernel, span: Span, first: Value, count: Value) -> None:
    """Some rows, level by level."""
    t, p = k.t, k.program
    given = [v for v, (kind, _) in enumerate(p.inputs) if kind == "each"]
    if given:
        with t.loop(0, count) as b:
            row = _row(k, span, t.add(first, b))
            for v in given:
                k.note(v, b, row.each[v])
    _scalars(k, 0)
    for number in range(len(k.levels)):
        with t.loop(0, count) as b:
            kept = {
                v: t.at(base, memory(p.dtype(v)), t.mul(b, k.words["pitch"]))
                for v, base in k.kept.items()
            }
            _row(k, span, t.add(first, b)).level(number, b, kept)
        _scalars(k, number + 1)
    if any(p.kinds[v] == "each" for v in p.outputs):
        with t.loop(0, count) as b:
            row = _row(k, span, t.add(first, b))
            row.each |= {v: k.noted_at(v, b) for v in k.noted}
            row.store_scalars()


def _scalars(k: Kernel, level: int) -> None:
    """Steps that give one value per row, once the folds below `level` are known: for all rows of
    the batch at once.
    """
    t, p = k.t, k.program
    known = {v: t.splat(value, BATCH) for v, value in k.once.items()}
    for v, place in k.noted.items():
        step, d = p.step(v), p.dtype(v)
        if isinstance(step, Map) and p.levels[v] == level:
            (known[v],) = emit(t, [step.rule], BATCH, k.leaf(known, BATCH))
            write(t, known[v], d, place)
        elif p.levels[v] <= level:
            known[v] = read(t, d, place, BATCH)


def _row(k: Kernel, span: Span, j: Value) -> Row:
    t, p = k.t, k.program
    row = t.add(span.first, j)
    bases = [
        t.at(base, memory(d), t.add(o, t.mul(j, s)))
        for base, (_, d), o, s in zip(k.inputs, p.inputs, span.offsets, span.steps, strict=True)
    ]
    outs = [
        t.at(base, memory(p.dtype(v)), t.mul(row, k.n) if k.wide(v) else row)
        for base, v in zip(k.outputs, p.outputs, strict=True)
    ]
    each = dict(k.once)
    for v, (kind, d) in enumerate(p.inputs):
        if kind == "each":
            each[v] = read(t, d, bases[v], 1)
    return Row(k, bases, outs, each)
