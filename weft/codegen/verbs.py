"""Scalar verbs -> LLVM, at any number of lanes.

Registers: bool is i1; float16 and bfloat16 are held as their bits (i16), since ops compute in float32 and only convert.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from weft.codegen.text import Text, Value, lanes_of, vector
from weft.ops.scalar import Scalar, walk
from weft.types.dtype import DType, bfloat16, bool_, float32, int32, int64, uint32

Leaf = Callable[[Scalar, list[Value]], Value]

_NAMES = {"f64": "double", "f32": "float", "f16": "i16", "bf16": "i16", "bool": "i1"}
_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "neg": "fneg"}
_INT = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_ROUND = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "roundeven", "abs": "fabs"}
_COMPARE = {"lt": ("olt", "slt", "ult"), "le": ("ole", "sle", "ule"), "eq": ("oeq", "eq", "eq"), "ne": ("une", "ne", "ne")}


def register(dtype: DType, lanes: int = 1) -> str:
    """The LLVM type that holds `lanes` values of `dtype` in a register."""
    return vector(_NAMES.get(dtype.short, f"i{dtype.bits}"), lanes)


def memory(dtype: DType, lanes: int = 1) -> str:
    """The same in memory, where bool is a byte."""
    return vector("i8", lanes) if dtype is bool_ else register(dtype, lanes)


def literal(value: bool | int | float, dtype: DType, lanes: int) -> Value:
    if dtype.is_float and dtype.bits >= 32:
        one = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"  # LLVM spells float as a double's bits
    elif dtype.is_float:
        raise TypeError(f"no {dtype.name} literals: ops compute in float32")
    else:
        one = str(int(value))
    t = register(dtype)
    if lanes == 1:
        return Value(t, one)
    return Value(vector(t, lanes), "<" + ", ".join([f"{t} {one}"] * lanes) + ">")


def emit(t: Text, roots: Sequence[Scalar], lanes: int, leaf: Leaf) -> list[Value]:
    """Write the code of `roots`; `leaf` gives the value of input, load, index and param nodes."""
    done: dict[int, Value] = {}
    known: dict[tuple[object, ...], Value] = {}
    for n in walk(roots):
        args = [done[id(a)] for a in n.args]
        key = (n.verb, n.dtype, n.value if not isinstance(n.value, float) else n.value.hex(), *(a.name for a in args))
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
        return args[0] if args[0].type == register(d, lanes) else t.convert("bitcast", args[0], register(d, lanes))
    if verb in _COMPARE:
        ordered, signed, unsigned = _COMPARE[verb]
        kind = n.args[0].dtype.kind
        return t.compare({"f": f"fcmp {ordered}", "i": f"icmp {signed}"}.get(kind, f"icmp {unsigned}"), *args)
    if d.is_float:
        return _float(t, verb, args)
    return _integer(t, verb, args, d)


def intrinsic(t: Text, name: str, *args: Value) -> Value:
    """Call `llvm.<name>` overloaded on the type of its arguments."""
    lanes, element = lanes_of(args[0].type), args[0].type.strip("<>").split(" x ")[-1]
    suffix = {"float": "f32", "double": "f64"}.get(element, element)
    return t.call(args[0].type, f"llvm.{name}.{f'v{lanes}' if lanes > 1 else ''}{suffix}", *args)


def _float(t: Text, verb: str, args: list[Value]) -> Value:
    if verb in _FLOAT:
        return t.op(_FLOAT[verb], *args)
    if verb in _ROUND:
        return intrinsic(t, _ROUND[verb], *args)
    if verb in ("fma", "copysign"):
        return intrinsic(t, verb, *args)
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
    if verb == "abs":
        a = args[0]
        return a if d.kind == "u" else t.select(t.compare("icmp slt", a, zero), t.op("sub", zero, a), a)
    a, b = args
    signed = d.kind == "i"
    if verb in ("min", "max"):
        return t.select(t.compare(f"icmp {'s' if signed else 'u'}{'lt' if verb == 'min' else 'gt'}", a, b), a, b)
    if verb in ("shl", "shr"):
        wide = t.compare("icmp uge", b, literal(d.bits, d, lanes))
        safe = t.select(wide, literal(d.bits - 1 if verb == "shr" and signed else 0, d, lanes), b)
        out = t.op({"shl": "shl", "shr": "ashr" if signed else "lshr"}[verb], a, safe)
        return out if verb == "shr" and signed else t.select(wide, zero, out)
    if verb == "mulhi":
        w = vector(f"i{2 * d.bits}", lanes)
        product = t.op("mul", t.convert("zext", a, w), t.convert("zext", b, w))
        shift = Value(w, str(d.bits) if lanes == 1 else "<" + ", ".join([f"i{2 * d.bits} {d.bits}"] * lanes) + ">")
        return t.convert("trunc", t.op("lshr", product, shift), a.type)
    return _divide(t, verb, a, b, d, lanes)


def _divide(t: Text, verb: str, a: Value, b: Value, d: DType, lanes: int) -> Value:
    """floordiv and mod, defined where the machine traps: by zero, and MIN by -1 (which wraps to MIN, remainder 0)."""
    zero, one = literal(0, d, lanes), literal(1, d, lanes)
    by_zero = t.compare("icmp eq", b, zero)
    unsafe = by_zero
    if d.kind == "i":
        overflow = t.op(
            "and",
            t.compare("icmp eq", b, literal(-1, d, lanes)),
            t.compare("icmp eq", a, literal(-(2 ** (d.bits - 1)), d, lanes)),
        )
        unsafe = t.op("or", by_zero, overflow)
    safe = t.select(unsafe, one, b)
    if d.kind == "u":
        out = t.op("udiv" if verb == "floordiv" else "urem", a, safe)
    else:
        rest = t.op("srem", a, safe)
        adjust = t.op("and", t.compare("icmp ne", rest, zero), t.compare("icmp slt", t.op("xor", rest, safe), zero))
        if verb == "mod":
            out = t.select(adjust, t.op("add", rest, safe), rest)
        else:
            down = t.convert("sext", adjust, a.type)
            out = t.op("add", t.op("sdiv", a, safe), down)
    return t.select(by_zero, zero, out)


def cast(t: Text, x: Value, source: DType, to: DType) -> Value:
    """Convert between dtypes; where C leaves the result open, NumPy's on x86-64."""
    lanes = lanes_of(x.type)
    target = register(to, lanes)
    if source is to:
        return x
    if source.is_float and source.bits == 16:
        return cast(t, _widen_half(t, x, source, lanes), float32, to)
    if to.is_float and to.bits == 16:
        return _narrow_half(t, cast(t, x, source, float32), to, lanes)
    if to is bool_:
        return t.compare("fcmp une" if source.is_float else "icmp ne", x, literal(0, source, lanes))
    if source is bool_:
        return t.convert("uitofp" if to.is_float else "zext", x, target)
    if source.is_float and to.is_float:
        return t.convert("fpext" if to.bits > source.bits else "fptrunc", x, target)
    if to.is_float:
        return t.convert("sitofp" if source.kind == "i" else "uitofp", x, target)
    if source.is_float:
        return _float_to_int(t, x, source, to, lanes)
    if to.bits == source.bits:
        return x
    if to.bits < source.bits:
        return t.convert("trunc", x, target)
    return t.convert("sext" if source.kind == "i" else "zext", x, target)


