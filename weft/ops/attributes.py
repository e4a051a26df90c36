"""The words that op records have for their attributes: a name means one kind of value everywhere.

Type rules take that for granted and check only what is theirs: ranges, and how attributes and
operands fit together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.errors import DTypeError, ShapeError
from weft.ir import Function
from weft.ops.contraction import Contraction
from weft.types import DType, TensorType
from weft.types.dim import Dim
from weft.types.size import Size, is_symbolic

Kind = tuple[str, Callable[[Any], bool]]

#: integers reach kernels as 64 bits, and sums of two must fit too
MOST = 2**62


def _is_int(x: Any) -> bool:
    return type(x) is int or type(x) is Size


def _is_ints(x: Any) -> bool:
    return type(x) is tuple and all(_is_int(n) or isinstance(n, Dim) for n in x)


def _is_type(x: Any) -> bool:
    return isinstance(x, TensorType)


def _is_functions(x: Any) -> bool:
    return type(x) is tuple and all(isinstance(f, Function) for f in x)


def _is_pairs(x: Any) -> bool:
    return type(x) is tuple and all(_is_ints(p) and len(p) == 2 for p in x)


_BOOL: Kind = ("True or False", lambda x: type(x) is bool)
_INT: Kind = ("an integer", _is_int)
_INTS: Kind = ("a tuple of integers", _is_ints)
_NUMBER: Kind = ("a number", lambda x: type(x) in (float, int) or is_symbolic(x))
_STRING: Kind = ("a string", lambda x: type(x) is str)
_TYPES: Kind = ("a tuple of types", lambda x: type(x) is tuple and all(map(_is_type, x)))

KINDS: dict[str, Kind] = {
    **dict.fromkeys(
        ("axes", "counts", "dilation", "kernel", "output_padding", "padding", "shape", "shifts",
         "sizes", "starts", "steps", "stride"), _INTS),
    **dict.fromkeys(
        ("after", "axis", "before", "groups", "k", "many", "n", "position", "size"), _INT),
    **dict.fromkeys(
        ("causal", "descending", "endpoint", "keepdims", "largest", "log_target", "reverse",
         "right"), _BOOL),
    **dict.fromkeys(("beta", "correction", "count", "delta", "eps", "scale"), _NUMBER),
    **dict.fromkeys(("mode", "reduction"), _STRING),
    "dtype": ("a dtype", lambda x: isinstance(x, DType)),
    **dict.fromkeys(("entry", "gives"), _TYPES),
    "offset": ("an integer, or a tuple of them", lambda x: _is_int(x) or _is_ints(x)),
    "regions": ("a tuple of functions", _is_functions),
    "said": ("what Python is to do", lambda x: type(x) is tuple),
    "spec": ("a contraction", lambda x: isinstance(x, Contraction)),
    "type": ("a type", lambda x: isinstance(x, (TensorType, type))),
    "value": ("anything", lambda x: True),
    "widths": ("pairs of integers", _is_pairs),
}  # fmt: skip


#: for words that only one op has: what can be compared, printed and hashed
_ANY: Kind = ("a number, a string, a dtype or a tuple of these", lambda x: _is_plain(x))


def _is_plain(x: Any) -> bool:
    return (
        all(map(_is_plain, x))
        if type(x) is tuple
        else type(x) in (bool, int, float, str) or isinstance(x, DType) or is_symbolic(x)
    )


def check(name: str, attrs: Mapping[str, Any]) -> None:
    """Raise unless every attribute of a call of `name` is of the kind that its own name says."""
    for word, x in attrs.items():
        said, fits = KINDS.get(word, _ANY)
        if not fits(x):
            raise DTypeError(name, expected=f"{word}: {said}", got=repr(x))
        if _largest(x) > MOST:
            raise ShapeError(name, expected=f"{word}: numbers of at most 2**62", got=repr(x))


def numbers(attrs: Mapping[str, Any]) -> list[Any]:
    """What tuples and single attributes hold."""
    return [n for x in attrs.values() for n in (x if type(x) is tuple else (x,))]


def _largest(x: Any) -> int:
    if type(x) is int:
        return abs(x)
    return max(map(_largest, x), default=0) if type(x) is tuple else 0
