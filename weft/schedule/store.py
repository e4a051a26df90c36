"""What a loop notes of every step: see `weft.control.store`.

Each place that puts has memory of the program's own, which grows; all that it ever puts stays
there until the program ends. A store is words: where the place's handle lies, the number of its
first entry there, and how many there are. In a function that may call itself a place can put into
several stores at a time: there every store has memory, and a handle, of its own.
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
    """A kernel: `put` (handle, store, values, store), `put apart` (list of all memory, store,
    values, store), or `get` (store, number, otherwise, value), whose elements have `itemsize`
    bytes. Params: bytes of an entry; for each value, where it begins in an entry and its bytes.
    """

    what: str
    itemsize: int = 0
    count: int = 1  # values

    def key(self) -> str:
        return f"store {self.what} {self.itemsize} {self.count}"


def plan_put(p: Any, n: Node, inputs: Sequence[Any]) -> Any:
    s, *xs = (p.dense(i) for i in inputs)
    out = p.room(Layout.dense(n.type))
    params = _places([i.type for i in n.inputs[1:]])
    apart = p.apart()
    launch = _launch(Store("put apart" if apart else "put", count=len(xs)), params, out.layout)
    p.append(launch, (apart or p.stack(HANDLE), s, *xs, out), (n,))
    return out


def plan_get(p: Any, n: Node, inputs: Sequence[Any]) -> Any:
    s, i, otherwise = inputs
    out = p.room(Layout.dense(n.type))
    how = dict(n.attrs)
    size, *places = _places(how.get("entry") or (n.type,))
    part = 2 * how.get("part", 0)
    launch = _launch(
        Store("get", n.type.dtype.itemsize), (size, *places[part : part + 2]), out.layout
    )
    p.append(launch, (p.dense(s), p.dense(i), otherwise, out), (n,))
    return out


def _launch(spec: Store, params: tuple[int, ...], out: Layout) -> Launch:
    return Launch((out,), (Phase(spec, 1),), params)


def _places(types: Sequence[Any]) -> tuple[int, ...]:
    """Bytes of an entry; for each value, where it begins there and its bytes."""
    out: list[int] = []
    end = 0
    for t in types:
        out += (end, t.nbytes)
        end += t.nbytes
    return (end, *out)
