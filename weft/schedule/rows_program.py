"""What a fused row computes: a small program of maps and folds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from weft.ops.scalar import Scalar, substitute, text, walk
from weft.types import DType
from weft.types.record import dataclass

#: what a value is, from one for the whole program to one per element
KINDS = ("one", "each", "column", "row")

_WORK = {
    "div": 8,
    "sqrt": 8,
    "max": 3,
    "min": 3,
    "const": 0,
    "input": 0,
    "param": 0,
    "mod": 20,
    "floordiv": 20,
}


@dataclass(frozen=True)
class Map:
    """A rule over earlier values: `input` positions count the program's inputs, then its steps."""

    rule: Scalar


@dataclass(frozen=True)
class Fold:
    """A value reduced along the row, to a `dtype`. Monoids: sum prod max min any all."""

    monoid: str
    value: int
    dtype: DType


@dataclass(frozen=True, eq=False)
class RowProgram:
    """`inputs` are (kind, dtype); "row" is [rows, n], "each" [rows], "column" [n], "one" a single
    element. `outputs` number values: inputs first, then steps. Rules may read run-time numbers as
    params.

    >>> from weft.ops.scalar import input_
    >>> from weft.types.dtype import float32
    >>> x = input_(0, float32)
    >>> steps = (Fold("sum", 0, float32), Map(x - input_(1, float32)))
    >>> centred = RowProgram((("row", float32),), steps, (2,))
    >>> centred.kinds, centred.levels
    (('row', 'each', 'row'), (0, 1, 1))
    """

    inputs: tuple[tuple[str, DType], ...]
    steps: tuple[Map | Fold, ...]
    outputs: tuple[int, ...]
    numbers: int = 0  # params the rules read

    @cached_property
    def said(self) -> str:
        lines = [f"{kind} {d.short}" for kind, d in self.inputs]
        for s in self.steps:
            lines.append(
                f"fold {s.monoid} {s.value} {s.dtype.short}"
                if isinstance(s, Fold)
                else f"map\n{text(s.rule)}"
            )
        return "\n".join([*lines, f"outputs {self.outputs} numbers {self.numbers}"])

    def step(self, value: int) -> Map | Fold | None:
        return self.steps[value - len(self.inputs)] if value >= len(self.inputs) else None

    def dtype(self, value: int) -> DType:
        step = self.step(value)
        if step is None:
            return self.inputs[value][1]
        return step.dtype if isinstance(step, Fold) else step.rule.dtype

    def reads(self, value: int) -> tuple[int, ...]:
        """The values a step is made of."""
        first = len(self.inputs)
        return self._reads[value - first] if value >= first else ()

    @cached_property
    def _reads(self) -> tuple[tuple[int, ...], ...]:
        return tuple([(s.value,) if isinstance(s, Fold) else reads(s.rule) for s in self.steps])

    @cached_property
    def _works(self) -> tuple[int, ...]:
        return tuple([0 if isinstance(s, Fold) else _work(s.rule) for s in self.steps])

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        out = [kind for kind, _ in self.inputs]
        for v in range(len(out), len(out) + len(self.steps)):
            if isinstance(self.step(v), Fold):
                out.append("each")
            else:
                kind = max((out[a] for a in self.reads(v)), key=KINDS.index, default="one")
                out.append("row" if kind == "column" else kind)
        return tuple(out)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The loop in (or, for one number per row, before) which a value is first known."""
        out = [0] * len(self.inputs)
        for v in range(len(out), len(out) + len(self.steps)):
            below = max((out[a] for a in self.reads(v)), default=0)
            out.append(below + isinstance(self.step(v), Fold))
        return tuple(out)

    def work(self, value: int) -> int:
        """What the rule of a step costs, about, in instructions."""
        first = len(self.inputs)
        return self._works[value - first] if value >= first else 0


def _work(rule: Scalar) -> int:
    return sum(_half(n) or _WORK.get(n.verb, 1) for n in walk([rule]))


def reads(rule: Scalar) -> tuple[int, ...]:
    return tuple(dict.fromkeys(n.value for n in walk([rule]) if n.verb == "input"))


def _half(n: Scalar) -> int:
    return 4 if n.verb == "cast" and n.dtype.is_float and n.dtype.bits == 16 else 0


def _first(*found: Scalar | None) -> Scalar:
    return next(s for s in found if s is not None)


def lift(program: RowProgram) -> RowProgram:
    """The same program with what a row's rules compute from one value per row (or less) made steps
    of their own.
    """
    steps: list[Map | Fold] = []
    number = {v: v for v in range(len(program.inputs))}
    known: dict[str, int] = {}

    def renumbered(n: Scalar) -> Scalar | None:
        return Scalar("input", (), n.dtype, number[n.value]) if n.verb == "input" else None

    def apart(rule: Scalar) -> Scalar:
        said = text(rule)
        if said not in known:
            steps.append(Map(substitute(rule, renumbered)))
            known[said] = len(program.inputs) + len(steps) - 1
        return Scalar("input", (), rule.dtype, known[said])

    for v, step in enumerate(program.steps, len(program.inputs)):
        if isinstance(step, Fold):
            steps.append(Fold(step.monoid, number[step.value], step.dtype))
        elif program.kinds[v] != "row":
            steps.append(Map(substitute(step.rule, renumbered)))
        else:
            steps.append(Map(_parted(program, step.rule, apart, renumbered)))
        number[v] = len(program.inputs) + len(steps) - 1
    return RowProgram(
        program.inputs, tuple(steps), tuple(number[v] for v in program.outputs), program.numbers
    )


def _parted(
    program: RowProgram,
    rule: Scalar,
    apart: Callable[[Scalar], Scalar],
    renumbered: Callable[[Scalar], Scalar | None],
) -> Scalar:
    """`rule` with its largest parts that don't change along the row replaced by what `apart` makes
    of them.
    """
    fixed: dict[int, bool] = {}
    done: dict[int, Scalar] = {}
    for n in walk([rule]):
        if n.verb == "input":
            fixed[id(n)] = program.kinds[n.value] in ("one", "each")
        else:
            fixed[id(n)] = all(fixed[id(a)] for a in n.args)
        if not fixed[id(n)]:
            args = tuple(
                apart(a)
                if fixed[id(a)] and (a.args or a.verb == "param")
                else _first(done.get(id(a)), renumbered(a), a)
                for a in n.args
            )
            done[id(n)] = _first(renumbered(n), Scalar(n.verb, args, n.dtype, n.value))
    return done[id(rule)]
