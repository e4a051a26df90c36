"""How a contraction's result is cut into tasks: the cheapest of some ways, by an estimate in clock cycles.

The figures were measured on one machine; only their proportions matter, and only for speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.schedule.contract_labels import Group, Operand, Problem
from weft.schedule.contract_spec import ContractSpec

#: products of one task, at most, about: some 5 ms, so that Ctrl-C is heard
TASK = 1 << 28
#: a sum of no more steps is not cut for its length; longer ones into blocks of no more than DEPTH
WHOLE_DEPTH, DEPTH = 768, 512
#: bytes of packed columns that a task works on at a time: half a second-level cache
NEAR = 576 << 10
#: bytes that no cache of one core holds
FAR = 8 << 20
#: bytes of packed columns that all tasks may share
SHARED = 16 << 20
#: cycles: to pack a vector of columns for one step of depth, or rows; of a task, of a tile beside its products, of one more phase
PACK_NEAR, PACK_APART, COPY, PACK_ROWS = 2.5, 5.0, 1.5, 6.0
TASK_COST, TILE_COST, PHASE_COST = 1500.0, 150.0, 8000.0
#: products of a batch element that are not worth cutting for one thread
ALONE = 1 << 19


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


@dataclass(frozen=True)
class Blocks:
    """What a task takes of rows and columns, and of depth at a time; whether columns are packed once for all tasks."""

    rows: Cut
    cols: Cut
    depth: int
    shared: bool = False


def choose(p: Problem, spec: ContractSpec, threads: int) -> Blocks:
    """The cheapest blocks for so many threads; with none to share with, and little to do, all at once."""
    whole = Blocks(*(Cut(g.size, g.size, g.size) for g in (p.rows, p.cols)), _depth(p, spec, p.cols.size))
    if threads == 1 and p.rows.size * p.cols.size * p.steps <= ALONE:
        return whole
    best, least = whole, float("inf")
    for cols in _cuts(p.cols, p.r, spec.panel, spec):
        depth = _depth(p, spec, cols.block)
        for rows in _cuts(p.rows, p.l, 2, spec):
            for shared in (False, True)[: 1 + (spec.r != "place" and rows.blocks > 1)]:
                blocks = Blocks(rows, cols, depth, shared)
                cost = _cost(p, spec, threads, blocks)
                if cost < least:
                    best, least = blocks, cost
    return best


def _depth(p: Problem, spec: ContractSpec, cols: int) -> int:
    """Steps of depth that are packed at a time, with so many columns."""
    k = max(p.steps, 1)
    if spec.r == "place":  # read once: from far away a few whole rows at a time, as the memory likes it
        if p.rows.size <= 4 and cols >= 512:
            return min(k, 8)
        return min(k, 16 if k * p.cols.size * spec.wide > FAR else 4096)
    if k <= WHOLE_DEPTH and k * cols * spec.wide <= NEAR:
        return k
    unit = 1
    if p.l.windowed or p.r.windowed:  # whole channels, so that a block's copy is no larger than need be
        for n in reversed(p.depth.sizes[1:]):
            if unit * n > DEPTH:
                break
            unit *= n
    most = min(max(NEAR // (up(cols, spec.panel) * spec.wide), 128), DEPTH if p.rows.size > 4 else 4 * DEPTH)
    return min(k, up(-(-k // -(-k // max(most, unit))), unit))


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


def _cost(p: Problem, spec: ContractSpec, threads: int, b: Blocks) -> float:
    """Cycles until all is done."""
    batch, k, rows, cols = p.batch.size, max(p.steps, 1), b.rows, b.cols
    vectors, tiles = cols.pieces(spec.lanes), rows.pieces(spec.tile.heights[0])
    tasks = batch * rows.blocks * cols.blocks
    if b.shared and batch * cols.pieces(spec.panel) * k * spec.panel * spec.wide > SHARED:
        return float("inf")
    near = spec.r != "depth" and p.r.lane_step(p.cols, "r") == 1 and not p.r.windowed
    pack = batch * vectors * k * (PACK_NEAR if near else PACK_APART + COPY * p.r.windowed) * (spec.r != "place")
    total = batch * (vectors * rows.size * k + tiles * cols.pieces(spec.panel) * TILE_COST * -(-k // b.depth))
    if spec.l != "place":
        total += batch * tiles * cols.blocks * k * (PACK_ROWS + COPY * p.l.windowed)
    total += tasks * (TASK_COST + 3 * (rows.block + cols.block) + 2 * k)
    total += 0.0 if b.shared else pack * rows.blocks
    each = total / tasks
    time = max(-(-tasks // threads) * each, total / threads + (0.3 * each if threads > 1 else 0.0))
    late = max(0.0, rows.block * cols.block * k / TASK - 1) * 0.1 * total  # Ctrl-C would wait
    return time + late + (pack / threads + PHASE_COST if b.shared else 0.0)
