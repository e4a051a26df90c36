"""Conversion between dtypes. Every one rounds once; where C leaves the result open, it is NumPy's
on x86-64.

NumPy's array casts to uint32 depend on the length of the array where the value is out of range;
here they are what its scalar loop gives, the value modulo 2**32. ml_dtypes rounds float64, int32
and int64 twice on the way to bfloat16; here they round once.
"""

from __future__ import annotations

from weft.codegen.registers import intrinsic, literal, register
from weft.codegen.text import Text, Value, lanes_of, vector
from weft.types.dtype import DType, bfloat16, bool_, float32, float64, int32, int64, uint32, uint64

#: What LLVM calls for float16 on targets that have no instruction for it. Part of every module that
#: converts float16, so that it needs no compiler's support library.
_SOFT_HALF = {
    "__extendhfsf2": """define weak_odr hidden float @__extendhfsf2(half %h) {
  %b = bitcast half %h to i16
  %w = zext i16 %b to i32
  %sign = and i32 %w, 32768
  %size = and i32 %w, 32767
  %place = shl i32 %size, 13
  %f = bitcast i32 %place to float
  %scaled = fmul float %f, 0x46F0000000000000
  %finite = bitcast float %scaled to i32
  %nan = icmp ugt i32 %size, 31744
  %quiet = select i1 %nan, i32 2143289344, i32 2139095040
  %special = or i32 %place, %quiet
  %end = icmp uge i32 %size, 31744
  %r = select i1 %end, i32 %special, i32 %finite
  %s = shl i32 %sign, 16
  %o = or i32 %r, %s
  %out = bitcast i32 %o to float
  ret float %out
}""",
    "__truncsfhf2": """define weak_odr hidden half @__truncsfhf2(float %x) {
  %b = bitcast float %x to i32
  %size = and i32 %b, 2147483647
  %low = lshr i32 %size, 13
  %odd = and i32 %low, 1
  %bump = add i32 %odd, -939520001
  %near = add i32 %size, %bump
  %normal = lshr i32 %near, 13
  %tiny = icmp ult i32 %size, 947912704
  %a = bitcast i32 %size to float
  %shifted = fadd float %a, 5.000000e-01
  %fixed = bitcast float %shifted to i32
  %denormal = add i32 %fixed, -1056964608
  %finite = select i1 %tiny, i32 %denormal, i32 %normal
  %over = icmp uge i32 %size, 1199566848
  %bounded = select i1 %over, i32 31744, i32 %finite
  %nan = icmp ugt i32 %size, 2139095040
  %payload = and i32 %low, 1023
  %quiet = or i32 %payload, 32256
  %r = select i1 %nan, i32 %quiet, i32 %bounded
  %top = lshr i32 %b, 16
  %sign = and i32 %top, 32768
  %o = or i32 %r, %sign
  %h = trunc i32 %o to i16
  %out = bitcast i16 %h to half
  ret half %out
}""",
}


def cast(t: Text, x: Value, source: DType, to: DType) -> Value:
    """`x` converted from `source` to `to`."""
    lanes = lanes_of(x.type)
    target = register(to, lanes)
    if source is to:
        return x
    if source.is_float and source.bits == 16:
        return cast(t, _widen_half(t, x, source, lanes), float32, to)
    if to.is_float and to.bits == 16:
        return _narrow_half(t, _to_sticky_float32(t, x, source, to, lanes), to, lanes)
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
    """Truncate through int32 (int64 for the wide types); out of range and NaN give that type's
    minimum, then wrap. uint64 has the upper half of its range beside that.
    """
    if to is uint64:
        big = t.compare("fcmp oge", x, literal(2.0**63, source, lanes))
        less = t.op("fsub", x, literal(2.0**63, source, lanes))
        whole = _float_to_int(t, t.select(big, less, x), source, int64, lanes)
        top = t.select(big, literal(-(2**63), int64, lanes), literal(0, int64, lanes))
        return t.op("xor", whole, top)
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


