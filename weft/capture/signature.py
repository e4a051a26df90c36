"""What a capture depends on of a call, and which sizes and numbers of it are left open.

`signature` is the key that programs are found by; `Policy` remembers the calls that were captured
and says which sizes have been seen to change.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any

import numpy as np

from weft.autodiff.mode import recording
from weft.capture.implicit import is_users
from weft.capture.structure import Form
from weft.capture.symbols import Place, Symbols, example
from weft.ops.define import Value, placeholder
from weft.types import Dim, Shape, TensorType
from weft.types.expression import ITSELF
from weft.types.tensor_type import shown

Key = tuple[Any, ...]


def signature(leaves: Sequence[Any], form: Form) -> Key:
    """The key of a call: structure, types, which tensors want gradients, Python values.

    Of ints and floats their class: their values are guarded where they matter.
    """
    kinds = [(x.type, x.note is not None) if isinstance(x, Value) else _kind(x) for x in leaves]
    return (form, recording.get(), *kinds, *_repeated(leaves))


def kind(leaves: Sequence[Any], form: Form) -> Key:
    """The key without sizes: calls that one program of symbolic sizes may serve."""
    kinds = [
        (x.type.dtype, x.type.ndim, x.note is not None) if isinstance(x, Value) else _kind(x)
        for x in leaves
    ]
    return (form, recording.get(), *kinds, *_repeated(leaves))


def _kind(x: Any) -> Any:
    if type(x) is float or type(x) is int:
        return type(x)
    if type(x) in (str, bool, type(None)):
        return type(x), x
    if has_elements(x):
        return type(x), type(x)
    of: Any = type(x)
    if _compares_itself(of):
        return of, id(x)
    try:
        hash(x)
    except TypeError:
        return type(x), id(x)
    return type(x), x


@functools.lru_cache(1024)
def _compares_itself(kind: type) -> bool:
    """Whether a user's method says what is equal: it may leave out what a program depends on."""
    f: Any = kind.__eq__
    return type(f) is FunctionType and is_users(f.__code__.co_filename)


def has_elements(x: Any) -> bool:
    """Whether an argument is something other than a tensor whose elements may change."""
    if isinstance(x, (set, bytearray, deque)):
        return True
    return hasattr(type(x), "__array__") and not isinstance(x, (Value, np.generic))


def _repeated(leaves: Sequence[Any]) -> list[int]:
    """Which tensors are the same, where some are."""
    tensors = [id(x) for x in leaves if isinstance(x, Value)]
    if len(set(tensors)) == len(tensors):
        return []
    return [tensors.index(i) for i in tensors]


def why(old: Key, new: Key) -> str:
    """How two signatures differ, in words; empty where they don't."""
    if old[0] != new[0]:
        return f"arguments of another structure: {_leaves(new[0])} instead of {_leaves(old[0])}"
    if old[1] != new[1]:
        return f"gradients are {'' if new[1] else 'not '}recorded"
    names = [_argument(p) for p in old[0].paths()]
    out = []
    for name, a, b in zip(names, old[2:], new[2:], strict=False):
        if a != b:
            out.append(f"{name} was {_said(a)}, now it is {_said(b)}")
    if not out and old != new:
        out.append("other arguments are the same tensor")
    return "; ".join(out)


def _leaves(form: Form) -> str:
    return f"{form.count} value{'s' * (form.count != 1)}"


def _argument(path: str) -> str:
    """`argument 0` for a path into (args, kwargs)."""
    if path.startswith("[0]["):
        number, _, rest = path[4:].partition("]")
        return f"argument {number}{rest}"
    if path.startswith("[1]["):
        name, _, rest = path[4:].partition("]")
        return f"argument {name.strip(chr(39))}{rest}"
    return path


def _said(kind: Any) -> str:
    if isinstance(kind, type):
        return f"a Python {kind.__name__}"
    first, second = kind[0], kind[1]
    if isinstance(first, TensorType):
        sizes = ", ".join(map(shown, first.shape))
        return f"{first.dtype.short}[{sizes}]" + " with a gradient" * bool(second)
    if isinstance(first, type):
        text = repr(second)
        return text if len(text) <= 60 else f"{text[:57]}..."
    return str(kind)


@dataclass
class Marks:
    """What is left open in a capture: axes by the symbol they share, and whether numbers are."""

    sizes: dict[Place, int] = field(default_factory=dict)
    numbers: bool = True
    dims: dict[Place, Dim] = field(default_factory=dict)  # said by the user
    outside: frozenset[Any] = frozenset()  # places outside that hold numbers that change
    ints: frozenset[int] = frozenset()  # leaves that shapes are made of
    guessed: frozenset[Place] = frozenset()  # axes that have not been seen to change

    def certain(self) -> Marks:
        """Without what is guessed."""
        sizes = {p: n for p, n in self.sizes.items() if p not in self.guessed}
        return replace(self, sizes=sizes, guessed=frozenset())

    def opens(self, leaves: Sequence[Any]) -> bool:
        """Whether anything of a call is a symbol."""
        return bool(self.sizes or self.outside or self.ints) or (
            self.numbers and any(type(x) in (float, int) for x in leaves)
        )


