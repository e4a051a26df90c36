"""What a loop notes of every step: see `weft.control.store`.

Each place that puts has memory of the program's own, which grows; all that it ever puts stays
there until the program ends. A store is words: where the place's handle lies, the number of its
first entry there, and how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.buffer import Layout
from weft.ir import Node
from weft.schedule.launch import Launch, Phase
from weft.schedule.stack import HANDLE
from weft.types.record import dataclass


@dataclass(frozen=True)
class Store:
    """A kernel: `put` (handle, store, value, store) or `get` (store, number, otherwise, value),
    whose elements have `itemsize` bytes. Params: bytes of a value.
    """

    what: str
    itemsize: int

    def key(self) -> str:
        return f"store {self.what} {self.itemsize}"


def plan_put(p: Any, n: Node, inputs: Sequence[Any]) -> Any:
    s, x = (p.dense(i) for i in inputs)
    out = p.room(Layout.dense(n.type))
    p.append(_launch("put", x.layout, out.layout), (p.stack(HANDLE), s, x, out), (n,))
    return out


def plan_get(p: Any, n: Node, inputs: Sequence[Any]) -> Any:
    s, i, otherwise = inputs
    out = p.room(Layout.dense(n.type))
    launch = _launch("get", out.layout, out.layout)
    p.append(launch, (p.dense(s), p.dense(i), otherwise, out), (n,))
    return out


def _launch(what: str, value: Layout, out: Layout) -> Launch:
    spec = Store(what, value.type.dtype.itemsize)
    return Launch((out,), (Phase(spec, 1),), (value.type.nbytes,))
