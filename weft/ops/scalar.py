"""Scalar expressions: the vocabulary in which an op says what one element of its result is.

An op's rule is an ordinary Python function over `Scalar`s. Calling it once gives a small graph of
verbs; kernels of every kind (eager, fused, any CPU or GPU) are emitted from that graph and from
nothing else. The set of verbs is closed: a code generator that knows them knows every op.

Each verb rounds once, as IEEE 754 says. `fma` is a verb of its own: nothing else is ever
contracted. Integer verbs wrap; division by zero gives 0, and MIN // -1 gives MIN, as in NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from weft.types.dtype import DType, bool_, int64

#: verb -> what it means. Arguments share one dtype, which is the result's, unless it says
#: otherwise.
VERBS: dict[str, str] = {
    # leaves
    "input": "element of operand `value` at the point being computed",
    "load": "element of operand `value` at the i64 indices given; a last bool argument guards it: "
            "nothing is read if false",
    "index": "i64: coordinate of the result along axis `value`",
    "param": "i64: run-time parameter `value` (a size, a step, an offset)",
    "const": "the number `value`",
    # arithmetic, float and integer
    "add": "a + b", "sub": "a - b", "mul": "a * b", "neg": "-a", "abs": "|a|",
    "min": "smaller, NaN wins", "max": "larger, NaN wins",
    # float only
    "div": "a / b", "fma": "a * b + c, one rounding", "sqrt": "correctly rounded",
    "floor": "", "ceil": "", "trunc": "", "rint": "to nearest, ties to even",
    "copysign": "|a| with b's sign",
    # integer only
    "floordiv": "rounds down; x // 0 = 0", "mod": "sign of the divisor; x % 0 = 0",
    "mulhi": "high half of the double-width product (unsigned)",
    "shl": "a << b; 0 when b is too wide",
    "shr": "a >> b, keeping the sign; all sign when b is too wide",
    # integer and bool
    "and": "", "or": "", "xor": "", "not": "",
    # comparison: bool result
    "lt": "a < b", "le": "a <= b", "eq": "a == b", "ne": "a != b",
    # choice and conversion
    "select": "b if a (bool) else c", "cast": "to dtype, NumPy's result where C leaves it open",
    "bitcast": "the same bits as another dtype of the same width",
}  # fmt: skip

Number = bool | int | float


class Scalar:
    """One node of a scalar expression: a verb, its arguments, and the dtype of its value."""

    __slots__ = ("args", "dtype", "value", "verb")

    def __init__(
        self, verb: str, args: tuple[Scalar, ...], dtype: DType, value: Any = None
    ) -> None:
        if verb not in VERBS:  # code generators know no other
            raise ValueError(f"{verb!r} is no scalar verb, see VERBS in weft/ops/scalar.py")
        self.verb, self.args, self.dtype, self.value = verb, args, dtype, value

    def like(self, number: Number) -> Scalar:
        """A constant of this scalar's dtype."""
        return const(number, self.dtype)

    def _pair(self, verb: str, other: Scalar | Number, dtype: DType | None = None) -> Scalar:
        return Scalar(verb, (self, _same(other, self)), dtype or self.dtype)

    def _flip(self, verb: str, other: Number) -> Scalar:
        return Scalar(verb, (_same(other, self), self), self.dtype)

    def __add__(self, o: Scalar | Number) -> Scalar:
        return self._pair("add", o)

    def __radd__(self, o: Number) -> Scalar:
        return self._flip("add", o)

    def __sub__(self, o: Scalar | Number) -> Scalar:
        return self._pair("sub", o)

    def __rsub__(self, o: Number) -> Scalar:
        return self._flip("sub", o)

    def __mul__(self, o: Scalar | Number) -> Scalar:
        return self._pair("mul", o)

    def __rmul__(self, o: Number) -> Scalar:
        return self._flip("mul", o)

    def __truediv__(self, o: Scalar | Number) -> Scalar:
        return self._pair("div", o)

    def __rtruediv__(self, o: Number) -> Scalar:
        return self._flip("div", o)

    def __floordiv__(self, o: Scalar | Number) -> Scalar:
        return self._pair("floordiv", o)

    def __mod__(self, o: Scalar | Number) -> Scalar:
        return self._pair("mod", o)

    def __and__(self, o: Scalar | Number) -> Scalar:
        return self._pair("and", o)

    def __or__(self, o: Scalar | Number) -> Scalar:
        return self._pair("or", o)

    def __xor__(self, o: Scalar | Number) -> Scalar:
        return self._pair("xor", o)

    def __lshift__(self, o: Scalar | Number) -> Scalar:
        return self._pair("shl", o)

    def __rshift__(self, o: Scalar | Number) -> Scalar:
        return self._pair("shr", o)

    def __neg__(self) -> Scalar:
        return Scalar("neg", (self,), self.dtype)

    def __abs__(self) -> Scalar:
        return Scalar("abs", (self,), self.dtype)

    def __invert__(self) -> Scalar:
        return Scalar("not", (self,), self.dtype)

    def __lt__(self, o: Scalar | Number) -> Scalar:
        return self._pair("lt", o, bool_)

    def __le__(self, o: Scalar | Number) -> Scalar:
        return self._pair("le", o, bool_)

    def __gt__(self, o: Scalar | Number) -> Scalar:
        return Scalar("lt", (_same(o, self), self), bool_)

    def __ge__(self, o: Scalar | Number) -> Scalar:
        return Scalar("le", (_same(o, self), self), bool_)

    def eq(self, o: Scalar | Number) -> Scalar:
        return self._pair("eq", o, bool_)

    def ne(self, o: Scalar | Number) -> Scalar:
        return self._pair("ne", o, bool_)

    def cast(self, dtype: DType) -> Scalar:
        return self if dtype is self.dtype else Scalar("cast", (self,), dtype)

    def bitcast(self, dtype: DType) -> Scalar:
        return Scalar("bitcast", (self,), dtype)

    def __bool__(self) -> bool:
        raise TypeError(
            "a Scalar has no truth value while a rule is being read; use select(cond, a, b)"
        )


