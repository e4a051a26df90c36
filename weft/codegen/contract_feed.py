"""How operands come to the tiles: tables of offsets for a block, a padded copy if windows need one,
packed vectors.
"""

from __future__ import annotations

from weft.codegen.contract_index import (
    MAX_LABELS,
    MEMORY,
    Frame,
    arg,
    at,
    call,
    div,
    equal,
    function,
    get,
    memory,
    rem,
)
from weft.codegen.contract_pack import Packing, clear_last
from weft.codegen.text import Text, Value, i64
from weft.schedule.contract_spec import ContractSpec

LANES = {"l": "rows", "r": "cols"}  # the group of labels along which an operand is packed
BLOCK = {"batch": "i64", "lane": "i64", "count": "i64", "depth": "i64", "steps": "i64"}


def prepare_function(spec: ContractSpec, side: str) -> Text:
    """prepare_l, prepare_r(MEMORY, batch, lane, count, depth, steps): fill the tables of offsets of
    `count` lanes and `steps` of depth; gives what they count from. If the operand has windows, that
    is a copy of what these see.
    """
    t = function(f"prepare_{side}", "ptr", **MEMORY, **BLOCK)
    f, p = Frame(t, spec), Packing(spec)
    source = t.pointer(f.address, f[f"{side}_word"])
    ranges = (
        ("batch", arg("batch"), i64(1)),
        (LANES[side], arg("lane"), arg("count")),
        ("depth", arg("depth"), arg("steps")),
    )
    groups = [f.group(name, side) for name, _, _ in ranges]
    if spec.slab_l if side == "l" else spec.slab_r:
        lows, highs, strides = (t.scratch("i64", MAX_LABELS) for _ in range(3))
        if spec.parts:  # some have no steps: then as if there were one
            some = t.select(equal(t, arg("steps"), 0), i64(1), arg("steps"))
            ranges = (*ranges[:2], ("depth", arg("depth"), some))
        first = i64(0)
        for g, ((n, sizes, _), (_, start, count)) in enumerate(zip(groups, ranges, strict=True)):
            ends = (at(t, lows, first), at(t, highs, first))
            call(t, "void", "ranges", start, count, n, sizes, *ends)
            groups[g] = (n, sizes, at(t, strides, first))  # what they are in the copy
            first = t.add(first, n)
        axes, copy = f.words(f"axes_{side}_at"), f.part(f"slab_{side}")
        box = (get(t, axes, 0), at(t, axes, 1), lows, highs, strides)
        source = p.element_at(t, copy, call(t, "i64", "slab", copy, source, *box))
    source = p.element_at(t, source, call(t, "i64", "offset", arg("batch"), *groups[0]))
    for group, (name, start, count) in zip(groups[1:], ranges[1:], strict=True):
        call(t, "void", "table", f.part(f"{name}_{side}"), start, count, *group)
    t.emit(f"ret {source}")
    return t


def pack_vector(
    t: Text, spec: ContractSpec, side: str, out: Value, row: int, source: Value, lane: Value,
    start: Value, count: Value, depth: Value, steps: Value,
) -> None:  # fmt: skip
    """Pack the lanes that follow the `lane`-th of a block, which begins with lane `start` of the
    operand.
    """
    f, mode = Frame(t, spec), spec.l if side == "l" else spec.r
    tables = at(t, f.part(f"{LANES[side]}_{side}"), lane), f.part(f"depth_{side}")
    args = (out, i64(row), source, tables[0], count, tables[1], steps)
    if mode == "any":
        call(t, "void", "pack_any", *args)
        return
    name, position = ("depth_run", depth) if mode == "depth" else ("run", t.add(start, lane))
    run = f[f"{side}_{name}"]
    call(t, "void", f"pack_{mode}", *args, rem(t, position, run), run)


def pack_columns_function(spec: ContractSpec) -> Text:
    """pack_columns(MEMORY, batch, lane, count, depth, steps, out, panel): a block of r, in panels
    `panel` bytes apart, the last filled up with zeros.
    """
    t = function("pack_columns", "void", **MEMORY, **BLOCK, out="ptr", panel="i64")
    f, p = Frame(t, spec), Packing(spec)
    out, lane, count, steps = arg("out", "ptr"), arg("lane"), arg("count"), arg("steps")
    block = (arg(name, kind) for name, kind in BLOCK.items())
    source = call(t, "ptr", "prepare_r", *memory(), *block)
    clear_last(t, spec, out, count, steps, arg("panel"))
    if spec.r == "rows":
        begin = p.element_at(t, source, get(t, f.part("cols_r"), 0))
        args = (out, arg("panel"), begin, count, f.part("depth_r"), steps)
        call(t, "void", "pack_rows", *args)
        t.emit("ret void")
        return t
    with t.loop(0, count, spec.lanes) as j:
        panel = t.at(out, "i8", t.mul(div(t, j, i64(spec.panel)), arg("panel")))
        to = t.at(panel, p.one, rem(t, j, i64(spec.panel)))
        some = t.min(t.sub(count, j), spec.lanes)
        pack_vector(t, spec, "r", to, p.panel_bytes, source, j, lane, some, arg("depth"), steps)
    t.emit("ret void")
    return t
