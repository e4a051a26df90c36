"""Promotion as the array API says; Python scalars are weak.

Mixed kinds the standard leaves open are decided here: an integer with a float gives the float, bool
with anything gives the other, and uint64 with a signed integer is refused (no integer type holds
both).
"""

from __future__ import annotations

from weft.errors import DTypeError
from weft.types.dtype import (
    DTYPES,
    DType,
    as_dtype,
    bfloat16,
    bool_,
    float16,
    float32,
    int64,
    uint64,
)

Weak = type  # float, int or bool: a Python scalar's class stands for it

_SIGNED = {d.bits: d for d in DTYPES if d.kind == "i"}


def promote(a: DType, b: DType) -> DType:
    """The dtype that holds both.

    >>> from weft.types.dtype import int8, uint8, float64
    >>> promote(int8, uint8), promote(float16, bfloat16), promote(int64, float32)
    (weft.int16, weft.float32, weft.float32)
    """
    if a is b:
        return a
    if a is bool_ or b is bool_:
        return b if a is bool_ else a
    if a.is_float or b.is_float:
        if not (a.is_float and b.is_float):
            return a if a.is_float else b
        if {a, b} == {float16, bfloat16}:
            return float32
        return a if a.bits > b.bits else b
    if a.kind == b.kind:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    if unsigned is uint64:
        raise DTypeError(
            "promotion",
            expected="dtypes with a common integer type",
            got=f"{a.name} and {b.name}",
            hint="cast one with .astype()",
        )
    return _SIGNED[unsigned.bits * 2]


def result_dtype(*xs: DType | Weak) -> DType:
    """Promote dtypes and weak Python scalar classes together; only weak ones give the defaults.

    >>> from weft.types.dtype import int8
    >>> result_dtype(int8, int), result_dtype(int8, float), result_dtype(int, bool)
    (weft.int8, weft.float32, weft.int64)
    """
    strong = [x for x in xs if isinstance(x, DType)]
    weak = [x for x in xs if not isinstance(x, DType)]
    out = strong[0] if strong else None
    for d in strong[1:]:
        out = promote(out, d)  # type: ignore[arg-type]
    for w in sorted(weak, key=(bool, int, float).index):
        if out is None:
            out = as_dtype(w)
        elif w is float and not out.is_float:
            out = float32
        elif w is int and out is bool_:
            out = int64
    if out is None:
        raise DTypeError("promotion", expected="at least one operand", got="none")
    return out
