"""What a program says to Python: expressions on tensors that Python works out at run time.

An expression is nested tuples, which programs can be printed and compared with:

- `("tensor", i)`, `("number", i)`: operand i, as a tensor or as a Python number;
  `("noted", i, text)`: as a tensor that shows where its gradient goes;
- `("const", x)`: a string or number; `("none",)`; `("held", hold(x))`: any other object;
- `("tuple", …)`, `("list", …)`, `("set", …)`: of expressions; `("dict", key, value, …)`;
- `("built", hold(form), …)`: a structure put together again;
- `("call", name, (…), (("keyword", …), …))`: a function of `FUNCTIONS`, a method of strings as
  `str.name`, or `math.name`;
- `("pick", number, …)`: one of expressions;
- `("apply", hold(f), (…), (…))`: any other function.
"""

from __future__ import annotations

import importlib
import itertools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from weft.autodiff.tape import Leaf, Note
from weft.ops.define import Call, Op, installed
from weft.ops.language import LANGUAGE

Said = tuple[Any, ...]


@dataclass(eq=False)
class Held:
    """An object that an expression holds, found again by its number in this process. `hold` makes
    one; it is equal to itself alone.
    """

    name: str
    number: int

    def __new__(cls, name: str, number: int) -> Held:
        found = _held.get(number)
        if found is None or found.name != name:
            raise ValueError(f"{name!r}, which another process held")
        return found

    def __deepcopy__(self, memo: Any) -> Held:
        return self

    @property
    def value(self) -> Any:
        return self.__dict__["object"]


_held: WeakValueDictionary[int, Held] = WeakValueDictionary()
_numbers = itertools.count()
LANGUAGE.records["Held"] = Held  # type: ignore[index]


def hold(x: Any) -> Held:
    """An object, for an expression to hold."""
    made = object.__new__(Held)
    name = getattr(x, "__qualname__", None)
    made.name, made.number = name if isinstance(name, str) else type(x).__name__, next(_numbers)
    made.__dict__["object"] = x
    _held[made.number] = made
    return made


def value(said: Said, xs: Sequence[Any]) -> Any:
    """What an expression comes to, on these operands."""
    return _WORDS[said[0]](said, xs)


def _noted(said: Said, xs: Sequence[Any]) -> Any:
    x = installed.tensor(xs[said[1]].data)
    x.note = Leaf() if said[2] == "leaf" else _made_by(said[2])
    return x


def _made_by(name: str) -> Note:
    call = Call(Op(name, infer=lambda *_: ()), (), {})
    return Note(call, (), (), None, 0)


def _dict(said: Said, xs: Sequence[Any]) -> dict[Any, Any]:
    parts = [value(s, xs) for s in said[1:]]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _call(said: Said, xs: Sequence[Any]) -> Any:
    _, name, args, named = said
    given = [value(s, xs) for s in args]
    f: Callable[..., Any]
    owner, _, method = name.rpartition(".")
    if owner:
        f = getattr(str if owner == "str" else math, method)
    else:
        f = FUNCTIONS[name]
    return f(*given, **{k: value(s, xs) for k, s in named})


def _number(x: Any) -> Any:
    """A number, which a program's results are by now."""
    return x if type(x) in (int, float) else x.item()


def _apply(said: Said, xs: Sequence[Any]) -> Any:
    _, held, args, named = said
    return held.value(*[value(s, xs) for s in args], **{k: value(s, xs) for k, s in named})


_WORDS: dict[str, Callable[[Said, Sequence[Any]], Any]] = {
    "tensor": lambda said, xs: xs[said[1]],
    "number": lambda said, xs: _number(xs[said[1]]),
    "noted": _noted,
    "const": lambda said, xs: said[1],
    "none": lambda said, xs: None,
    "held": lambda said, xs: said[1].value,
    "tuple": lambda said, xs: tuple([value(s, xs) for s in said[1:]]),
    "list": lambda said, xs: [value(s, xs) for s in said[1:]],
    "set": lambda said, xs: {value(s, xs) for s in said[1:]},
    "dict": _dict,
    "built": lambda said, xs: said[1].value.build([value(s, xs) for s in said[2:]]),
    "call": _call,
    "apply": _apply,
    "pick": lambda said, xs: value(said[2 + value(said[1], xs)], xs),
}


# functions


def _print(*args: Any, stream: str = "stdout", **kwargs: Any) -> None:
    """To the standard stream of the moment, or to `file`."""
    kwargs.setdefault("file", getattr(sys, stream))
    print(*args, **kwargs)


def error(kind: type[BaseException], args: tuple[Any, ...], inside: dict[str, Any]) -> Any:
    """An exception with these arguments and attributes."""
    made = kind.__new__(kind, *args)
    made.args = args
    made.__dict__.update(inside)
    return made


def raised(made: BaseException, *cause: BaseException | None) -> BaseException:
    """The exception, ready to be raised; `cause` is what stands behind `from`, if anything does."""
    if cause:
        made.__cause__ = cause[0]
    return made


def raises(said: Said) -> bool:
    """Whether what an expression comes to is to be raised."""
    return bool(said[:2] == ("call", "raise"))


def stop(variables: dict[str, Any], file: str, line: int) -> None:
    """The debugger, at a line of the user's."""
    exec(compile("\n" * (line - 1) + "breakpoint()", file, "exec"), dict(variables))


def named_class(name: str) -> Any:
    """A class of Python's own, or as `module:name`."""
    module, _, path = name.rpartition(":")
    found: Any = importlib.import_module(module or "builtins")
    for part in path.split("."):
        found = getattr(found, part)
    return found


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "print": _print,
    "str": str,
    "repr": repr,
    "ascii": ascii,
    "format": format,
    "mod": operator.mod,
    "pow": operator.pow,
    "floordiv": operator.floordiv,
    "truediv": operator.truediv,
    "round": round,
    "int": int,
    "mul": operator.mul,
    "item": operator.getitem,
    "text": lambda *parts: "".join(parts),
    "class": named_class,
    "error": error,
    "write": lambda stream, text: getattr(sys, stream).write(text),
    "raise": raised,
    "breakpoint": stop,
}
