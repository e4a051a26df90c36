"""Contractions: which operand is broadcast and which is read in vectors, what is packed, how the result is cut into tasks.

None of these choices changes a bit: `weft.ops.contraction` states the order of each sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from weft.buffer import Layout
from weft.ops.contraction import Contraction
from weft.schedule.contract_blocks import Blocks, Cut, choose, up
from weft.schedule.contract_labels import Group, Operand, Problem, resolve
from weft.schedule.contract_spec import AXIS, HEADER, SQUARE, WIDE, ContractSpec, accumulator
from weft.schedule.launch import Launch, Phase

#: products above which a launch is worth the thread pool
HEAVY = 1 << 19
#: products up to which r is read in place: packing would not pay
SMALL = 1 << 15
#: rows of l this many bytes apart, or a multiple of it, fall in the same few places of a first-level cache
CLASH = 4096


@dataclass
class Plan:
    """What the params say, before they are laid out."""

    problem: Problem
    spec: ContractSpec
    blocks: Blocks
    threads: int


def plan_contract(a: Layout, b: Layout, c: Contraction, threads: int, vector: int = 64) -> Launch:
    """The launch of `c` on operands of these layouts. `vector` is the width of the machine's registers, in bytes."""
    problem, out = resolve(a, b, c)
    if not out.type.size:
        return Launch((out,))
    p = problem
    heavy = p.batch.size * p.rows.size * p.cols.size * p.steps > HEAVY
    return _launch(_plan(problem, threads if heavy else 1, vector), out, heavy)


def _plan(p: Problem, threads: int, vector: int) -> Plan:
    dtype = p.dtype
    wide_enough = accumulator(dtype) is dtype
    square = SQUARE[vector]
    few = p.rows.size <= WIDE[vector].heights[0]
    small = p.rows.size * p.cols.size * p.steps <= SMALL
    l_flat = wide_enough and not p.l.windowed and p.rows.flat("l") and p.depth.flat("l")
    r_flat = (
        wide_enough and not p.r.windowed and p.cols.flat("r") and p.depth.flat("r")
        and (p.cols.strides("r")[-1] == 1 or p.cols.size == 1)
    )  # fmt: skip
    r = "place" if r_flat and (few or small or p.rows.size <= square.heights[0]) else _packing(p.cols, p.depth, p.r, "r")
    tile = WIDE[vector] if few and r == "place" else square
    spec = ContractSpec(dtype, tile, "place", r, slab_r=p.r.copying)
    clash = l_flat and p.rows.size > 4 and p.steps > 64 and p.rows.strides("l")[-1] * dtype.itemsize % CLASH == 0
    if not l_flat or (clash and p.cols.size > spec.panel):
        spec = replace(spec, l=_packing(p.rows, p.depth, p.l, "l"), slab_l=p.l.copying)
    blocks = choose(p, spec, threads)
    return Plan(p, replace(spec, shared=blocks.shared), blocks, threads)


def _packing(lanes: Group, depth: Group, operand: Operand, side: str) -> str:
    """Along which axis an operand is read in vectors."""
    step, run = operand.lane_step(lanes, side), lanes.sizes[-1]
    deep = operand.depth_step(depth, side) == 1
    if step in (1, 2) and (run >= 8 or not deep or depth.sizes[-1] < run):
        return "near" if step == 1 else "even"
    return "depth" if deep else "any"


