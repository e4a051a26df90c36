"""Python numbers that depend on tensors: what a branch chose, what a loop counted.

In the graph they are 64-bit tensors without axes. To Python code they stay numbers: among
themselves and with other numbers they compute as Python does, beside a tensor they take its dtype.
Where ops differ from Python (`**`, a division that may be by zero) a program asks Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.capture.refusal import refused
from weft.ops import elementwise as ew
from weft.ops.creation import full
from weft.ops.define import Op, Value, data_of, installed
from weft.tensor.tensor import Tensor
from weft.types import TensorType, result_dtype
from weft.types.dtype import float64, int64
from weft.types.size import Size

TYPES = {int: TensorType((), int64), float: TensorType((), float64)}


class Chosen(Tensor):
    """A number of the program: int64 or float64, and weak beside other tensors."""

    __slots__ = ()

    @staticmethod
    def of(x: Value) -> Chosen:
        return Chosen(data_of(x))

    @property
    def kind(self) -> type:
        return float if self.type.dtype is float64 else int

    def __hash__(self) -> int:
        hint = "branch on it, or use wf.switch"
        raise refused("a key", "a number that is known", "one that depends on tensors", hint)


class Flag(Tensor):
    """A bool of the program."""

    __slots__ = ()
    kind = bool

    @staticmethod
    def of(x: Value) -> Flag:
        return Flag(data_of(x))


def as_chosen(x: Any) -> Any:
    """An int, a size or a float as a number of the program; anything else as it is."""
    if type(x) is Size:
        return Chosen.of(full(x, shape=(), dtype=int64))
    if type(x) not in TYPES or isinstance(x, Value):
        return x
    if type(x) is int and not -(2**63) <= x < 2**63:
        raise refused("a number", "one that int64 holds", str(x))
    return Chosen.of(installed.lift(TYPES[type(x)].dtype.np.type(x)))


def _strong(x: Any, dtype: Any) -> Any:
    """As a plain tensor of a dtype."""
    plain = Tensor(data_of(x))
    return plain if plain.type.dtype is dtype else ew.astype(plain, dtype=dtype)


def _pair(a: Any, b: Any) -> tuple[Any, Any, type | None]:
    """Operands for an op; the kind of number it gives, None beside a tensor."""
    numbers = [type(x) is Chosen or not isinstance(x, Value) for x in (a, b)]
    if all(numbers):
        kinds = [x.kind if type(x) is Chosen else type(_number(x)) for x in (a, b)]
        kind = float if float in kinds else int
        dtype = TYPES[kind].dtype
        return _strong(as_chosen(_number(a)), dtype), _strong(as_chosen(_number(b)), dtype), kind
    x, other = (a, b) if type(a) is Chosen else (b, a)
    dtype = result_dtype(x.kind, other.type.dtype)
    weak = _strong(x, dtype)
    return (weak, other, None) if x is a else (other, weak, None)


def _number(x: Any) -> Any:
    return int(x) if type(x) is bool else x


def _arithmetic(name: str, op: Op, *, floats: bool = True, ints: bool = True) -> None:
    def compute(a: Any, b: Any) -> Any:
        b = as_chosen(b) if type(b) is Size else b
        if not isinstance(b, Value) and type(b) not in (bool, int, float):
            return NotImplemented
        x, y, kind = _pair(a, b)
        if (kind is float and not floats) or (kind is int and not ints):
            raise refused(
                f"Python's {name} of numbers that depend on tensors",
                "an op that both do alike",
                f"{name} of {kind.__name__}s",
                "make it a tensor: wf.tensor(number)",
            )
        if kind is not None and (name == "pow" or (name in _DIVIDING and _may_be_zero(b))):
            return later.operate(name, a, b, kind)
        out = op(x, y)
        return out if kind is None else Chosen.of(out)

    setattr(Chosen, f"__{name}__", compute)
    setattr(Chosen, f"__r{name}__", lambda a, b: _turned(compute, a, b))


def _turned(compute: Any, a: Any, b: Any) -> Any:
    b = as_chosen(b) if type(b) is Size else b
    if not isinstance(b, Value) and type(b) not in (bool, int, float):
        return NotImplemented
    return compute(b, a) if isinstance(b, Value) else compute(as_chosen(_number(b)), a)


_arithmetic("add", ew.add)
_arithmetic("sub", ew.subtract)
_arithmetic("mul", ew.multiply)
_DIVIDING = ("floordiv", "mod")
_arithmetic("floordiv", ew.floor_divide)
_arithmetic("mod", ew.remainder)
_arithmetic("pow", ew.pow)
_arithmetic("and", ew.bitwise_and, floats=False)
_arithmetic("or", ew.bitwise_or, floats=False)
_arithmetic("xor", ew.bitwise_xor, floats=False)


def _divide(a: Any, b: Any) -> Any:
    b = as_chosen(b) if type(b) is Size else b
    if not isinstance(b, Value) and type(b) not in (bool, int, float):
        return NotImplemented
    x, y, kind = _pair(a, b)
    if kind is None:
        return ew.divide(x, y)
    if _may_be_zero(b):
        return later.operate("truediv", a, b, float)
    return Chosen.of(ew.divide(_strong(x, float64), _strong(y, float64)))


def _may_be_zero(b: Any) -> bool:
    """Python raises on a division by zero: then it has to be asked."""
    return type(b) is Chosen or b == 0


class _Later:
    """What a later module gives."""

    operate: Callable[[str, Any, Any, type], Any]


later = _Later()
Chosen.__truediv__ = _divide
Chosen.__rtruediv__ = lambda a, b: _turned(_divide, a, b)


def _compare(name: str, op: Op) -> None:
    def compute(a: Any, b: Any) -> Any:
        b = as_chosen(b) if type(b) is Size else b
        if not isinstance(b, Value) and type(b) not in (bool, int, float):
            return NotImplemented
        x, y, kind = _pair(a, b)
        return op(x, y) if kind is None else Flag.of(op(x, y))

    setattr(Chosen, f"__{name}__", compute)


for _name, _op in {
    "lt": ew.less, "le": ew.less_equal, "gt": ew.greater, "ge": ew.greater_equal,
    "eq": ew.equal, "ne": ew.not_equal,
}.items():  # fmt: skip
    _compare(_name, _op)


def _unary(name: str, op: Op) -> None:
    setattr(Chosen, f"__{name}__", lambda a: Chosen.of(op(Tensor(data_of(a)))))


_unary("neg", ew.negative)
_unary("abs", ew.abs)
Chosen.__pos__ = lambda a: a  # type: ignore[assignment]


def _in_place(name: str) -> None:
    """Numbers don't change in place: `n += 1` makes another one."""
    for kind in (Chosen, Flag):
        setattr(kind, f"__i{name}__", lambda a, b: getattr(a, f"__{name}__")(b))


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
    _in_place(_name)
