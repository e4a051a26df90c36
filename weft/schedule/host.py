"""Calls of Python in a plan: a step that hands Python the addresses of operands and results."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import CodeType
from typing import Any

import numpy as np

from weft.buffer import Buffer, Layout
from weft.buffer.interchange import copy_from_numpy, to_numpy
from weft.control.host import answers
from weft.ir import Location, Node
from weft.ops.define import installed
from weft.schedule.launch import Launch, Phase
from weft.schedule.steps import ABSOLUTE, Spot
from weft.types import TensorType
from weft.types.dtype import int64

_NOTHING = Layout.dense(TensorType((), int64))


class HostCall:
    """A call on operands laid out densely: told where operands and results lie, it does what is
    said and writes the results.
    """

    def __init__(self, n: Node, layouts: Sequence[Layout]) -> None:
        self.said, self.gives = n.attr("said"), n.attr("gives")
        self.layouts = tuple(layouts)
        self.by_user = self.said[0] == "apply"  # its own frames are worth showing
        self.code = from_line(n.loc, "given = call()" if self.by_user else "raise error")

    def key(self) -> str:
        return f"host {id(self)}"

    def __call__(self, address: int) -> None:
        count = len(self.layouts)
        words = (ctypes.c_int64 * (count + len(self.gives))).from_address(address)
        xs = [_read(at, layout) for at, layout in zip(words[:count], self.layouts, strict=True)]
        found = self._answers(xs)
        for at, x in zip(words[count:], found, strict=True):
            dense = np.ascontiguousarray(to_numpy(x.data))
            ctypes.memmove(at, dense.ctypes.data, dense.nbytes)

    def _answers(self, xs: list[Any]) -> list[Any]:
        """What Python answers; errors come from the user's line."""
        space: dict[str, Any] = {"call": lambda: answers(self.said, self.gives, xs)}
        if not self.by_user:
            try:
                return answers(self.said, self.gives, xs)
            except BaseException as e:
                space["error"] = e.with_traceback(None)
        exec(self.code, space)
        found: list[Any] = space["given"]
        return found


def _read(address: int, layout: Layout) -> Any:
    lies = Buffer(layout, address, None)  # the program's memory, until it goes on
    return installed.tensor(copy_from_numpy(to_numpy(lies)))


def from_line(loc: Location | None, text: str) -> CodeType:
    """Code that stands in the user's line: tracebacks show that."""
    file, line = (loc.file, loc.line) if loc is not None and loc.file else ("<program>", 1)
    return compile("\n" * (line - 1) + text, file, "exec")


def plan_host(p: Any, n: Node, inputs: Sequence[Any]) -> list[Any]:
    """The step of a call, and where what it gives will lie. `p` is the planner of a function."""
    token, *operands = (p.dense(s) for s in inputs)
    outs = [p.room(Layout.dense(t)) for t in n.attr("gives")]
    call = HostCall(n, [s.layout for s in operands])
    p.keep.append(call)
    itself = Spot(ABSOLUTE, id(call), _NOTHING)
    launch = Launch(tuple(s.layout for s in outs), (Phase(call, 1, function="host_call"),))
    p.append(launch, (itself, *operands, *outs), (n,))
    return [token, *outs]
