"""Random numbers as pure functions of a key, a counter and nothing else, said in scalar verbs.

The bits are Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as
easy as 1, 2, 3; SC11): a 64-bit counter, encrypted with a 64-bit key, gives 64 bits. Of the family
it is the one that costs least where every element is computed on its own: additions, rotations and
exclusive ors of 32-bit lanes, none of its output thrown away.

An element's counter is the generator's offset plus the element's flat index times `counters(...)`,
so any element can be computed anywhere, fused or not, on any number of threads; afterwards the
offset moves on by size times that. Two streams differ in their keys; `derive` makes a key from a
key and a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ops.math.logarithm import log
from weft.ops.scalar import Scalar, const, fma, horner, select, sqrt
from weft.types.dtype import (
    DType,
    bfloat16,
    float16,
    float32,
    float64,
    int32,
    int64,
    uint32,
    uint64,
)

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA

#: sin(2 pi t) / t and cos(2 pi t) in t**2 for |t| <= 1/8, highest power first; errors 2**-28,
#: 2**-34; 2**-58, 2**-64
_SIN = {
    float32: (-75.402065211972514, 81.592553478747111, -41.341662632759484, 6.2831852878679507),
    float64: (
        3.7808721162482711, -15.093804358417421, 42.058685022779312, -76.705859704295856,
        81.605249275948114, -41.341702240399636, 6.2831853071795865,
    ),
}  # fmt: skip
_COS = {
    float32: (59.22040835833730, -85.44285215512310, 64.93931620877063, -19.73920865035888, 1.0),
    float64: (
        -1.6968505735582549, 7.9030917479800259, -26.426250909913384, 60.244641328881024,
        -85.456817206522788, 64.939394022667958, -19.739208802178717, 1.0,
    ),
}  # fmt: skip


def threefry(key: tuple[Any, Any], counter: tuple[Any, Any]) -> tuple[Any, Any]:
    """Threefry-2x32-20 of anything that adds, shifts and xors as 32-bit words: uint32 Scalars or
    NumPy arrays.
    """
    k0, k1 = key
    schedule = (k0, k1, k0 ^ k1 ^ _PARITY)
    x, y = counter[0] + k0, counter[1] + k1
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << r) | (y >> (32 - r))) ^ x
        x = x + schedule[(group + 1) % 3]
        y = y + schedule[(group + 2) % 3] + (group + 1)
    return x, y


def _halves(x: Scalar) -> tuple[Scalar, Scalar]:
    """The low and the high 32 bits of a 64-bit integer."""
    x = x.cast(uint64)
    return x.cast(uint32), (x >> 32).cast(uint32)


def words(key: Scalar, counter: Scalar) -> tuple[Scalar, Scalar]:
    """Two independent uint32 words for one counter. `key` and `counter` are 64-bit integers."""
    low, high = threefry(_halves(key), _halves(counter))
    return low, high


def derive(key: int, number: int) -> int:
    """The key of stream `number` under `key`: what splitting a generator gives.

    >>> derive(0, 0) == derive(0, 0), derive(0, 0) == derive(0, 1)
    (True, False)
    """
    k, c = (
        tuple(np.array([n & 0xFFFFFFFF, n >> 32 & 0xFFFFFFFF], np.uint32).reshape(2, 1))
        for n in (key, number)
    )
    low, high = threefry(k, c)  # type: ignore[arg-type]
    return int(low[0]) | int(high[0]) << 32


def counters(kind: str, dtype: DType) -> int:
    """How many counters one element of `kind` takes: 2 for a float64 normal, which needs two 64-bit
    words, else 1.
    """
    return 2 if kind == "normal" and dtype is float64 else 1


def bits(key: Scalar, counter: Scalar, dtype: DType) -> Scalar:
    """All values of an integer dtype alike; bool is one bit."""
    low, high = words(key, counter)
    if dtype.kind == "b":
        return (low & 1).ne(0)
    return (
        (low.cast(uint64) | (high.cast(uint64) << 32)).cast(dtype)
        if dtype.bits == 64
        else low.cast(dtype)
    )


def uniform(key: Scalar, counter: Scalar, dtype: DType) -> Scalar:
    """In [0, 1): a multiple of 2**-24 (float32) or 2**-53 (float64). Half types: the float32 one,
    rounded down.
    """
    if dtype is float64:
        return (bits(key, counter, uint64) >> 11).cast(int64).cast(float64) * 2.0**-53
    u = (words(key, counter)[0] >> 8).cast(int32).cast(float32) * 2.0**-24
    if dtype is float32:
        return u
    drop = {bfloat16: 16, float16: 13}[
        dtype
    ]  # below 2**-14 a multiple of 2**-24 fits float16 as it is
    return (u.bitcast(uint32) & (0xFFFFFFFF >> drop << drop)).bitcast(float32).cast(dtype)


def normal(key: Scalar, counter: Scalar, dtype: DType) -> Scalar:
    """Mean 0, variance 1, by Box and Muller: sqrt(-2 log u) cos(2 pi v), u in (0, 1].

    Half types: the float32 one, rounded to nearest. Largest absolute value: 6.8 (float32), 8.7
    (float64).
    """
    if dtype is float64:
        radius, angle = bits(key, counter, uint64), bits(key, counter + 1, uint64)
        u = fma((radius >> 11).cast(int64).cast(float64), 2.0**-53, 2.0**-54)
        return sqrt(log(u) * -2.0) * _cosine_of_turns(angle, float64)
    radius, angle = words(key, counter)
    u = fma(radius.cast(float32), 2.0**-32, 2.0**-33)
    return (sqrt(log(u) * -2.0) * _cosine_of_turns(angle, float32)).cast(dtype)


def _cosine_of_turns(angle: Scalar, dtype: DType) -> Scalar:
    """cos(2 pi angle / 2**bits) of an unsigned integer: the quadrant is cut off exactly."""
    width = angle.dtype.bits
    quadrant = (angle + (1 << (width - 3))) >> (width - 2)
    signed = int64 if width == 64 else int32
    t = (angle - (quadrant << (width - 2))).cast(signed).cast(dtype) * 2.0**-width
    square = t * t
    odd = (quadrant & 1).ne(0)
    y = select(odd, t * horner(square, _SIN[dtype]), horner(square, _COS[dtype]))
    return select(((quadrant + 1) & 2).ne(0), -y, y)


def integers(key: Scalar, counter: Scalar, low: Scalar, span: Scalar, dtype: DType) -> Scalar:
    """low + floor(span * w / 2**64) for a 64-bit word w: each of [low, low + span) alike to within
    span * 2**-64.

    `low` and `span` are 64-bit integers taken modulo 2**64; span 0 stands for 2**64.
    """
    w0, w1 = words(key, counter)
    word, n = (tuple(h.cast(uint64) for h in pair) for pair in ((w0, w1), _halves(span)))
    # the high half of the product from 32-bit parts: vector units multiply 32 by 32 bits
    mask = const(0xFFFFFFFF, uint64)
    cross, other = word[0] * n[1], word[1] * n[0]
    middle = (word[0] * n[0] >> 32) + (cross & mask) + (other & mask)
    high = word[1] * n[1] + (cross >> 32) + (other >> 32) + (middle >> 32)
    whole = word[0] | (word[1] << 32)
    offset = select(span.eq(0), whole, high)
    return (low.cast(uint64) + offset).cast(dtype)
