"""Sizes that are known only at run time."""

from __future__ import annotations

from weft.types.record import dataclass


@dataclass(frozen=True)
class Dim:
    """A size that is known only at run time: a name and its bounds.

    >>> Dim("batch", min=1, max=64)
    batch
    """

    name: str
    min: int = 0
    max: int | None = None

    def __repr__(self) -> str:
        return self.name
