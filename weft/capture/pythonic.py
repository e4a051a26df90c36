"""What only Python computes as Python does: powers, divisions that may be by zero, `math`, `round`
of numbers that depend on tensors. A program asks Python for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft.capture.chosen import TYPES, Chosen, later
from weft.capture.effects import root, tell
from weft.capture.refusal import refused
from weft.capture.text import written
from weft.ops.define import Value
from weft.types import TensorType
from weft.types.dtype import bool_

_INTS = {"floor", "ceil", "trunc", "gcd", "lcm", "comb", "perm", "factorial", "isqrt"}
_BOOLS = {"isnan", "isinf", "isfinite", "isclose"}
_SEVERAL = {"frexp", "modf", "fsum", "prod", "dist", "hypot", "sumprod"}
_TYPES: dict[type, TensorType] = {**TYPES, bool: TensorType((), bool_)}


def asked(name: str, xs: tuple[Any, ...], kind: type) -> Any:
    """A function of numbers that gives an int, a float or a bool, worked out by Python."""
    if root() is None:
        raise refused(name, "a number that is known", "one that depends on tensors")
    (out,) = tell(written(name, xs), (_TYPES[kind],))
    return out if kind is bool else Chosen.of(out)


def operate(name: str, a: Any, b: Any, kind: type) -> Any:
    """An operator on two numbers."""
    if name == "pow" and kind is int and not (type(b) is int and b >= 0):
        raise refused(
            "a power of whole numbers",
            "an exponent that is known, or a float",
            "one that depends on tensors: below zero it would give a float",
            "write float(n) ** k",
        )
    return asked(name, (a, b), kind)


def is_math(f: Any, args: tuple[Any, ...]) -> bool:
    """Whether a call of `math` is on numbers that depend on tensors."""
    return getattr(f, "__module__", None) == "math" and any(type(x) is Chosen for x in args)


def math_call(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    name = f.__name__
    if name in _SEVERAL or any(isinstance(x, Value) and type(x) is not Chosen for x in args):
        raise refused(f"math.{name}", "numbers", "tensors, or several results")
    if getattr(math, name, None) is not f:
        raise refused(f"math.{name}", "a function of Python's", repr(f))
    kind = int if name in _INTS else bool if name in _BOOLS else float
    return asked(f"math.{name}", args, kind)


def rounded(x: Any, *digits: Any) -> Any:
    """`round(x)` and `round(x, digits)`"""
    if type(x) is not Chosen:
        return round(x, *digits)
    return asked("round", (x, *digits), x.kind if digits and digits[0] is not None else int)


def whole(x: Chosen) -> Any:
    """`int(x)` of a float."""
    return asked("int", (x,), int)


later.operate = operate
