"""Text that is known when a program runs: f-strings of tensors, and what string methods make of it.

To Python code it is a string that can be put together, formatted and printed, and no more: its
length, its characters and whether it is another one are not known while the function is captured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from weft.autodiff.tape import Leaf
from weft.capture.chosen import Chosen, Flag
from weft.capture.guards import PLAIN
from weft.capture.join import Unfit
from weft.capture.refusal import refused
from weft.capture.structure import LEAF, SPECIAL, Form, flatten
from weft.control.region import Region
from weft.control.said import Said, hold, named_class, value
from weft.ops.creation import full
from weft.ops.define import Value, capturing
from weft.types.dtype import float64, int64
from weft.types.size import is_symbolic

#: methods of strings that give strings
_METHODS = frozenset(
    ["capitalize", "casefold", "center", "expandtabs", "format", "join", "ljust", "lower", "lstrip",
     "removeprefix", "removesuffix", "replace", "rjust", "rstrip", "strip", "swapcase", "title",
     "translate", "upper", "zfill"]
)  # fmt: skip
_LARGE = 2**62  # integers that attributes of a node don't hold


def _unknown(*_: Any, **__: Any) -> NoReturn:
    raise refused(
        "text",
        "text of tensors to be printed, formatted or raised",
        "a use of it that a program can't go by",
        "test the tensor itself, or return it and make the text outside",
    )


class Text:
    """`said` on `values`."""

    __slots__ = ("said", "values")

    def __init__(self, said: Said, values: tuple[Value, ...]) -> None:
        self.said, self.values = said, values

    def __add__(self, other: Any) -> Any:
        return call("text", self, other) if _is_text(other) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return call("text", other, self) if _is_text(other) else NotImplemented

    def __mul__(self, n: Any) -> Text:
        return call("mul", self, n)

    __rmul__ = __mul__

    def __mod__(self, other: Any) -> Text:
        return call("mod", self, other)

    def __rmod__(self, other: Any) -> Text:
        return call("mod", other, self)

    def __getitem__(self, key: Any) -> Text:
        return call("item", self, key)

    def __getattr__(self, name: str) -> Callable[..., Text]:
        if name in _METHODS:
            return lambda *args, **named: method(name, self, args, named)
        if hasattr(str, name) and not name.startswith("__"):
            _unknown()
        raise AttributeError(f"'str' object has no attribute {name!r}")

    __len__ = __bool__ = __iter__ = __contains__ = __str__ = __format__ = __lt__ = __gt__ = _unknown
    __hash__ = __eq__ = __ne__ = __le__ = __ge__ = _unknown


def _is_text(x: Any) -> bool:
    return isinstance(x, str) or type(x) is Text


def _parts(x: Text) -> tuple[Form, tuple[Value, ...]]:
    return Form(Text, (x.said,), (LEAF,) * len(x.values)), x.values


def _built(form: Form, leaves: Sequence[Value]) -> Any:
    """Where nothing is captured its values are known, and so is the text: a function's result."""
    said = form.names[0]
    return value(said, leaves) if capturing.now is None else Text(said, tuple(leaves))


SPECIAL[Text] = _parts, _built


def is_deferred(x: Any) -> bool:
    """Whether something holds a tensor, or text or a number that depends on one."""
    if type(x) is Text or isinstance(x, Value) or is_symbolic(x):
        return True
    if type(x) in PLAIN:
        return False
    if isinstance(x, BaseException):
        return _UNMADE in x.__dict__ or any(map(is_deferred, x.args))
    if type(x) in (set, frozenset):
        return any(map(is_deferred, x))
    leaves, form = flatten(x)
    return form.kind is not None and any(map(is_deferred, leaves))


