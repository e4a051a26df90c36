"""einsum, tensordot and vecdot: said in contractions, two operands at a time, from left to
right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.errors import DTypeError, ShapeError
from weft.ops.contraction import Contraction
from weft.ops.define import Value
from weft.ops.elementwise import astype
from weft.ops.joining import diagonal
from weft.ops.linalg import contract
from weft.ops.movement import permute_dims
from weft.ops.reduction import sum
from weft.types import normalize_axis, result_dtype

Labels = tuple[str, ...]


def einsum(equation: str, *operands: Value) -> Value:
    """A sum of products over named axes; `...` stands for axes that broadcast."""
    inputs, out = _parse(equation, operands)
    dtype = result_dtype(*(x.type.dtype for x in operands))
    values = [(x if x.type.dtype is dtype else astype(x, dtype=dtype)) for x in operands]
    terms = [_diagonals(x, names) for x, names in zip(values, inputs, strict=True)]
    sizes: dict[str, Any] = {}
    for x, names in terms:
        for n, size in zip(names, x.type.shape, strict=True):
            if sizes.get(n, 1) != 1 and size not in (1, sizes[n]):
                raise ShapeError(
                    f"einsum {equation!r}",
                    expected=f"one size for {n!r}",
                    got=f"{sizes[n]} and {size}",
                )
            sizes[n] = size if sizes.get(n, 1) == 1 else sizes[n]
    while len(terms) > 1:
        a, b, *rest = terms
        needed = set(out).union(*(names for _, names in rest))
        terms = [_pair(a, b, out if not rest else None, needed), *rest]
    x, names = _drop(terms[0], set(out))
    order = tuple(names.index(n) for n in out)
    result: Value = permute_dims(x, axes=order)
    return result


def _parse(equation: str, operands: Sequence[Value]) -> tuple[list[Labels], Labels]:
    place = f"einsum {equation!r}"
    said = equation.replace(" ", "")
    left, arrow, right = said.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ShapeError(place, expected=f"{len(terms)} operands", got=str(len(operands)))
    inputs, broad = [], 0
    for term, x in zip(terms, operands, strict=True):
        if not isinstance(x, Value):
            raise DTypeError(place, expected="tensors", got=type(x).__name__)
        head, dots, tail = term.partition("...")
        if not (head + tail).isalpha() and head + tail:
            raise ShapeError(place, expected="letters, commas, '...' and '->'", got=term)
        spread = x.type.ndim - len(head + tail)
        if spread < 0 or (spread and not dots):
            raise ShapeError(
                place,
                expected=f"an operand of {len(head + tail)} axes for {term!r}",
                got=str(x.type),
            )
        broad = max(broad, spread)
        inputs.append((head, spread, tail))
    dims = tuple(f"...{i}" for i in range(broad))
    named = [(*head, *dims[broad - spread :], *tail) for head, spread, tail in inputs]
    if arrow:
        head, dots, tail = right.partition("...")
        out: Labels = (*head, *(dims if dots else ()), *tail)
        unknown = [n for n in out if not any(n in names for names in named)]
        if unknown or len(set(out)) < len(out) or (broad and not dots):
            raise ShapeError(
                place, expected="a result naming axes of the operands once each", got=right
            )
    else:
        letters = [n for names in named for n in names if n not in dims]
        out = (*dims, *sorted(n for n in set(letters) if letters.count(n) == 1))
    return named, out


def _diagonals(x: Value, names: Labels) -> tuple[Value, Labels]:
    """A label that an operand has twice means its diagonal."""
    while len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        i = names.index(twice)
        j = names.index(twice, i + 1)
        if x.type.shape[i] != x.type.shape[j]:
            raise ShapeError("einsum", expected=f"one size for {twice!r}", got=str(x.type))
        others = [k for k in range(len(names)) if k not in (i, j)]
        x = diagonal(permute_dims(x, axes=(*others, i, j)), offset=0)
        names = (*(names[k] for k in others), twice)
    return x, names


def _drop(term: tuple[Value, Labels], needed: set[str]) -> tuple[Value, Labels]:
    """Sum out the axes that nothing else asks for."""
    x, names = term
    axes = tuple(i for i, n in enumerate(names) if n not in needed)
    if not axes:
        return term
    total = sum(x, axes=axes, keepdims=False)
    if total.type.dtype is not x.type.dtype:
        total = astype(total, dtype=x.type.dtype)
    return total, tuple(n for n in names if n in needed)


def _pair(
    a: tuple[Value, Labels], b: tuple[Value, Labels], out: Labels | None, needed: set[str]
) -> tuple[Value, Labels]:
    (x, left), (y, right) = _drop(a, needed | set(b[1])), _drop(b, needed | set(a[1]))
    if out is None or set(out) - set(left) - set(right):
        out = tuple(n for n in dict.fromkeys((*left, *right)) if n in needed)
    return contract(x, y, spec=Contraction(left, right, out)), out


def tensordot(a: Value, b: Value, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Value:
    """The sum of products over pairs of axes: the last `axes` of a with the first of b, or the
    ones listed.
    """
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.type.ndim, b.type.ndim):
            raise ShapeError("tensordot", expected="axes that both operands have", got=str(axes))
        of_a, of_b = list(range(a.type.ndim - axes, a.type.ndim)), list(range(axes))
    else:
        if not (isinstance(axes, (tuple, list)) and len(axes) == 2) or not all(
            isinstance(s, (tuple, list)) for s in axes
        ):
            raise ShapeError("tensordot", expected="an integer or two lists", got=repr(axes))
        of_a, of_b = (
            [normalize_axis(i, t.type.ndim, "tensordot") for i in s]
            for s, t in zip(axes, (a, b), strict=True)
        )
        if len(of_a) != len(of_b):
            raise ShapeError("tensordot", expected="as many axes of a as of b", got=str(axes))
    for i, j in zip(of_a, of_b, strict=True):
        if a.type.shape[i] != b.type.shape[j]:
            raise ShapeError(
                "tensordot", expected="matching sizes", got=f"{a.type} and {b.type} over {axes}"
            )
    left = [f"a{i}" for i in range(a.type.ndim)]
    right = [f"b{j}" for j in range(b.type.ndim)]
    for n, (i, j) in enumerate(zip(of_a, of_b, strict=True)):
        left[i] = right[j] = f"k{n}"
    out = tuple(n for n in (*left, *right) if n[0] != "k")
    return contract(*same_dtype(a, b), spec=Contraction(tuple(left), tuple(right), out))  # type: ignore[no-any-return]


def vecdot(a: Value, b: Value, axis: int = -1) -> Value:
    """The sum of products along one axis, which both have; other axes broadcast."""
    ndim = max(a.type.ndim, b.type.ndim)
    i, j = (normalize_axis(axis, t.type.ndim, "vecdot") - t.type.ndim for t in (a, b))
    if i != j or a.type.shape[i] != b.type.shape[j]:
        raise ShapeError(
            "vecdot", expected=f"equal sizes along axis {axis}", got=f"{a.type} and {b.type}"
        )
    names = tuple("k" if n == ndim + i else f"b{n}" for n in range(ndim))
    left, right = names[ndim - a.type.ndim :], names[ndim - b.type.ndim :]
    out = tuple(n for n in names if n != "k")
    return contract(*same_dtype(a, b), spec=Contraction(left, right, out))  # type: ignore[no-any-return]


def same_dtype(a: Value, b: Value) -> tuple[Value, Value]:
    """Both in the dtype they promote to."""
    dtype = result_dtype(a.type.dtype, b.type.dtype)
    return tuple(x if x.type.dtype is dtype else astype(x, dtype=dtype) for x in (a, b))  # type: ignore[return-value]
