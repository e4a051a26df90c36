"""Numbers that change from call to call, as operands of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.errors import NumericsError
from weft.ir import Node
from weft.types import DType, TensorType, result_dtype
from weft.types.dtype import float64, int64, uint64
from weft.types.size import IntNumber, Number

_INTEGERS = {kind: np.iinfo(kind) for kind in ("int8", "int16", "int32", "int64")} | {
    kind: np.iinfo(kind) for kind in ("uint8", "uint16", "uint32", "uint64")
}


def number_node(
    name: str, full: Any, x: Number, types: tuple[Any, ...], scalar: Callable[[Number], Node]
) -> Node:
    """The node for an operand of op `name`: an input of a Python number's class, rounded to the
    dtype that the operands meet in as a kernel rounds a Python number.
    """
    if name == full.name:
        x = x if type(x) is not IntNumber or x.scope.ask(_fits(int64), (x,)) else x.as_float()
        return scalar(x)
    meet = result_dtype(*(t.dtype if isinstance(t, TensorType) else t for t in types))
    if type(x) is IntNumber:
        travels = float64 if meet.is_float else meet
        if not x.scope.ask(_fits(travels), (x,)):
            raise NumericsError(name, expected=f"a number {travels.name} holds", got=str(x.hint))
        if meet is uint64 and not x.scope.ask(_fits(int64), (x,)):
            x = x.scope.compute(_wrapped, (x,))
        x = x.as_float() if meet.is_float else x
    attrs = (("shape", ()), ("dtype", meet))
    return Node(full, (scalar(x),), attrs, TensorType((), meet))


def _wrapped(n: int) -> int:
    """The int64 of the same bits as a uint64."""
    return n - 2**64


def check_range(name: str, xs: tuple[Any, ...], types: tuple[Any, ...]) -> None:
    """Raise unless every integer among the operands fits the dtype that it travels in."""
    large = [x for x in xs if type(x) is int and not 0 <= x < 128]
    if not large or name == "full":
        return
    meet = result_dtype(*(t.dtype if isinstance(t, TensorType) else t for t in types))
    travels = float64 if meet.is_float else meet
    for x in large:
        if not _fits(travels)(x):
            raise NumericsError(name, expected=f"a number {travels.name} holds", got=str(x))


def strong(types: tuple[Any, ...], xs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operand types where the numbers that change are tensors of the dtype they meet in."""
    meet = result_dtype(*(t.dtype if isinstance(t, TensorType) else t for t in types))
    return tuple(TensorType((), meet) if is_live(x) else t for t, x in zip(types, xs, strict=True))


def is_live(x: Any) -> bool:
    """Whether a number is another one in every call."""
    return isinstance(x, Number) and not x.is_sized


_known: dict[DType, Callable[[int], bool]] = {}


def _fits(dtype: DType) -> Callable[[int], bool]:
    """Whether a dtype holds an integer: one function for each dtype, so that equal questions are
    equal.
    """
    return _known.setdefault(dtype, _fitting(dtype))


def _fitting(dtype: DType) -> Callable[[int], bool]:
    def fits(n: int) -> bool:
        if dtype.is_float:
            return abs(n) < _FAR
        info = _INTEGERS[dtype.name]
        return int(info.min) <= n <= int(info.max)

    fits.__name__ = f"{dtype.name} holds "
    return fits


#: integers from here on round to no float64
_FAR = 2**1024 - 2**970
