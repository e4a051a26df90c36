"""The code of a task of attention's gradient: a matrix, block by block of its rows.

With w the weights, s the scores: dw = g vᵀ, ds = w * (dw - sum(dw * w)), dq = ds k * scale,
dk = dsᵀ (q * scale), dv = wᵀ g. The last two are sums over all rows and go on from block to block.
"""

from __future__ import annotations

from weft.codegen.attention_task import Task
from weft.codegen.contract_index import YES, both, call, equal
from weft.codegen.contract_pack import clear
from weft.codegen.text import Value, i64
from weft.types.dtype import float16


def gradient(k: Task) -> None:
    t, spec, p = k.t, k.spec, k.p
    g, q, key, value = (k.operand(n) for n in range(4))
    mask = k.operand(4) if spec.mask else None
    depth, width, keys = k["depth"], k["width"], k["keys"]
    k.pack("keys", key, "k", "depth")
    k.pack("values_t", value, "v", "width")
    key_rows, k_row = k.in_place(key, "k", "depth", "rows", "depth_pitch")
    for name, pitch in (("key_sums", "depth_pitch"), ("value_sums", "width_pitch")):
        with t.loop(0, t.mul(keys, k[pitch]), p.lanes) as i:
            t.store(Value(p.many, "zeroinitializer"), t.at(k.room(name), p.one, i), p.wide)
    for name, pitch in (("slopes", "pitch"), ("out", "depth_pitch")):  # see contract_pack
        clear(t, k.room(name), k.block_bytes(pitch))
    skips = spec.skips and spec.dtype is not float16  # whose range is too small to be sure
    if skips:
        skip = _bounded(k, g, q, key, value)
        k.behind(key_rows, k_row, i64(0), k["rows"], "depth_pitch")
    with t.loop(0, k["rows"], k["block"]) as i:
        with t.when(t.compare("icmp ne", i, i64(0))):
            t.poll()
        rows = t.min(k["block"], t.sub(k["rows"], i))
        limit = t.select(skip, t.min(keys, t.add(i, rows)), keys) if skips else keys
        k.weigh(q, mask, i, rows, limit)
        k.bring("grads", "width_pitch", k.from_row(g, "g", i), "g", rows, "width")
        l, r = k.block("grads", "width_pitch"), k.packed("values_t", width)
        k.product(rows, limit, width, l, r, "slopes", "pitch")
        common = (*k.rows(i, rows, limit), k.room("slopes"))
        call(t, "void", "slopes", *common, *k.masked(mask))
        l, r = k.block("slopes", "pitch"), k.near(key_rows, k_row)
        k.product(rows, depth, limit, l, r, "out", "depth_pitch")
        if skips:
            with t.when(skip):
                k.add_behind(t.op("udiv", i, k["block"]), rows, "depth_pitch")
        k.scale("out", rows)
        to = p.element_at(t, k.result(0, "rows", "depth"), t.mul(i, depth))
        call(t, "void", "store", to, k.room("out"), k["depth_pitch"], rows, depth)
        for of, by, cols, pitch, to_ in (
            ("slopes", "queries", depth, "depth_pitch", "key_sums"),
            ("scores", "grads", width, "width_pitch", "value_sums"),
        ):
            r = k.near(k.room(by), k.bytes(pitch))
            k.product(limit, cols, rows, k.across(of, "pitch"), r, to_, pitch, YES)
    for n, name, side in ((1, "key_sums", "depth"), (2, "value_sums", "width")):
        to = k.result(n, "keys", side)
        call(t, "void", "store", to, k.room(name), k[f"{side}_pitch"], keys, k[side])


def _bounded(k: Task, g: Value, q: Value, key: Value, value: Value) -> Value:
    """Whether all operands are so small that no sum overflows."""
    t, keys, rows = k.t, k["keys"], k["rows"]
    found = [equal(t, k["bounded"], 1)]
    for x, letter, count, cols in (
        (g, "g", rows, "width"),
        (q, "q", rows, "depth"),
        (key, "k", keys, "depth"),
        (value, "v", keys, "width"),
    ):
        found.append(call(t, "i1", "small", x, *k.sides(letter), count, k[cols]))
    return both(t, *found)
