"""Contractions: which operand is broadcast and which is read in vectors, what is packed, how the
result is cut into tasks.

`weft.ops.contraction` says what is computed, docs/numerics.md in which order. Nothing chosen here
changes a bit.
"""

from __future__ import annotations

from dataclasses import replace

from weft.buffer import Layout
from weft.ops.contraction import Contraction
from weft.schedule.contract_blocks import Blocks, choose, up
from weft.schedule.contract_labels import Group, Operand, Problem, resolve
from weft.schedule.contract_spec import (
    SQUARE,
    TURN,
    WIDE,
    ContractSpec,
    Ending,
    Epilogue,
    accumulator,
)
from weft.schedule.launch import Launch, Phase
from weft.types import TensorType

#: products above which a launch is worth the thread pool
HEAVY = 1 << 19
#: products up to which r is read in place: packing would not pay
SMALL = 1 << 15
#: steps from which columns that are dense along the sum are read in place, for few rows
DENSE = 16
#: rows of l so many bytes apart, or a multiple, fall in the same few places of a first-level cache
CLASH = 4096
#: steps of depth so many bytes apart are slow to read again and again
FAR_APART = 1024


def plan_contract(
    a: Layout,
    b: Layout,
    c: Contraction,
    threads: int,
    vector: int = 64,
    epilogue: Epilogue | None = None,
) -> Launch:
    """The launch of `c` on operands of these layouts; `vector` is the bytes of a register.

    The result is dense, its axes in the order of `c.out`. With an epilogue, operands are a, b and
    its extras, and there is such a result for each of its rules.
    """
    p, out = resolve(a, b, c, epilogue.extras if epilogue else ())
    outs = (out,)
    if epilogue:
        shape = out.type.shape
        outs = tuple(Layout.dense(TensorType(shape, r.dtype)) for r in epilogue.rules)
    if not out.type.size:
        return Launch(outs)
    heavy = p.batch.size * p.rows.size * p.cols.size * p.steps > HEAVY
    if not heavy:
        threads = 1
    spec = _spec(p, vector)
    if epilogue:
        spec = replace(spec, ending=_ending(p, epilogue))
    blocks = choose(p, spec, threads)
    numbers = epilogue.numbers if epilogue else ()
    return _launch(p, replace(spec, shared=blocks.shared), blocks, threads, outs, heavy, numbers)


def _spec(p: Problem, vector: int) -> ContractSpec:
    """How the operands come to the tile, and which tile."""
    dtype, square, wide = p.dtype, SQUARE[vector], WIDE[vector]
    in_place = accumulator(dtype) is dtype and p.depth.flat("l") and p.depth.flat("r")
    l_flat = in_place and not p.l.windowed and p.rows.flat("l")
    r_flat = in_place and not p.r.windowed and p.cols.flat("r") and p.cols.strides("r")[-1] == 1
    few = p.rows.size <= square.heights[0]
    small = p.rows.size * p.cols.size * p.steps <= SMALL
    r = "place" if r_flat and (few or small) else _packing(p.cols, p.depth, p.r, "r")
    tile = square
    if p.rows.size <= wide.heights[0]:
        if r == "place":
            tile = wide
        elif r == "depth" and not p.r.windowed and p.depth.flat("r") and p.steps >= DENSE:
            r, tile = "turn", TURN[vector]
    spec = ContractSpec(dtype, tile, "place", r, slab_r=p.r.copying)
    apart, deep = (g.strides("l")[-1] * dtype.itemsize for g in (p.rows, p.depth))
    worth = p.rows.size > 4 and p.steps > 64 and p.cols.size > spec.panel
    if l_flat and not (worth and (apart % CLASH == 0 or abs(deep) >= FAR_APART)):
        return spec
    return replace(spec, l=_packing(p.rows, p.depth, p.l, "l"), slab_l=p.l.copying)


def _packing(lanes: Group, depth: Group, operand: Operand, side: str) -> str:
    """Along which axis an operand is read in vectors."""
    step, run = operand.step(lanes, side), lanes.sizes[-1]
    deep = operand.step(depth, side) == 1
    if step in (1, 2) and (run >= 8 or not deep or depth.sizes[-1] < run):
        return "near" if step == 1 else "even"
    return "depth" if deep else "any"


def _ending(p: Problem, epilogue: Epilogue) -> Ending:
    """How an epilogue's operands run along the columns."""
    modes = ""
    for name in ("c", *(f"e{i}" for i in range(len(epilogue.extras)))):
        strides = p.cols.strides(name)
        modes += "c" if strides[-1] == 1 else "s" if any(strides) else "b"
    dtypes = tuple(x.type.dtype for x in epilogue.extras)
    return Ending(epilogue.rules, dtypes, modes, len(epilogue.numbers))


def _run(p: Problem, ending: Ending) -> int:
    """How many columns in a row are neighbours in all operands that have any."""
    names = zip(("c", *ending.extras), ending.modes, strict=True)
    strides = [p.cols.strides(name) for name, mode in names if mode == "c"]
    run = p.cols.sizes[-1]
    for i in reversed(range(len(p.cols.sizes) - 1)):
        if any(s[i] != run for s in strides):
            break
        run *= p.cols.sizes[i]
    return run


