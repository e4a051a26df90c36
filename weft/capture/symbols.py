"""The numbers of one capture: which are symbols, what is computed of them, what was asked.

Every answer that a symbol gave is a guard: a program may run on other sizes and numbers as long as
all answers would be the same.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from weft.capture.steps import (
    LARGEST,
    OPPOSITE,
    SIGNS,
    Argument,
    Constant,
    Guard,
    Outside,
    Ref,
    Step,
    identical,
    relation_text,
)
from weft.capture.values import Names, Values
from weft.errors import CaptureError, ShapeError
from weft.ir import user_location
from weft.types import Dim, TensorType, expression
from weft.types.expression import ITSELF, Symbol, Table, Terms
from weft.types.size import FloatNumber, IntNumber, Number, Size, is_symbolic

Place = tuple[int, int]  # a leaf of the arguments, and an axis of it


class Symbols:
    """Gives sizes and numbers of a call as symbols, and keeps what becomes of them."""

    def __init__(self) -> None:
        self.table = Table()
        self.guards: list[Guard] = []
        self.steps: list[Step] = []
        self.is_open = True
        self.numbers: dict[int, Any] = {}  # by leaf
        self.places: dict[Place, Any] = {}  # what the axes of arguments were taken for
        self.most: dict[Place, float] = {}  # of the axes that symbols stand for
        self.dims: dict[str, tuple[Dim, Size]] = {}  # that the user named
        self.pinned: set[int] = set()  # leaves that are ints whose value was needed
        self.places_outside: dict[Any, Any] = {}
        self.arguments = 0  # leaves of a call; behind them come sizes that the program finds
        self.found: list[Size] = []
        self._facts: dict[Any, bool] = {}
        self._known: dict[Any, int] = {}

    # symbols

    def size(self, name: str, place: Place, hint: int, bounds: Dim | None = None) -> Size:
        """A symbol for the size of an axis of an argument."""
        least = 0 if bounds is None else bounds.min
        most: float = LARGEST if hint <= LARGEST else math.inf
        if bounds is not None and bounds.max is not None:
            most = bounds.max
        self.most[place] = most
        i = self.table.number(Symbol(name, *place), (least, most))
        symbol: Terms = (((i,), 1),)
        if least > 0 or place[1] == ITSELF:
            d = expression.combined(symbol, expression.constant(least), -1)
            self._bound(f"{name} >= {least}", d)
        if bounds is not None and bounds.max is not None:
            d = expression.combined(expression.constant(bounds.max), symbol, -1)
            self._bound(f"{name} <= {bounds.max}", d)
        return Size(self, symbol, hint)

    def find(self, hint: int) -> Size:
        """A symbol for a size that the program finds when it runs: as if it were given behind the
        arguments.
        """
        place = (self.arguments + len(self.found), ITSELF)
        found = self.places[place] = self.size(f"k{len(self.found)}", place, hint)
        self.found.append(found)
        return found

    def _bound(self, text: str, terms: Terms) -> None:
        self.guards.append(Guard(text, terms=terms, relation="<", truth=False))

    def named(self, dim: Dim, place: Place) -> Size:
        """The symbol for a size that the user named: the same one for the same name."""
        known = self.dims.get(dim.name)
        if known is None:
            hint = example(dim, len(self.dims))
            known = self.dims[dim.name] = dim, self.size(dim.name, place, hint, dim)
        if known[0] != dim:
            raise ShapeError(
                f"Dim {dim.name!r}",
                expected=f"the same bounds everywhere, {_bounds(known[0])}",
                got=_bounds(dim),
            )
        return known[1]

    def renumber(self, leaves: dict[int, int]) -> None:
        """Arguments have other numbers than was thought; those without one are none."""
        self.places = {(leaves[i], a): n for (i, a), n in self.places.items() if i in leaves}
        first = {n.text: p for p, n in reversed(self.places.items()) if type(n) is Size}
        for i, atom in enumerate(self.table.atoms):
            if isinstance(atom, Symbol) and atom.name in first:
                self.table.atoms[i] = Symbol(atom.name, *first[atom.name])
        self.most = {first[name]: s for name, s in self._limits().items() if name in first}

    def _limits(self) -> dict[str, float]:
        atoms = enumerate(self.table.atoms)
        return {a.name: self.table.bounds[i][1] for i, a in atoms if isinstance(a, Symbol)}

    def type(self, leaf: int, of: TensorType, sizes: dict[int, Any]) -> TensorType:
        """The type of an argument, some of its sizes replaced."""
        for axis, n in enumerate(of.shape):
            self.places[leaf, axis] = sizes.get(axis, n)
        return TensorType([sizes.get(a, n) for a, n in enumerate(of.shape)], of.dtype)

    def argument(self, leaf: int, value: Any) -> Any:
        """A symbol for a number among the arguments."""
        out = self._step(Argument(leaf), (), value, False)
        self.numbers[leaf] = out
        return out

    def outside(self, place: Any, read: Callable[[], Any], value: Any, name: str) -> Any:
        """A symbol for a number that is read somewhere else in every call."""
        found = self.places_outside.get(place)
        if found is None:
            found = self.places_outside[place] = self._step(Outside(read, name), (), value, False)
        return found

    # what `weft.types.size.Scope` asks for

    def holds(self, relation: str, terms: Terms, value: int) -> bool:
        known = expression.value_of(terms)
        if known is not None:
            return known == 0 if relation == "==" else known < 0
        terms = expression.reduced(terms)
        if relation == "==" and terms[-1][1] < 0:
            terms = expression.combined((), terms, -1)
            value = -value
        decided = self._decided(relation, terms)
        if decided is not None:
            return decided
        truth = value == 0 if relation == "==" else value < 0
        self._guard(relation, terms, truth, "")
        return truth

    def _decided(self, relation: str, terms: Terms) -> bool | None:
        least, most = self.table.range(terms)
        if relation == "<":
            if most < 0 or least >= 0:
                return most < 0
        elif least > 0 or most < 0:
            return False
        elif least == most == 0:
            return True
        return self._facts.get((relation, terms))

    def _guard(self, relation: str, terms: Terms, truth: bool, why: str) -> None:
        self._must_be_open()
        self._facts[relation, terms] = truth
        text = relation_text(self.table, relation, terms, truth)
        loc = user_location()
        self.guards.append(Guard(text, why, loc, terms, relation, truth))
        least, most = self.table.range(terms)
        if relation == "<":
            bounds = (least, -1) if truth else (0, most)
        elif truth:
            bounds = (0, 0)
        elif least == 0:
            bounds = (1, most)
        else:
            return
        self.table.tighten(terms, *bounds)

    def specialise(self, x: Any, why: str) -> None:
        why = why or "the plain value is needed"
        if type(x) is Size:
            d = expression.combined(x.terms, expression.constant(x.hint), -1)
            if self._decided("==", d) is not True:
                self._guard("==", d, True, why)
            return
        self._must_be_open()
        self._pin(x.step)
        key = ("is", x.step)
        if key not in self._facts:
            self._facts[key] = True
            asked = Step(identical(x.hint), (Ref(x.step),), True, self.steps[x.step].sized)
            text = f"{self.text(Ref(x.step))} == {x.hint!r}"
            self.guards.append(Guard(text, why, user_location(), asked=asked))

    def _pin(self, step: int) -> None:
        """Note the arguments that a number comes of."""
        f, xs, hint, _ = self.steps[step]
        if isinstance(f, Argument) and type(hint) is int:
            self.pinned.add(f.leaf)
        for x in xs:
            if isinstance(x, Ref):
                self._pin(x.step)

    def compute(self, f: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        hint = f(*(_value(x) for x in xs))  # raises what Python raises
        if f in (operator.truediv, operator.floordiv, operator.mod):
            _ = xs[1] != 0  # asked, so that it is guarded; here it is true
        elif f is operator.pow:
            whole = all(isinstance(x, int) for x in xs)
            _ = (xs[1] if whole else xs[0]) < 0  # asked: it decides the kind of result
        if type(hint) is bool:
            return self.ask(f, xs)
        if type(hint) not in (int, float):
            for x in xs:
                if is_symbolic(x):
                    self.specialise(x, f"{f.__name__} gives a {type(hint).__name__}")
            return hint
        return self._step(f, xs, hint, all(self._sized(x) for x in xs))

    def ask(self, f: Callable[..., bool], xs: tuple[Any, ...]) -> bool:
        if not any(isinstance(x, Number) or type(x) is Size for x in xs):
            return bool(f(*xs))
        truth = bool(f(*(_value(x) for x in xs)))
        refs = tuple(self._operand(x) for x in xs)
        if (f, refs) not in self._facts:
            self._must_be_open()
            self._facts[f, refs] = truth
            asked = Step(f, refs, truth, all(self._sized(x) for x in xs))
            self.guards.append(Guard(self._question(asked), "", user_location(), asked=asked))
        return truth

    def _question(self, asked: Step) -> str:
        f: Any = asked.f
        parts = [self.text(r) for r in asked.xs]
        if not asked.hint and f in OPPOSITE:
            f = OPPOSITE[f]
            return f" {SIGNS[f]} ".join(parts)
        said = SIGNS.get(f, f.__name__)
        text = f" {said} ".join(parts) if len(parts) == 2 else f"{said}({parts[0]})"
        return text if asked.hint else f"not {text}"

    def _must_be_open(self) -> None:
        if not self.is_open:
            raise CaptureError(
                "a number of a captured call",
                expected="to be used in the call",
                got="a use after it",
                hint="keep int(n) or float(x) instead",
            )

    # numbers

    def _step(self, f: Any, xs: tuple[Any, ...], hint: Any, sized: bool) -> Any:
        key = (f, tuple(self._operand(x) for x in xs))
        at = self._known.get(key)
        if at is None:
            at = self._known[key] = len(self.steps)
            self.steps.append(Step(f, key[1], hint, sized))
        return (FloatNumber if type(hint) is float else IntNumber)(self, at, hint)

    def _operand(self, x: Any) -> Any:
        if type(x) is Size:
            return x.terms
        if type(x) in (FloatNumber, IntNumber):
            if x.scope is not self:
                x.scope._must_be_open()
            return Ref(x.step)
        return Constant(type(x), x.hex() if type(x) is float else repr(x), x)

    def _sized(self, x: Any) -> bool:
        return self.steps[x.step].sized if isinstance(x, Number) else True

    def is_sized(self, x: Any) -> bool:
        """Whether a number depends on sizes alone."""
        return type(x) is Size or self._sized(x)

    def describe(self, x: Any) -> str:
        return self.text(Ref(x.step))

    def text(self, ref: Any) -> str:
        """An operand as a reader would write it."""
        if isinstance(ref, Constant):
            return repr(ref.value)
        if not isinstance(ref, Ref):
            return self.table.text(ref)
        step = self.steps[ref.step]
        if isinstance(step.f, Argument):
            return f"argument {step.f.leaf}"
        if isinstance(step.f, Outside):
            return step.f.__name__
        parts = [self.text(r) for r in step.xs]
        said = SIGNS.get(step.f, getattr(step.f, "__name__", "f"))
        return f"({f' {said} '.join(parts)})" if len(parts) == 2 else f"{said}({', '.join(parts)})"

    # afterwards

    @property
    def has_sizes(self) -> bool:
        """Whether some size is left open."""
        return bool(self.table.atoms)

    def close(self) -> None:
        self.is_open = False

    def described(self) -> list[str]:
        """What is left open, and what the program is right for."""
        sizes = [a for a in self.table.atoms if isinstance(a, Symbol)]
        lines = [f"  size      {s.name}: {self._said(s)}" for s in sizes]
        lines += [f"  number    argument {leaf}" for leaf in self.numbers]
        outside = [s.f for s in self.steps if isinstance(s.f, Outside)]
        lines += [f"  number    {f.__name__}, read at every call" for f in outside]
        return lines + [f"  guard     {g}" for g in self.guards]

    def _said(self, s: Symbol) -> str:
        found = s.leaf >= self.arguments > 0
        return "found when the program runs" if found else _place(s.leaf, s.axis)

    def example(self, t: TensorType) -> TensorType:
        """A type with the sizes that the capture went by."""
        return TensorType([_value(n) for n in t.shape], t.dtype)

    def names(self) -> Values:
        """Sizes by name, in place of values."""
        return Names(self.table, self.steps, ())

    def values(self, leaves: Sequence[Any]) -> Values:
        """What everything comes to in a call with these arguments, and what the program has found
        if that is among them.
        """
        missing = self.found[len(leaves) - self.arguments :] if self.found else []
        return Values(self.table, self.steps, [*leaves, *(n.hint for n in missing)])

    def live(self) -> list[Guard]:
        """Guards that another call with the same types may break."""
        return [g for g in self.guards if g.asked is not None and not g.asked.sized]

    def failure(self, leaves: Sequence[Any], only: Sequence[Guard] | None = None) -> str | None:
        """The first guard that does not hold for a call, in words, or None."""
        values = self.values(leaves)
        if only is None:
            found = self._misplaced(leaves)
            if found is not None:
                return found
        known = not self.found or len(leaves) == self.arguments + len(self.found)
        for guard in self.guards if only is None else only:
            if not known and self._is_late(guard):
                continue
            if not values.satisfy(guard):
                return str(guard)
        return None

    def _is_late(self, guard: Guard) -> bool:
        """Whether a guard is about what the program finds."""
        if guard.terms is not None:
            return self._depends(guard.terms)
        return guard.asked is not None and self._is_step_late(guard.asked)

    def _is_step_late(self, step: Step) -> bool:
        return any(
            self._is_step_late(self.steps[r.step])
            if isinstance(r, Ref)
            else not isinstance(r, Constant) and self._depends(r)
            for r in step.xs
        )

    def _depends(self, terms: Terms) -> bool:
        """Whether an expression depends on what the program finds."""
        atoms = [self.table.atoms[i] for m, _ in terms for i in m]
        return any(
            a.leaf >= self.arguments
            if isinstance(a, Symbol)
            else self._depends(a.a) or self._depends(a.b)
            for a in atoms
        )

    def _misplaced(self, leaves: Sequence[Any]) -> str | None:
        values = self.values(leaves)
        for (leaf, axis), n in self.places.items():
            if leaf >= len(leaves):
                continue
            now = Symbol("", leaf, axis).of(leaves)
            what = n.text if type(n) is Size else str(n)
            if now != values.of(n):
                return f"{_place(leaf, axis)} == {what}"
            if now > self.most.get((leaf, axis), now):
                return f"{what} <= {self.most[leaf, axis]}"
        return None


def _place(leaf: int, axis: int) -> str:
    return f"argument {leaf}" if axis == ITSELF else f"axis {axis} of argument {leaf}"


def example(dim: Dim, number: int) -> int:
    """A size to capture with: one that no literal in a program is likely to equal."""
    usual = 61 + 6 * number
    return max(dim.min, usual if dim.max is None else min(dim.max, usual))


def _bounds(dim: Dim) -> str:
    return f"{dim.min} to {'any' if dim.max is None else dim.max}"


def _value(x: Any) -> Any:
    return x.hint if type(x) in (Size, FloatNumber, IntNumber) else x
