"""The run-time numbers of a contraction's kernel, and its launch."""

from __future__ import annotations

from collections.abc import Sequence

from weft.buffer import Layout
from weft.schedule.contract_blocks import Blocks, up
from weft.schedule.contract_labels import Group, Problem
from weft.schedule.contract_spec import PART, ContractSpec, Ending
from weft.schedule.launch import Launch, Phase
from weft.types.record import dataclass

#: how many times a thread packs columns for all tasks, at least, if there are enough
PACKS = 4
#: steps of depth that are packed together at least, and of which they are a multiple if more are
SHORT, LINE = 128, 16


@dataclass(frozen=True)
class Piece:
    """A part of a contraction: named params and those behind them, how many tasks to compute and
    how many to pack columns for all.
    """

    values: dict[str, int]
    tail: list[int]
    tasks: int
    grain: int
    packs: int


def piece(
    p: Problem, spec: ContractSpec, blocks: Blocks, threads: int, numbers: tuple[int, ...]
) -> Piece:
    """The numbers of a part cut into these blocks."""
    rows, cols, depth = blocks.rows, blocks.cols, blocks.depth
    depth_blocks = max(1, -(-p.steps // depth))
    tasks = p.batch.size * rows.blocks * cols.blocks
    work = rows.block * cols.block * max(p.steps, 1)  # products of a task
    shared = cols.blocks * up(cols.block, spec.panel) * p.batch.size * p.steps * spec.wide
    packs = p.batch.size * cols.blocks * depth_blocks if spec.shared else 0
    pack_cols, pack_depth = cols.block, depth
    if packs and not p.r.windowed and threads > 1:  # enough to do for all threads
        wanted = -(-PACKS * threads // packs)
        pack_cols = up(-(-cols.block // wanted), spec.panel)
        wanted = -(-wanted // -(-cols.block // pack_cols))
        pack_depth = min(depth, max(up(-(-depth // wanted), LINE), SHORT))
    pack_parts, pack_depths = -(-cols.block // pack_cols), max(1, -(-p.steps // pack_depth))
    packs = p.batch.size * cols.blocks * pack_parts * pack_depths if spec.shared else 0
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
        "pack_cols": pack_cols,
        "pack_parts": pack_parts,
        "pack_depth": pack_depth,
        "pack_depths": pack_depths,
        "shared": up(shared, 64) if spec.shared else 0,
        "l_row": p.rows.strides("l")[-1] * item,
        "l_depth": p.depth.strides("l")[-1] * item,
        "r_depth": p.depth.strides("r")[-1] * item,
        "l_run": spec.run(p.rows.sizes[-1]),
        "r_run": p.cols.sizes[-1],
        "l_depth_run": p.depth.sizes[-1] if p.l.windowed else p.depth.run("l"),
        "r_depth_run": p.depth.sizes[-1] if p.r.windowed else p.depth.run("r"),
        "c_flat": int(p.rows.flat("c")),
        "c_row": p.rows.strides("c")[-1] * item,
        # about every millisecond; a step of depth takes its time even for a single element
        "poll": max(1, (1 << 25) // max(work // depth_blocks, 64 * depth)),
    }
    if spec.ending:
        run = _run(p.rows if spec.turned else p.cols, spec.ending)
        values |= {"run": run, "extras": len(spec.ending.extras)} | {
            f"n{k}": n for k, n in enumerate(numbers)
        }
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
    return Piece(values, tail, tasks, grain, packs)


def join(
    spec: ContractSpec, pieces: Sequence[Piece], moves: Sequence[Sequence[int]],
    outs: tuple[Layout, ...], heavy: bool,
) -> Launch:  # fmt: skip
    """The launch of pieces side by side; `moves` says for each where its operands begin."""
    shared = sum(x.values["shared"] for x in pieces)
    room = max(x.values["slice"] for x in pieces)
    left = shared
    for x in pieces:  # a piece's memory begins where that of the one before ends
        x.values["shared"], left = left, left - x.values["shared"]
        x.values["slice"] = room
    params = [(*x.values.values(), *x.tail) for x in pieces]
    flat, begins = params[0], [0]
    if spec.parts:
        table: list[int] = []
        begins.clear()
        at, tasks, packs = 2 + len(pieces) * (len(PART) + len(moves[0])), 0, 0
        for x, own, move in zip(pieces, params, moves, strict=True):
            tasks, packs = tasks + x.tasks, packs + x.packs
            table += [tasks, packs, shared - x.values["shared"], at, len(own), *move]
            begins.append(at)
            at += len(own)
        longest = spec.params + max(map(len, params))
        flat = (len(pieces), longest, *table, *(n for own in params for n in own))
    grain = min(x.grain for x in pieces)
    phases = [Phase(spec, sum(x.tasks for x in pieces), grain)]
    if spec.shared:
        phases.insert(0, Phase(spec, sum(x.packs for x in pieces), 1, "pack"))
    apart = tuple(begin + spec.header.index("slice") for begin in begins)
    return Launch(outs, tuple(phases), flat, shared, heavy, worker_scratch=room, slices=apart)


def _room(p: Problem, spec: ContractSpec, blocks: Blocks) -> dict[str, int]:
    """Bytes of each part of a worker's scratch memory."""
    rows, cols, depth, lanes = blocks.rows.block, blocks.cols.block, blocks.depth, spec.lanes
    heights, widths = spec.tile.heights, spec.tile.widths
    # blocks of depth but the last leave a result where it cannot be finished: one for each tile
    across = rows // heights[0] + len(heights)
    if spec.l == "table":  # a tile stays within a run
        run = spec.run(p.rows.sizes[-1])
        across = (rows // run + 2) * (run // heights[0] + len(heights))
    tiles = across * (cols // spec.panel + sum(widths))
    panels = 1 if spec.r in ("place", "turn") else -(-cols // spec.panel)
    packed = not spec.shared and spec.r != "panels"
    if spec.r == "place":  # only last columns that fill no vector
        packed = bool(cols % lanes or blocks.cols.span % cols % lanes)
    room = {
        "rows_l": 8 * (rows + lanes),
        "rows_c": 8 * rows,
        "cols_r": 8 * (cols + lanes),
        "cols_c": 8 * cols,
        "depth_l": 8 * (depth + 1),
        "depth_r": 8 * depth,
        "packed_l": 0 if spec.l in ("place", "table") else depth * spec.l_panel * spec.wide,
        "packed_r": panels * depth * spec.panel * spec.wide if packed else 0,
        "partial": (1 if depth >= p.steps else tiles) * heights[0] * spec.panel * spec.wide,
        "slab_l": p.l.slab(p.batch, p.rows, rows, p.depth, depth) * spec.dtype.itemsize,
        "slab_r": p.r.slab(p.batch, p.cols, cols, p.depth, depth) * spec.dtype.itemsize,
    }
    if spec.turned:
        line = spec.panel * spec.wide
        room["partial"] += (spec.l_panel - heights[0]) * line  # read in whole squares
        room["turned"] = spec.l_panel * line + spec.tile.vector
    if spec.ending:
        room["partial"] += spec.tile.vector  # read in whole vectors from any column on
        for name in spec.ending.extras:
            room |= {f"rows_{name}": 8 * rows, f"cols_{name}": 8 * cols}
    return room


def _run(along: Group, ending: Ending) -> int:
    """How many elements in a row are neighbours in all operands that have any."""
    names = zip(("c", *ending.extras), ending.modes, strict=True)
    strides = [along.strides(name) for name, mode in names if mode == "c"]
    run = along.sizes[-1]
    for i in reversed(range(len(along.sizes) - 1)):
        if any(s[i] != run for s in strides):
            break
        run *= along.sizes[i]
    return run