def _shared_bytes(p: Problem, spec: ContractSpec, cols: Cut) -> int:
    panels = cols.blocks * -(-cols.block // spec.panel)
    return p.batch.size * panels * p.steps * spec.panel * accumulator(spec.dtype).itemsize


def _launch(plan: Plan, out: Layout, heavy: bool) -> Launch:
    p, spec = plan.problem, plan.spec
    m, n, k = p.rows.size, p.cols.size, p.steps
    wide, item = accumulator(spec.dtype).itemsize, spec.dtype.itemsize
    rows, cols, depth = plan.blocks.rows, plan.blocks.cols, plan.blocks.depth
    depth_blocks = max(1, -(-k // depth))
    tasks = p.batch.size * rows.blocks * cols.blocks
    values = dict.fromkeys(HEADER, 0)
    values |= {
        "l_word": p.l.word, "r_word": p.r.word, "rows": m, "cols": n, "depth": k,
        "row_block": rows.block, "col_block": cols.block, "depth_block": depth,
        "row_blocks": rows.blocks, "col_blocks": cols.blocks, "depth_blocks": depth_blocks,
        "row_span": rows.span, "col_span": cols.span,
        "row_span_blocks": rows.span_blocks, "col_span_blocks": cols.span_blocks,
        "shared": up(_shared_bytes(p, spec, cols), 64) if spec.shared else 0,
        "l_row": p.rows.strides("l")[-1] * item, "l_depth": p.depth.strides("l")[-1] * item,
        "r_depth": p.depth.strides("r")[-1] * item,
        "l_run": p.rows.sizes[-1], "r_run": p.cols.sizes[-1],
        "l_depth_run": p.depth.sizes[-1], "r_depth_run": p.depth.sizes[-1],
        "c_flat": int(p.rows.flat("c")), "c_row": p.rows.strides("c")[-1] * item,
        "poll": _poll(plan) if depth_blocks > 1 else 0,
    }  # fmt: skip
    vectors, lanes = -(-cols.block // spec.lanes) + 1, spec.lanes
    tile = spec.tile.heights[0] * spec.panel * wide
    tiles_high = rows.block // spec.tile.heights[0] + len(spec.tile.heights)
    tiles_wide = cols.block // spec.panel + sum(spec.tile.widths)
    panels = -(-cols.block // spec.panel) if spec.r != "place" else 1
    slots = 1 if depth_blocks == 1 else tiles_high * tiles_wide
    room = {
        "rows_l": 8 * (rows.block + lanes), "rows_c": 8 * (rows.block + lanes),
        "cols_r": 8 * vectors * lanes, "cols_c": 8 * vectors * lanes,
        "depth_l": 8 * depth, "depth_r": 8 * depth,
        "packed_l": depth * up(spec.tile.heights[0], lanes) * wide if spec.l != "place" else 0,
        "packed_r": 0 if spec.shared else panels * depth * spec.panel * wide,
        "partial": slots * tile,
        "slab_l": p.l.slab(p.batch, p.rows, rows.block, p.depth, depth) * item + 64,
        "slab_r": p.r.slab(p.batch, p.cols, cols.block, p.depth, depth) * item + 64,
    }  # fmt: skip
    at = 64
    for name, size in room.items():
        values[name] = at
        at = up(at + size, 64)
    values["slice"] = at
    tail: list[int] = []
    for name, group in (("batch", p.batch), ("rows", p.rows), ("cols", p.cols), ("depth", p.depth)):
        values[f"{name}_at"] = len(HEADER) + len(tail)
        tail += [len(group.sizes), *group.sizes, *(s for operand in "lrc" for s in group.strides(operand))]
    for side, operand, lanes_ in (("l", p.l, p.rows), ("r", p.r, p.cols)):
        values[f"axes_{side}_at"] = len(HEADER) + len(tail)
        axes = operand.axes((p.batch, lanes_, p.depth))
        assert all(len(x) == len(AXIS) for x in axes)
        tail += [len(axes), *(v for x in axes for v in x)]
    phases = [Phase(spec, tasks, _grain(plan, tasks))]
    if spec.shared:
        phases.insert(0, Phase(spec, p.batch.size * cols.blocks * depth_blocks, 1, "pack"))
    params = (*values.values(), *tail)
    return Launch((out,), tuple(phases), params, values["shared"], heavy, worker_scratch=at)


def _grain(plan: Plan, tasks: int) -> int:
    """Tasks claimed at a time: enough to be worth it, few enough to share."""
    work = plan.blocks.rows.block * plan.blocks.cols.block * max(plan.problem.steps, 1)
    return max(1, min((1 << 18) // max(work, 1), tasks // (4 * plan.threads)))


def _poll(plan: Plan) -> int:
    """Depth blocks that take about a millisecond."""
    b = plan.blocks
    return max(1, (1 << 25) // (b.depth * max(b.rows.block * b.cols.block, 64)))
