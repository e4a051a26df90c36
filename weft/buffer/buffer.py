"""Storage: an address, how the elements lie behind it, and who keeps it alive."""

from __future__ import annotations

from typing import Any

from weft.buffer.layout import Layout


class Foreign:
    """An owner of memory that others than Weft can write to."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner


class Buffer:
    """An immutable piece of memory. Views share `owner`; nobody writes to a buffer once an op
    has filled it.
    """

    __slots__ = ("__weakref__", "address", "layout", "owner")

    def __init__(self, layout: Layout, address: int, owner: Any) -> None:
        self.layout, self.address, self.owner = layout, address, owner

    @property
    def shared(self) -> bool:
        """Whether others hold the memory too, who may not keep to that."""
        return isinstance(self.owner, Foreign)
