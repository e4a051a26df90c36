"""Sums of products over named axes: what matmul, einsum and convolution have in common, as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import lru_cache
from typing import Any

from weft.errors import DTypeError, ShapeError
from weft.types import TensorType
from weft.types.record import dataclass


@dataclass(frozen=True)
class Window:
    """An operand's axis read at (pos * stride + tap * dilation - pad) / step, `pos` and `tap` being
    labels. Outside the axis, and where the division has a remainder, it reads as 0; but if the
    position is an axis of the result and the tap one of the other operand, summed over, a remainder
    means that there is no such term: a transposed convolution multiplies no inserted zeros.
    """

    pos: str
    tap: str
    stride: int = 1
    dilation: int = 1
    pad: int = 0
    step: int = 1

    def coordinate(self, other: str) -> Window:
        """The window that finds `pos` again from the coordinate, now called `other`."""
        return Window(other, self.tap, self.step, -self.dilation, -self.pad, self.stride)


Axis = str | Window


@dataclass(frozen=True)
class Contraction:
    """out[...] = sum of a[...] * b[...] over the labels that `out` lacks.

    Labels: in a, b and out — batch; in a and out — rows; in b and out — columns; in a and b only —
    summed, in the order in which they stand in a. `sizes` gives labels that no plain axis has.
    """

    a: tuple[Axis, ...]
    b: tuple[Axis, ...]
    out: tuple[str, ...]
    sizes: tuple[tuple[str, int], ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.a, self.b, self.out, self.sizes)))

    def __hash__(self) -> int:  # a contraction is a key of every call
        return self._hash


def labels(axes: tuple[Axis, ...]) -> Iterator[str]:
    """The labels of an operand, windows in place."""
    for axis in axes:
        if isinstance(axis, Window):
            yield axis.pos
            yield axis.tap
        else:
            yield axis


def label_sizes(c: Contraction, a: TensorType, b: TensorType, place: str) -> dict[str, int]:
    """The size of every label; an axis of one element broadcasts."""
    sizes: dict[str, int] = dict(c.sizes)
    for axes, t in ((c.a, a), (c.b, b)):
        if len(axes) != t.ndim:
            raise ShapeError(place, expected=f"{len(axes)} axes", got=str(t))
        for axis, n in zip(axes, t.shape, strict=True):
            if isinstance(axis, Window):
                continue
            known = sizes.setdefault(axis, n)  # type: ignore[arg-type]
            if n == known:
                continue
            if known == 1:
                sizes[axis] = n  # type: ignore[assignment]
            elif n != 1:
                raise ShapeError(
                    place,
                    expected=f"matching sizes, {c.a} and {c.b}"
                    if place == "contract"
                    else "inner sizes that match",
                    got=f"{a} and {b}",
                    hint=f"sizes {known} and {n} meet",
                )
    for axis in (*c.a, *c.b):
        if isinstance(axis, Window):
            far = abs(axis.stride) * sizes[axis.pos] + abs(axis.dilation) * sizes[axis.tap]
            if not axis.step or max(far + abs(axis.pad), abs(axis.step)) > 2**62:
                raise ShapeError(place, expected="windows with steps, within 2**62", got=str(axis))
    return sizes


def contracted_type(c: Contraction, a: Any, b: Any, place: str) -> TensorType:
    """The type rule of every contraction."""
    for t in (a, b):
        if not isinstance(t, TensorType):
            raise DTypeError(place, expected="tensors", got=f"a Python {t.__name__}")
    if a.dtype is not b.dtype:
        raise DTypeError(
            place,
            expected="operands of one dtype",
            got=f"{a.dtype.name} and {b.dtype.name}",
            hint="use .astype()",
        )
    if a.dtype.kind == "b":
        raise DTypeError(place, expected="numbers", got="bool", hint="convert with .astype()")
    sizes = label_sizes(c, a, b, place)
    return TensorType([sizes[n] for n in c.out], a.dtype)


@lru_cache(maxsize=4096)
def flipped(c: Contraction) -> Contraction:
    return Contraction(c.b, c.a, c.out, c.sizes)


@lru_cache(maxsize=4096)
def cotangent_of_a(c: Contraction, a: TensorType, b: TensorType) -> tuple[Contraction, bool]:
    """The contraction of the result's cotangent with the other operand that gives the cotangent of
    `a`; and whether the cotangent is its first operand (else its second).

    An axis of `a` that was read through a window becomes a result axis of its own; the axis of the
    cotangent or of the other operand that has the position is then read through a window, at the
    position that the coordinate came from.
    """
    sizes = label_sizes(c, a, b, "contract")
    out: list[str] = []
    moved: dict[str, Window] = {}
    known: dict[str, int] = {}
    for k, (axis, n) in enumerate(zip(c.a, a.shape, strict=True)):
        if isinstance(axis, Window):
            name = f"{axis.pos}'{k}"
            moved[axis.pos] = axis.coordinate(name)
            known[name] = n  # type: ignore[assignment]
            known[axis.tap] = sizes[axis.tap]
            out.append(name)
        else:
            out.append(axis)
            known[axis] = sizes[axis]
    g = tuple(moved.get(n, n) for n in c.out)
    other = tuple(moved.get(n, n) if isinstance(n, str) else n for n in c.b)
    have = set(labels(g)) | set(labels(other))
    extra = tuple((n, s) for n, s in known.items() if n in have or n in out)
    for label in set(labels(other)):
        if label not in known:
            extra = (*extra, (label, sizes[label]))
    if g != c.out:
        return Contraction(other, g, tuple(out), _ordered(extra)), False
    return Contraction(g, other, tuple(out), _ordered(extra)), True


def _ordered(extra: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(dict(extra).items()))