def _launch(
    p: Problem, spec: ContractSpec, blocks: Blocks, threads: int, outs: tuple[Layout, ...],
    heavy: bool, numbers: tuple[int, ...],
) -> Launch:  # fmt: skip
    rows, cols, depth = blocks.rows, blocks.cols, blocks.depth
    depth_blocks = max(1, -(-p.steps // depth))
    tasks = p.batch.size * rows.blocks * cols.blocks
    work = rows.block * cols.block * max(p.steps, 1)  # products of a task
    shared = cols.blocks * up(cols.block, spec.panel) * p.batch.size * p.steps * spec.wide
    item = spec.dtype.itemsize
    values = dict.fromkeys(spec.header, 0) | {
        "l_word": p.l.word,
        "r_word": p.r.word,
        "rows": p.rows.size,
        "cols": p.cols.size,
        "depth": p.steps,
        "row_block": rows.block,
        "col_block": cols.block,
        "depth_block": depth,
        "row_blocks": rows.blocks,
        "col_blocks": cols.blocks,
        "depth_blocks": depth_blocks,
        "row_span": rows.span,
        "col_span": cols.span,
        "row_span_blocks": rows.span_blocks,
        "col_span_blocks": cols.span_blocks,
        "shared": up(shared, 64) if spec.shared else 0,
        "l_row": p.rows.strides("l")[-1] * item,
        "l_depth": p.depth.strides("l")[-1] * item,
        "r_depth": p.depth.strides("r")[-1] * item,
        "l_run": p.rows.sizes[-1],
        "r_run": p.cols.sizes[-1],
        "l_depth_run": p.depth.sizes[-1],
        "r_depth_run": p.depth.sizes[-1],
        "c_flat": int(p.rows.flat("c")),
        "c_row": p.rows.strides("c")[-1] * item,
        # about every millisecond; a step of depth takes its time even for a single element
        "poll": max(1, (1 << 25) // max(work // depth_blocks, 64 * depth)),
    }
    if spec.ending:
        values |= {"run": _run(p, spec.ending)} | {f"n{k}": n for k, n in enumerate(numbers)}
    at = 0
    for name, size in _room(p, spec, blocks).items():
        values[name] = at
        at = up(at + size, 64)
    values["slice"] = at
    tail: list[int] = []
    for name, group in zip(("batch", "rows", "cols", "depth"), p.groups, strict=True):
        values[f"{name}_at"] = len(values) + len(tail)
        strides = (s for operand in spec.operands for s in group.strides(operand))
        tail += [len(group.sizes), *group.sizes, *strides]
    for side, operand, lanes in (("l", p.l, p.rows), ("r", p.r, p.cols)):
        values[f"axes_{side}_at"] = len(values) + len(tail)
        axes = operand.axes((p.batch, lanes, p.depth))
        tail += [len(axes), *(v for x in axes for v in x)]
    grain = max(1, min((1 << 18) // work, tasks // (4 * threads)))
    phases = [Phase(spec, tasks, grain)]
    if spec.shared:
        phases.insert(0, Phase(spec, p.batch.size * cols.blocks * depth_blocks, 1, "pack"))
    params = (*values.values(), *tail)
    return Launch(outs, tuple(phases), params, values["shared"], heavy, worker_scratch=at)


def _room(p: Problem, spec: ContractSpec, blocks: Blocks) -> dict[str, int]:
    """Bytes of each part of a worker's scratch memory."""
    rows, cols, depth, lanes = blocks.rows.block, blocks.cols.block, blocks.depth, spec.lanes
    heights, widths = spec.tile.heights, spec.tile.widths
    # blocks of depth but the last leave a result where it cannot be finished: one for each tile
    tiles = (rows // heights[0] + len(heights)) * (cols // spec.panel + sum(widths))
    panels = 1 if spec.r in ("place", "turn") else -(-cols // spec.panel)
    room = {
        "rows_l": 8 * (rows + lanes),
        "rows_c": 8 * rows,
        "cols_r": 8 * (cols + lanes),
        "cols_c": 8 * cols,
        "depth_l": 8 * depth,
        "depth_r": 8 * depth,
        "packed_l": 0 if spec.l == "place" else depth * spec.l_panel * spec.wide,
        "packed_r": 0 if spec.shared else panels * depth * spec.panel * spec.wide,
        "partial": (1 if depth >= p.steps else tiles) * heights[0] * spec.panel * spec.wide,
        "slab_l": p.l.slab(p.batch, p.rows, rows, p.depth, depth) * spec.dtype.itemsize,
        "slab_r": p.r.slab(p.batch, p.cols, cols, p.depth, depth) * spec.dtype.itemsize,
    }
    if spec.ending:
        room["partial"] += spec.tile.vector  # read in whole vectors from any column on
        for name in spec.ending.extras:
            room |= {f"rows_{name}": 8 * rows, f"cols_{name}": 8 * cols}
    return room
