"""Scalar verbs -> LLVM, at any number of lanes: the same bits whatever the target and the lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.codegen.casts import cast as cast
from weft.codegen.registers import (
    constant,
    intrinsic,
    literal,
    memory as memory,
    register as register,
)
from weft.codegen.text import Text, Value, lanes_of, vector
from weft.ops.scalar import Scalar, walk
from weft.types.dtype import DType, bool_, float32, float64

Leaf = Callable[[Scalar, list[Value]], Value]

_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "neg": "fneg"}
_INT = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_ROUND = {
    "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "roundeven",
    "abs": "fabs", "fma": "fma", "copysign": "copysign",
}  # fmt: skip
_COMPARE = {
    "lt": ("olt", "slt", "ult"), "le": ("ole", "sle", "ule"),
    "eq": ("oeq", "eq", "eq"), "ne": ("une", "ne", "ne"),
}  # fmt: skip


def emit(t: Text, roots: Sequence[Scalar], lanes: int, leaf: Leaf) -> list[Value]:
    """Write the code of `roots`; `leaf` gives the value of input, load, index and param nodes.

    Equal expressions are written once.
    """
    done: dict[int, Value] = {}
    known: dict[tuple[object, ...], Value] = {}
    for n in walk(roots):
        args = [done[id(a)] for a in n.args]
        value = n.value.hex() if isinstance(n.value, float) else n.value
        key = (n.verb, n.dtype, value, *args)
        if key not in known:
            known[key] = _one(t, n, args, lanes, leaf)
        done[id(n)] = known[key]
    return [done[id(r)] for r in roots]


def _one(t: Text, n: Scalar, args: list[Value], lanes: int, leaf: Leaf) -> Value:
    verb, d = n.verb, n.dtype
    if verb in ("input", "load", "index", "param"):
        return leaf(n, args)
    if verb == "const":
        return literal(n.value, d, lanes)
    if verb == "select":
        return t.select(*args)
    if verb == "cast":
        return cast(t, args[0], n.args[0].dtype, d)
    if verb == "bitcast":
        target = register(d, lanes)
        return args[0] if args[0].type == target else t.convert("bitcast", args[0], target)
    of = n.args[0].dtype
    if of.is_float and of.bits == 16:
        raise TypeError(f"{verb} of {of.name}: ops compute in float32")
    if verb in _COMPARE:
        ordered, signed, unsigned = _COMPARE[verb]
        said = {"f": f"fcmp {ordered}", "i": f"icmp {signed}"}.get(of.kind, f"icmp {unsigned}")
        return t.compare(said, *args)
    return _float(t, verb, args) if d.is_float else _integer(t, verb, args, d)


def _float(t: Text, verb: str, args: list[Value]) -> Value:
    if verb in _FLOAT:
        return t.op(_FLOAT[verb], *args)
    if verb in _ROUND:
        return intrinsic(t, _ROUND[verb], *args)
    a, b = args  # min, max: b on ties, NaN from either side
    picked = t.select(t.compare(f"fcmp {'olt' if verb == 'min' else 'ogt'}", a, b), a, b)
    return t.select(t.compare("fcmp uno", a, a), a, picked)


def _integer(t: Text, verb: str, args: list[Value], d: DType) -> Value:
    lanes = lanes_of(args[0].type)
    if verb in _INT:
        return t.op(_INT[verb], *args)
    zero = literal(0, d, lanes)
    if verb == "neg":
        return t.op("sub", zero, args[0])
    if verb == "not":
        return t.op("xor", args[0], literal(True if d is bool_ else -1, d, lanes))
    signed = d.kind == "i"
    if verb == "abs":
        a = args[0]
        negative = t.compare("icmp slt", a, zero)
        return t.select(negative, t.op("sub", zero, a), a) if signed else a
    a, b = args
    if verb in ("min", "max"):
        order = ("s" if signed else "u") + ("lt" if verb == "min" else "gt")
        return t.select(t.compare(f"icmp {order}", a, b), a, b)
    if verb in ("shl", "shr"):
        return _shift(t, verb, a, b, d, lanes)
    if verb == "mulhi":
        return _multiply_high(t, a, b, d, lanes)
    return _divide(t, verb, a, b, d, lanes)


def _shift(t: Text, verb: str, a: Value, b: Value, d: DType, lanes: int) -> Value:
    """Shifts, defined for distances that are too wide (or negative)."""
    zero = literal(0, d, lanes)
    wide = t.compare("icmp uge", b, literal(d.bits, d, lanes))
    if verb == "shr" and d.kind == "i":
        return t.op("ashr", a, t.select(wide, literal(d.bits - 1, d, lanes), b))
    out = t.op("shl" if verb == "shl" else "lshr", a, t.select(wide, zero, b))
    return t.select(wide, zero, out)


def _multiply_high(t: Text, a: Value, b: Value, d: DType, lanes: int) -> Value:
    if d.bits == 64 and lanes > 1:
        return _multiply_high_by_halves(t, a, b, lanes)
    wide = f"i{2 * d.bits}"
    double = vector(wide, lanes)
    product = t.op("mul", t.convert("zext", a, double), t.convert("zext", b, double))
    high = t.op("lshr", product, constant(wide, str(d.bits), lanes))
    return t.convert("trunc", high, a.type)


def _multiply_high_by_halves(t: Text, a: Value, b: Value, lanes: int) -> Value:
    """The same for vectors of 64 bits, out of products of 32: LLVM would go through scalars."""
    low, half = constant("i64", str(2**32 - 1), lanes), constant("i64", "32", lanes)
    a_low, b_low = t.op("and", a, low), t.op("and", b, low)
    a_high, b_high = t.op("lshr", a, half), t.op("lshr", b, half)
    carry = t.op("lshr", t.op("mul", a_low, b_low), half)
    first = t.op("add", t.op("mul", a_high, b_low), carry)
    second = t.op("add", t.op("mul", a_low, b_high), t.op("and", first, low))
    top = t.op("add", t.op("mul", a_high, b_high), t.op("lshr", first, half))
    return t.op("add", top, t.op("lshr", second, half))


def _divide(t: Text, verb: str, a: Value, b: Value, d: DType, lanes: int) -> Value:
    """floordiv and mod, defined where the machine traps: by zero (0), and MIN by -1 (wraps to MIN,
    remainder 0).
    """
    zero, one = literal(0, d, lanes), literal(1, d, lanes)
    unsafe = by_zero = t.compare("icmp eq", b, zero)
    if d.kind == "i":
        least = literal(-(2 ** (d.bits - 1)), d, lanes)
        by_minus_one = t.compare("icmp eq", b, literal(-1, d, lanes))
        unsafe = t.op("or", by_zero, t.op("and", by_minus_one, t.compare("icmp eq", a, least)))
    safe = t.select(unsafe, one, b)
    quotient = _quotient(t, a, safe, d, lanes)
    rest = t.op("sub", a, t.op("mul", quotient, safe))
    out = quotient if verb == "floordiv" else rest
    if d.kind == "i":  # toward zero so far
        wrong = t.compare("icmp slt", t.op("xor", rest, safe), zero)
        adjust = t.op("and", t.compare("icmp ne", rest, zero), wrong)
        if verb == "mod":
            out = t.select(adjust, t.op("add", rest, safe), rest)
        else:
            out = t.op("add", quotient, t.convert("sext", adjust, a.type))
    return t.select(by_zero, zero, out)


def _quotient(t: Text, a: Value, b: Value, d: DType, lanes: int) -> Value:
    """a / b toward zero. Vectors of up to 32 bits divide as floats: twice the bits hold the
    quotient so well that it truncates right, and there are no vector instructions for integers.
    """
    if lanes == 1 or d.bits == 64:
        return t.op("sdiv" if d.kind == "i" else "udiv", a, b)
    f = float32 if d.bits <= 16 else float64
    q = t.op("fdiv", cast(t, a, d, f), cast(t, b, d, f))
    return t.convert("fptosi" if d.kind == "i" else "fptoui", q, a.type)
