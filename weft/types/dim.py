"""Symbolic sizes, and arithmetic with them.

A size is a polynomial of named ones, and of quotients of such, in one canonical order: equal sums
are equal, whatever order they were added in. What cannot be known is refused, never
guessed: an order between sizes follows from their bounds or raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import reduce
from operator import mul
from typing import Union

from weft.errors import ShapeError
from weft.types.expression import without
from weft.types.record import dataclass

_FAR = 2**62  # as good as no bound

Monomial = tuple["Dim", ...]
Terms = dict[Monomial, int]
Number = Union[int, "Dim"]


@dataclass(frozen=True)
class Dim:
    """A size that is known only at run time: a name and its bounds.

    >>> B = Dim("batch", min=1, max=64)
    >>> B, 2 * B + B - 1, (6 * B + 4) // 2, B * 3 // B, B + 1 > 1
    (batch, 3*batch - 1, 3*batch + 2, 3, True)
    """

    name: str
    min: int = 0
    max: int | None = None

    def __repr__(self) -> str:
        return self.name

    @property
    def terms(self) -> Terms:
        """Coefficients by what they multiply."""
        return {(self,): 1}

    def at(self, sizes: Mapping[str, int]) -> int:
        """The number, where the sizes of all names are known."""
        return sizes[self.name]

    def named(self) -> Iterator[Dim]:
        """The named sizes in it."""
        yield self

    def said(self, word: Callable[[str], str]) -> str:
        """Its text, with names as `word` writes them."""
        return word(self.name)

    def __add__(self, other: Number) -> Number:
        return _sum((self, 1), (other, 1))

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        return _sum((self, 1), (other, -1))

    def __rsub__(self, other: Number) -> Number:
        return _sum((other, 1), (self, -1))

    def __neg__(self) -> Number:
        return _sum((self, -1))

    def __mul__(self, other: Number) -> Number:
        out: Terms = {}
        for m, a in self.terms.items():
            for n, b in _terms(other).items():
                key = _ordered(m + n)
                out[key] = out.get(key, 0) + a * b
        return _made(out)

    __rmul__ = __mul__

    def __floordiv__(self, other: Number) -> Number:
        return _divided(self, other)

    def __rfloordiv__(self, other: int) -> Number:
        return _divided(other, self)

    def __mod__(self, other: Number) -> Number:
        return self - self // other * other

    def __rmod__(self, other: int) -> Number:
        return other - other // self * self

    def __lt__(self, other: Number) -> bool:
        return _positive(other - self, f"{self} < {other}")

    def __gt__(self, other: Number) -> bool:
        return _positive(self - other, f"{self} > {other}")

    def __le__(self, other: Number) -> bool:
        return not _positive(self - other, f"{self} <= {other}")

    def __ge__(self, other: Number) -> bool:
        return not _positive(other - self, f"{self} >= {other}")


@dataclass(frozen=True)
class Sum(Dim):
    """A polynomial of sizes."""

    parts: tuple[tuple[Monomial, int], ...] = field(default=(), compare=False)
    __repr__ = Dim.__repr__

    @property
    def terms(self) -> Terms:
        return dict(self.parts)

    def at(self, sizes: Mapping[str, int]) -> int:
        return sum(c * reduce(mul, (d.at(sizes) for d in m), 1) for m, c in self.parts)

    def named(self) -> Iterator[Dim]:
        for m, _ in self.parts:
            for d in m:
                yield from d.named()

    def said(self, word: Callable[[str], str]) -> str:
        return _text(self.parts, word)


@dataclass(frozen=True)
class Quotient(Dim):
    """A size divided by another, rounded down."""

    over: tuple[Number, Number] = field(default=(0, 1), compare=False)
    __repr__ = Dim.__repr__

    def at(self, sizes: Mapping[str, int]) -> int:
        a, b = (x.at(sizes) if isinstance(x, Dim) else x for x in self.over)
        return a // b

    def named(self) -> Iterator[Dim]:
        for x in self.over:
            if isinstance(x, Dim):
                yield from x.named()

    def said(self, word: Callable[[str], str]) -> str:
        return "//".join(_factor(x, word) for x in self.over)


def _terms(x: Number) -> Terms:
    return x.terms if isinstance(x, Dim) else {(): x}


def _ordered(m: Monomial) -> Monomial:
    return tuple(sorted(m, key=repr))


def _sum(*parts: tuple[Number, int]) -> Number:
    out: Terms = {}
    for x, sign in parts:
        for m, c in _terms(x).items():
            out[m] = out.get(m, 0) + sign * c
    return _made(out)


def _made(terms: Terms) -> Number:
    """The size with these terms; a plain number or name where it is no more."""
    parts = sorted(
        ((m, c) for m, c in terms.items() if c), key=lambda p: (-len(p[0]), [d.name for d in p[0]])
    )
    if not parts:
        return 0
    if len(parts) == 1:
        (m, c) = parts[0]
        if not m:
            return c
        if c == 1 and len(m) == 1:
            return m[0]
    found = tuple(parts)
    low, high = _bounds(found)
    return Sum(_text(found, str), low, high, found)


def _bounds(parts: tuple[tuple[Monomial, int], ...]) -> tuple[int, int | None]:
    low, high = 0.0, 0.0
    for m, c in parts:
        span = [float(c), float(c)]
        for d in m:
            ends = (float(d.min), math.inf if d.max is None else float(d.max))
            corners = [a * b if a and b else 0.0 for a in span for b in ends]
            span = [min(corners), max(corners)]
        low, high = low + span[0], high + span[1]
    return max(math.ceil(max(low, -_FAR)), -_FAR), None if high >= _FAR else math.floor(high)


def _divided(a: Number, b: Number) -> Number:
    """a // b: what divides exactly leaves the quotient."""
    if isinstance(b, int) and b == 0:
        raise ZeroDivisionError("a size divided by 0")
    exact: Terms = {}
    left: Terms = {}
    ((by, factor), *more) = _terms(b).items()
    for m, c in _terms(a).items():
        rest = None if more or c % factor else without(m, by)
        if rest is None:
            left[m] = c
        else:
            exact[rest] = c // factor
    remainder = _made(left)
    if remainder == 0 or (isinstance(remainder, int) and isinstance(b, int)):
        return _sum((_made(exact), 1), (remainder // b if isinstance(b, int) else 0, 1))
    text = f"{_factor(remainder, str)}//{_factor(b, str)}"
    return _sum((_made(exact), 1), (Quotient(text, *_quotients(remainder, b), (remainder, b)), 1))


def _quotients(a: Number, b: Number) -> tuple[int, int | None]:
    """The least and the most that a // b can be."""
    low, high = (a.min, a.max) if isinstance(a, Dim) else (a, a)
    if isinstance(b, int) and b > 0:
        return low // b, None if high is None else high // b
    if isinstance(b, Dim) and b.min >= 0:
        return min(low, 0), None if high is None else max(high, 0)
    return -_FAR, None


def _positive(x: Number, asked: str) -> bool:
    """Whether a difference is more than 0, if its bounds say."""
    if isinstance(x, int):
        return x > 0
    if x.min > 0:
        return True
    if x.max is not None and x.max <= 0:
        return False
    raise ShapeError(
        "size",
        expected="an order that the bounds of symbolic sizes decide",
        got=asked,
        hint="say the bounds, as in Dim('B', min=1, max=64)",
    )


def _factor(x: Number, word: Callable[[str], str]) -> str:
    if not isinstance(x, Dim):
        return str(x)
    return f"({x.said(word)})" if isinstance(x, (Sum, Quotient)) else x.said(word)


def _text(parts: tuple[tuple[Monomial, int], ...], word: Callable[[str], str]) -> str:
    out = ""
    for m, c in parts:
        factors = [_factor(d, word) for d in m]
        size = abs(c) if out else c
        said = "*".join(([str(size)] if size != 1 or not m else []) + factors)
        out += (" - " if c < 0 else " + ") + said if out else said
    return out
