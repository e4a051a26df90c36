"""What a contraction kernel is, and the names of its run-time numbers, shared by the plan that writes them and the code that
reads them.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.types.dtype import DType, float32, int32

OPERANDS = 3  # frame word of A; B and the result follow
PARAMS = OPERANDS + 3  # frame word of the first param

#: The params every contraction begins with. "l" is the operand whose elements are broadcast (the rows of a tile), "r" the one
#: that is read in vectors (its columns); which of A and B plays which part is the plan's choice.
HEADER = (
    "l_word", "r_word",  # frame words of the two
    "rows", "cols", "depth",  # sizes of the flattened groups
    "row_block", "col_block", "depth_block",  # what one task takes of them, and what it packs at a time
    "row_blocks", "col_blocks", "depth_blocks",
    "row_span", "col_span",  # no block crosses a multiple of these
    "row_span_blocks", "col_span_blocks",  # blocks in a span
    "shared",  # bytes of packed r that all tasks share, at the start of scratch memory; 0: each task packs its own
    "slice",  # bytes of one worker's scratch memory; the slices lie behind `shared`
    "l_row", "l_depth",  # byte strides where l is read in place
    "r_depth",  # the same for r
    "l_run", "r_run",  # how many rows (columns) in a row are equally spaced
    "l_depth_run", "r_depth_run",  # how many steps of depth in a row are neighbours
    "c_flat", "c_row",  # whether rows of the result are equally spaced, and by how many bytes
    "poll",  # ask whether to stop before every so many depth blocks; 0: never
    "rows_l", "rows_c", "cols_r", "cols_c", "depth_l", "depth_r",  # where in a slice: tables of offsets,
    "packed_l", "packed_r", "partial", "slab_l", "slab_r",  # panels, unfinished results, padded copies
    "batch_at", "rows_at", "cols_at", "depth_at",  # params where a group's labels stand: count, sizes, strides of l, r, c
    "axes_l_at", "axes_r_at",  # params where an operand's axes stand: count, then AXIS for each
)  # fmt: skip

#: An axis of an operand that is copied with its padding: its coordinate is p * p_by + q * q_by - pad, p and q numbers of labels
#: counted through batch, lanes (rows or columns) and depth; -1 for none.
AXIS = ("size", "stride", "step", "pad", "p", "p_by", "q", "q_by")


def param(name: str) -> int:
    """The frame word of a header param."""
    return PARAMS + HEADER.index(name)


@dataclass(frozen=True)
class Tile:
    """Shapes the result is cut in, in registers: `heights` rows by `widths` vectors of `vector` bytes, largest first."""

    vector: int
    heights: tuple[int, ...]
    widths: tuple[int, ...]


#: by vector bytes: 32 registers of 512 bits; 16 of 256; 16 of 128, where fma is a call. Heights that make a tile as fast as the
#: tallest, an odd row aside.
SQUARE = {
    64: Tile(64, (14, 6, 2, 1), (2, 1)),
    32: Tile(32, (6, 2, 1), (2, 1)),
    16: Tile(16, (2, 1), (1,)),
}
#: for few rows, where r is read once: long rows suit the memory
WIDE = {
    64: Tile(64, (4, 2, 1), (6, 1)),
    32: Tile(32, (4, 2, 1), (3, 1)),
    16: Tile(16, (2, 1), (1,)),
}


def accumulator(dtype: DType) -> DType:
    """What sums are held in: float32 for the half types; 32 bits for narrow integers, whose low bits are the wrapped sum."""
    if dtype.is_int and dtype.bits < 32:
        return int32
    return float32 if dtype.is_float and dtype.bits == 16 else dtype


@dataclass(frozen=True)
class ContractSpec:
    """A contraction kernel. `l` and `r` say how each operand comes to the tile:

    "place" read where it is · packed from runs "near" (neighbours along rows or columns), "even" (every second), of "depth"
    (neighbours along the sum), or "any" (element by element).
    """

    dtype: DType
    tile: Tile
    l: str
    r: str
    slab_l: str = ""  # not empty: first copied with padding, "dense" where the last axis is, else "any"
    slab_r: str = ""
    shared: bool = False  # the module has a second function, "pack", which packs r for all

    @property
    def wide(self) -> int:
        """Bytes of an accumulator, and of an element once packed."""
        return accumulator(self.dtype).itemsize

    @property
    def lanes(self) -> int:
        return self.tile.vector // self.wide

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """The tiles there is code for. From packed columns only the tallest tile comes narrow: what the others compute beside
        the last columns is thrown away."""
        heights, widths = self.tile.heights, self.tile.widths
        if self.r == "place":
            return tuple((h, w) for h in heights for w in widths)
        return (*((heights[0], w) for w in widths), *((h, widths[0]) for h in heights[1:]))

    @property
    def panel(self) -> int:
        """Columns of a panel of r."""
        return self.lanes * self.tile.widths[0]

    def key(self) -> str:
        return f"contract {self}"
