"""Storage: an address, how the elements lie behind it, and who keeps it alive."""

from __future__ import annotations

from typing import Any

from weft.buffer.layout import Layout


class Buffer:
    """An immutable piece of memory. Views share `owner`; nobody writes to a buffer once an op
    has filled it.
    """

    __slots__ = ("address", "layout", "owner")

    def __init__(self, layout: Layout, address: int, owner: Any) -> None:
        self.layout, self.address, self.owner = layout, address, owner
