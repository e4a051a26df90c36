"""What a kernel of a loop on numbers computes: see `weft.schedule.scalars`."""

from __future__ import annotations

from typing import Any, NamedTuple

from weft.ops.scalar import Scalar, text
from weft.types import DType
from weft.types.record import dataclass


class Let(NamedTuple):
    """Registers from here on: `roots` of registers (inputs) and params."""

    first: int
    roots: tuple[Scalar, ...]


class Read(NamedTuple):
    """A register from element `where` of operand `source`, whose size is a param."""

    to: int
    source: int
    where: int
    size: int


class If(NamedTuple):
    """Registers from `first` on: what one of two blocks gives."""

    first: int
    condition: int
    yes: Block
    no: Block


class While(NamedTuple):
    """Registers from `first` on: the state, from what registers `inits` hold; a step while `test`
    gives true.
    """

    first: int
    inits: tuple[int, ...]
    test: Block
    body: Block


class Block(NamedTuple):
    """Statements, and the registers that they are for."""

    lines: tuple[Any, ...]
    gives: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ScalarSpec:
    """`block` on operands: `count` single elements, which are the first registers, then tensors it
    reads of; it writes what the block gives. Params: the numbers of the rules.
    """

    block: Block
    dtypes: tuple[DType, ...]  # of all registers
    count: int
    sources: tuple[DType, ...]
    params: int

    def key(self) -> str:
        registers, sources = (" ".join(d.short for d in ds) for ds in (self.dtypes, self.sources))
        head = f"scalars {self.count} {self.params} [{registers}] [{sources}]"
        return "\n".join([head, *_said(self.block)])

    def __hash__(self) -> int:
        return hash(self.key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScalarSpec) and self.key() == other.key()


def _said(block: Block) -> list[str]:
    out = []
    for line in block.lines:
        if isinstance(line, Let):
            out.append(f"let {line.first}\n{text(*line.roots)}")
        elif isinstance(line, Read):
            out.append(f"read {line.to} {line.source} {line.where} {line.size}")
        elif isinstance(line, If):
            out += [f"if {line.first} {line.condition}", *_said(line.yes), *_said(line.no)]
        else:
            out.append(f"while {line.first} {line.inits}")
            out += [*_said(line.test), *_said(line.body)]
    return [*out, f"give {block.gives}"]
