"""Numbers of a call that is being captured: sizes of tensors, and Python numbers among arguments.

They behave as the ints and floats they stand for, and know how they come about. Arithmetic gives
others of their kind. A question (which is larger? is it zero?) is answered by the value they have
in the call at hand, and the answer is noted as a guard of the program, unless it follows from the
expressions alone. Where Python needs the plain number, the value itself is the guard.

They are no ints and floats to C, which would read the value without asking; `isinstance` and
`__class__` say that they are.
"""

from __future__ import annotations

import math
import operator
import os
import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

from weft.types import expression
from weft.types.expression import Table, Terms

_WEAK = weakref.WeakValueDictionary.get.__code__.co_filename
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_CONVERTED = os.path.join(_PACKAGE, "capture", "source", "")


class Scope(Protocol):
    """What the numbers of one capture share."""

    table: Table
    is_open: bool

    def holds(self, relation: str, terms: Terms, value: int) -> bool:
        """Whether `terms` (`value` in the call at hand) are `== 0` or `< 0`; guarded if need be."""

    def specialise(self, x: Any, why: str) -> None:
        """Guard that `x` has its present value."""

    def compute(self, f: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        """The number that f gives of numbers, whenever the program is called."""

    def ask(self, f: Callable[..., bool], xs: tuple[Any, ...]) -> bool:
        """What f answers of numbers; guarded."""

    def is_sized(self, x: Any) -> bool:
        """Whether a number depends on sizes alone."""

    def describe(self, x: Any) -> str:
        """How a number comes about."""


def is_symbolic(x: Any) -> bool:
    """Whether something is a number of a capture."""
    return type(x) in (Size, IntNumber, FloatNumber)


def index(x: Any) -> Any:
    """`operator.index` of anything but a size, which stays what it is."""
    return x if type(x) is Size else operator.index(x)


def applied(f: Callable[[Any], Any], x: Any) -> Any:
    """f(x), of a number that may be a symbol: then f is called whenever its value is known."""
    return x.scope.compute(f, (x,)) if is_symbolic(x) else f(x)


def as_float(x: Any) -> float:
    """float(x), of a number that may be a symbol."""
    out: float = x if x.__class__ is float else applied(float, x)
    return out


def plain(x: Any) -> Any:
    """The value in the call at hand, which becomes a guard; anything else as it is."""
    return x.settled("") if is_symbolic(x) else x


def _settle(why: str) -> Callable[[Any], Any]:
    return lambda self: self.settled(why)


def _numeric(x: Any) -> bool:
    return is_symbolic(x) or type(x) in (int, float, bool)


class Symbolic:
    """What sizes and numbers have in common."""

    __slots__ = ("hint", "scope")
    __array_ufunc__ = None  # NumPy leaves operators to this class
    hint: Any
    scope: Scope

    def settled(self, why: str) -> Any:
        """The plain number, which the program is then made for."""
        self.scope.specialise(self, why)
        return self.hint

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        numpy = sys.modules["numpy"]
        return numpy.asarray(self.settled("NumPy reads it"), dtype)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, _: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        x = self.settled("it is pickled")
        return type(x), (x,)

    def __format__(self, spec: str) -> str:
        return format(self.settled("it is made text"), spec) if self.scope.is_open else str(self)

    def __str__(self) -> str:
        return str(self.settled("it is made text")) if self.scope.is_open else self.text

    __repr__ = __str__

    @property
    def text(self) -> str:
        """How it comes about."""
        raise NotImplementedError

    def __float__(self) -> float:
        return float(self.settled("a Python float is needed"))

    def __int__(self) -> int:
        return int(self.settled("a Python int is needed"))

    def __complex__(self) -> complex:
        return complex(self.settled("a Python complex is needed"))


class Size(Symbolic):
    """A size, or an integer that comes of sizes by + - * // %."""

    __slots__ = ("terms",)

    def __init__(self, scope: Scope, terms: Terms, hint: int) -> None:
        self.scope, self.terms, self.hint = scope, terms, hint

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    @property
    def text(self) -> str:
        return self.scope.table.text(self.terms)

    def __index__(self) -> int:
        out: int = self.settled("a Python int is needed")
        return out

    def __hash__(self) -> int:
        """By the expression to Weft's own tables. A user's table has ints in it: by the value."""
        if not self.scope.is_open or _is_own(sys._getframe(1)):
            return hash((id(self.scope), self.terms))
        return hash(self.settled("it is looked up"))

    def _combine(self, other: Any, f: Any, flip: bool) -> Any:
        b = _terms(self, other)
        if b is None:
            if not _numeric(other):
                return _of_array(self, other, f[1], flip)
            return self.scope.compute(f[1], (other, self) if flip else (self, other))
        a = self.terms
        hints = (self.hint, _hint(other))
        if flip:
            a, b, hints = b, a, hints[::-1]
        if f[0] is None:
            return self.scope.compute(f[1], (other, self) if flip else (self, other))
        hint = f[1](*hints)  # raises as ints do
        return _made(self.scope, f[0](self.scope, a, b, hints), hint)

    def __pow__(self, n: Any, modulo: Any = None) -> Any:
        if type(n) is int and 0 <= n <= 8 and modulo is None:
            out: Any = 1
            for _ in range(n):
                out = out * self
            return out
        if modulo is not None:
            return pow(self.settled("pow() with a modulus"), n, modulo)
        return self.scope.compute(operator.pow, (self, n)) if _numeric(n) else NotImplemented

    def __rpow__(self, n: Any) -> Any:
        return self.scope.compute(operator.pow, (n, self)) if _numeric(n) else NotImplemented

    def __bool__(self) -> bool:
        return not self.scope.holds("==", self.terms, self.hint)

    def __neg__(self) -> Any:
        return _made(self.scope, expression.combined((), self.terms, -1), -self.hint)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __trunc__(self) -> Any:
        return self

    __floor__ = __ceil__ = __trunc__

    def __round__(self, digits: Any = None) -> Any:
        return self if digits is None else round(self.settled("round() to digits"), digits)

    def _relate(self, other: Any, relation: str, flip: bool) -> Any:
        """`self - other` against 0; with `flip` the negative of it."""
        b = _terms(self, other)
        if b is None:
            return NotImplemented
        d = expression.combined(self.terms, b, -1)
        value = self.hint - _hint(other)
        if flip:
            d, value = expression.combined((), d, -1), -value
        return self.scope.holds(relation, d, value)

    def __eq__(self, other: object) -> Any:
        if type(other) is Size and (other.scope is not self.scope or not self.scope.is_open):
            return other.scope is self.scope and other.terms == self.terms
        out = self._relate(other, "==", False)
        return _asked(self, operator.eq, other) if out is NotImplemented else out

    def __ne__(self, other: object) -> Any:
        out = self.__eq__(other)
        return out if out is NotImplemented else not out

    def __lt__(self, other: Any) -> Any:
        out = self._relate(other, "<", False)
        return _asked(self, operator.lt, other) if out is NotImplemented else out

    def __gt__(self, other: Any) -> Any:
        out = self._relate(other, "<", True)
        return _asked(self, operator.gt, other) if out is NotImplemented else out

    def __le__(self, other: Any) -> Any:
        out = self.__gt__(other)
        return out if out is NotImplemented else not out

    def __ge__(self, other: Any) -> Any:
        out = self.__lt__(other)
        return out if out is NotImplemented else not out

    # what ints have besides

    @property
    def real(self) -> Any:
        return self

    @property
    def imag(self) -> int:
        return 0

    @property
    def numerator(self) -> Any:
        return self

    @property
    def denominator(self) -> int:
        return 1

    def bit_length(self) -> int:
        return int(self.settled("its bits are asked for").bit_length())


def _is_own(frame: FrameType) -> bool:
    """Whether code of this package looks something up, or a table of types loses an entry."""
    code = frame.f_code
    if code.co_filename == _WEAK and frame.f_back is not None:
        if code.co_name == "remove":
            return True
        code = frame.f_back.f_code
    file = code.co_filename  # operators of converted code look up for the user
    return file.startswith(_PACKAGE) and not file.startswith(_CONVERTED)


def _asked(a: Any, f: Any, b: Any) -> Any:
    return a.scope.ask(f, (a, b)) if _numeric(b) else NotImplemented


def _hint(x: Any) -> Any:
    return x.hint if is_symbolic(x) else int(x)


def _terms(a: Size, x: Any) -> Terms | None:
    """An operand as an expression, if it is an integer of the same scope."""
    if type(x) is Size and x.scope is a.scope:
        return x.terms
    return expression.constant(int(x)) if type(x) in (int, bool) else None


def _made(scope: Scope, terms: Terms, hint: int) -> Any:
    """The size that an expression is; a plain int where it depends on nothing."""
    known = expression.value_of(terms)
    return Size(scope, terms, hint) if known is None else known


def _of_array(x: Any, other: Any, f: Any, flip: bool) -> Any:
    """Arithmetic with something else: NumPy's needs the plain number."""
    if not hasattr(other, "__array_ufunc__") or other.__array_ufunc__ is None:
        return NotImplemented
    value = x.settled("NumPy computes with it")
    return f(other, value) if flip else f(value, other)


def _nonzero(scope: Scope, b: Terms, hint: int) -> None:
    scope.holds("==", b, hint)


def _quotient(scope: Scope, a: Terms, b: Terms, hints: Any) -> Terms:
    _nonzero(scope, b, hints[1])
    return scope.table.quotient(a, b)


def _remainder(scope: Scope, a: Terms, b: Terms, hints: Any) -> Terms:
    _nonzero(scope, b, hints[1])
    return scope.table.remainder(a, b)


_EXACT: dict[str, Any] = {
    "add": lambda scope, a, b, hints: expression.combined(a, b),
    "sub": lambda scope, a, b, hints: expression.combined(a, b, -1),
    "mul": lambda scope, a, b, hints: expression.product(a, b),
    "floordiv": _quotient,
    "mod": _remainder,
    "truediv": None,
    "and_": None,
    "or_": None,
    "xor": None,
    "lshift": None,
    "rshift": None,
}


def _arithmetic(name: str) -> tuple[Any, Any]:
    f = _EXACT[name], getattr(operator, name)
    return (lambda self, x: self._combine(x, f, False)), (lambda self, x: self._combine(x, f, True))


for _name in _EXACT:
    _bare = _name.rstrip("_")
    _forward, _back = _arithmetic(_name)
    setattr(Size, f"__{_bare}__", _forward)
    setattr(Size, f"__r{_bare}__", _back)


class Number(Symbolic):
    """A Python number among the arguments, or what arithmetic makes of such."""

    __slots__ = ("step",)

    def __init__(self, scope: Scope, step: int, hint: Any) -> None:
        self.scope, self.step, self.hint = scope, step, hint

    @property
    def text(self) -> str:
        return self.scope.describe(self)

    @property
    def is_sized(self) -> bool:
        """Whether it depends on sizes alone, so that it is known when the program is made."""
        return self.scope.is_sized(self)

    def __hash__(self) -> int:
        return hash(self.settled("it is looked up"))

    def __bool__(self) -> bool:
        return self.scope.ask(bool, (self,))

    def __neg__(self) -> Any:
        return self.scope.compute(operator.neg, (self,))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self.scope.compute(operator.abs, (self,))

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __trunc__(self) -> Any:
        return self.scope.compute(math.trunc, (self,))

    def __floor__(self) -> Any:
        return self.scope.compute(math.floor, (self,))

    def __ceil__(self) -> Any:
        return self.scope.compute(math.ceil, (self,))

    def __round__(self, digits: Any = None) -> Any:
        return self.scope.compute(round, (self,) if digits is None else (self, digits))

    @property
    def real(self) -> Any:
        return self

    def conjugate(self) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.settled(f".{name} is asked for"), name)


class FloatNumber(Number):
    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return float


class IntNumber(Number):
    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    def __index__(self) -> int:
        out: int = self.settled("a Python int is needed")
        return out

    def as_float(self) -> Any:
        """float(self), not yet computed."""
        return self.scope.compute(_as_float, (self,))


def _as_float(n: int) -> float:
    """An integer as operands travel: infinite where it is too large."""
    try:
        return float(n)
    except OverflowError:
        return math.copysign(math.inf, n)


def _computed(name: str, flip: bool) -> Any:
    f = getattr(operator, name)

    def method(self: Number, other: Any) -> Any:
        if not _numeric(other):
            return _of_array(self, other, f, flip)
        return self.scope.compute(f, (other, self) if flip else (self, other))

    return method


def _compared(name: str) -> Any:
    f = getattr(operator, name)

    def method(self: Number, other: Any) -> Any:
        return self.scope.ask(f, (self, other)) if _numeric(other) else NotImplemented

    return method


for _name in (*_EXACT, "pow"):
    _bare = _name.rstrip("_")
    setattr(Number, f"__{_bare}__", _computed(_name, False))
    setattr(Number, f"__r{_bare}__", _computed(_name, True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Number, f"__{_name}__", _compared(_name))
