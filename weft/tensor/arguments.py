"""What functions on tensors share: operands as values, and plans found again by the arguments as
they were said.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.buffer import Buffer
from weft.errors import DeviceError, DTypeError, ShapeError
from weft.ops.define import Op, Value, installed
from weft.types.size import as_float, index

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def value(x: Any) -> Tensor:
    """A tensor, or a number or NumPy array made one."""
    return x if isinstance(x, Value) else installed.lift(x)  # type: ignore[return-value]


def remember(op: Op, x: Value, said: tuple[Any, ...], meant: tuple[Hashable, ...]) -> None:
    """Let the plan of a call be found by its arguments as the caller spelled them, without
    normalising them again.

    The spelling is one more key of the op's own table, so it is forgotten together with the plan.
    It can't be mistaken for another call: records take tuples of axes and whole sizes only, and
    where the two agree they mean the same. 1, True and 1.0 are equal, so what is said of a number
    includes its class.
    """
    if isinstance(x.data, Buffer):
        plan = op.plans.get((x.data.layout, *meant))
        if plan is not None:
            try:
                op.plans[(x.data.layout, *said)] = plan
            except TypeError:  # a list: nothing to look up by
                return


def sizes(shape: Any, place: str) -> tuple[int, ...]:
    """A shape given as an integer or a sequence of them."""
    try:
        if hasattr(shape, "__index__"):
            return (index(shape),)
        return tuple(index(n) for n in shape)
    except TypeError:
        raise ShapeError(place, expected="a tuple of integers", got=_shown(shape)) from None


def all_integers(shape: tuple[Any, ...]) -> None:
    """Raise a TypeError unless all that was said of a shape, one by one or as one tuple, is an
    integer: (2.0, 3) finds a plan that (2, 3) left.
    """
    for n in shape:
        math.gcd(*n) if n.__class__ is tuple else math.gcd(n)


def integer(x: Any, place: str) -> int:
    """One integer."""
    try:
        return index(x)
    except TypeError:
        raise ShapeError(place, expected="an integer", got=_shown(x)) from None


def number(
    x: Any, place: str, name: str = "a number", least: float = -math.inf, most: float = math.inf
) -> float:
    """One number between `least` and `most`, as a Python float."""
    out: float = x if x.__class__ is float else _float(x, place, name)
    if least <= out <= most or (out != out and least == -math.inf and most == math.inf):
        return out
    bounds = f"{least} or more" if most == math.inf else f"from {least} to {most}"
    raise ShapeError(place, expected=f"{name} {bounds}", got=str(out))


def _float(x: Any, place: str, name: str) -> float:
    if isinstance(x, (Value, np.ndarray)) and x.size == 1:
        x = x.item()
    if not isinstance(x, (int, float, np.floating, np.integer, np.bool_)):
        raise DTypeError(place, expected=f"{name}: one number", got=_shown(x))
    try:
        return as_float(x)
    except OverflowError:
        return math.copysign(math.inf, x)


def word(x: Any, place: str, words: Collection[str]) -> str:
    """One of the words a function knows."""
    if isinstance(x, str) and x in words:
        return x
    raise ShapeError(place, expected=f"one of {', '.join(map(repr, words))}", got=_shown(x))


def _shown(x: Any) -> str:
    text = repr(x)
    return text if len(text) < 80 else f"{type(x).__name__} {text[:60]}…"


def flag(x: Any, place: str) -> bool:
    """A Python bool, and nothing that merely looks like one."""
    if x is True or x is False:
        return x
    raise DTypeError(place, expected="True or False", got=_shown(x))


def on_cpu(device: Any, place: str) -> None:
    """Refuse a device that isn't there."""
    if device is not None and device != "cpu":
        raise DeviceError(place, expected='"cpu"', got=_shown(device), hint="Weft runs on the CPU")


def floating(x: Any, place: str) -> Tensor:
    """A value of a floating dtype, or an error that says what to do."""
    v = value(x)
    if not v.type.dtype.is_float:
        raise DTypeError(
            place, expected="a floating dtype", got=v.type.dtype.name, hint="convert with .astype()"
        )
    return v
