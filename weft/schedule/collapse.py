"""Loop nests over several operands: broadcast them to one shape, drop axes of one element, join
axes that lie in a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.buffer import Layout
from weft.types.record import dataclass


@dataclass(frozen=True)
class Nest:
    """`sizes` of the loops, outermost first, and for each operand its stride (in elements)
    along each of them.
    """

    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]


def broadcast_strides(layout: Layout, ndim: int) -> tuple[int, ...]:
    """Strides of an operand read at indices of a result of `ndim` axes: 0 along axes it lacks
    or has once.
    """
    shape = layout.type.shape
    own = [0 if n == 1 else s for n, s in zip(shape, layout.strides, strict=True)]
    return (0,) * (ndim - len(own)) + tuple(own)


def collapse(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> Nest:
    """The shortest nest that visits the same elements in the same order.

    >>> collapse((2, 3, 4), [(12, 4, 1), (0, 0, 1)])
    Nest(sizes=(6, 4), strides=((4, 1), (0, 1)))
    """
    sizes: list[int] = []
    out: list[list[int]] = [[] for _ in strides]
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        if sizes and all(o[-1] == s[axis] * n for o, s in zip(out, strides, strict=True)):
            sizes[-1] *= n
            for o, s in zip(out, strides, strict=True):
                o[-1] = s[axis]
        else:
            sizes.append(n)
            for o, s in zip(out, strides, strict=True):
                o.append(s[axis])
    return Nest(tuple(sizes), tuple(tuple(o) for o in out))
