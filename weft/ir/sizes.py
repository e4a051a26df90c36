"""Sizes in types and attributes: numbers, names, and what is computed of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from weft.types import Dim, TensorType
from weft.types.expression import Symbol, Table, Terms
from weft.types.size import Size


def canonical(n: Any) -> Any:
    """A size of a capture as what its symbols are called; any other as it is."""
    return _expression(n.terms, n.scope.table) if type(n) is Size else n


def _expression(terms: Terms, table: Table) -> int | Dim:
    out: int | Dim = 0
    for atoms, coefficient in terms:
        product: int | Dim = coefficient
        for i in atoms:
            product = product * _atom(i, table)
        out = out + product
    return out


def _atom(i: int, table: Table) -> int | Dim:
    atom, (low, high) = table.atoms[i], table.bounds[i]
    if isinstance(atom, Symbol):
        least = 0 if low == -math.inf else int(low)
        return Dim(atom.name, least, None if high == math.inf else int(high))
    a, b = _expression(atom.a, table), _expression(atom.b, table)
    return a // b if atom.sign == "//" else a % b


def same_type(a: Any, b: Any) -> bool:
    """Whether types are equal, however their sizes came about."""
    if a is b:
        return True
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return False
    return (
        a.dtype is b.dtype
        and len(a.shape) == len(b.shape)
        and all(canonical(m) == canonical(n) for m, n in zip(a.shape, b.shape, strict=True))
    )


def named_in(x: Any) -> Iterator[Dim]:
    """The names in a size, or in those of a type, a tuple or a record."""
    x = canonical(x)
    if isinstance(x, Dim):
        yield from x.named()
        return
    parts: Iterable[Any] = ()
    if isinstance(x, TensorType):
        parts = x.shape
    elif isinstance(x, tuple):
        parts = x
    elif is_dataclass(x) and not isinstance(x, type):
        parts = (getattr(x, field.name) for field in fields(x))
    for part in parts:
        if type(part) is not int and type(part) is not str:
            yield from named_in(part)
