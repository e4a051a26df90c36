"""Attributes and constants as text, exact to the bit."""

from __future__ import annotations

import dataclasses
import math
import struct
from typing import Any

import numpy as np

from weft.buffer import Buffer
from weft.buffer.interchange import to_numpy
from weft.ir.language import WEAK, WORDS, is_free, is_word
from weft.ir.node import elements, same_value
from weft.ir.sizes import canonical
from weft.types import Dim, DType, TensorType
from weft.types.size import Size, is_symbolic

#: elements of a constant that are written where it stands; those of larger ones come last
INLINE = 16
_WIDTH = 96  # characters of base64 in a line
_QUIET = struct.pack("d", math.nan)


def quoted(s: str) -> str:
    """A string as JSON has it; in plain ASCII where it could not be seen or stored otherwise."""
    import json  # not needed to import Weft

    return json.dumps(s, ensure_ascii=not s.isprintable())


def word(name: str) -> str:
    """A name, quoted where it is not one word."""
    return name if is_word(name) else quoted(name)


def number(x: float) -> str:
    """The shortest text that gives the number again; NaN with its bits if they are unusual."""
    if isinstance(x, float) and x != x and struct.pack("d", x) != _QUIET:
        return f"nan:{struct.unpack('Q', struct.pack('d', x))[0]:#x}"
    return repr(x)


def size(n: Any) -> str:
    """A size: a number, a name, or what is computed of them."""
    n = canonical(n)
    return n.said(_name) if isinstance(n, Dim) else str(n)


def _name(name: str) -> str:
    return name if is_free(name) else f"dim({quoted(name)})"


def type_text(t: Any) -> str:
    """`f32[B, 784]`, or `float` for a Python number."""
    if isinstance(t, TensorType):
        return f"{t.dtype.short}[{', '.join(map(size, t.shape))}]"
    return t.__name__ if t in WEAK.values() else opaque(t)


def attribute(x: Any) -> str:
    """The text of an attribute's value."""
    if x is None or x is True or x is False:
        return next(w for w, v in WORDS.items() if v is x)
    if type(x) in (int, float):
        return number(x)
    if type(x) is str:
        return quoted(x)
    if type(x) is tuple:
        return f"({', '.join(map(attribute, x))}{',' * (len(x) == 1)})"
    if isinstance(x, DType):
        return x.short
    if isinstance(x, TensorType):
        return type_text(x)
    if isinstance(x, Dim) or type(x) is Size:
        return size(x)
    if isinstance(x, type) and x in WEAK.values():
        return f"python.{x.__name__}"
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return f"{type(x).__name__}({', '.join(_fields(x))})"
    return opaque(x)


def _fields(x: Any) -> list[str]:
    """What its constructor needs to be told."""
    return [
        f"{f.name} = {attribute(value)}"
        for f in dataclasses.fields(x)
        if f.init and not same_value(value := getattr(x, f.name), f.default)
    ]


def opaque(x: Any) -> str:
    """Something that has no text: shown, but not read again."""
    return f"<{quoted(x.text if is_symbolic(x) else repr(x))}>"


class Data:
    """The large constants of a text: numbered where they stand, written at its end."""

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = {}

    def constant(self, value: Any) -> str:
        """The text of a constant's value."""
        if not isinstance(value, Buffer):
            return attribute(value)
        array = to_numpy(value)
        text = _dense(array) if array.size <= INLINE else None
        if text is None:
            bytes_ = elements(value)
            text = f"data({self.numbers.setdefault(bytes_, len(self.numbers))})"
        return text

    def section(self) -> list[str]:
        """The lines at the end."""
        import base64  # not needed to import Weft

        out = []
        for bytes_, n in self.numbers.items():
            text = base64.b64encode(bytes_).decode()
            out.append(f"data {n} =")
            out += [f'  "{text[i : i + _WIDTH]}"' for i in range(0, max(len(text), 1), _WIDTH)]
        return out


def _dense(a: np.ndarray[Any, Any]) -> str | None:
    """The elements as nested lists; None where the text would not give the same bits again."""
    if a.ndim:
        parts = [_dense(a[i, ...]) for i in range(len(a))] if a.size else []
        return None if None in parts else f"[{', '.join(p for p in parts if p is not None)}]"
    x = a[()]
    if a.dtype == np.bool_:
        return "true" if x else "false"
    if a.dtype.kind in "iu":
        return str(int(x))
    wide = float(x)
    for text in (str(x), repr(wide)):
        if element(float(text), a.dtype) == a.tobytes():
            return text
    return None


def element(x: float, dtype: Any) -> bytes:
    """The bits of a number as an element."""
    with np.errstate(all="ignore"):
        return np.asarray(x, np.float64).astype(dtype).tobytes()