class _Writer:
    """Makes expressions, and gathers the values they are of."""

    def __init__(self) -> None:
        self.values: list[Value] = []

    def said(self, x: Any) -> Said:
        if isinstance(x, Unfit):
            return x.said(self.said)  # type: ignore[no-any-return]
        if type(x) is Text:
            return self._moved(x.said, x.values)
        if is_symbolic(x):
            x = Chosen.of(full(x, shape=(), dtype=float64 if isinstance(x, float) else int64))
        if isinstance(x, Value):
            return self._value(x)
        if type(x) in PLAIN and not (type(x) is int and abs(x) > _LARGE):
            return ("const", x) if x is not None else ("none",)
        if type(x) in (list, tuple, set):
            return (type(x).__name__, *map(self.said, x))
        if type(x) is dict:
            return ("dict", *(self.said(v) for pair in x.items() for v in pair))
        if isinstance(x, BaseException) and is_deferred(x):
            return self.said(an_error(x))
        leaves, form = flatten(x)
        if form.kind is not None and is_deferred(x):
            return ("built", hold(form), *map(self.said, leaves))
        return ("held", hold(x))

    def _value(self, x: Value) -> Said:
        at = len(self.values)
        self.values.append(x)
        if type(x) in (Chosen, Flag):
            return ("number", at)
        note = _shown(x.note)
        if note is None:
            return ("tensor", at)
        made = getattr(note, "note", note)
        return ("noted", at, "leaf" if isinstance(made, Leaf) else made.call.op.name)

    def _moved(self, said: Said, values: tuple[Value, ...]) -> Said:
        """An expression whose operands come behind those that are there."""
        start = len(self.values)
        self.values += values

        def move(s: Any) -> Any:
            if type(s) is not tuple:
                return s
            if s and s[0] in ("tensor", "number", "noted"):
                return (s[0], s[1] + start, *s[2:])
            return s if s and s[0] == "const" else tuple(map(move, s))

        return move(said)  # type: ignore[no-any-return]


def _shown(note: Any) -> Any:
    """Where a gradient would go, as eager code has it: what a loop carries has none of its own."""
    starts: dict[Any, Any] = {}
    now: Any = capturing.now
    while isinstance(now, Region):
        starts.update(now.starts)
        now = now.parent
    while note in starts:
        note = starts[note]
    stack, seen = [note], {note}
    while stack:
        n = stack.pop()
        n = starts.get(n, n)
        if isinstance(n, Leaf):
            return note
        more = () if n is None else getattr(n, "note", n).parents
        stack += [p for p in more if p not in seen]
        seen.update(more)
    return None


def written(name: Any, args: Any, named: Any = (), word: str = "call") -> Text:
    """A call as text to be: of a function of `weft.control.said.FUNCTIONS`, or (`apply`) any."""
    w = _Writer()
    what = hold(name) if word == "apply" else name
    keywords = tuple((k, w.said(v)) for k, v in dict(named).items())
    said = (word, what, tuple([w.said(a) for a in args]), keywords)
    return Text(said, tuple(w.values))


def call(name: str, *args: Any) -> Text:
    return written(name, args)


_UNMADE = "weft__arguments"


def unmade(kind: Any, args: Any, named: Any) -> BaseException:
    """An exception of a class whose own code needs its arguments, which are not known yet."""
    error: BaseException = BaseException.__new__(kind)
    error.__dict__[_UNMADE] = (tuple(args), dict(named))
    return error


def an_error(error: BaseException) -> Text:
    """An exception, to be made when the program comes by."""
    if _UNMADE in error.__dict__:
        args, named = error.__dict__[_UNMADE]
        return written(type(error), args, named, "apply")
    kind = type(error)
    name = f"{kind.__module__}:{kind.__qualname__}".removeprefix("builtins:")
    what = call("class", name) if is_named(name, kind) else kind
    return call("error", what, error.args, dict(error.__dict__))


def is_named(name: str, kind: type) -> bool:
    """Whether a class is found again by its name."""
    try:
        return named_class(name) is kind
    except (ImportError, AttributeError):
        return False


def method(name: str, text: Any, args: Any = (), named: Any = ()) -> Text:
    """A method of strings, on text or of text."""
    return written(f"str.{name}", (text, *args), named)
