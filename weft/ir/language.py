"""What text and checks need to know of the ops, which this room does not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, NamedTuple

from weft.ir.node import Function, Node, OpLike
from weft.types import DTYPES, TensorType
from weft.types.dtype import from_short
from weft.types.record import dataclass

Types = TensorType | tuple[TensorType, ...]
#: (op, operand types, attributes, regions) -> type of the result, or a tuple where it has several
Infer = Callable[[Any, tuple[Any, ...], dict[str, Any], tuple[Function, ...]], Types]


class Fault(NamedTuple):
    """What a node of a program breaks."""

    function: Function
    node: Node
    expected: str
    got: str
    hint: str = ""


@dataclass(frozen=True)
class Language:
    """The ops of a program by name, and how they are typed.

    `parameter` is the op of a function's inputs, `result` that of picks, `constant` that of values
    in the text. `records` are dataclasses that an attribute may hold.
    `rules` find what a program whose nodes are all typed breaks as a whole; rooms with ops of
    which there is something to say add theirs.
    """

    ops: Mapping[str, Any]
    infer: Infer
    parameter: OpLike
    result: OpLike
    constant: OpLike
    records: Mapping[str, type]
    rules: list[Callable[[Function], Iterable[Fault]]] = field(default_factory=list)


#: classes of Python numbers: the types of weak operands
WEAK: dict[str, type] = {"float": float, "int": int, "bool": bool}
DTYPE_OF = {d.short: from_short(d.short) for d in DTYPES}
WORDS: dict[str, Any] = {"true": True, "false": False, "none": None}
_RESERVED = {*WORDS, *DTYPE_OF, *WEAK, "inf", "nan", "dim", "fn", "return", "data", "python"}

_WORD = r"[^\W\d]\w*(?:\.\w+)*"  # compiled when the first program is printed
_VALUE = r"\w+(?:\.\w+)*"


def is_word(name: str) -> bool:
    """Whether a name can stand in the text as it is."""
    return re.fullmatch(_WORD, name) is not None and name.split(".")[0] not in ("inf", "nan")


def is_free(name: str) -> bool:
    """Whether it can stand where a literal could."""
    return is_word(name) and name not in _RESERVED


def is_value_name(name: str) -> bool:
    """Whether it can stand behind %; digits alone are for values without a name."""
    return re.fullmatch(_VALUE, name) is not None and not name.isdecimal()
