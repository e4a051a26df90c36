"""Formulas for cotangents of elementwise ops, run as one kernel where they are more than one op."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from weft.ir import Node
from weft.ops.define import OPS, Op, Value, parameter, placeholder
from weft.types import TensorType
from weft.types.dtype import float32

Formula = Callable[..., Any]

#: by the name that the composite has, once it is made
FORMULAS: dict[str, Cotangent] = {}
_naming = threading.RLock()  # two threads may come to a formula first at once


class Cotangent:
    """A formula over (g, y, *xs). `run` is the formula itself or, once it was seen to be several
    elementwise ops, a composite of the operands that it reads.
    """

    def __init__(
        self, name: str, formula: Formula, arity: int, composite: Callable[[str], Any]
    ) -> None:
        self.name, self.formula, self.arity, self.composite = name, formula, arity, composite
        self.run: Formula = self._first
        self.op: Op | None = None
        self.used: tuple[int, ...] = ()
        FORMULAS[name] = self

    def _first(self, g: Value, y: Value, *xs: Any) -> Value:
        self.make()
        out: Value = self.run(g, y, *xs)
        return out

    def make(self) -> None:
        """Find out what to run."""
        nodes, self.used = self._read()
        if len(nodes) > 1 and all(n.op.scalar is not None or not n.inputs for n in nodes):  # type: ignore[attr-defined]
            with _naming:
                self.op = OPS.get(self.name) or self.composite(self.name)(self._body)
            self.run = self._fused
        else:
            self.run = self.formula

    def _read(self) -> tuple[list[Node], tuple[int, ...]]:
        """The ops of the formula, and the positions in (g, y, *xs) that they reach."""
        symbols = [placeholder(TensorType((), float32), i) for i in range(self.arity + 2)]
        out = self.formula(*symbols)
        nodes: list[Node] = []
        used: set[int] = set()
        seen: set[Node] = set()
        stack: list[Any] = [out.data] if isinstance(out, Value) else []
        while stack:
            n = stack.pop()
            if n in seen:
                continue
            seen.add(n)
            stack.extend(n.inputs)
            if n.op is parameter:
                used.add(n.attr("position"))
            elif n.inputs:
                nodes.append(n)
        return nodes, tuple(sorted(used))

    def _body(self, *given: Value) -> Value:
        operands: list[Any] = [None] * (self.arity + 2)
        for i, v in zip(self.used, given, strict=True):
            operands[i] = v
        return self.formula(*operands)  # type: ignore[no-any-return]

    def _fused(self, g: Value, y: Value, *xs: Any) -> Value:
        operands = (g, y, *xs)
        given = [operands[i] for i in self.used]
        if not all(
            isinstance(v, Value) for v in given
        ):  # Python numbers: the ops take them, a composite does not
            return self.formula(g, y, *xs)  # type: ignore[no-any-return]
        return self.op(*given)  # type: ignore[no-any-return, misc]
