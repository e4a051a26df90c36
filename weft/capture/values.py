"""What the sizes and numbers of a capture come to in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.capture.steps import LARGEST, Argument, Constant, Guard, Ref, Step
from weft.types import Dim, expression
from weft.types.expression import Symbol, Table
from weft.types.size import FloatNumber, IntNumber, Size


class Values:
    """The values of symbols in one call."""

    def __init__(self, table: Table, steps: Sequence[Step], leaves: Sequence[Any]) -> None:
        self.table, self.steps, self.leaves = table, steps, leaves
        self.atoms = table.values(self.read)
        self._known: dict[int, Any] = {}

    def read(self, s: Symbol) -> Any:
        return s.of(self.leaves)

    def of(self, x: Any) -> Any:
        """The plain number; anything that is no symbol as it is."""
        if type(x) is Size:
            return expression.evaluated(x.terms, self.atoms)
        return self.number(x.step) if type(x) in (FloatNumber, IntNumber) else x

    def number(self, step: int) -> Any:
        todo = [step]
        while todo:
            at = todo[-1]
            if at in self._known:
                todo.pop()
                continue
            said = self.steps[at]
            missing = [r.step for r in said.xs if isinstance(r, Ref) and r.step not in self._known]
            if missing:
                todo += missing
                continue
            self._known[at] = self._called(said)
        return self._known[step]

    def _called(self, step: Step) -> Any:
        if isinstance(step.f, Argument):
            return self.leaves[step.f.leaf]
        return step.f(*(self._operand(r) for r in step.xs))

    def _operand(self, ref: Any) -> Any:
        if isinstance(ref, Ref):
            return self.number(ref.step)
        return ref.value if isinstance(ref, Constant) else expression.evaluated(ref, self.atoms)

    def satisfy(self, guard: Guard) -> bool:
        """Whether a guard holds."""
        if guard.terms is not None:
            n = expression.evaluated(guard.terms, self.atoms)
            return (n == 0 if guard.relation == "==" else n < 0) is guard.truth
        assert guard.asked is not None
        try:
            return bool(self._called(guard.asked)) is guard.asked.hint
        except (ArithmeticError, ValueError, TypeError):
            return False  # capturing again raises what Python would


class Names(Values):
    """Named sizes: what a program of open sizes is written with."""

    def read(self, s: Symbol) -> Any:
        low, high = self.table.bounds[self.table.atoms.index(s)]
        return Dim(s.name, int(low), None if high >= LARGEST else int(high))

    def of(self, x: Any) -> Any:
        return super().of(x) if type(x) is Size else x
