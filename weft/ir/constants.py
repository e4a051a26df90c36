"""Constants of the text form, once their type is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.buffer import Buffer
from weft.buffer.interchange import copy_from_numpy
from weft.ir.language import WEAK
from weft.ir.lexer import Token
from weft.ir.literals import type_text
from weft.ir.reader import Blob, Dense, Reader
from weft.types import Dim, DType, TensorType


def fitted(r: Reader, x: Any, type_: Any, at: Token) -> tuple[Any, Any]:
    """A literal as the value of a constant of a type, and the type."""
    if type_ is None:
        if type(x) in WEAK.values():
            return x, type(x)
        raise r.error("a type", "none", at, "a constant that is no number says its type")
    if isinstance(type_, type):
        if type_ is float and type(x) is int and abs(x) < 2**53:
            return float(x), type_
        if type(x) is type_ or (type_ is int and isinstance(x, Dim)):
            return x, type_
        raise r.error(f"a Python {type_.__name__}", at=at)
    if any(isinstance(n, Dim) for n in type_.shape):
        raise r.error("a constant of known size", type_text(type_), at)
    if isinstance(x, Blob):
        found = r.data[x.number]
        if len(found) != type_.nbytes:
            raise r.error(f"{type_.nbytes} bytes for {type_text(type_)}", str(len(found)), at)
        bytes_ = np.frombuffer(found, np.uint8) if found else np.empty(0, np.uint8)
        return _buffer(bytes_.view(type_.dtype.np), type_), type_
    dense = x if isinstance(x, Dense) else Dense((), (x,))
    if dense.shape != type_.shape and not (type_.size == 0 and dense.shape == (0,)):
        got = type_text(TensorType(dense.shape, type_.dtype)) if len(dense.shape) < 33 else ""
        raise r.error(f"elements of {type_text(type_)}", got, at)
    for n in dense.numbers:
        _check_element(r, n, type_.dtype, at)
    with np.errstate(all="ignore"):
        wide = np.float64 if type_.dtype.is_float else type_.dtype.np
        return _buffer(np.array(dense.numbers, wide).astype(type_.dtype.np), type_), type_


def _buffer(a: np.ndarray[Any, Any], type_: TensorType) -> Buffer:
    return copy_from_numpy(a.reshape(type_.sizes))


def _check_element(r: Reader, x: Any, d: DType, at: Token) -> None:
    fits = type(x) in ((float, int) if d.is_float else (bool,) if d.kind == "b" else (int,))
    if fits and d.is_int:
        low = 0 if d.kind == "u" else -(1 << d.bits - 1)
        fits = low <= x < low + (1 << d.bits)
    if fits and d.is_float:
        fits = not isinstance(x, int) or math.log2(abs(x) + 1) < 1000
    if not fits:
        raise r.error(f"an element of {d.name}", str(x)[:60], at)
