"""How a call of an op is written in Python: by an operator, a public function, a method, or the
op's own name.

Which of them says exactly this call is not looked up but tried: each is run on symbols of the
operands' types, and the first that gives the node is taken. So a spelling is never wrong, and an op
needs no word about it anywhere.
"""

from __future__ import annotations

import dataclasses
import keyword
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from weft.capture.trace import Trace
from weft.deploy.python.by_name import ops
from weft.ir import Node
from weft.ir.node import same_value
from weft.ops.define import Value, capturing, constant, installed
from weft.types import Dim, DType, TensorType

#: how tightly a piece of source binds
ANY, COMPARE, OR, XOR, AND, SHIFT, SUM, PRODUCT, UNARY, POWER, ATOM = range(11)

_INFIX = {
    "add": ("+", SUM), "subtract": ("-", SUM), "multiply": ("*", PRODUCT),
    "divide": ("/", PRODUCT), "floor_divide": ("//", PRODUCT), "remainder": ("%", PRODUCT),
    "matmul": ("@", PRODUCT), "bitwise_left_shift": ("<<", SHIFT),
    "bitwise_right_shift": (">>", SHIFT), "bitwise_and": ("&", AND), "bitwise_xor": ("^", XOR),
    "bitwise_or": ("|", OR), "logical_and": ("&", AND), "logical_xor": ("^", XOR),
    "logical_or": ("|", OR),
}  # fmt: skip
_COMPARE = {
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==",
    "not_equal": "!=",
}  # fmt: skip
_PREFIX = {"negative": "-", "bitwise_invert": "~", "logical_not": "~"}
_RENAMED = {"axes": "axis"}  # attributes that public functions call otherwise
_LISTED = ("concat", "stack")  # public functions of a list


@dataclass(frozen=True)
class Said:
    """A piece of source, what it reads, and a symbol of its type to try spellings on."""

    text: str
    level: int
    stand: Any
    reads: frozenset[str] = frozenset()

    def at(self, level: int) -> str:
        """Its text where something that binds so tightly is wanted."""
        return self.text if self.level >= level else f"({self.text})"


@dataclass(frozen=True)
class Template:
    """A spelling: its text with {0}, {1}, … for operands, and how tightly all of it binds."""

    text: str
    level: int = ATOM
    operands: tuple[int, ...] = ()

    def filled(self, xs: Sequence[Said]) -> str:
        levels = self.operands or (ANY,) * len(xs)
        return self.text.format(*(x.at(n) for x, n in zip(xs, levels, strict=True)))


def spelled(n: Node, xs: Sequence[Said], several: bool = False) -> Said:
    """A node on operands as source; if it has several results, what gives all of them."""
    attrs = dict(n.attrs)
    for t in _candidates(n.op.name, xs, attrs):
        if _gives(t, n, xs, several):
            break
    else:
        t = _by_name(n.op.name, len(xs), attrs)
    reads = frozenset[str]().union(*(x.reads for x in xs))
    return Said(t.filled(xs), t.level, None if several else symbol(n.type), reads)


def _candidates(name: str, xs: Sequence[Said], attrs: dict[str, Any]) -> Iterator[Template]:
    if not attrs:
        yield from _operators(name)
    if name.startswith("basic_index") and len(xs) == 1:
        yield from _subscripts(xs[0], attrs)
    if name == "astype":
        yield Template(f"{{0}}.astype({argument(attrs['dtype'])})", ATOM, (ATOM,))
    for given in _argument_lists(attrs):
        for where in ("wf", "F"):
            if hasattr(_names()[where], name):
                places = [f"{{{i}}}" for i in range(len(xs))]
                yield Template(f"{where}.{name}({', '.join([*places, *given])})")
    if name in _LISTED:
        listed = ", ".join(f"{{{i}}}" for i in range(len(xs)))
        for given in _argument_lists(attrs):
            yield Template(f"wf.{name}({', '.join([f'[{listed}]', *given])})")
    if name == "full":
        dtype = argument(attrs["dtype"])
        shape = argument(attrs["shape"])
        for maker in ("ones", "zeros"):  # tried like all others: right for 1 and 0 alone
            yield Template(f"wf.{maker}({shape}, dtype={dtype})")
        yield Template(f"wf.full({shape}, {{0}}, dtype={dtype})")


def _operators(name: str) -> Iterator[Template]:
    if name in _INFIX:
        symbol, level = _INFIX[name]
        yield Template(f"{{0}} {symbol} {{1}}", level, (level, level + 1))
    elif name in _COMPARE:
        yield Template(f"{{0}} {_COMPARE[name]} {{1}}", COMPARE, (OR, OR))
    elif name in _PREFIX:
        yield Template(f"{_PREFIX[name]}{{0}}", UNARY, (UNARY,))
    elif name == "pow":
        yield Template("{0} ** {1}", POWER, (ATOM, ATOM))


