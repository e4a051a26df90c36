"""Integer expressions over symbols, in one spelling: equal ones are equal to Python too.

An expression is a polynomial with integer coefficients over atoms: symbols, and quotients and
remainders that do not come out even. Products of sizes are compared, divided and bounded exactly,
which is what shapes need; whatever else is true of integers is left to guards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
Monomial = tuple[int, ...]  # numbers of atoms, in order, each as often as its power
Terms = tuple[tuple[Monomial, int], ...]  # sorted; no coefficient is 0
Bounds = tuple[float, float]  # least and most, infinite where not known


#: in the place of an axis: the argument itself, an int
ITSELF = -1


class Symbol(NamedTuple):
    """An atom that is given: how it is called, and the argument and axis whose size it is."""

    name: str
    leaf: int
    axis: int

    @property
    def read(self) -> str:
        """Python that gives it, of the arguments `v`."""
        return f"v[{self.leaf}]" + f".type.shape[{self.axis}]" * (self.axis != ITSELF)

    def of(self, leaves: Sequence[Any]) -> Any:
        """Its value in a call with these arguments."""
        x = leaves[self.leaf]
        return x if self.axis == ITSELF else x.type.shape[self.axis]


class Divided(NamedTuple):
    """An atom `a // b` or `a % b`."""

    sign: str
    a: Terms
    b: Terms


Atom = Symbol | Divided


def constant(n: int) -> Terms:
    return (((), n),) if n else ()


def value_of(a: Terms) -> int | None:
    """The number that an expression is, if it is one."""
    if not a:
        return 0
    return a[0][1] if len(a) == 1 and not a[0][0] else None


def combined(a: Terms, b: Terms, sign: int = 1) -> Terms:
    """a + sign * b."""
    out = dict(a)
    for m, c in b:
        out[m] = out.get(m, 0) + sign * c
    return tuple(sorted((m, c) for m, c in out.items() if c))


def product(a: Terms, b: Terms) -> Terms:
    out: dict[Monomial, int] = {}
    for m, c in a:
        for n, d in b:
            key = tuple(sorted(m + n))
            out[key] = out.get(key, 0) + c * d
    return tuple(sorted((m, c) for m, c in out.items() if c))


def split(a: Terms, b: Terms) -> tuple[Terms, Terms]:
    """(q, r) such that a = q * b + r, with as much in q as divides without looking at values."""
    if len(b) != 1:
        return _multiple(a, b)
    ((wanted, divisor),) = b
    quotient, rest = {}, {}
    for m, c in a:
        left = without(m, wanted)
        if left is None:
            rest[m] = c
            continue
        q = abs(c) // abs(divisor) * (1 if (c < 0) == (divisor < 0) else -1)
        r = c - q * divisor
        if q:
            quotient[left] = q
        if r:
            rest[m] = r
    return tuple(sorted(quotient.items())), tuple(sorted(rest.items()))


def _multiple(a: Terms, b: Terms) -> tuple[Terms, Terms]:
    """Division by a sum: whole if `a` is a monomial times it, else not tried."""
    n, d = b[-1] if b else ((), 1)
    for m, c in a if len(a) == len(b) else ():
        left = without(m, n)
        if left is not None and c % d == 0:
            q = ((left, c // d),)
            if product(q, b) == a:
                return q, ()
    return (), a


def without(m: tuple[T, ...], factors: tuple[T, ...]) -> tuple[T, ...] | None:
    """A product divided by others of its factors; None if it has not all of them."""
    out = list(m)
    for f in factors:
        if f not in out:
            return None
        out.remove(f)
    return tuple(out)


def reduced(a: Terms) -> Terms:
    """Divided by the greatest common factor of its coefficients."""
    g = math.gcd(*(c for _, c in a))
    return a if g <= 1 else tuple((m, c // g) for m, c in a)


class Table:
    """The atoms that expressions number, and what is known of their range."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self.bounds: list[Bounds] = []
        self._known: dict[Atom, int] = {}

    def number(self, atom: Atom, bounds: Bounds) -> int:
        found = self._known.get(atom)
        if found is None:
            found = self._known[atom] = len(self.atoms)
            self.atoms.append(atom)
            self.bounds.append(bounds)
        return found

    def quotient(self, a: Terms, b: Terms) -> Terms:
        """a // b, of a `b` that is not 0."""
        q, r = split(a, b)
        divisor, left = value_of(b), value_of(r)
        if left == 0 or (divisor is not None and left is not None):
            return combined(q, constant(left // divisor if divisor else 0))
        least, most = self.range(r)
        if least >= 0 and most < self.range(b)[0]:
            return q
        bounds: Bounds = (-math.inf, math.inf)
        if divisor is not None and divisor > 0:
            bounds = (_floor(least, divisor), _floor(most, divisor))
        elif least >= 0 and self.range(b)[0] > 0:
            bounds = (0, most)
        return combined(q, (((self.number(Divided("//", r, b), bounds),), 1),))

    def remainder(self, a: Terms, b: Terms) -> Terms:
        """a % b, of a `b` that is not 0."""
        _, r = split(a, b)
        divisor, left = value_of(b), value_of(r)
        if left == 0 or (divisor is not None and left is not None):
            return constant(left % divisor if divisor else 0)
        least, most = self.range(r)
        if least >= 0 and most < self.range(b)[0]:
            return r
        bounds: Bounds = (-math.inf, math.inf)
        if divisor is not None and divisor > 0:
            bounds = (0, divisor - 1)
        elif self.range(b)[0] > 0:
            bounds = (0, self.range(b)[1])
        return (((self.number(Divided("%", r, b), bounds),), 1),)

    def range(self, a: Terms) -> Bounds:
        """The least and the most that an expression can be."""
        least = most = 0.0
        for m, c in a:
            low, high = 1.0, 1.0
            for i in m:
                atom_low, atom_high = self.bounds[i]
                if atom_low < 0:
                    low, high = -math.inf, math.inf
                    break
                low, high = low * atom_low, _times(high, atom_high)
            low, high = (_times(c, low), _times(c, high))
            least, most = least + min(low, high), most + max(low, high)
        return least, most

    def tighten(self, a: Terms, least: float, most: float) -> None:
        """Note that `a` is within these bounds, where that says something of one atom."""
        linear = [(m, c) for m, c in a if m]
        if len(linear) != 1 or len(linear[0][0]) != 1:
            return
        ((i,), c), offset = linear[0], dict(a).get((), 0)
        low, high = (least - offset) / c, (most - offset) / c
        low, high = (low, high) if c > 0 else (high, low)
        was = self.bounds[i]
        self.bounds[i] = (max(was[0], _ceil(low)), min(was[1], _whole(high)))

    def text(self, a: Terms) -> str:
        """An expression as a reader would write it."""
        return self.source(a, names=True)

    def source(self, a: Terms, names: bool = False) -> str:
        """Python for an expression, of the arguments `v`; with `names` of the symbols' names."""
        out = ""
        for m, c in sorted(a, key=lambda term: (-len(term[0]), term[0])):
            factors = [self._atom(i, names) for i in m]
            if abs(c) != 1 or not factors:
                factors.insert(0, str(abs(c)))
            sign = (" - " if c < 0 else " + ") if out else ("-" if c < 0 else "")
            out += sign + "*".join(factors)
        return out or "0"

    def _atom(self, i: int, names: bool) -> str:
        atom = self.atoms[i]
        if isinstance(atom, Symbol):
            return atom.name if names else atom.read
        a, b = (_wrapped(self.source(x, names)) for x in (atom.a, atom.b))
        return f"({a} {atom.sign} {b})"

    def values(self, given: Callable[[Symbol], int]) -> list[int]:
        """Every atom's value, where the symbols have these."""
        out: list[int] = []
        for atom in self.atoms:  # those that an atom is made of come before it
            if isinstance(atom, Symbol):
                out.append(given(atom))
                continue
            a, b = evaluated(atom.a, out), evaluated(atom.b, out)
            out.append(0 if not b else a // b if atom.sign == "//" else a % b)
        return out


def evaluated(a: Terms, values: Sequence[int]) -> int:
    """What an expression comes to, given the values of atoms."""
    return sum(c * math.prod([values[i] for i in m]) for m, c in a)


def _wrapped(text: str) -> str:
    return text if text.replace(".", "").isalnum() else f"({text})"


def _times(a: float, b: float) -> float:
    return 0.0 if not a or not b else a * b


def _floor(a: float, b: int) -> float:
    return a if math.isinf(a) else a // b


def _ceil(a: float) -> float:
    return a if math.isinf(a) else math.ceil(a)


def _whole(a: float) -> float:
    return a if math.isinf(a) else math.floor(a)
