"""Forms of `at` rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.ops.scalar import Scalar, const
from weft.types.dtype import int64


class Flat:
    """A rule over the row-major number of an element instead of its indices: `rule(number,
    *loaders, **attrs)`.

    The op has an attribute `shape`, the result's, which the rule does not see. Kernels walk such a
    result as one row.
    """

    def __init__(self, rule: Callable[..., Scalar]) -> None:
        self.rule = rule

    def __call__(
        self, index: tuple[Scalar, ...], *xs: Any, shape: tuple[int, ...], **attrs: Any
    ) -> Scalar:
        number = const(0, int64)
        for n, i in zip(shape, index, strict=True):
            number = number * n + i
        return self.rule(number, *xs, **attrs)