class Known(int):
    """An int of a call's attributes: a rule may look at it, the kernel takes it as parameter
    `position`.
    """

    position: int

    @staticmethod
    def at(value: int, position: int) -> Known:
        out = Known(value)
        out.position = position
        return out


def _same(x: Scalar | Number, like: Scalar) -> Scalar:
    if isinstance(x, Scalar):
        return x
    return param(x.position).cast(like.dtype) if isinstance(x, Known) else const(x, like.dtype)


def const(value: Number, dtype: DType) -> Scalar:
    """A literal, rounded to `dtype` here and now."""
    if dtype is bool_:
        return Scalar("const", (), dtype, bool(value))
    if dtype.is_float:
        with np.errstate(over="ignore"):
            return Scalar("const", (), dtype, float(np.asarray(value, np.float64).astype(dtype.np)))
    wrapped = int(value) & (2**dtype.bits - 1)
    return Scalar(
        "const",
        (),
        dtype,
        wrapped - 2**dtype.bits if dtype.kind == "i" and wrapped >> (dtype.bits - 1) else wrapped,
    )


def input_(position: int, dtype: DType) -> Scalar:
    return Scalar("input", (), dtype, position)


def load(position: int, indices: Sequence[Scalar], dtype: DType) -> Scalar:
    return Scalar("load", tuple(indices), dtype, position)


def index(axis: int) -> Scalar:
    return Scalar("index", (), int64, axis)


def param(position: int) -> Scalar:
    return Scalar("param", (), int64, position)


def fma(a: Scalar, b: Scalar | Number, c: Scalar | Number) -> Scalar:
    return Scalar("fma", (a, _same(b, a), _same(c, a)), a.dtype)


def sqrt(x: Scalar) -> Scalar:
    return Scalar("sqrt", (x,), x.dtype)