class Policy:
    """Decides what is left open. `dynamic` is what the user said: None, True or False."""

    def __init__(self, dynamic: bool | None) -> None:
        self.dynamic = dynamic
        self.shapes: dict[Key, list[tuple[Shape, ...]]] = {}
        self.closed: set[Key] = set()  # kinds of calls whose code can't take symbols
        self.outside: frozenset[Any] = frozenset()  # places outside whose numbers have changed
        self.pinned: dict[Key, dict[int, int]] = {}  # ints that programs were made for, by leaf

    def marks(self, of: Key, leaves: Sequence[Any]) -> Marks:
        """For a call of this kind that is about to be captured; remembers it."""
        shapes = tuple(x.type.shape if isinstance(x, Value) else () for x in leaves)
        if of in self.closed:
            return Marks(numbers=False)
        if self.dynamic is False:
            return Marks(outside=self.outside)
        pinned = self.pinned.get(of, {})
        ints = frozenset(i for i, n in pinned.items() if leaves[i] != n and min(leaves[i], n) >= 0)
        places = [(i, a) for i, shape in enumerate(shapes) for a in range(len(shape))]
        if self.dynamic:
            every = {p: n for n, p in enumerate(places)}
            return Marks(every, outside=self.outside, ints=ints)
        seen = self.shapes.setdefault(of, [])
        if shapes not in seen:
            seen.append(shapes)
            del seen[1:-_REMEMBERED]
        columns = {(i, a): tuple([s[i][a] for s in seen]) for i, a in places}
        numbers: dict[Any, int] = {}
        open_ = {p: c for p, c in columns.items() if len(set(c)) > 1}
        # whose lengths change, comes in batches of other sizes too: the last of a bucket
        lead = {columns[i, 0] for i, _ in open_ if columns[i, 0][0] > 1}
        rows = {(i, a): c for (i, a), c in columns.items() if a == 0 and c in lead}
        sizes = {p: numbers.setdefault(c, len(numbers)) for p, c in (open_ | rows).items()}
        guessed = frozenset(rows.keys() - open_.keys())
        return Marks(sizes, outside=self.outside, ints=ints, guessed=guessed)

    def captured(self, of: Key, leaves: Sequence[Any], symbols: Symbols) -> None:
        """Told of a capture: which ints among the arguments it is made for."""
        self.pinned.setdefault(of, {}).update({i: leaves[i] for i in symbols.pinned})


#: shapes of one kind of call that are looked back on
_REMEMBERED = 8


def specified(leaves: Sequence[Any]) -> tuple[list[Any], Marks]:
    """Leaves where types stand for tensors, with examples in their place; sizes that are a `Dim`
    are left open.
    """
    marks, out = Marks(numbers=False), list(leaves)
    names: dict[str, int] = {}
    for i, x in enumerate(leaves):
        if isinstance(x, TensorType):
            shape: list[Any] = list(x.shape)
            for a, n in enumerate(shape):
                if isinstance(n, Dim):
                    marks.sizes[i, a] = names.setdefault(n.name, len(names))
                    marks.dims[i, a] = n
                    shape[a] = example(n, names[n.name])
            out[i] = placeholder(TensorType(shape, x.dtype))
    return out, marks


def opened(leaves: Sequence[Any], marks: Marks) -> tuple[Symbols, list[Any]]:
    """Symbols for a call, and what stands for its leaves: types of tensors, numbers."""
    symbols = Symbols()
    symbols.arguments = len(leaves)
    sizes: dict[Any, Any] = {}
    out: list[Any] = []
    for i, x in enumerate(leaves):
        if isinstance(x, Value):
            own = {}
            for a, n in enumerate(x.type.sizes):
                shared = marks.sizes.get((i, a))
                if shared is None:
                    continue
                if shared not in sizes:
                    dim = marks.dims.get((i, a))
                    name = dim.name if dim is not None else f"n{len(sizes)}"
                    sizes[shared] = symbols.size(name, (i, a), n, dim)
                own[a] = sizes[shared]
            out.append(symbols.type(i, x.type, own))
        elif i in marks.ints:
            name = f"n{len(sizes)}"
            sizes[i, ITSELF] = symbols.places[i, ITSELF] = symbols.size(name, (i, ITSELF), x)
            out.append(sizes[i, ITSELF])
        elif type(x) is float or type(x) is int:
            number = symbols.argument(i, x)
            if not marks.numbers:
                symbols.specialise(number, "code that can't take symbols")
            out.append(number if marks.numbers else x)
        else:
            out.append(x)
    return symbols, out
