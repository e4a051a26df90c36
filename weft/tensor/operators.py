"""Python operators: straight to the plan for these layouts, to the full door when there is none
yet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.errors import DivisionError, NumericsError
from weft.ops import elementwise as ew
from weft.ops.define import Op, Value, installed

_NUMBERS = (float, int, bool, np.generic, np.ndarray)


def binary(op: Op, *, flip: bool = False) -> Callable[[Any, Any], Any]:
    """a op b; with `flip` the method is called on b."""
    plans = op.plans

    def method(a: Any, b: Any) -> Any:
        try:
            plan = plans[a.data.layout, b.data.layout if isinstance(b, Value) else b.__class__]
        except (KeyError, AttributeError):
            plan = None
        if plan is not None:
            return installed.launch(plan, a, b)
        return op(a, b) if isinstance(b, (Value, *_NUMBERS)) else _no_operand(b)

    def flipped(b: Any, a: Any) -> Any:
        return op(a, b) if isinstance(a, _NUMBERS) else _no_operand(a)

    return _named(flipped if flip else method, op)


def comparing(op: Op) -> Callable[[Any, Any], Any]:
    """a op b, where a Python integer that the dtype of a does not hold has its place all the
    same: beyond every element.
    """
    plans = op.plans

    def method(a: Any, b: Any) -> Any:
        try:
            plan = plans[a.data.layout, b.data.layout if isinstance(b, Value) else b.__class__]
        except (KeyError, AttributeError):
            plan = None
        try:
            if plan is not None:
                return installed.launch(plan, a, b)
            return op(a, b) if isinstance(b, (Value, *_NUMBERS)) else NotImplemented
        except NumericsError:
            if b.__class__ is not int:
                raise
            return beyond(op, a, b)

    return _named(method, op)


def _no_operand(x: Any) -> Any:
    """What Python is told of an operand that is none. PyTorch's tensors are refused at once:
    Python's error would tell of 'Tensor' and 'Tensor'.
    """
    return installed.lift(x) if type(x).__module__ == "torch" else NotImplemented


def beyond(op: Op, a: Value, n: int) -> Any:
    """A comparison with an integer that is larger, or less, than all that the dtype of a holds."""
    if a.type.dtype.is_float:  # infinity is beyond it, and NaN nowhere
        name, end = op.name, math.inf if n > 0 else -math.inf
        if name in ("equal", "not_equal"):
            return op(a, math.nan)
        if name.startswith("less"):
            return (ew.less if n > 0 else ew.less_equal)(a, end)
        return (ew.greater_equal if n > 0 else ew.greater)(a, end)
    true = op.name == "not_equal" or op.name.startswith("less" if n > 0 else "greater")
    return (ew.equal if true else ew.not_equal)(a, a)


def refuse_zero(op: Op, a: Any, b: Any) -> None:
    if b.__class__ is int and b == 0 and isinstance(a, Value) and not a.type.dtype.is_float:
        raise DivisionError(op.name, expected="a divisor other than 0", got=f"{a.type} by 0")


def dividing(op: Op) -> Callable[[Any, Any], Any]:
    """a op b, where integers by a literal zero are a mistake worth an error. (Zeros in a tensor
    give 0, as in NumPy.)
    """
    plain = binary(op)

    def method(a: Any, b: Any) -> Any:
        refuse_zero(op, a, b)
        return plain(a, b)

    return _named(method, op)


def _named(method: Callable[..., Any], op: Op) -> Callable[..., Any]:
    method.__name__ = method.__qualname__ = op.name
    method.__doc__ = op.doc or f"Elementwise {op.name}."
    return method
