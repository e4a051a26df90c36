"""What a contraction kernel is, and the names of its run-time numbers, shared by the plan that
writes them and the code that reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from weft.buffer import Layout
from weft.ops.scalar import Scalar, text, walk
from weft.types.dtype import DType, int32
from weft.types.record import dataclass

OPERANDS = 3  # frame word of A; B, what an epilogue reads, and the results follow

#: The params every contraction begins with. "l" is the operand whose elements are broadcast (the
#: rows of a tile), "r" the one that is read in vectors (its columns), "c" the result. Which of A
#: and B plays which part is the plan's choice.
HEADER = (
    "l_word",  # frame words of the two
    "r_word",
    "rows",  # sizes of the flattened groups of labels
    "cols",
    "depth",
    "row_block",  # what one task takes of rows and columns; depth that it packs at a time
    "col_block",
    "depth_block",
    "row_blocks",
    "col_blocks",
    "depth_blocks",
    "row_span",  # no block crosses a multiple of a span
    "col_span",
    "row_span_blocks",  # blocks in a span
    "col_span_blocks",
    "pack_cols",  # columns of a block that are packed in one go for all tasks, and in how many goes
    "pack_parts",
    "pack_depth",  # the same of steps of depth, of all there are
    "pack_depths",
    "shared",  # bytes, at the start of scratch memory, of packed columns that all tasks share
    "slice",  # bytes of a worker's own scratch memory; the slices lie behind what is shared
    "l_row",  # byte strides where an operand is read in place
    "l_depth",
    "r_depth",
    "l_run",  # how many rows or columns in a row are equally spaced (of l through a table: a tile
    # takes together)
    "r_run",
    "l_depth_run",  # how many steps of depth in a row are
    "r_depth_run",
    "c_flat",  # whether all rows of the result are equally spaced, and by how many bytes
    "c_row",
    "poll",  # ask whether to stop before every so many blocks of depth
    "rows_l",  # where in a slice: tables of offsets,
    "rows_c",
    "cols_r",
    "cols_c",
    "depth_l",
    "depth_r",
    "packed_l",  # packed operands,
    "packed_r",
    "partial",  # unfinished results,
    "slab_l",  # padded copies
    "slab_r",
    "batch_at",  # params where a group's labels stand: count, sizes, strides in l, r and c
    "rows_at",
    "cols_at",
    "depth_at",
    "axes_l_at",  # params where an operand's axes stand, if it is copied: count, AXIS of each
    "axes_r_at",
    "turned",  # where in a slice: a tile, transposed
)

#: An axis of an operand that is copied with its padding. Its coordinate is
#: p * p_by + q * q_by - pad, where p and q are numbers of labels, counted through batch, lanes
#: (rows or columns) and depth, or -1 for none.
AXIS = ("size", "stride", "step", "pad", "p", "p_by", "q", "q_by")

#: A part of a contraction that falls into several: how many tasks it and those before it have, for
#: the kernel and to pack columns; where its columns are, in bytes of scratch memory; its params,
#: and how many. Then the bytes by which its operands begin later. Before the first part stand how
#: many there are, and how many words the longest part's frame has.
PART = ("tasks", "packs", "shared", "at", "count")


@dataclass(frozen=True)
class Epilogue:
    """What becomes of each finished element: one result for each of `rules`.

    In a rule, `input_(0, …)` is the element as the contraction alone would store it, `input_(1 + i,
    …)` the element of `extras[i]`, a layout of the result's shape (with strides of 0 where it is
    broadcast), `param(k)` the run-time number `numbers[k]`.
    """

    rules: tuple[Scalar, ...]
    extras: tuple[Layout, ...] = ()
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Ending:
    """The part of an epilogue that a kernel is made for. `modes` says how the results and each
    extra operand run along the columns: "c" neighbours, in runs, "b" one element for all, "s"
    scattered.
    """

    rules: tuple[Scalar, ...] = field(compare=False, repr=False)
    dtypes: tuple[DType, ...]
    modes: str
    numbers: int
    said: str = field(init=False)

    def __post_init__(self) -> None:
        strange = {n.verb for n in walk(self.rules)} & {"load", "index"}
        if strange:
            raise TypeError(f"an epilogue's rules know no {' and no '.join(sorted(strange))}")
        object.__setattr__(self, "said", text(*self.rules))

    @property
    def extras(self) -> tuple[str, ...]:
        """What the extra operands are called beside "l", "r" and "c"."""
        return tuple(f"e{i}" for i in range(len(self.dtypes)))

    @property
    def header(self) -> tuple[str, ...]:
        """Params that follow the HEADER: how many columns in a row are neighbours in all operands
        of mode "c"; how many extra operands there are; tables of offsets; numbers.
        """
        tables = (f"{group}_{name}" for name in self.extras for group in ("rows", "cols"))
        return ("run", "extras", *tables, *(f"n{k}" for k in range(self.numbers)))


@dataclass(frozen=True)
class Tile:
    """Shapes the result is cut in, in registers: `heights` rows by `widths` vectors of `vector`
    bytes, largest first. The next tile has the first height that fits into the rows that are left,
    but not the tallest where two of the second hold them all.
    """

    vector: int
    heights: tuple[int, ...]
    widths: tuple[int, ...]

    def cut(self, rows: int) -> Iterator[tuple[int, int]]:
        """The tiles that so many rows are made of: how many, and their height."""
        tallest, second = self.heights[:2]
        for height in self.heights:
            many, left = divmod(rows, height)
            if height == tallest and 0 < left <= 2 * second - tallest:
                many = max(many - 1, 0)
            rows -= many * height
            yield many, height


#: By vector bytes: 32 registers of 512 bits; 16 of 256; 16 of 128, where fma is a call. Sums that
#: run side by side hide how long each product takes: 8 vectors are enough, which all heights but
#: the last two have.
SQUARE = {
    64: Tile(64, (14, 8, 4, 2, 1), (2, 1)),
    32: Tile(32, (6, 2, 1), (2, 1)),
    16: Tile(16, (2, 1), (1,)),
}
#: For few rows, where r is read once: long rows suit the memory.
WIDE = {
    64: Tile(64, (4, 2, 1), (6, 1)),
    32: Tile(32, (4, 2, 1), (3, 1)),
    16: Tile(16, (2, 1), (1,)),
}
#: For rows in runs that a tile may not cross, those of images, often 7 times a power of two.
RUNS = SQUARE | {64: Tile(64, (14, 8, 7, 4, 2, 1), (2, 1))}
#: The same for columns that fill one vector.
NARROW = RUNS | {64: Tile(64, (16, 8, 7, 4, 2, 1), (1,))}
#: For few rows, where columns of r are dense along the sum.
TURN = {vector: Tile(vector, (4, 2, 1), (1,)) for vector in (64, 32, 16)}


def accumulator(dtype: DType) -> DType:
    """What sums are held in: float32 for the half types; 32 bits for narrow integers, whose low
    bits are the wrapped sum.
    """
    if dtype.is_int and dtype.bits < 32:
        return int32
    return dtype.compute if dtype.is_float else dtype


@dataclass(frozen=True)
class ContractSpec:
    """A contraction kernel. `l` and `r` say how each operand comes to the tile.

    "place" reads it where it is; "turn" too, if columns are dense along the sum, for few rows;
    "table" too, rows and steps lying anywhere. The others pack it, from runs of elements: "near" of
    neighbours along rows or columns, "even" of every second along them, "depth" of neighbours along
    the sum, "any" one by one; "rows" takes whole blocks of columns that are neighbours. "panels"
    finds it packed, in panels of columns.
    """

    dtype: DType
    tile: Tile
    l: str
    r: str
    slab_l: str = (
        ""  # not empty: copied with its padding before; "dense" along its last axis, or "any"
    )
    slab_r: str = ""
    shared: bool = False  # the module has a second function, "pack", which packs r for all tasks
    turned: bool = False  # the result's neighbours are rows of a tile, which is transposed
    parts: bool = False  # the launch is of several contractions, on slices of the operands
    ending: Ending | None = None  # not None: results are not the sums but made of them

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the params, in order."""
        return HEADER + (self.ending.header if self.ending else ())

    @property
    def operands(self) -> tuple[str, ...]:
        """Those that a group of labels has strides in."""
        return ("l", "r", "c", *(self.ending.extras if self.ending else ()))

    @property
    def result(self) -> int:
        """The frame word of the first result."""
        return OPERANDS + 2 + (len(self.ending.dtypes) if self.ending else 0)

    @property
    def params(self) -> int:
        """The frame word of the first param."""
        return self.result + (len(self.ending.rules) if self.ending else 1)

    @property
    def wide(self) -> int:
        """Bytes of an accumulator, and of an element once packed."""
        return accumulator(self.dtype).itemsize

    @property
    def lanes(self) -> int:
        return self.tile.vector // self.wide

    @property
    def panel(self) -> int:
        """Columns that are packed side by side."""
        return self.lanes * self.tile.widths[0]

    @property
    def l_panel(self) -> int:
        """Rows that are, or that lie side by side in a tile once transposed, in whole vectors."""
        return -(-self.tile.heights[0] // self.lanes) * self.lanes

    def run(self, rows: int) -> int:
        """How many rows of l a tile may take together where so many in a row are equally spaced:
        through a table, two runs that are half of the tallest tile each.
        """
        return 2 * rows if self.l == "table" and 2 * rows == self.tile.heights[0] else rows

    @property
    def across(self) -> tuple[str, str]:
        """The groups of labels across and along the result's vectors."""
        return ("cols", "rows") if self.turned else ("rows", "cols")

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """The tiles there is code for. From packed columns only the tallest comes narrow: what the
        others compute beside the last columns is thrown away.
        """
        heights, widths = self.tile.heights, self.tile.widths
        if self.r in ("place", "turn"):
            return tuple((h, w) for h in heights for w in widths)
        return (*((heights[0], w) for w in widths), *((h, widths[0]) for h in heights[1:]))

    def key(self) -> str:
        return f"contract {self}"