def _subscripts(x: Said, attrs: dict[str, Any]) -> Iterator[Template]:
    """`x[2:5, 0]`, with `None` for the axes that are new."""
    if not all(k in attrs for k in ("starts", "sizes", "steps", "axes")):
        return
    kept = [a for a in attrs["axes"] if a is not None and a >= 0]
    if list(attrs["axes"]) != kept:
        return
    parts = []
    each = zip(attrs["starts"], attrs["sizes"], attrs["steps"], strict=True)
    for axis, (start, size, step) in enumerate(each):
        if not all(type(v) is int for v in (start, size, step)):
            return
        if axis not in kept:
            parts.append(str(start))
            continue
        whole = start == 0 and step == 1 and size == x.stand.type.shape[axis]
        stop = start + size * step
        end = str(stop) if 0 <= stop != x.stand.type.shape[axis] else ""
        parts.append(":" if whole else f"{start or ''}:{end}" + (f":{step}" if step != 1 else ""))
    while len(parts) > 1 and parts[-1] == ":":
        parts.pop()
    yield Template(f"{{0}}[{', '.join(parts)}]", ATOM, (ATOM,))


def _argument_lists(attrs: dict[str, Any]) -> Iterator[list[str]]:
    """The attributes as keyword arguments: by public names, without those that are usual."""
    named = {_RENAMED.get(k, k): v for k, v in attrs.items()}
    short = {
        k: v[0] if k == "axis" and type(v) is tuple and len(v) == 1 else v
        for k, v in named.items()
        if v is not False and v is not None
    }
    seen = []
    for each in ({k: v for k, v in short.items() if k != "axis"}, short, named, attrs):
        if each not in seen:
            seen.append(each)
            yield [f"{k}={argument(v)}" for k, v in each.items()]


def _by_name(name: str, count: int, attrs: dict[str, Any]) -> Template:
    said = [f"{{{i}}}" for i in range(count)]
    said += [f"{k}={argument(v).replace('{', '{{').replace('}', '}}')}" for k, v in attrs.items()]
    head = f"ops.{name}" if _is_name(name) else f"getattr(ops, {name!r})"
    return Template(f"{head}({', '.join(said)})")


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and name not in ("type", "data")


def _gives(t: Template, n: Node, xs: Sequence[Said], several: bool) -> bool:
    """Whether a spelling, run on symbols, gives this node."""
    names = [
        x.text if x.text != "" and not isinstance(x.stand, Value) else f"x{i}"
        for i, x in enumerate(xs)
    ]
    levels = [x.level if name == x.text else ATOM for name, x in zip(names, xs, strict=True)]
    stands = [Said(name, level, None) for name, level in zip(names, levels, strict=True)]
    scope = dict(zip(names, (x.stand for x in xs), strict=True)) | _names() | _sizes(n)
    try:
        # in a trace calls on no symbols become nodes too
        with Trace() if capturing.now is None else nullcontext():
            found = eval(t.filled(stands), scope)
    except Exception:  # not a way to say it
        return False
    made = _called(found) if several else found.data if isinstance(found, Value) else None
    if not isinstance(made, Node):
        return False
    return (
        made.op is n.op
        and len(made.inputs) == len(xs)
        and all(map(_stands_for, made.inputs, xs))
        and [k for k, _ in made.attrs] == [k for k, _ in n.attrs]
        and all(same_value(v, w) for (_, v), (_, w) in zip(made.attrs, n.attrs, strict=True))
    )


def _called(found: Any) -> Any:
    """The node whose results, in their order, these are."""
    picks = [x.data for x in found] if isinstance(found, tuple) else []
    if not picks or not all(isinstance(p, Node) and p.is_pick for p in picks):
        return None
    node = picks[0].inputs[0]
    right = all(p.inputs[0] is node and p.attr("position") == i for i, p in enumerate(picks))
    return node if right else None


def _stands_for(n: Node, x: Said) -> bool:
    if isinstance(x.stand, Value):
        return n is x.stand.data
    return n.op is constant and same_value(n.attr("value"), x.stand)


def _names() -> dict[str, Any]:
    """What the source may name: users' names, which the package has and this room can't import."""
    package = sys.modules["weft"]
    return {"wf": package, "F": package.nn.functional, "ops": ops}


def _sizes(n: Node) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for value in (*(v for _, v in n.attrs), n.type, *(i.type for i in n.inputs)):
        found.update((d.name, d) for d in named_sizes(value))
    return found


def named_sizes(x: Any) -> Iterator[Dim]:
    """The named sizes in a type or an attribute."""
    if isinstance(x, Dim):
        yield from x.named()
    elif isinstance(x, TensorType):
        yield from named_sizes(x.shape)
    elif isinstance(x, tuple):
        for v in x:
            yield from named_sizes(v)


def argument(x: Any) -> str:
    """An attribute's value as source."""
    if isinstance(x, DType):
        return f"wf.{x.name}"
    if isinstance(x, float):
        return number(x)
    if isinstance(x, Dim):
        return x.said(str)
    if isinstance(x, TensorType):
        return f"ops.type({str(x)!r})"
    if isinstance(x, type):
        return x.__name__
    if type(x) is tuple:
        return f"({', '.join(map(argument, x))}{',' * (len(x) == 1)})"
    if dataclasses.is_dataclass(x):
        given = [
            f"{f.name}={argument(getattr(x, f.name))}" for f in dataclasses.fields(x) if f.init
        ]
        return f"ops.{type(x).__name__}({', '.join(given)})"
    return repr(x)


def number(x: Any) -> str:
    """A Python number as source."""
    if isinstance(x, float) and not math.isfinite(x):
        return f'float("{x}")'
    return repr(x)


def symbol(type_: Any) -> Value:
    """A value of a type, to try spellings on."""
    return installed.tensor(Node(constant, (), (("type", type_),), type_))
