"""Attention in one launch: a block of score rows at a time, in cache, from the scores through their
exact softmax to the values, so that the matrix of all scores never exists.

Every sum keeps the order it has in the composite's body: scores and results are chains of fma, a
row of weights adds up in the lanes of any reduction of a last axis (docs/numerics.md). So no bit
changes.

Under a causal mask keys behind the last query of a block are left out. Their weights are 0, or NaN
where the whole row is: a lane of exponentials, which starts from +0, takes a 0 without a change, and
what a weight of 0 adds to a chain that ends there, a zero with a sign or NaN, is summed up
separately (0 * v over the keys left out, from -0) and added at its end.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from weft.buffer import Layout
from weft.schedule.collapse import Nest, broadcast_strides, collapse
from weft.schedule.contract_spec import SQUARE, ContractSpec
from weft.schedule.launch import Launch, Machine, Phase
from weft.schedule.reduce_spec import LANES
from weft.types import DType, TensorType, broadcast_shapes
from weft.types.dtype import bool_
from weft.types.record import dataclass

#: products above which a launch is worth the thread pool
HEAVY = 1 << 19
#: queries below which packing keys costs more than it gives, unless there is little to pack
FEW, LITTLE = 8, 1 << 13
#: bytes of a block of scores, and rows of one at most
BLOCK, MOST = 1 << 18, 56
#: rows that share packed keys, at least
SHARE = 64

#: Params, before the batch: how many axes it has, their sizes, and strides of each operand.
WORDS = (
    "rows",  # queries
    "keys",
    "depth",  # of a query and a key
    "width",  # of a value
    "scale",  # a float64
    "block",  # rows of a block
    "span",  # rows of a task
    "parts",  # tasks of a matrix
    "slice",  # bytes of a worker's scratch memory, and where in it:
    "at_keys",  # keys, packed for a tile's columns
    "at_values",  # values, row by row
    "at_queries",  # a block of scaled queries,
    "at_scores",  # of scores,
    "at_out",  # of results
    "at_behind",  # what keys left out add to each block
    "at_mask",  # a row of the mask
    "at_table",  # the offsets of a key's elements
    "pitch",  # elements from row to row of scores,
    "depth_pitch",  # of queries,
    "width_pitch",  # of values and results
    "q_row",  # strides of the operands
    "q_col",
    "k_row",
    "k_col",
    "v_row",
    "v_col",
    "m_row",
    "m_col",
    "axes",
)


@dataclass(frozen=True)
class Attention:
    """The kernel. `mask` is "", "bool" or "add"; operands q, k, v, the mask if any, and the result."""

    dtype: DType
    vector: int  # bytes
    causal: bool
    mask: str = ""

    def key(self) -> str:
        return f"attention {self}"

    @property
    def products(self) -> ContractSpec:
        """The contraction whose tiles and packing are used."""
        return ContractSpec(self.dtype, SQUARE[self.vector], "place", "depth")

    @property
    def inputs(self) -> int:
        return 4 if self.mask else 3

    @property
    def skips(self) -> bool:
        """Whether keys behind the last query of a block are left out. What is added to a score of
        -inf might make it another.
        """
        return self.causal and self.mask != "add"


def fusible(name: str, types: Sequence[Any], attrs: dict[str, Any]) -> bool:
    """Whether a call is one launch, however its operands lie."""
    return name == "attention" and _fusible(types, attrs)


def _fusible(types: Sequence[Any], attrs: dict[str, Any]) -> bool:
    if not 3 <= len(types) <= 4 or not all(isinstance(t, TensorType) for t in types):
        return False
    q, k, v, *mask = types
    if type(attrs["scale"]) is not float or not all(
        isinstance(n, int) for t in types for n in t.shape
    ):
        return False
    same = q.dtype.is_float and k.dtype is q.dtype and v.dtype is q.dtype
    said = all(m.dtype in (bool_, q.dtype) for m in mask)
    if not (same and said) or min(t.ndim for t in (q, k, v)) < 2:
        return False
    rows, keys, depth, width = q.shape[-2], k.shape[-2], q.shape[-1], v.shape[-1]
    return rows >= FEW or keys * (depth + width) <= LITTLE


def plan_attention(
    name: str, layouts: Sequence[Layout], attrs: dict[str, Any], machine: Machine
) -> Launch:
    """The launch of a call that is fusible."""
    q, k, v, *mask = layouts
    batch = broadcast_shapes(*(x.type.shape[:-2] for x in (q, k, v)), place=name)
    out = TensorType((*batch, q.type.shape[-2], v.type.shape[-1]), q.type.dtype)
    outs = (Layout.dense(out),)
    if not out.size:
        return Launch(outs)
    dtype = q.type.dtype
    kind = "" if not mask else "bool" if mask[0].type.dtype is bool_ else "add"
    spec = Attention(dtype, machine.vector, bool(attrs["causal"]), kind)
    (rows, depth), (keys, width) = _ends(q), _ends(v)
    nest = _batch(batch, layouts)
    matrices = math.prod(nest.sizes)
    values = dict.fromkeys(WORDS, 0) | {"rows": rows, "keys": keys, "depth": depth, "width": width}
    values["scale"] = struct.unpack("<q", struct.pack("<d", attrs["scale"]))[0]
    for name, x in zip("qkvm", layouts, strict=False):
        values[f"{name}_row"], values[f"{name}_col"] = broadcast_strides(x, max(2, x.type.ndim))[
            -2:
        ]
    work = matrices * rows * keys * (depth + width)
    heavy = work > HEAVY
    values |= blocks(spec, values, matrices, machine.threads if heavy else 1)
    values |= room(spec, values)
    values["axes"] = len(nest.sizes)
    params = (*values.values(), *nest.sizes, *(s for x in nest.strides for s in x))
    phase = Phase(spec, matrices * values["parts"])
    return Launch(outs, (phase,), params, heavy=heavy, worker_scratch=values["slice"])


def _ends(x: Layout) -> tuple[int, int]:
    a, b = x.type.shape[-2:]
    return a, b  # type: ignore[return-value]


def _batch(shape: Sequence[Any], layouts: Sequence[Layout]) -> Nest:
    """The loops over matrices of the operands; those of the result follow each other."""
    return collapse(shape, [broadcast_strides(x, len(shape) + 2)[:-2] for x in layouts])


def up(n: int, to: int) -> int:
    return -(-n // to) * to


def blocks(spec: Attention, values: dict[str, int], matrices: int, threads: int) -> dict[str, int]:
    """How rows are cut into blocks and tasks."""
    products, rows = spec.products, values["rows"]
    height = products.tile.heights[0]
    pitch = up(values["keys"], LANES) + 64 // products.wide  # no two rows in the same places
    most = BLOCK // (pitch * products.wide * height)
    block = min(up(rows, height), height * max(1, min(MOST // height, most)))
    parts = max(1, min(-(-4 * threads // matrices), rows // SHARE)) if threads > 1 else 1
    span = up(-(-rows // parts), block)
    return {"block": block, "span": span, "parts": -(-rows // span), "pitch": pitch}


def room(spec: Attention, values: dict[str, int]) -> dict[str, int]:
    """Where in a worker's scratch memory everything is."""
    products = spec.products
    wide, panel = products.wide, products.panel
    keys, block, pitch = values["keys"], values["block"], values["pitch"]
    depth_pitch, width_pitch = (up(values[n], panel) for n in ("depth", "width"))
    sizes = {
        "at_keys": up(keys, panel) * values["depth"] * wide,
        "at_values": keys * width_pitch * wide,
        "at_queries": block * depth_pitch * wide,
        "at_scores": block * pitch * wide,
        "at_out": block * width_pitch * wide,
        "at_behind": values["span"] // block * width_pitch * wide if spec.skips else 0,
        "at_mask": pitch * wide if spec.mask else 0,
        "at_table": values["depth"] * 8,
    }
    at, out = 0, {"depth_pitch": depth_pitch, "width_pitch": width_pitch}
    for name, size in sizes.items():
        out[name] = at
        at += up(size, 64)
    return out | {"slice": at}
