"""Powers of integers."""

from __future__ import annotations

from weft.ops.scalar import Scalar, select


def integer_pow(x: Scalar, n: Scalar) -> Scalar:
    """x to the power n by repeated squaring, wrapping. Negative powers round toward zero: 0
    unless x is 1 or -1.
    """
    out, base = x.like(1), x
    for bit in range(x.dtype.bits):
        out = select(((n >> bit) & 1).ne(0), out * base, out)
        base = base * base
    if x.dtype.kind == "u":
        return out
    unit = select(x.eq(1) | (x.eq(-1) & (n & 1).eq(0)), x.like(1), select(x.eq(-1), x, x.like(0)))
    return select(n < 0, unit, out)
