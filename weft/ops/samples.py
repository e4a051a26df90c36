"""Inputs worth testing: every op record brings its own, and the laws run over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

import numpy as np

from weft.types.dtype import DTYPES, DType, float32, float64
from weft.types.record import dataclass


@dataclass(frozen=True)
class Sample:
    """Arguments for one call; `error` is the exception they must raise instead of a result."""

    args: tuple[Any, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    error: type[Exception] | None = None
    smooth: bool = True  # differentiable at these points, so that numeric gradients apply


Samples = Callable[[], Iterator[Sample]]

SHAPES: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((), (), ()),
    ((5,), (5,), (5,)),
    ((3, 37), (3, 37), (3, 37)),
    ((2, 1, 3), (4, 1), (3,)),
    ((0, 3), (1, 3), (3,)),
    ((70,), (), (70,)),
)


def array(
    shape: tuple[int, ...], dtype: DType, span: tuple[float, float] = (-3.0, 3.0), seed: int = 0
) -> Any:
    """Reproducible values of `dtype` spread over `span`."""
    rng = np.random.default_rng([seed, *shape])
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    values = rng.uniform(*span, shape)
    if dtype.kind == "u":
        values = np.abs(values)
    return np.asarray(values if dtype.is_float else np.rint(values)).astype(dtype.np)


def pointwise(arity: int, kinds: str, *spans: tuple[float, float]) -> Samples:
    """Samples of an elementwise op: shapes that broadcast, and every dtype of the kinds it
    takes.
    """
    spans = (*spans, *([spans[-1] if spans else (-3.0, 3.0)] * (arity - len(spans))))

    def make() -> Iterator[Sample]:
        floats = float32 if "f" in kinds else next(d for d in DTYPES if d.kind in kinds)
        for shapes in SHAPES:
            yield Sample(
                tuple(
                    array(s, floats, sp, i)
                    for i, (s, sp) in enumerate(zip(shapes[:arity], spans, strict=True))
                )
            )
        for d in DTYPES:
            if d.kind in kinds:
                yield Sample(tuple(array((7,), d, sp, i + 9) for i, sp in enumerate(spans)))
        if "f" in kinds:
            yield Sample(tuple(array((3, 5), float64, sp, i + 3) for i, sp in enumerate(spans)))

    return make
