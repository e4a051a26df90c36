"""Contractions: which operand is broadcast and which is read in vectors, what is packed, how the
result is cut into tasks.

`weft.ops.contraction` says what is computed, docs/numerics.md in which order. Nothing chosen here
changes a bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from weft.buffer import Layout
from weft.errors import ShapeError
from weft.ops.contraction import Contraction
from weft.schedule.contract_blocks import Blocks, choose, up
from weft.schedule.contract_classes import Part, View, classes
from weft.schedule.contract_labels import (
    Group,
    Operand,
    Problem,
    label_sizes,
    resolve_parts,
    summed,
)
from weft.schedule.contract_params import join, piece
from weft.schedule.contract_spec import (
    NARROW,
    OPERANDS,
    RUNS,
    SQUARE,
    TURN,
    WIDE,
    ContractSpec,
    Ending,
    Epilogue,
    accumulator,
)
from weft.schedule.launch import Launch
from weft.types import TensorType

#: products above which a launch is worth the thread pool
HEAVY = 1 << 19
#: the same for threads that are awake, where columns may be packed ahead
AWAKE = 1 << 18
#: elements of r, read from far away, above which it is too, for few rows
FAR_READ = 1 << 18
#: products up to which r is read in place: packing would not pay
SMALL = 1 << 15
#: steps from which columns that are dense along the sum are read in place, for few rows
DENSE = 16
#: rows of l so many bytes apart, or a multiple, fall in the same few places of a first-level cache
CLASH = 4096
#: rows in a row that a tile is worth reading where they are, in images
RUN = 4
#: steps of depth so many bytes apart are slow to read again and again
FAR_APART = 1024
#: part of the time that is left where columns are packed ahead, at most: that copy takes memory
WORTH = 1.0


def plan_contract(
    a: Layout,
    b: Layout,
    c: Contraction,
    threads: int,
    vector: int = 64,
    epilogue: Epilogue | None = None,
    fixed: frozenset[int] = frozenset(),
    awake: bool = False,
) -> Launch:
    """The launch of `c` on operands of these layouts; `vector` is the bytes of a register.

    The result is dense, its axes in the order of `c.out`. With an epilogue, operands are a, b and
    its extras, and there is such a result for each of its rules. Of `fixed` operands (a is 0, b is
    1) one may be wanted packed ahead: see `Launch.ahead`.
    """
    sizes = label_sizes(a, b, c)
    out = Layout.dense(TensorType([sizes[n] for n in c.out], a.type.dtype))
    outs: tuple[Layout, ...] = (out,)
    if epilogue:
        shape = out.type.shape
        outs = tuple(Layout.dense(TensorType(shape, r.dtype)) for r in epilogue.rules)
    extras = tuple(View(e) for e in epilogue.extras) if epilogue else ()
    for extra in extras:
        if extra.layout.type.shape != out.type.shape:
            raise ShapeError(
                "epilogue",
                expected=f"operands of the result's shape {out.type.shape}",
                got=str(extra.layout.type),
                hint="broadcast them, with strides of 0",
            )
    whole = Part(c, View(a), View(b), View(out), extras)
    if not out.type.size:
        return Launch(outs)
    nothing = any(sizes[n] == 0 for n in summed(c))
    parts = [whole] if nothing else classes(whole, sizes)
    apart = len(parts) > 1 or parts[0].apart
    ps = resolve_parts(parts)
    products = sum(p.batch.size * p.rows.size * p.cols.size * p.steps for p in ps)
    heavy = products > (AWAKE if fixed and awake else HEAVY)
    heavy = heavy or sum(p.batch.size * p.cols.size * p.steps for p in ps) > FAR_READ
    if not heavy:
        threads = 1
    fixed = fixed if heavy else frozenset()
    spec, blocks = _choose(ps, replace(_spec(ps, vector), parts=apart), threads, fixed)
    if heavy and ps[0].r.windowed and accumulator(a.type.dtype) is a.type.dtype:
        others = resolve_parts(parts, turned=True)
        if all(p.cols.size >= spec.lanes for p in others):
            turned = replace(_spec(others, vector), turned=True, parts=apart)
            turned, other = _choose(others, turned, threads, fixed)
            if sum(b.cycles for b in other) < sum(b.cycles for b in blocks):
                ps, spec, blocks = others, turned, other
    if epilogue:
        spec = replace(spec, ending=_ending(ps, spec, epilogue))
    numbers = epilogue.numbers if epilogue else ()
    pieces = [piece(p, spec, b, threads, numbers) for p, b in zip(ps, blocks, strict=True)]
    launch = join(spec, pieces, [_moves(p, outs) for p in parts], outs, heavy)
    return replace(launch, ahead=_ahead(ps[0], spec)) if spec.r == "panels" else launch


def _choose(
    ps: Sequence[Problem], spec: ContractSpec, threads: int, fixed: frozenset[int]
) -> tuple[ContractSpec, list[Blocks]]:
    """The cheapest blocks of all parts."""
    blocks = [choose(p, spec, threads) for p in ps]
    if len({b.shared for b in blocks}) > 1:
        blocks = [choose(p, spec, threads, share=False) for p in ps]
    spec = replace(spec, shared=blocks[0].shared)
    if ps[0].r.word - OPERANDS in fixed and _may_be_ahead(ps, spec):
        panels = replace(spec, r="panels", shared=False)
        others = [choose(ps[0], panels, threads)]
        if others[0].cycles < blocks[0].cycles * WORTH:
            return panels, others
    return spec, blocks


def _may_be_ahead(ps: Sequence[Problem], spec: ContractSpec) -> bool:
    """Whether the columns are packed at all, all for once, and fill panels."""
    p = ps[0]
    plain = not spec.parts and not p.r.windowed and not p.batch.names
    packs = spec.r not in ("place", "turn") and accumulator(p.dtype) is p.dtype
    return plain and packs and p.cols.sizes[-1] % spec.panel == 0


def _ahead(p: Problem, spec: ContractSpec) -> tuple[int, Layout]:
    """Which operand is wanted packed, and how its elements follow each other then: panels of
    columns, step after step of the sum.
    """
    (*outer, inner), (*apart, near) = p.cols.sizes, p.cols.strides("r")
    sizes = (*outer, inner // spec.panel, *p.depth.sizes, spec.panel)
    strides = (*apart, near * spec.panel, *p.depth.strides("r"), near)
    return p.r.word - OPERANDS, Layout(TensorType(sizes, p.dtype), strides)


def _moves(part: Part, outs: tuple[Layout, ...]) -> list[int]:
    """How many bytes behind each operand a part of it begins."""
    ins = (part.a, part.b, *part.extras)
    sizes = [x.layout.type.dtype.itemsize for x in ins]
    moves = [x.offset * size for x, size in zip(ins, sizes, strict=True)]
    return [*moves, *(part.out.offset * o.type.dtype.itemsize for o in outs)]


def _spec(ps: Sequence[Problem], vector: int) -> ContractSpec:
    """How the operands come to the tile, and which tile, in all parts."""
    dtype, square, wide = ps[0].dtype, SQUARE[vector], WIDE[vector]
    in_place = accumulator(dtype) is dtype
    in_place = in_place and all(p.depth.flat("l") and p.depth.flat("r") for p in ps)
    l_flat = in_place and all(not p.l.windowed and p.rows.flat("l") for p in ps)
    r_flat = in_place and all(
        not p.r.windowed and p.cols.flat("r") and p.cols.strides("r")[-1] == 1 for p in ps
    )
    few = all(p.rows.size <= square.heights[0] for p in ps)
    small = all(p.rows.size * p.cols.size * p.steps <= SMALL for p in ps)
    r = _common("any", (_packing(p.cols, p.depth, p.r, "r") for p in ps))
    r = "place" if r_flat and (few or small) else r
    tile = square
    if all(p.rows.size <= wide.heights[0] for p in ps):
        dense = not ps[0].r.windowed and all(p.depth.flat("r") and p.steps >= DENSE for p in ps)
        if r == "place":
            tile = wide
        elif r == "depth" and dense:
            r, tile = "turn", TURN[vector]
    if r == "near" and all(not p.r.windowed and len(p.cols.sizes) == 1 for p in ps):
        r = "rows"
    spec = ContractSpec(dtype, tile, "place", r, slab_r=_common("any", (p.r.copying for p in ps)))
    if l_flat and not any(_far_apart(p, spec) for p in ps):
        return spec
    l = _common("any", (_packing(p.rows, p.depth, p.l, "l") for p in ps))
    narrow = ps[0].l.windowed and all(p.cols.size <= spec.lanes for p in ps)
    if narrow and tile is square and r != "place":
        tile = NARROW[vector]
        spec = replace(spec, tile=tile)
    through = ps[0].l.windowed and any(p.rows.sizes[-1] >= RUN for p in ps)
    if through and accumulator(dtype) is dtype and r != "turn":
        l = "table"
        if tile is square and r != "place":
            tile, lanes = RUNS[vector], spec.lanes
            if all(up(p.cols.size, lanes) == up(p.cols.size, spec.panel) for p in ps):
                tile = replace(tile, widths=tile.widths[:1])  # no narrow tile: less to compile
            spec = replace(spec, tile=tile)
    return replace(spec, l=l, slab_l=_common("any", (p.l.copying for p in ps)))


def _far_apart(p: Problem, spec: ContractSpec) -> bool:
    """Whether l is better packed than read where it is."""
    apart, deep = (g.strides("l")[-1] * p.dtype.itemsize for g in (p.rows, p.depth))
    worth = p.rows.size > 4 and p.steps > 64 and p.cols.size > spec.panel
    return worth and (apart % CLASH == 0 or abs(deep) >= FAR_APART)


def _common(otherwise: str, said: Iterable[str]) -> str:
    """What all say."""
    first, *rest = dict.fromkeys(said)
    return otherwise if rest else first


def _packing(lanes: Group, depth: Group, operand: Operand, side: str) -> str:
    """Along which axis an operand is read in vectors."""
    step, run = operand.step(lanes, side), lanes.sizes[-1]
    deep = operand.step(depth, side) == 1
    if step in (1, 2) and (run >= 8 or not deep or depth.sizes[-1] < run):
        return "near" if step == 1 else "even"
    return "depth" if deep else "any"


def _ending(ps: Sequence[Problem], spec: ContractSpec, epilogue: Epilogue) -> Ending:
    """How an epilogue's operands run along the result's vectors."""
    modes = ""
    for name in ("c", *(f"e{i}" for i in range(len(epilogue.extras)))):
        strides = [(p.rows if spec.turned else p.cols).strides(name) for p in ps]
        each = ("c" if s[-1] == 1 else "s" if any(s) else "b" for s in strides)
        modes += _common("s", each)
    dtypes = tuple(x.type.dtype for x in epilogue.extras)
    return Ending(epilogue.rules, dtypes, modes, len(epilogue.numbers))