def _float_to_int(t: Text, x: Value, source: DType, to: DType, lanes: int) -> Value:
    """Truncate through int32 (int64 for the wide types); out of range and NaN give that type's minimum, then wrap."""
    wide = int64 if to.bits == 64 or to is uint32 else int32
    bound = 2.0 ** (wide.bits - 1)
    inside = t.op(
        "and",
        t.compare("fcmp oge", x, literal(-bound, source, lanes)),
        t.compare("fcmp olt", x, literal(bound, source, lanes)),
    )
    safe = t.select(inside, x, literal(0.0, source, lanes))
    whole = t.convert("fptosi", safe, register(wide, lanes))
    whole = t.select(inside, whole, literal(-(2 ** (wide.bits - 1)), wide, lanes))
    return cast(t, whole, wide, to)


def _widen_half(t: Text, x: Value, source: DType, lanes: int) -> Value:
    if source is bfloat16:
        bits = t.op("shl", t.convert("zext", x, register(uint32, lanes)), literal(16, uint32, lanes))
        return t.convert("bitcast", bits, register(float32, lanes))
    half = t.convert("bitcast", x, vector("half", lanes))
    return t.convert("fpext", half, register(float32, lanes))


def _narrow_half(t: Text, x: Value, to: DType, lanes: int) -> Value:
    """Round a float32 to nearest even. bfloat16 by integer arithmetic: the machine's own instruction flushes denormals."""
    if to is bfloat16:
        u = uint32
        bits = t.convert("bitcast", x, register(u, lanes))
        odd = t.op("and", t.op("lshr", bits, literal(16, u, lanes)), literal(1, u, lanes))
        rounded = t.op("add", bits, t.op("add", odd, literal(0x7FFF, u, lanes)))
        quiet = t.op("or", bits, literal(0x400000, u, lanes))
        kept = t.select(t.compare("fcmp uno", x, x), quiet, rounded)
        return t.convert("trunc", t.op("lshr", kept, literal(16, u, lanes)), vector("i16", lanes))
    return t.convert("bitcast", t.convert("fptrunc", x, vector("half", lanes)), vector("i16", lanes))
