"""The contraction kernel, for matrix products, convolutions and their gradients.

A task (contract_task) cuts a block of the result into tiles, in registers (contract_tile); the
operands come to it in place or packed (contract_feed, contract_pack), through padded copies where
windows reach over the border (contract_slab).
"""

from __future__ import annotations

from weft.codegen.contract_feed import has_rows, pack_columns_function, prepare_function
from weft.codegen.contract_index import (
    Frame,
    arg,
    call,
    div,
    divide_function,
    offset_function,
    ranges_function,
    table_function,
)
from weft.codegen.contract_pack import Packing, masked
from weft.codegen.contract_slab import slab_function
from weft.codegen.contract_task import Task, finish_function, shared_panels
from weft.codegen.contract_tile import tile_function, tile_name, turning_tile_function
from weft.codegen.text import Text, i64, module
from weft.schedule.contract_spec import ContractSpec


def lower(spec: ContractSpec) -> str:
    """The module of a contraction: "kernel", and "pack" where columns are packed for all tasks."""
    p, modes = Packing(spec), {spec.l, spec.r}
    parts = [divide_function(), offset_function(), table_function()]
    if spec.r == "turn":
        parts += [turning_tile_function(spec, rows) for rows, _ in spec.shapes]
    else:
        parts += [tile_function(spec, *shape) for shape in spec.shapes]
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
    elif spec.r != "turn":
        parts += [prepare_function(spec, "r"), pack_columns_function(spec)]
    if has_rows(spec):
        parts.append(p.from_rows())
    parts += [finish_function(spec), _kernel(spec)]
    if spec.shared:
        parts.append(_pack(spec))
    names = ", ".join(f"ptr @{tile_name(*shape)}" for shape in spec.shapes)
    tiles = f"@tiles = internal constant [{len(spec.shapes)} x ptr] [{names}]"
    zeros = f"@zeros = internal constant [{p.panel_bytes} x i8] zeroinitializer, align 64"
    return f"{tiles}\n{zeros}\n{module(*parts)}"


def _entry(name: str) -> Text:
    """A function that runs tasks; %slice is the worker's own scratch memory."""
    t = Text(f"i64 @{name}(ptr %frame, i64 %lo, i64 %hi, i64 %worker)")
    f = Frame(t)
    behind = t.add(f["shared"], t.mul(arg("worker"), f["slice"]))
    t.emit(f"%slice = getelementptr i8, {t.pointer(f.address, 2)}, {behind}")
    return t


def _kernel(spec: ContractSpec) -> Text:
    t = _entry("kernel")
    before = t.variable(i64(-1))
    with t.loop(arg("lo"), arg("hi")) as task:
        Task(t, spec, task, before).emit()
    t.ret()
    return t


def _pack(spec: ContractSpec) -> Text:
    """Pack r for all tasks: one block of columns and one of depth each."""
    t = _entry("pack")
    f = Frame(t)
    with t.loop(arg("lo"), arg("hi")) as task:
        block = div(t, task, f["depth_blocks"])
        depth = t.mul(t.sub(task, t.mul(block, f["depth_blocks"])), f["depth_block"])
        steps = t.min(f["depth_block"], t.sub(f["depth"], depth))
        batch = div(t, block, f["col_blocks"])
        col, count = f.block(t.sub(block, t.mul(batch, f["col_blocks"])), "col")
        to = shared_panels(t, spec, block, depth)
        args = (f.address, arg("slice", "ptr"), batch, col, count, depth, steps, *to)
        call(t, "void", "pack_columns", *args)
    t.ret()
    return t
