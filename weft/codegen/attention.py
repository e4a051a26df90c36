"""The attention kernel: see `weft.schedule.attention` for what it computes and WORDS for its params.

A task has a matrix, or some of its rows. It packs the keys for the tiles of a contraction, then goes
block by block: scaled queries, scores, weights, results.
"""

from __future__ import annotations

from weft.codegen.attention_parts import (
    behind_function,
    bring_function,
    line_function,
    tiles,
    transpose_function,
)
from weft.codegen.attention_rows import mask_dtype, softmax_function
from weft.codegen.contract_index import NO, both, call, down, equal, function, arg, get
from weft.codegen.contract_pack import Packing
from weft.codegen.extern import Kernel
from weft.codegen.registers import literal, memory
from weft.codegen.text import Text, Value, i64, module
from weft.codegen.verbs import cast
from weft.schedule.attention import WORDS, Attention
from weft.types.dtype import float64


def lower(spec: Attention) -> str:
    p = Packing(spec.products)
    globals_, parts = tiles(spec.products)
    parts += [p.any(), p.from_depth(), bring_function(spec.products)]
    parts += [transpose_function(spec.products), scale_function(spec), softmax_function(spec)]
    parts += [store_function(spec)]
    if spec.mask:
        parts.append(line_function(mask_dtype(spec)))
    if spec.skips:
        parts.append(behind_function(spec.products))
    return globals_ + module(*parts, _kernel(spec))


def _kernel(spec: Attention) -> Kernel:
    t = Kernel(spec.inputs + 1)
    with t.tasks() as task:
        _task(Task(t, spec, task, WORDS))
    t.ret()
    return t


def _task(k: Task) -> None:
    t, spec, p = k.t, k.spec, k.p
    q, key, value = (k.operand(n, p.element) for n in range(3))
    mask = k.operand(3, memory(mask_dtype(spec))) if spec.mask else None
    out = k.result(spec.inputs, k["rows"], k["width"])
    low = t.mul(k.part, k["span"])
    high = t.min(t.add(low, k["span"]), k["rows"])
    sides = (k["k_row"], k["k_col"], k["keys"], k["depth"])
    call(t, "void", "transpose", k.room("keys"), key, *sides, k.room("table"))
    values, v_row = _values(k, value)
    if spec.skips:
        _behind(k, values, v_row, low, high)
    with t.loop(low, high, k["block"]) as i:
        with t.when(t.compare("icmp ne", i, low)):
            t.poll()
        rows = t.min(k["block"], t.sub(high, i))
        limit = t.min(k["keys"], t.add(i, rows)) if spec.skips else k["keys"]
        scores(k, q, i, rows, limit)
        weigh(k, mask, i, rows, limit)
        wide, pitch = i64(p.wide), k.bytes("pitch")
        l = (k.room("scores"), pitch, wide)
        r = (values, v_row, i64(p.panel_bytes))
        c = (k.room("out"), k.bytes("width_pitch"), NO)
        call(t, "void", "product", rows, k["width"], limit, *l, *r, *c)
        if spec.skips:
            number = t.op("udiv", t.sub(i, low), k["block"])
            ends = t.at(k.room("behind"), p.one, t.mul(number, k["width_pitch"]))
            _add(k, k.room("out"), ends, rows, k["width_pitch"])
        to = p.element_at(t, out, t.mul(i, k["width"]))
        call(t, "void", "store", to, k.room("out"), k["width_pitch"], rows, k["width"])


def _values(k: Task, source: Value) -> tuple[Value, Value]:
    """Where values are read, and how many bytes apart rows are: in place, where that is in whole
    panels.
    """
    t, spec, p = k.t, k.spec, k.p
    to, pitch = k.room("values"), k["width_pitch"]
    place = NO
    if spec.dtype is p.acc:
        place = both(t, equal(t, k["v_col"], 1), equal(t, k["width"], pitch))
    with t.when(t.op("xor", place, Value("i1", "true"))):
        sides = (k["v_row"], k["v_col"], k["keys"], k["width"])
        call(t, "void", "bring", to, pitch, source, *sides)
    row = t.select(place, k["v_row"], pitch)
    return t.select(place, source, to), t.mul(row, p.wide)
