"""The kernels of attention and its gradient: see `weft.schedule.attention` for what they compute
and WORDS for their params.

A task has a matrix, or some of its rows. It packs the keys for the tiles of a contraction, then
goes block by block: scaled queries, scores, weights, results.
"""

from __future__ import annotations

from weft.codegen.attention_grad import gradient
from weft.codegen.attention_parts import (
    behind_function,
    bring_function,
    line_function,
    scale_function,
    small_function,
    store_function,
    tiles,
    transpose_function,
)
from weft.codegen.attention_rows import mask_dtype, slopes_function, softmax_function
from weft.codegen.attention_task import Task
from weft.codegen.contract_index import call
from weft.codegen.contract_pack import Packing, clear
from weft.codegen.extern import Kernel
from weft.codegen.text import module
from weft.schedule.attention import Attention


def lower(spec: Attention) -> str:
    products = spec.products
    p = Packing(products)
    globals_, parts = tiles(products)
    parts += [p.any(), p.from_depth(), bring_function(products), transpose_function(products)]
    parts += [scale_function(products), store_function(products), softmax_function(spec)]
    if spec.grad:
        parts.append(slopes_function(spec))
    if spec.mask:
        parts.append(line_function(mask_dtype(spec)))
    if spec.skips:
        parts += [behind_function(products), small_function(products)]
    t = Kernel(spec.inputs + (3 if spec.grad else 1))
    with t.tasks() as task:
        k = Task(t, spec, task)
        gradient(k) if spec.grad else _attend(k)
    t.ret()
    return globals_ + module(*parts, t)


def _attend(k: Task) -> None:
    t, spec, p = k.t, k.spec, k.p
    q, key, value = (k.operand(n) for n in range(3))
    mask = k.operand(3) if spec.mask else None
    out = k.result(0, "rows", "width")
    low = t.mul(k.part, k["span"])
    high = t.min(t.add(low, k["span"]), k["rows"])
    k.pack("keys", key, "k", "depth")
    values, v_row = k.in_place(value, "v", "width", "values", "width_pitch")
    if spec.skips:
        k.behind(values, v_row, low, high, "width_pitch")
        clear(t, k.room("out"), k.block_bytes("width_pitch"))  # see contract_pack
    with t.loop(low, high, k["block"]) as i:
        with t.when(t.compare("icmp ne", i, low)):
            t.poll()
        rows = t.min(k["block"], t.sub(high, i))
        limit = t.min(k["keys"], t.add(i, rows)) if spec.skips else k["keys"]
        k.weigh(q, mask, i, rows, limit)
        l, r = k.block("scores", "pitch"), k.near(values, v_row)
        k.product(rows, k["width"], limit, l, r, "out", "width_pitch")
        if spec.skips:
            k.add_behind(t.op("udiv", t.sub(i, low), k["block"]), rows, "width_pitch")
        to = p.element_at(t, out, t.mul(i, k["width"]))
        call(t, "void", "store", to, k.room("out"), k["width_pitch"], rows, k["width"])
