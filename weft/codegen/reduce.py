"""Reduction kernels: see `weft.schedule.reduce` for what they compute and `ReduceSpec.words` for
their params.
"""

from __future__ import annotations

from weft.codegen.jit import vector_bytes
from weft.codegen.reduce_chains import chains, staged
from weft.codegen.reduce_columns import columns
from weft.codegen.reduce_frame import Frame, spans
from weft.codegen.reduce_monoid import Lanes, State, lengths, read, upto
from weft.codegen.registers import memory
from weft.codegen.text import Value, module
from weft.ops.scalar import Scalar, walk
from weft.schedule.reduce_spec import LANES, ReduceSpec

#: scalar operations from which on a rule is long
LONG = 16


def lower(spec: ReduceSpec) -> str:
    """The LLVM module of a reduction. What a phase does is a function of its params, wherever they
    stand in the frame: that part is shared.
    """
    f = Frame(spec)
    {"rows": rows, "staged": staged, "columns": columns, "chains": chains}[spec.form](f)
    f.t.ret()
    return module(f.t, f.entry())


def rows(f: Frame) -> None:
    """Vectors along the reduced axis. Rows of at most one vector take a shorter way to the same
    sum.
    """
    t = f.t
    lanes = Lanes(t, f.monoid, f.group)
    for few in lengths(t, f.spec, f.words["count"], f.group):
        _rows(f, lanes, few)


def _rows(f: Frame, lanes: Lanes, few: bool) -> None:
    t, w = f.t, f.words
    mask = upto(t, w["count"], lanes.group) if few else None
    with f.task() as (low, high, begin, end, shift, _):
        with spans(t, low, high, f.kept, len(f.inputs) + 1) as span, t.loop(0, span.length) as j:
            offsets = [t.add(o, t.mul(j, s)) for o, s in zip(span.offsets, span.steps, strict=True)]
            bases = [f.element(i, offsets[i]) for i in range(len(f.inputs))]
            once = {
                i: t.splat(read(t, d, bases[i], 1), lanes.group)
                for i, d in enumerate(f.spec.inputs)
                if not f.spec.moving[i]
            }
            if few:
                lanes.clear(1)
                _step(f, lanes, bases, once, Value("i64", "0"), [mask], Value("i64", "0"))
                state = lanes.finish(1, Value("i64", "0"))
            else:
                state = _long_row(f, lanes, bases, once, begin, end)
            f.emit_result(state, t.add(offsets[-1], shift))


def _long_row(
    f: Frame, lanes: Lanes, bases: list[Value], once: dict[int, Value], begin: Value, end: Value
) -> State:
    t, groups = f.t, LANES // lanes.group
    total = [t.variable(s) for s in f.monoid.start(1)]
    with t.loop(begin, end, f.words["chunk"]) as start:
        stop = t.min(t.add(start, f.words["chunk"]), end)
        count = t.sub(stop, start)
        lanes.clear(groups)

        def some(r: Value) -> None:
            """The step at `r`, as far as there is more."""
            left = t.sub(count, r)
            masks: list[Value | None] = [
                upto(t, left, lanes.group, g * lanes.group) for g in range(groups)
            ]
            step = t.op("lshr", r, Value("i64", "6"))
            _step(f, lanes, bases, once, t.add(start, r), masks, step)

        if _is_long(f.spec.rule) and vector_bytes() == 64:  # where masks cost nothing
            with t.loop(0, count, LANES) as r:  # one copy of the rule does for all steps
                some(r)
        else:
            whole = t.op("and", count, Value("i64", str(-LANES)))
            with t.loop(0, whole, LANES) as r:
                step = t.op("lshr", r, Value("i64", "6"))
                _step(f, lanes, bases, once, t.add(start, r), [None] * groups, step)
            with t.when(t.compare("icmp ne", whole, count)):
                some(whole)
        joined = f.monoid.join([v.get() for v in total], lanes.finish(groups, start))
        for v, new in zip(total, joined, strict=True):
            v.set(new)
    return [v.get() for v in total]


def _is_long(rule: Scalar | None) -> bool:
    return rule is not None and sum(1 for _ in walk([rule])) > LONG


def _step(
    f: Frame,
    lanes: Lanes,
    bases: list[Value],
    once: dict[int, Value],
    at: Value,
    masks: list[Value | None],
    step: Value,
) -> None:
    """One value for each lane of each group that has a mask (None: all of it), from elements `at`
    and on.
    """
    t = f.t
    for number, mask in enumerate(masks):
        offset = t.add(at, number * lanes.group)
        loads = [
            once[i]
            if i in once
            else read(t, d, t.at(bases[i], memory(d), offset), lanes.group, mask)
            for i, d in enumerate(f.spec.inputs)
        ]
        lanes.take(number, f.value(loads, None)[0], step, mask)
