"""How a contraction's result is cut into tasks: the cheapest of some ways, by an estimate.

The figures were measured on one machine; only their proportions matter, and only for speed.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.schedule.contract_labels import Group, Operand, Problem
from weft.schedule.contract_spec import ContractSpec
from weft.types.record import dataclass

#: products of one task, at most, about: some 5 ms, so that Ctrl-C is heard
TASK = 1 << 28
#: products of a batch element that are not worth cutting for one thread
ALONE = 1 << 19
#: rows or columns that are cut even so, for the size of their tables
LONG = 1 << 14
#: a sum of no more steps is not cut for its length; longer ones into blocks of no more than DEPTH
WHOLE_DEPTH, DEPTH = 768, 512
#: the same of a sum over windows, or whose columns are packed ahead
DEEP = 1152
#: bytes of packed columns that a task works on at a time: half a second-level cache, or more where
#: every block of columns packs the rows anew
NEAR, NEAR_BESIDE_ROWS = 544 << 10, 2 << 20
#: bytes that no cache of one core holds
FAR = 8 << 20
#: bytes of packed columns that all tasks may share
SHARED = 16 << 20

#: cycles for a vector and a step of depth: to pack columns that are neighbours, others, rows; to
#: read columns where they are
PACK_NEAR, PACK_APART, PACK_ROWS, READ = 2.5, 6.0, 16.0, 4.0
#: the same, more, for columns of images whose rows end within each vector
PACK_ENDS = 20.0
#: the same, more, for columns that are packed one element at a time, if there are many; steps in
#: a row along the sum that are packed together
PACK_FAR, LINE = 40.0, 16
#: the same, more, for columns that all tasks share: few of them, and so many that they are far
SHARE_NEAR, SHARE_FAR = 2.0, 20.0
#: the same, more, if every thread reads what the others packed, whose cores give it up again next
#: time: with a block of columns for each, it is mostly its own
SHARE_APART = 25.0
#: vectors of sums that a tile needs to have a product under way in each of them
CHAINS = 8
#: the same, to bring near what was packed for all tasks
FETCH = 1.0
#: cycles that a tile takes for one step of depth and a panel of columns beside its products
PANEL_COST = 1.5
#: the same, of a task's first panel where columns are packed ahead: nothing brought that near
LATE = 6.0
#: cycles to copy an element with its padding
COPY = 0.4
#: part of a task that the last one keeps the other threads waiting, about; where columns are packed
#: ahead, tasks are equal
WAIT, WAIT_EQUAL = 0.3, 0.03
#: cycles of a task, of a tile beside its products, of one more phase
TASK_COST, TILE_COST, PHASE_COST = 1500.0, 200.0, 8000.0
#: cycles to transpose a tile and store it
TURN_COST = 300.0


@dataclass(frozen=True)
class Cut:
    """`size` in spans, these in blocks; the last block of a span may be smaller."""

    size: int
    span: int
    block: int

    @property
    def span_blocks(self) -> int:
        return -(-self.span // self.block)

    @property
    def blocks(self) -> int:
        return self.size // self.span * self.span_blocks

    @property
    def whole(self) -> int:
        """How many blocks are no smaller than others."""
        return self.size // self.span * (self.span // self.block)

    def pieces(self, unit: int) -> int:
        """How many units all blocks take, none shared by two."""
        whole, rest = divmod(self.span, self.block)
        return self.size // self.span * (whole * -(-self.block // unit) + -(-rest // unit))


@dataclass(frozen=True)
class Blocks:
    """What a task takes of rows and columns, and of depth at a time; whether columns are packed
    once for all tasks.
    """

    rows: Cut
    cols: Cut
    depth: int
    shared: bool = False
    cycles: float = 0.0


def up(n: int, unit: int) -> int:
    return -(-n // unit) * unit


def choose(p: Problem, spec: ContractSpec, threads: int, share: bool = True) -> Blocks:
    """The cheapest blocks for so many threads; whether columns may be packed for all tasks."""
    rows, cols = (Cut(g.size, g.size, g.size) for g in (p.rows, p.cols))
    best = Blocks(rows, cols, _depth(p, spec, cols.block))
    little = rows.size * cols.size * p.steps <= ALONE and max(rows.size, cols.size) <= LONG
    if threads == 1 and little:
        return best
    least = float("inf")
    packs = share and spec.r not in ("place", "turn", "panels")
    all_rows = [(rows, _tiles_of(p, spec, rows)) for rows in _cuts(p.rows, p.l, 2)]
    unit = spec.panel
    if spec.r == "place" and spec.tile.heights[0] <= 4:  # see _depth: long rows
        unit = next((n for n in (1024, 512) if p.cols.size >= n * threads), 256)
    for cols in _cuts(p.cols, p.r, unit):
        estimate = _Estimate(p, spec, threads, cols, _depth(p, spec, cols.block))
        for rows, tiles in all_rows:
            for shared in (False, True)[: 1 + (packs and rows.blocks > 1)]:
                cost = estimate.cycles(rows, tiles, shared)
                if cost < least:
                    best, least = Blocks(rows, cols, estimate.depth, shared, cost), cost
    return best


def _depth(p: Problem, spec: ContractSpec, cols: int) -> int:
    """Steps of depth that are packed at a time, with so many columns."""
    k = max(p.steps, 1)
    if spec.r == "turn":
        return min(k, 1 << 16)
    if spec.r == "place":  # r is read once: from far away best by a few whole rows at a time
        if p.rows.size <= 4 and cols >= 256 and p.cols.size >= 512:
            return min(k, 8)
        return min(k, 16 if k * p.cols.size * spec.wide > FAR else 4096)
    near = NEAR if spec.l == "place" else NEAR_BESIDE_ROWS
    whole, deepest = WHOLE_DEPTH, DEPTH
    if spec.l == "table":  # a panel at a time comes near
        whole = deepest = DEEP
    if spec.r == "panels":
        cols, whole, deepest = spec.panel, DEEP, DEEP
    if k <= whole and k * cols * spec.wide <= near:
        return k
    unit = 1
    if p.l.windowed or p.r.windowed:  # whole channels: a block's copy is no larger than need be
        for n in reversed(p.depth.sizes[1:]):
            if unit * n > deepest:
                break
            unit *= n
    most = near // (up(cols, spec.panel) * spec.wide)
    most = min(max(most, 128), deepest if p.rows.size > 4 else 4 * DEPTH)
    return min(k, up(-(-k // -(-k // max(most, unit))), unit))


def _cuts(group: Group, operand: Operand, unit: int) -> Iterator[Cut]:
    """Ways to cut a group."""
    size = group.size
    if operand.windowed:
        yield from _whole_rows(group)
        if not operand.taps.isdisjoint(group.names):  # weights: few, and whole rows of them short
            for n in (1, 2, 3, 4, 6, 8):
                yield Cut(size, size, min(size, up(-(-size // n), 8)))
        return
    blocks = [min(size, up(-(-size // n), unit)) for n in (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)]
    blocks += [n for n in (256, 512, 1024) if n < size // 64]
    for block in dict.fromkeys(blocks):
        yield Cut(size, size, block)


def _whole_rows(group: Group) -> Iterator[Cut]:
    """Blocks of whole innermost labels (rows of an image, images), so that the padded copies of two
    blocks overlap little.
    """
    inner = group.sizes[-1]
    if inner > 1024:
        yield Cut(group.size, inner, 512)
    yield Cut(group.size, inner, inner)
    if inner < group.size < 32:  # few in all: else each block would fill a part of a vector
        yield Cut(group.size, group.size, group.size)
    for n in reversed(group.sizes[:-1]):
        counts = dict.fromkeys(-(-n // k) for k in (1, 2, 3, 4, 7, 8, 14, 16, 32, 64))
        for count in counts:
            if 32 <= inner * count <= 1024:
                yield Cut(group.size, inner * n, inner * count)
        inner *= n


class _Estimate:
    """What a contraction costs, its columns cut like this."""

    def __init__(self, p: Problem, spec: ContractSpec, threads: int, cols: Cut, depth: int) -> None:
        self.p, self.spec, self.threads, self.cols, self.depth = p, spec, threads, cols, depth
        self.batch, self.k = p.batch.size, max(p.steps, 1)
        self.depth_blocks = -(-self.k // depth)
        narrow = spec.tile.widths[-1]  # vectors of the last tile, at least
        self.vectors = cols.pieces(spec.lanes * narrow) * narrow
        self.panels = cols.pieces(spec.panel)
        self.cols_blocks = cols.blocks
        each = {"place": READ, "near": PACK_NEAR, "rows": PACK_NEAR, "panels": FETCH}.get(
            spec.r, PACK_APART
        )
        if p.r.windowed:
            each = PACK_APART + PACK_ENDS * min(spec.lanes / p.cols.sizes[-1], 1.0)
        elif spec.r == "any" or (spec.r == "depth" and p.depth.run("r") < LINE):
            size = p.batch.size * p.cols.size * self.k * spec.dtype.itemsize
            each += PACK_FAR * min(size / NEAR_BESIDE_ROWS, 1.0) if spec.turned else 0.0
        self.pack = self.batch * self.vectors * self.k * each
        if p.r.windowed:
            copied = p.r.slab(p.batch, p.cols, cols.block, p.depth, depth)
            self.pack += self.batch * self.cols_blocks * self.depth_blocks * copied * COPY
        room = self.batch * self.cols_blocks * up(cols.block, spec.panel) * self.k * spec.wide
        self.fits = room <= SHARED
        self.fetch = self.batch * self.vectors * self.k * (FETCH if room > NEAR else 0.0)
        far = SHARE_NEAR + (SHARE_FAR - SHARE_NEAR) * min(room / FAR, 1.0)
        if self.batch * self.cols_blocks < threads:
            far += SHARE_APART
        self.late = LATE * min(room / NEAR_BESIDE_ROWS, 1.0)
        self.share = self.pack + self.batch * self.vectors * self.k * far

    def cycles(self, rows: Cut, in_tiles: tuple[int, int], shared: bool) -> float:
        """Until all is done. `in_tiles` is `_tiles_of` the rows."""
        p, batch, k = self.p, self.batch, self.k
        if shared and not self.fits:
            return float("inf")
        tiles, high = in_tiles
        tasks = batch * rows.blocks * self.cols_blocks
        total = float(batch * self.vectors * high * k)
        total += batch * tiles * self.panels * PANEL_COST * k
        total += batch * tiles * self.panels * TILE_COST * self.depth_blocks
        total += tasks * (TASK_COST + 3 * (rows.block + self.cols.block) + 2 * k)
        if self.spec.turned:
            total += batch * tiles * self.panels * TURN_COST
        if self.spec.l not in ("place", "table"):
            total += batch * tiles * self.cols_blocks * k * PACK_ROWS
        if p.l.windowed:
            copied = p.l.slab(p.batch, p.rows, rows.block, p.depth, self.depth)
            total += tasks * self.depth_blocks * copied * COPY
        total += (self.fetch if shared else self.pack) * rows.blocks
        if self.spec.r == "panels":
            total += tasks * self.depth * self.spec.tile.widths[0] * self.late
        each = total / tasks
        whole_tasks = batch * rows.whole * self.cols.whole  # the largest, if blocks are uneven
        largest = total * rows.block * self.cols.block / (batch * p.rows.size * p.cols.size)
        time = max(-(-tasks // self.threads) * each, -(-whole_tasks // self.threads) * largest)
        if self.threads > 1:  # threads are not equally fast: the last task keeps the others waiting
            wait = WAIT_EQUAL if self.spec.r == "panels" else WAIT
            time = max(time, total / self.threads + wait * each)
        late = max(0.0, rows.block * self.cols.block * k / TASK - 1) * 0.1 * total
        return time + late + (self.share / self.threads + PHASE_COST if shared else 0.0)


def _tiles_of(p: Problem, spec: ContractSpec, rows: Cut) -> tuple[int, int]:
    """How many tiles high all blocks of rows are together, and how many rows these would take at
    full speed.
    """
    run, count = spec.run(p.rows.sizes[-1]), rows.size // rows.block
    whole, last = _tiles(spec, run, rows.block), _tiles(spec, run, rows.size % rows.block)
    return count * whole[0] + last[0], count * whole[1] + last[1]


def _tiles(spec: ContractSpec, run: int, rows: int) -> tuple[int, int]:
    """The same for so many rows, `run` of which may share a tile."""
    if spec.l == "table" and rows > run:
        whole, last = _tiles(spec, run, run), _tiles(spec, run, rows % run)
        return rows // run * whole[0] + last[0], rows // run * whole[1] + last[1]
    cut, least = list(spec.tile.cut(rows)), CHAINS // spec.tile.widths[0]
    return sum(n for n, _ in cut), sum(n * max(height, least) for n, height in cut)
