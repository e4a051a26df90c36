"""Random numbers, each a function of a key and a counter: element i of a result takes counter
offset + i * `counters`.

Key and offset are operands, so that one plan serves every call. The generator that counts them up
is `weft.tensor.random`; how numbers are made of bits is `weft.ops.random_bits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ops import random_bits as rb
from weft.ops.define import Op, Type, register
from weft.ops.rules import Flat
from weft.ops.samples import Sample
from weft.ops.scalar import Scalar
from weft.types import DType, Shape, TensorType
from weft.types.dtype import DTYPES, bool_, float32, float64, int64


def _type(
    name: str, kinds: str, count: int, operands: tuple[Type, ...], shape: Shape, dtype: DType
) -> TensorType:
    if len(operands) != count:
        raise DTypeError(name, expected=f"{count} integers", got=str(len(operands)))
    for t in operands:
        if t is float or (isinstance(t, TensorType) and (t.shape or not t.dtype.is_int)):
            raise ShapeError(name, expected="integers", got=str(t))
    if dtype.kind not in kinds:
        raise DTypeError(name, expected=f"a dtype of kind {' or '.join(kinds)}", got=dtype.name)
    return TensorType(shape, dtype)


def _make(
    name: str,
    kinds: str,
    rule: Callable[..., Scalar],
    reference: Callable[..., Any],
    more: tuple[int, ...],
    doc: str,
) -> Op:
    """An op over key, offset and further integers. `rule` is a function of key, counter, those
    integers and the dtype.
    """

    def at(number: Any, key: Any, offset: Any, *rest: Any, dtype: DType) -> Scalar:
        counter = offset(()).cast(int64) + number * rb.counters(name, dtype)
        return rule(key(()).cast(int64), counter, *(x(()).cast(int64) for x in rest), dtype)

    def compared(key: int, offset: int, *rest: int, shape: Any, dtype: DType) -> Any:
        step = rb.counters(name, dtype)
        counters = np.uint64(offset) + np.arange(
            np.prod(shape, dtype=int), dtype=np.uint64
        ) * np.uint64(step)
        return np.asarray(reference(key, counters, *rest, dtype)).astype(dtype.np).reshape(shape)

    def samples() -> Iterator[Sample]:
        for d in DTYPES:
            if d.kind in kinds:
                yield Sample((1234, 5, *more), {"shape": (3, 37), "dtype": d})
        first = next(d for d in DTYPES if d.kind in kinds)
        yield Sample((-1, 0, *more), {"shape": (), "dtype": first})
        yield Sample((7, 2**40, *more), {"shape": (0, 3), "dtype": first})
        other = next(d for d in DTYPES if d.kind not in kinds)
        yield Sample((7, 0, *more), {"shape": (2,), "dtype": other}, DTypeError)
        yield Sample((7.5, 0, *more), {"shape": (2,), "dtype": first}, ShapeError)

    return register(
        Op(
            name,
            lambda *ts, shape, dtype: _type(name, kinds, 2 + len(more), ts, shape, dtype),
            at=Flat(at),
            reference=compared,
            samples=samples,
            doc=doc,
        )
    )


# the same in NumPy, for tests


def _words(key: int, counters: Any) -> tuple[Any, Any]:
    k = [np.uint32(key & 0xFFFFFFFF), np.uint32(key >> 32 & 0xFFFFFFFF)]
    c = counters.astype(np.uint32), (counters >> np.uint64(32)).astype(np.uint32)
    with np.errstate(over="ignore"):
        low, high = rb.threefry((k[0] + np.zeros_like(c[0]), k[1] + np.zeros_like(c[1])), c)
    return low, high


def _word(key: int, counters: Any) -> Any:
    low, high = _words(key, counters)
    return low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)


def _bits(key: int, counters: Any, dtype: DType) -> Any:
    if dtype is bool_:
        return _words(key, counters)[0] & 1
    return _word(key, counters).astype(f"u{dtype.itemsize}").view(dtype.np)


def _uniform(key: int, counters: Any, dtype: DType) -> Any:
    if dtype is float64:
        return (_word(key, counters) >> np.uint64(11)) * 2.0**-53
    u = ((_words(key, counters)[0] >> 8) * 2.0**-24).astype(np.float32)
    if dtype is float32:
        return u
    drop = 16 if dtype.name == "bfloat16" else 13
    return (u.view(np.uint32) & np.uint32(0xFFFFFFFF >> drop << drop)).view(np.float32)


def _normal(key: int, counters: Any, dtype: DType) -> Any:
    if dtype is float64:
        u = ((_word(key, counters) >> np.uint64(11)) + 0.5) * 2.0**-53
        turns = _word(key, counters + np.uint64(1)) * 2.0**-64
    else:
        radius, angle = _words(key, counters)
        u, turns = (radius + 0.5) * 2.0**-32, angle * 2.0**-32
    return np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * turns)


def _integers(key: int, counters: Any, low: int, span: int, dtype: DType) -> Any:
    words = _word(key, counters).astype(object)
    return ((low + words * (span or 2**64) // 2**64) % 2**64).astype(np.uint64)


random_bits = _make(
    "random_bits", "iub", rb.bits, _bits, (), "Every value of an integer dtype alike."
)
uniform = _make("uniform", "f", rb.uniform, _uniform, (), "Uniform in [0, 1).")
normal = _make("normal", "f", rb.normal, _normal, (), "Normal, of mean 0 and variance 1.")
randint = _make(
    "randint",
    "iu",
    rb.integers,
    _integers,
    (3, 40),
    "Uniform integers: operands low and span, how many there are; 0 stands for 2**64.",
)
