"""The contraction kernel, for matrix products, convolutions and their gradients.

A task (contract_task) cuts a block of the result into tiles, in registers (contract_tile); the
operands come to it in place or packed (contract_feed, contract_pack), through padded copies where
windows reach over the border (contract_slab).
"""

from __future__ import annotations

from functools import lru_cache

from weft.codegen.contract_feed import pack_columns_function, prepare_function
from weft.codegen.contract_finish import (
    end_function,
    finish_function,
    finish_name,
    finish_turned_function,
    foresee_function,
    turn_function,
)
from weft.codegen.contract_index import (
    CODE,
    MEMORY,
    Frame,
    arg,
    at,
    call,
    div,
    divide_function,
    equal,
    function,
    get,
    invert,
    memory,
    offset_function,
    put,
    ranges_function,
    table_function,
)
from weft.codegen.contract_pack import Packing, masked
from weft.codegen.contract_slab import slab_function
from weft.codegen.contract_task import Task, shared_panels, tiles_function
from weft.codegen.contract_tile import tile_function, tile_name, turning_tile_function
from weft.codegen.text import Text, Value, i64, module
from weft.schedule.contract_spec import OPERANDS, PART, ContractSpec


def lower(spec: ContractSpec) -> str:
    """The module of a contraction: "kernel", and "pack" where columns are packed for all tasks."""
    p, modes = Packing(spec), {spec.l, spec.r}
    parts = [divide_function(), offset_function(), table_function()]
    parts += _tiles(ContractSpec(spec.dtype, spec.tile, spec.l, spec.r))
    if modes & {"any", "depth"} or (modes & {"near", "even"} and not masked(spec)):
        parts.append(p.any())
    for stride, mode in ((1, "near"), (2, "even")):
        if mode in modes:
            parts.append(p.from_runs(stride))
    if "depth" in modes:
        parts.append(p.from_depth())
    if spec.slab_l or spec.slab_r:
        parts += [ranges_function(), slab_function(spec)]
    if spec.l != "place":
        parts.append(prepare_function(spec, "l"))
    if spec.r == "place":
        parts.append(p.tail())
    elif p.packed:
        parts += [prepare_function(spec, "r"), pack_columns_function(spec)]
    if spec.r == "rows":
        parts.append(p.from_rows())
    if spec.turned:
        parts.append(turn_function(spec))
    if spec.ending:
        parts += [end_function(spec, spec.ending), foresee_function(spec, spec.ending)]
    else:
        parts.append(finish_function(spec))
        if spec.turned and masked(spec):
            parts.append(finish_turned_function(spec))
    parts += [tiles_function(spec), _tasks(spec), _kernel(spec)]
    if spec.shared:
        parts.append(_pack(spec))
    if spec.parts:
        parts += [_parts(spec, name) for name in ("kernel", "pack")[: 1 + spec.shared]]
    own = {"end": "end", "foresee": "foresee"} if spec.ending else {"end": finish_name(spec)}
    own |= {"zeros": "zeros"} | ({"pack_columns": "pack_columns"} if p.packed else {})
    names = [*map(own.get, CODE), *(tile_name(*shape) for shape in spec.shapes)]
    said = ", ".join(f"ptr @{name}" if name else "ptr null" for name in names)
    code = f"@code = internal constant [{len(names)} x ptr] [{said}]"
    zeros = f"@zeros = internal constant [{p.panel_bytes} x i8] zeroinitializer, align 64"
    return f"{code}\n{zeros}\n{module(*parts)}"


@lru_cache(64)
def _tiles(spec: ContractSpec) -> list[Text]:
    """The tiles, which depend on no more than this of a spec."""
    if spec.r == "turn":
        return [turning_tile_function(spec, rows) for rows, _ in spec.shapes]
    return [tile_function(spec, *shape) for shape in spec.shapes]


def _entry(spec: ContractSpec, name: str) -> Text:
    """A function that runs tasks; %params is where the params are, %slice the worker's own
    scratch memory."""
    name = f"internal i64 @part_{name}" if spec.parts else f"i64 @{name}"
    t = Text(f"{name}(ptr %frame, i64 %lo, i64 %hi, i64 %worker)", runs_seldom=True)
    f = Frame(t, spec)
    t.emit(f"%params = getelementptr i64, {f.address}, i64 {spec.params}")
    behind = t.add(f["shared"], t.mul(arg("worker"), f["slice"]))
    t.emit(f"%slice = getelementptr i8, {t.pointer(f.address, 2)}, {behind}")
    return t


