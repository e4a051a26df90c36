"""How a contraction's result is cut into tasks: the cheapest of some ways, by an estimate in clock cycles.

The figures were measured on one machine; only their proportions matter, and only for speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.schedule.contract_labels import Group, Operand, Problem
from weft.schedule.contract_spec import ContractSpec, accumulator

#: products of one task, at most, about: some 5 ms, so that Ctrl-C is heard
TASK = 1 << 28
#: a sum of fewer steps is not cut; longer ones into blocks of no more than DEPTH
WHOLE_DEPTH, DEPTH = 768, 512
#: bytes of packed columns that a task works on at a time: half a second-level cache
NEAR = 576 << 10
#: bytes of packed columns that all tasks may share
SHARED = 16 << 20
#: cycles: to pack a vector of columns for one step of depth, or rows; of a task, of a tile beside its products, of one more phase
PACK_NEAR, PACK_APART, COPY, PACK_ROWS = 2.5, 5.0, 1.5, 6.0
TASK_COST, TILE_COST, PHASE_COST = 1500.0, 100.0, 8000.0


@dataclass(frozen=True)
class Cut:
    """`size` in spans, these in blocks; the last of a span may be smaller."""

    size: int
    span: int
    block: int

    @property
    def span_blocks(self) -> int:
        return -(-self.span // self.block)

    @property
    def blocks(self) -> int:
        return self.size // self.span * self.span_blocks

    def pieces(self, unit: int) -> int:
        """How many units all blocks take, none shared by two."""
        whole, rest = divmod(self.span, self.block)
        return self.size // self.span * (whole * -(-self.block // unit) + -(-rest // unit))


def up(n: int, unit: int) -> int:
    return -(-n // unit) * unit


def depth_block(p: Problem, spec: ContractSpec) -> int:
    """Steps of depth that are packed at a time."""
    k = p.steps
    if spec.r == "place" and p.rows.size <= 4 and p.cols.size >= 512:
        return max(1, min(k, 8))  # r is read once: a few whole rows at a time, as the memory likes it
    if k <= WHOLE_DEPTH:
        return max(k, 1)
    unit = 1
    if p.l.windowed or p.r.windowed:  # whole channels, so that a block's copy is no larger than need be
        for n in reversed(p.depth.sizes[1:]):
            if unit * n > DEPTH:
                break
            unit *= n
    target = DEPTH if p.rows.size * p.cols.size >= 256 else 4096
    blocks = -(-k // max(target, unit))
    return min(k, up(-(-k // blocks), unit))


def cut(p: Problem, spec: ContractSpec, threads: int, depth: int) -> tuple[Cut, Cut, bool]:
    """Blocks of rows, blocks of columns, and whether these are packed once for all."""
    if threads * spec.tile.vector and p.batch.size * p.rows.size * p.cols.size * p.steps < 1 << 17:
        return Cut(p.rows.size, p.rows.size, p.rows.size), Cut(p.cols.size, p.cols.size, p.cols.size), False
    best: tuple[float, Cut, Cut, bool] | None = None
    for cols in _cuts(p.cols, p.r, spec.panel, spec):
        if best and up(cols.block, spec.panel) * depth * accumulator(spec.dtype).itemsize > NEAR and spec.r != "place":
            continue
        for rows in _cuts(p.rows, p.l, 2, spec):
            if best and rows.block * cols.block * max(p.steps, 1) > TASK:
                continue
            for shared in (False, True)[: 1 + (spec.r != "place" and rows.blocks > 1)]:
                cost = _cost(p, spec, threads, depth, rows, cols, shared)
                if best is None or cost < best[0]:
                    best = (cost, rows, cols, shared)
    assert best
    return best[1:]


def _cuts(group: Group, operand: Operand, unit: int, spec: ContractSpec) -> Iterator[Cut]:
    """Ways to cut a group, smallest blocks first."""
    size = group.size
    if operand.windowed:
        yield from _whole_rows(group)
        return
    if unit == spec.panel and spec.r == "place" and spec.tile.heights[0] < 8:
        unit = 1024 // spec.lanes * spec.lanes  # see depth_block: long rows
    seen = set()
    for count in (64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1):
        block = min(size, up(-(-size // count), unit))
        if block not in seen:
            seen.add(block)
            yield Cut(size, size, block)
    for block in (256, 512, 1024):
        if block < size // 64:
            yield Cut(size, size, block)


def _whole_rows(group: Group) -> Iterator[Cut]:
    """Blocks of whole innermost labels (rows of an image, images), so that the copies of two blocks overlap little."""
    inner = group.sizes[-1]
    yield Cut(group.size, inner, inner)
    for n in reversed(group.sizes[:-1]):
        seen = set()
        for count in (64, 32, 16, 14, 8, 7, 4, 3, 2, 1):
            q = -(-n // count)
            if 32 <= inner * q <= 1024 and q not in seen:
                seen.add(q)
                yield Cut(group.size, inner * n, inner * q)
        inner *= n


def _cost(
    p: Problem, spec: ContractSpec, threads: int, depth: int, rows: Cut, cols: Cut, shared: bool
) -> float:
    """Cycles until all is done."""
    batch, k = p.batch.size, max(p.steps, 1)
    vectors, tiles = cols.pieces(spec.lanes), rows.pieces(spec.tile.heights[0])
    tasks = batch * rows.blocks * cols.blocks
    blocks = -(-k // depth)
    if shared and batch * cols.pieces(spec.panel) * k * spec.tile.vector * spec.tile.widths[0] > SHARED:
        return float("inf")
    near = spec.r != "depth" and p.r.lane_step(p.cols, "r") == 1 and not p.r.windowed
    pack = batch * vectors * k * (PACK_NEAR if near else PACK_APART + COPY * p.r.windowed)
    if spec.r == "place":
        pack = 0.0
    total = batch * (vectors * rows.size * k + tiles * cols.pieces(spec.panel) * TILE_COST * blocks)
    if spec.l != "place":
        total += batch * tiles * cols.blocks * k * (PACK_ROWS + COPY * p.l.windowed)
    total += tasks * (TASK_COST + 3 * (rows.block + cols.block) + 2 * k)
    total += 0.0 if shared else pack * rows.blocks
    each = total / tasks
    time = max(-(-tasks // threads) * each, total / threads + (0.3 * each if threads > 1 else 0.0))
    return time + (pack / threads + PHASE_COST if shared else 0.0)