def _to_sticky_float32(t: Text, x: Value, source: DType, to: DType, lanes: int) -> Value:
    """A float32 that rounds to the half type `to` as `x` itself would."""
    if source is float64:
        return _round_to_odd(t, x, lanes)
    if to is bfloat16 and source.is_int and source.bits >= 32:
        if source.bits == 64:
            x = _fold_low_bits(t, x, source, lanes)
        return _round_to_odd(t, cast(t, x, source, float64), lanes)
    return cast(t, x, source, float32)  # exact, or infinite in float16 whatever it rounds to


def _round_to_odd(t: Text, x: Value, lanes: int) -> Value:
    """float64 -> float32, an inexact result made odd: rounding that again is rounding once.

    S. Boldo, G. Melquiond, When double rounding is odd, 2005.
    """
    near = t.convert("fptrunc", x, register(float32, lanes))
    back = t.convert("fpext", near, x.type)
    bits = t.convert("bitcast", near, register(int32, lanes))
    one, zero = literal(1, int32, lanes), literal(0, int32, lanes)
    even = t.compare("icmp eq", t.op("and", bits, one), zero)
    inexact = t.compare("fcmp one", back, x)
    short = t.compare("fcmp olt", intrinsic(t, "fabs", back), intrinsic(t, "fabs", x))
    step = t.select(short, one, literal(-1, int32, lanes))
    moved = t.op("add", bits, t.select(t.op("and", even, inexact), step, zero))
    return t.convert("bitcast", moved, near.type)


def _fold_low_bits(t: Text, x: Value, source: DType, lanes: int) -> Value:
    """A 64-bit integer that float64 holds exactly and that rounds to bfloat16 as `x` does: from
    2**24 on, the low 12 bits only say whether any of them is set.
    """
    zero = literal(0, source, lanes)
    some = t.compare("icmp ne", t.op("and", x, literal(0xFFF, source, lanes)), zero)
    kept = t.op("and", x, literal(-0x1000, int64, lanes))
    folded = t.op("or", kept, t.select(some, literal(0x800, source, lanes), zero))
    sign = t.op("ashr", x, literal(63, source, lanes)) if source is int64 else zero
    size = t.op("xor", x, sign)
    big = t.compare("icmp ugt", size, literal(2**24, source, lanes))
    return t.select(big, folded, x)


def _widen_half(t: Text, x: Value, source: DType, lanes: int) -> Value:
    if source is bfloat16:
        wide = t.convert("zext", x, register(uint32, lanes))
        bits = t.op("shl", wide, literal(16, uint32, lanes))
        return t.convert("bitcast", bits, register(float32, lanes))
    t.declares.update(_SOFT_HALF)
    half = t.convert("bitcast", x, vector("half", lanes))
    return t.convert("fpext", half, register(float32, lanes))


def _narrow_half(t: Text, x: Value, to: DType, lanes: int) -> Value:
    """Round a float32 to nearest even. bfloat16 by integer arithmetic: the machine's own
    instruction flushes denormals.
    """
    short = vector("i16", lanes)
    if to is not bfloat16:
        t.declares.update(_SOFT_HALF)
        return t.convert("bitcast", t.convert("fptrunc", x, vector("half", lanes)), short)
    bits = t.convert("bitcast", x, register(uint32, lanes))
    sixteen = literal(16, uint32, lanes)
    odd = t.op("and", t.op("lshr", bits, sixteen), literal(1, uint32, lanes))
    rounded = t.op("add", bits, t.op("add", odd, literal(0x7FFF, uint32, lanes)))
    quiet = t.op("or", bits, literal(0x400000, uint32, lanes))
    kept = t.select(t.compare("fcmp uno", x, x), quiet, rounded)
    return t.convert("trunc", t.op("lshr", kept, sixteen), short)