def floor(x: Scalar) -> Scalar:
    return Scalar("floor", (x,), x.dtype)


def ceil(x: Scalar) -> Scalar:
    return Scalar("ceil", (x,), x.dtype)


def trunc(x: Scalar) -> Scalar:
    return Scalar("trunc", (x,), x.dtype)


def rint(x: Scalar) -> Scalar:
    return Scalar("rint", (x,), x.dtype)


def copysign(x: Scalar, s: Scalar) -> Scalar:
    return Scalar("copysign", (x, s), x.dtype)


def minimum(a: Scalar, b: Scalar | Number) -> Scalar:
    return Scalar("min", (a, _same(b, a)), a.dtype)


def maximum(a: Scalar, b: Scalar | Number) -> Scalar:
    return Scalar("max", (a, _same(b, a)), a.dtype)


def mulhi(a: Scalar, b: Scalar | Number) -> Scalar:
    return Scalar("mulhi", (a, _same(b, a)), a.dtype)


def isnan(x: Scalar) -> Scalar:
    return x.ne(x)


def select(cond: Scalar, a: Scalar | Number, b: Scalar | Number) -> Scalar:
    """`a` where `cond`, else `b`; at least one of them a Scalar."""
    like = a if isinstance(a, Scalar) else b
    if not isinstance(like, Scalar):
        raise TypeError("select needs a Scalar to take its dtype from; wrap one side in const()")
    return Scalar("select", (cond, _same(a, like), _same(b, like)), like.dtype)


def horner(x: Scalar, coefficients: Iterable[float]) -> Scalar:
    """The polynomial with these coefficients, highest power first, as a chain of fma."""
    first, *rest = coefficients
    acc = x.like(first)
    for c in rest:
        acc = fma(acc, x, c)
    return acc


def walk(roots: Sequence[Scalar]) -> list[Scalar]:
    """Every node reachable from `roots`, arguments before users, in a fixed order."""
    out: list[Scalar] = []
    seen: set[int] = set()
    stack: list[Any] = [*reversed(roots)]
    while stack:
        node = stack.pop()
        if node is None:  # before a node whose arguments are through
            out.append(stack.pop())
        elif id(node) not in seen:
            seen.add(id(node))
            if node.args:
                stack += (node, None, *node.args[::-1])
            else:
                out.append(node)
    return out


def text(*roots: Scalar) -> str:
    """A canonical text form, the same for equal expressions: what kernel caches hash.

    >>> from weft.types.dtype import float32
    >>> x = input_(0, float32)
    >>> print(text(x * x + 1.0))
    0 f32 input 0
    1 f32 mul 0 0
    2 f32 const 0x1.0000000000000p+0
    3 f32 add 1 2
    = 3
    """
    lines: list[str] = []
    known: dict[str, int] = {}
    number: dict[int, int] = {}
    for n in walk(roots):
        value = n.value.hex() if isinstance(n.value, float) else n.value
        args = "".join([f" {number[id(a)]}" for a in n.args])
        line = f"{n.dtype.short} {n.verb}{args}" + ("" if value is None else f" {value}")
        if line not in known:
            known[line] = len(lines)
            lines.append(f"{len(lines)} {line}")
        number[id(n)] = known[line]
    return "\n".join([*lines, "= " + " ".join(str(number[id(r)]) for r in roots)])


def substitute(root: Scalar, leaf: Callable[[Scalar], Scalar | None]) -> Scalar:
    """Rebuild `root` with every leaf for which `leaf` gives a replacement replaced: composing
    rules is fusing them.
    """
    done: dict[int, Scalar] = {}
    for n in walk([root]):
        new = leaf(n) if not n.args or n.verb == "load" else None
        if new is None:
            args = tuple(done[id(a)] for a in n.args)
            new = (
                n
                if all(a is b for a, b in zip(args, n.args, strict=True))
                else Scalar(n.verb, args, n.dtype, n.value)
            )
        done[id(n)] = new
    return done[id(root)]


PI, INF, NAN = math.pi, math.inf, math.nan
