"""Nested Python structures of values: taken apart into leaves, and put together again.

>>> leaves, form = flatten({"a": (1, 2), "b": [3]})
>>> leaves, form.build([x * 10 for x in leaves])
([1, 2, 3], {'a': (10, 20), 'b': [30]})
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any


class Form:
    """The shape of a structure without its leaves. Equal forms are equal and hash alike."""

    __slots__ = ("children", "count", "kind", "names")

    def __init__(self, kind: Any, names: tuple[Any, ...], children: tuple[Form, ...]) -> None:
        self.kind, self.names, self.children = kind, names, children
        self.count: int = sum(c.count for c in children) if kind is not None else 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and (
            self is other
            or (
                self.kind is other.kind
                and self.names == other.names
                and self.children == other.children
            )
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.names, self.children))

    def build(self, leaves: Sequence[Any]) -> Any:
        """The structure with these leaves, in the order `flatten` gives them."""
        if self.kind is None:
            return leaves[0]
        if self.kind in SPECIAL:
            return SPECIAL[self.kind][1](self, leaves)
        parts, at = [], 0
        for child in self.children:
            parts.append(child.build(leaves[at : at + child.count]))
            at += child.count
        if self.kind in (tuple, list):
            return self.kind(parts)
        if issubclass(self.kind, defaultdict):
            return self.kind(self.names[0], zip(self.names[1:], parts, strict=True))
        if issubclass(self.kind, dict):
            return self.kind(zip(self.names, parts, strict=True))
        if issubclass(self.kind, tuple):
            return self.kind(*parts)
        return _rebuilt(self.kind, dict(zip(self.names, parts, strict=True)))

    def holds(self, kind: Any) -> bool:
        """Whether some part is of this kind."""
        return self.kind is kind or any(c.holds(kind) for c in self.children)

    def paths(self, prefix: str = "") -> list[str]:
        """How a reader would name each leaf."""
        if self.kind is None:
            return [prefix]
        mapping = isinstance(self.kind, type) and issubclass(self.kind, dict)
        out = []
        for i, child in enumerate(self.children):
            name = self.names[i - len(self.children)] if self.names else i
            dotted = self.names and not mapping
            out += child.paths(f"{prefix}.{name}" if dotted else f"{prefix}[{name!r}]")
        return out


LEAF = Form(None, (), ())

#: other classes that have parts: how to take one apart, and (form, leaves) -> one put together
SPECIAL: dict[type, tuple[Callable[[Any], tuple[Form, Sequence[Any]]], Callable[..., Any]]] = {}


def flatten(x: Any) -> tuple[list[Any], Form]:
    """The leaves of a structure of tuples, lists, dicts, named tuples and dataclasses, and its
    form.
    """
    leaves: list[Any] = []
    return leaves, _form(x, leaves.append)


def _form(x: Any, leaf: Callable[[Any], None]) -> Form:
    kind = type(x)
    if kind is tuple or kind is list:
        return Form(kind, (), tuple([_form(v, leaf) for v in x]))
    if isinstance(x, defaultdict):  # its first name is what makes missing values
        names = (x.default_factory, *x)
        return Form(kind, names, tuple([_form(v, leaf) for v in x.values()]))
    if isinstance(x, dict):
        return Form(kind, tuple(x), tuple([_form(v, leaf) for v in x.values()]))
    if isinstance(x, tuple) and hasattr(kind, "_fields"):
        return Form(kind, tuple(kind._fields), tuple([_form(v, leaf) for v in x]))
    if dataclasses.is_dataclass(kind):
        names = tuple(f.name for f in dataclasses.fields(kind))
        return Form(kind, names, tuple([_form(getattr(x, n), leaf) for n in names]))
    if kind in SPECIAL:
        form, parts = SPECIAL[kind][0](x)
        for v in parts:
            leaf(v)
        return form
    leaf(x)
    return LEAF


def _rebuilt(kind: Any, values: dict[str, Any]) -> Any:
    """A dataclass instance with these fields, whatever its __init__ takes."""
    out = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(out, name, value)
    return out
