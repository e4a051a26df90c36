"""Numbers that a program needs of a call, as one Python function: fast enough for every call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.capture.steps import Argument, Constant, Guard, Ref, Step
from weft.capture.symbols import Symbols
from weft.types.size import Size, is_symbolic

Reader = Callable[[Sequence[Any]], Any]


def reader(symbols: Symbols, steps: Sequence[int]) -> Reader:
    """A function of the leaves of a call that gives the values of these steps, as a list."""
    code = _Code(symbols)
    names = [code.step(i) for i in steps]
    return code.function([f"return [{', '.join(names)}]"])


def sizes_reader(symbols: Symbols, sizes: Sequence[Size]) -> Reader:
    """The same for sizes."""
    code = _Code(symbols)
    return code.function([f"return [{', '.join(symbols.table.source(s.terms) for s in sizes)}]"])


def checker(symbols: Symbols, guards: Sequence[Guard]) -> Reader:
    """A function of the leaves of a call that says whether guards hold.

    They are asked in the order they came up, so a later one is not computed where an earlier one
    (a divisor that is not 0) rules it out.
    """
    code = _Code(symbols)
    for g in guards:
        assert g.asked is not None
        code.lines.append(f"if bool({code.call(g.asked)}) is not {g.asked.hint}: return False")
    return code.function(["return True"], guarded=True)


def is_numeric(f: Any) -> bool:
    """Whether f makes numbers of numbers and does nothing else."""
    return f is float or f is int or f is type or getattr(f, "__module__", None) == "math"


def computed(f: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
    """f(*xs) of numbers, some of them symbols, whenever their values are known."""
    if f is type and len(xs) == 1:
        return xs[0].__class__
    if f is int and type(xs[0]) is Size:
        return xs[0]
    if not all(is_symbolic(x) or type(x) in (int, float, bool) for x in xs):
        return f(*xs)
    scope = next(x.scope for x in xs if is_symbolic(x))
    return scope.compute(f, xs)


class _Code:
    """Lines of a function that computes steps."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.done: dict[int, str] = {}

    def step(self, at: int) -> str:
        """The name of a step, computed by now."""
        todo = [at]
        while todo:
            i = todo[-1]
            if i in self.done:
                todo.pop()
                continue
            step = self.symbols.steps[i]
            missing = [r.step for r in step.xs if isinstance(r, Ref) and r.step not in self.done]
            if missing:
                todo += missing
            else:
                self.lines.append(f"n{i} = {self.call(step)}")
                self.done[i] = f"n{i}"
        return self.done[at]

    def call(self, step: Step) -> str:
        if isinstance(step.f, Argument):
            return f"v[{step.f.leaf}]"
        xs = [self._operand(r) for r in step.xs]
        return f"{self._name(step.f)}({', '.join(xs)})"

    def _operand(self, ref: Any) -> str:
        if isinstance(ref, Ref):
            return self.step(ref.step)
        if isinstance(ref, Constant):
            return self._name(ref.value)
        return f"({self.symbols.table.source(ref)})"

    def _name(self, x: Any) -> str:
        name = f"c{len(self.names)}"
        self.names[name] = x
        return name

    def function(self, last: list[str], guarded: bool = False) -> Reader:
        body = [*self.lines, *last]
        if guarded:
            body = ["try:", *(f" {line}" for line in body)]
            body += ["except (ArithmeticError, ValueError, TypeError): return False"]
        exec("def f(v):\n" + "\n".join(f" {line}" for line in body), self.names)
        made: Reader = self.names["f"]
        return made
