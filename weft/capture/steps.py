"""What is noted of the numbers of a capture: how each is computed, and what was asked of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from weft.ir import Location
from weft.types import expression
from weft.types.expression import Table, Terms

#: a size beyond this gets a capture of its own: so sums of sizes are known to fit in 64 bits
LARGEST = 2**40


class Argument(NamedTuple):
    """A number that an argument is."""

    leaf: int


class Outside:
    """A number that is read from an object outside."""

    def __init__(self, read: Callable[[], Any], name: str) -> None:
        self.read, self.__name__ = read, name

    def __call__(self) -> Any:
        return self.read()


class Step(NamedTuple):
    """A number computed of others: of numbers by their places among steps, of sizes, constants."""

    f: Callable[..., Any] | Argument
    xs: tuple[Any, ...]
    hint: Any
    sized: bool  # depends on sizes alone


class Ref(NamedTuple):
    step: int


class Constant(NamedTuple):
    kind: type
    said: str
    value: Any


@dataclass(frozen=True, eq=False)
class Guard:
    """What must be true of a call for the program to be right for it."""

    text: str
    why: str = ""
    loc: Location | None = None
    terms: Terms | None = None  # of a size: `terms relation 0` is `truth`
    relation: str = "=="
    truth: bool = True
    asked: Step | None = None  # of numbers: f(*xs) is its hint

    def __str__(self) -> str:
        at = f" at {self.loc}" if self.loc is not None and self.loc.file else ""
        return f"{self.text}{at}" + (f" ({self.why})" if self.why else "")


SIGNS: dict[Any, str] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}


#: of the order it would not be true: NaN is neither
OPPOSITE: dict[Any, Any] = {operator.eq: operator.ne, operator.ne: operator.eq}


def identical(value: Any) -> Callable[[Any], bool]:
    """Whether another number is this one, to the bit."""
    if type(value) is float:
        said = value.hex()
        return lambda x: type(x) is float and x.hex() == said
    return lambda x: type(x) is type(value) and x == value


def relation_text(table: Table, relation: str, terms: Terms, truth: bool) -> str:
    """`B == 2*C` for 'B - 2*C == 0', and so on."""
    sign = {"==": ("!=", "=="), "<": (">=", "<")}[relation][truth]
    if all(c < 0 for m, c in terms if m):  # -B + 4 < 0
        terms = expression.combined((), terms, -1)
        sign = {"<": ">", ">=": "<="}.get(sign, sign)
    left = tuple((m, c) for m, c in terms if c > 0 and m)
    right = tuple((m, -c) for m, c in terms if c < 0 or not m)
    return f"{table.text(left)} {sign} {table.text(right)}"