def _kernel(spec: ContractSpec) -> Text:
    t = _entry(spec, "kernel")
    skips = Value("ptr", "null")
    if spec.ending:
        skips = t.scratch("i64", 1 + len(spec.ending.extras))
    ends = (arg("lo"), arg("hi"), arg("worker"))
    t.ret(call(t, "i64", "tasks", *memory(), Value("ptr", "@code"), skips, *ends))
    return t


def _tasks(spec: ContractSpec) -> Text:
    """tasks(MEMORY, code, skips, lo, hi, worker): see CODE; `skips` has room for where a batch
    element begins in the results and the extra operands.
    """
    ends = dict.fromkeys(("lo", "hi", "worker"), "i64")
    t = function("tasks", "i64", **MEMORY, code="ptr", skips="ptr", **ends)
    t.runs_seldom = True
    before = t.variable(i64(-1))
    with t.loop(arg("lo"), arg("hi")) as task:
        Task(t, spec, task, before).emit()
    t.ret()
    return t


def _pack(spec: ContractSpec) -> Text:
    """Pack r for all tasks: a part of a block of columns and of the depth each."""
    t = _entry(spec, "pack")
    f = Frame(t, spec)
    with t.loop(arg("lo"), arg("hi")) as task:
        which = div(t, task, f["pack_parts"])
        skip = t.mul(t.sub(task, t.mul(which, f["pack_parts"])), f["pack_cols"])
        block = div(t, which, f["pack_depths"])
        depth = t.mul(t.sub(which, t.mul(block, f["pack_depths"])), f["pack_depth"])
        steps = t.min(f["pack_depth"], t.sub(f["depth"], depth))
        batch = div(t, block, f["col_blocks"])
        col, count = f.block(t.sub(block, t.mul(batch, f["col_blocks"])), "col")
        count = t.min(f["pack_cols"], t.sub(count, skip))
        out, panel = shared_panels(t, spec, block, depth)
        out = t.at(out, "i8", t.mul(div(t, skip, i64(spec.panel)), panel))
        args = (*memory(), batch, t.add(col, skip), count, depth, steps)
        with t.when(t.lt(i64(0), count)):  # the last block may be smaller
            call(t, "void", "pack_columns", *args, out, panel)
    t.ret()
    return t


def _parts(spec: ContractSpec, name: str) -> Text:
    """Run tasks of several contractions, each with a frame of its own in stack memory."""
    t = Text(f"i64 @{name}(ptr %frame, i64 %lo, i64 %hi, i64 %worker)", runs_seldom=True)
    frame, first = arg("frame", "ptr"), spec.params
    n, words = t.word(frame, first), t.word(frame, t.add(i64(first), 1))
    own = t.let("ptr", f"alloca i64, {words}, align 64")
    begin = t.variable(i64(0))
    moves = spec.params - OPERANDS
    with t.loop(0, n) as i:
        here = at(t, frame, t.add(t.mul(i, len(PART) + moves), first + 2))
        end = get(t, here, PART.index("tasks" if name == "kernel" else "packs"))
        start = begin.get()
        low = t.select(t.lt(start, arg("lo")), arg("lo"), start)
        high = t.min(end, arg("hi"))
        with t.when(t.lt(low, high)):
            t.store(frame, own, 8)  # for the one who asks whether to stop
            put(t, get(t, frame, 1), own, 1)
            put(t, t.add(get(t, frame, 2), get(t, here, PART.index("shared"))), own, 2)
            with t.loop(0, moves) as k:
                moved = t.add(get(t, frame, t.add(k, OPERANDS)), get(t, here, t.add(k, len(PART))))
                put(t, moved, own, t.add(k, OPERANDS))
            from_ = at(t, frame, t.add(get(t, here, PART.index("at")), first))
            with t.loop(0, get(t, here, PART.index("count"))) as k:
                put(t, get(t, from_, k), own, t.add(k, first))
            tasks = (t.sub(low, start), t.sub(high, start), arg("worker"))
            code = call(t, "i64", f"part_{name}", own, *tasks)
            with t.when(invert(t, equal(t, code, 0))):
                t.ret(code)
                t.label(t.fresh("dead"))
        begin.set(end)
    t.ret()
    return t
