"""The constants that fix the order of a reduction, and the kernel of one primitive reduction."""

from __future__ import annotations

from dataclasses import field

from weft.ops.monoids import PLACES
from weft.ops.scalar import Scalar, text
from weft.types import DType
from weft.types.dtype import int64
from weft.types.record import dataclass

#: lanes a last axis is dealt to; 64 are four 512-bit accumulators of float32, enough to hide the
#: latency of an addition
LANES = 64
#: elements of a last axis that make a chunk; a multiple of LANES
CHUNK = 16384
#: rows of any other axis that make a chunk; few, so that tasks can stream whole rows and still be
#: many
CHUNK_ROWS = 256

#: elements of a row up to which it is short: where a vector holds as many, kernels of programs know
#: nothing of longer ones, and otherwise nothing of short ones
SHORT = 16

#: positions of form "chains" that advance together
TOGETHER = 8

OPERANDS = 3  # frame word of the first operand


@dataclass(frozen=True)
class ReduceSpec:
    """One primitive reduction. `words` names its params in order.

    `epilogue` is None where accumulators are left in scratch memory for a later phase; `resumed`
    where they are what is read. `moving` says which inputs advance along the vectors (not in
    "chains"); the others hold one element for all.
    """

    form: str
    monoid: str
    acc: DType
    lanes: int
    inputs: tuple[DType, ...]
    rule: Scalar | None = field(compare=False)
    epilogue: Scalar | None = field(compare=False)
    resumed: bool
    moving: tuple[bool, ...]
    kept: int  # loops over positions; "columns" has one more, the vectors'
    reduced: int  # loops over what is reduced
    operands: int  # pointers in the frame
    first: int  # of the phase's params, counted from the launch's first
    numbers: int  # params of rule and epilogue themselves
    short: bool = field(default=False, compare=False)  # rows of at most SHORT elements
    narrow: bool = False  # whether the kernel knows rows of such a length only
    said: str = field(init=False)

    def __post_init__(self) -> None:
        rules = [r for r in (self.rule, self.epilogue) if r is not None]
        shape = (self.resumed, self.epilogue is None, self.moving, self.kept, self.reduced)
        fields = (
            self.form,
            self.monoid,
            self.acc.short,
            self.lanes,
            [d.short for d in self.inputs],
            *shape,
            self.narrow and ("short" if self.short else "long"),
        )
        frame = (self.operands, self.first, self.numbers)
        object.__setattr__(self, "said", f"reduce {fields} {frame}\n{text(*rules)}")

    def key(self) -> str:
        return self.said

    @property
    def states(self) -> tuple[DType, ...]:
        """What an accumulator consists of: a value, for arg-reductions also its index."""
        return (self.acc, int64) if self.monoid in PLACES else (self.acc,)

    def words(self) -> tuple[str, ...]:
        """The phase's params: task decoding, extents, places in scratch memory (bytes), then sizes
        and strides.
        """
        out = ["blocks", "block", "positions", "count", "share", "chunk", "hop"]
        if self.form == "columns":
            out += ["columns", "width", "column_blocks", "columns.out"]
        out += [f"from{i}" for i in range(len(self.inputs)) if self.resumed]
        out += [f"to{i}" for i in range(len(self.states)) if self.epilogue is None]
        for name, depth in (("k", self.kept), ("r", self.reduced)):
            for axis in range(depth):
                out += [f"{name}{axis}", *(f"{name}{axis}.{i}" for i in range(len(self.inputs)))]
                out += [f"k{axis}.out"] * (name == "k")
        return (*out, *(f"n{i}" for i in range(self.numbers)))


def width_limit(lanes: int, acc: DType) -> int:
    """The most columns one task of form "columns" may have: their accumulators (times lanes) stay
    in a near cache.
    """
    return (16384 if lanes == 1 else 1024) // acc.itemsize
