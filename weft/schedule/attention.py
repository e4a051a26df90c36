"""Attention, and its gradient, in one launch each: a block of score rows at a time, in cache, from
the scores through their exact softmax to the values, so that the matrix of all scores never exists.

Every sum keeps the order it has in the composite's body: scores and results are chains of fma, a
row of weights adds up in the lanes of any reduction of a last axis (docs/numerics.md). So no bit
changes.

Under a causal mask keys behind the last query of a block are left out. Their weights are 0, or
NaN where the whole row is: a lane of exponentials, which starts from +0, takes a 0 without a
change, and what a weight of 0 adds to a chain that ends there, a zero with a sign or NaN, is summed
up separately (0 * v over the keys left out, from -0) and added at its end.

The gradient computes a block's weights again, then their cotangents, and goes on with the sums of
all keys' and values' cotangents, block after block, so a matrix is one task. It leaves keys out
only where nothing can overflow: a product of 0 is then a zero, and the sums that begin with these
begin with +0.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from weft.buffer import Layout
from weft.schedule.collapse import broadcast_strides, collapse
from weft.schedule.contract_spec import SQUARE, ContractSpec
from weft.schedule.launch import Launch, Machine, Phase
from weft.schedule.reduce_spec import LANES
from weft.types import DType, TensorType, broadcast_shapes
from weft.types.dtype import bool_
from weft.types.record import dataclass

#: products above which a launch is worth the thread pool
HEAVY = 1 << 19
#: products that a thread claims at a time, at least
GRAIN = 1 << 18
#: bytes of a block of scores; rows of one at most, and where sums over rows go on
BLOCK, MOST, MOST_GOING_ON = 1 << 18, 28, 56
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
    "at_rows",  # the gradient's: keys row by row,
    "at_values_t",  # values packed as keys are,
    "at_grads",  # a block of the result's cotangents,
    "at_slopes",  # and of the scores',
    "at_key_sums",  # sums of the keys' and the values' cotangents
    "at_value_sums",
    "bounded",  # whether scale and sizes are such that sums of numbers below 2**40 are finite
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
    "g_row",
    "g_col",
    "axes",
)


@dataclass(frozen=True)
class Attention:
    """The kernel. `mask` is "", "bool" or "add". Operands are q, k, v, the mask if any, and the
    result; of the gradient the result's cotangent, then the same, and those of q, k and v.
    """

    dtype: DType
    vector: int  # bytes
    causal: bool
    mask: str = ""
    grad: bool = False

    def key(self) -> str:
        return f"attention {self}"

    @property
    def products(self) -> ContractSpec:
        """The contraction whose tiles and packing are used."""
        return ContractSpec(self.dtype, SQUARE[self.vector], "place", "depth")

    @property
    def inputs(self) -> int:
        return 3 + bool(self.mask) + self.grad

    @property
    def skips(self) -> bool:
        """Whether keys behind the last query of a block are left out. What is added to a score of
        -inf might make it another.
        """
        return self.causal and self.mask != "add"


def plan_attention(
    name: str, layouts: Sequence[Layout], attrs: dict[str, Any], machine: Machine
) -> Launch:
    """The launch of a call that `weft.ops.whole` says is one."""
    grad = name == "attention_vjp"
    q, k, v, *mask = layouts[grad:]
    dtype = q.type.dtype
    batch: Any = broadcast_shapes(*(x.type.shape[:-2] for x in (q, k, v)), place=name)
    (rows, depth), (keys, width) = _ends(q), _ends(v)
    out = Layout.dense(TensorType((*batch, rows, width), dtype))
    outs = tuple(Layout.dense(x.type) for x in (q, k, v)) if grad else (out,)
    if not any(x.type.size for x in outs):
        return Launch(outs)
    kind = "" if not mask else "bool" if mask[0].type.dtype is bool_ else "add"
    spec = Attention(dtype, machine.vector, bool(attrs["causal"]), kind, grad)
    nest = collapse(batch, [broadcast_strides(x, len(batch) + 2)[:-2] for x in layouts])
    matrices = math.prod(nest.sizes)
    values = dict.fromkeys(WORDS, 0) | {"rows": rows, "keys": keys, "depth": depth, "width": width}
    values["scale"] = struct.unpack("<q", struct.pack("<d", attrs["scale"]))[0]
    values["bounded"] = int(abs(attrs["scale"]) < 1 << 20 and max(depth, width) < 1 << 20)
    for letter, x in zip("gqkvm"[not grad :], layouts, strict=False):
        values[f"{letter}_row"], values[f"{letter}_col"] = broadcast_strides(
            x, max(x.type.ndim, 2)
        )[-2:]
    products = matrices * rows * keys * (depth + width)
    heavy = products > HEAVY
    values |= _blocks(spec, values, matrices, machine.threads if heavy else 1)
    values |= _room(spec, values)
    values["axes"] = len(nest.sizes)
    params = (*values.values(), *nest.sizes, *(s for x in nest.strides for s in x))
    tasks = matrices * values["parts"]
    each = max(1, products // tasks)
    phase = Phase(spec, tasks, max(1, min(GRAIN // each, tasks // (4 * machine.threads))))
    apart = (list(values).index("slice"),)
    return Launch(outs, (phase,), params, heavy=heavy, worker_scratch=values["slice"], slices=apart)


def _ends(x: Layout) -> tuple[int, int]:
    a, b = x.type.shape[-2:]
    return a, b  # type: ignore[return-value]


def _up(n: int, to: int) -> int:
    return -(-n // to) * to


def _blocks(spec: Attention, values: dict[str, int], matrices: int, threads: int) -> dict[str, int]:
    """How rows are cut into blocks and tasks."""
    products, rows = spec.products, values["rows"]
    height = products.tile.heights[0]
    pitch = _up(values["keys"], LANES) + 64 // products.wide  # no two rows in the same places
    fit = BLOCK // (pitch * products.wide * height)
    most = (MOST_GOING_ON if spec.grad else MOST) // height
    block = min(_up(max(rows, 1), height), height * max(1, min(most, fit)))
    parts = 1 if spec.grad or threads == 1 else min(-(-4 * threads // matrices), rows // SHARE)
    span = _up(-(-max(rows, 1) // max(parts, 1)), block)
    return {"block": block, "span": span, "parts": -(-max(rows, 1) // span), "pitch": pitch}


def _room(spec: Attention, values: dict[str, int]) -> dict[str, int]:
    """Where in a worker's scratch memory everything is."""
    products = spec.products
    wide, panel = products.wide, products.panel
    depth, width, keys, block = (values[n] for n in ("depth", "width", "keys", "block"))
    pitch, depth_pitch, width_pitch = values["pitch"], _up(depth, panel), _up(width, panel)
    out_pitch = depth_pitch if spec.grad else width_pitch
    sizes = {
        "keys": _up(keys, panel) * depth,
        "queries": block * depth_pitch,
        "scores": block * pitch,
        "out": block * out_pitch,
        "behind": values["span"] // block * out_pitch if spec.skips else 0,
        "mask": pitch if spec.mask else 0,
        "table": max(depth, width) * 8 // wide,
        "values": 0 if spec.grad else keys * width_pitch,
    }
    if spec.grad:
        sizes |= {
            "rows": keys * depth_pitch,
            "values_t": _up(keys, panel) * width,
            "grads": block * width_pitch,
            "slopes": block * pitch,
            "key_sums": keys * depth_pitch,
            "value_sums": keys * width_pitch,
        }
    at, out = 0, {"depth_pitch": depth_pitch, "width_pitch": width_pitch}
    for name, size in sizes.items():
        out[f"at_{name}"] = at
        at += _up(size * wide, 64)
    return out | {"slice": at}
