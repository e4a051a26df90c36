"""Reductions: which kernels run, over which loops. `docs/numerics.md` states the order of the
additions; the plan may choose anything else, so nothing here (blocks, splits, forms) changes a bit.

One primitive reduces some axes of a nest into accumulators, one per position of the kept axes. It
has four forms, by what lies side by side in memory: "rows" (vectors along the reduced axis),
"staged" (along the innermost of several reduced axes), "columns" (vectors across positions) and
"chains" (none of these: scalars). Long reductions are cut in chunks; where positions are few,
chunks run side by side, leave their accumulators in scratch memory, and a second primitive combines
these in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from weft.buffer import Layout
from weft.errors import ShapeError
from weft.ops.monoids import PLACES, accumulator
from weft.ops.scalar import Scalar, input_
from weft.schedule.collapse import broadcast_strides
from weft.schedule.launch import HEAVY, Launch
from weft.schedule.reduce_phases import Phases, Source
from weft.schedule.reduce_spec import ReduceSpec as ReduceSpec
from weft.types import DType, TensorType, broadcast_shapes
from weft.types.dtype import int64


def plan_reduce(
    monoid: str, x: Layout, axes: tuple[int, ...], keepdims: bool, out_dtype: DType, threads: int
) -> Launch:
    """Reduce `axes` of one operand. Monoids: sum prod max min any all, and argmax argmin over one
    axis or all.
    """
    return plan_fold(monoid, [x], input_(0, x.type.dtype), axes, keepdims, out_dtype, threads)


def plan_fold(
    monoid: str,
    inputs: Sequence[Layout],
    rule: Scalar,
    axes: tuple[int, ...],
    keepdims: bool,
    out_dtype: DType,
    threads: int,
    epilogue: Scalar | None = None,
    numbers: tuple[int, ...] = (),
) -> Launch:
    """Reduce `axes` of `rule` over operands that broadcast together, then apply `epilogue` to each
    result.

    The epilogue reads the result as input 0, in the dtype it was accumulated in (`accumulator`);
    both may read `numbers` as params. Everything is rounded to `out_dtype` once, at the end.
    """
    shape: tuple[int, ...] = broadcast_shapes(*(i.type.shape for i in inputs))  # type: ignore[assignment]
    kept_shape = tuple(
        1 if a in axes else n for a, n in enumerate(shape) if keepdims or a not in axes
    )
    out = Layout.dense(TensorType(kept_shape, out_dtype))
    acc = accumulator(monoid, rule.dtype, out_dtype)
    if epilogue is None:
        epilogue = input_(0, int64 if monoid in PLACES else acc)
    if out.type.size == 0:
        return Launch((out,))
    strides = [broadcast_strides(i, len(shape)) for i in inputs]
    plan = Phases(monoid, acc, len(inputs) + 1, threads, math.prod(shape) >= HEAVY, numbers)
    source = Source(tuple(i.type.dtype for i in inputs), rule.cast(acc), strides)
    sizes, runs = list(shape), _runs(shape, axes)
    if monoid in PLACES and len(runs) > 1:
        raise ShapeError(monoid, expected="one axis, or adjacent ones", got=str(axes))
    while len(runs) > 1 and 0 not in shape:  # nothing to reduce gives the identity in any order
        run = runs.pop()
        source = plan.reduce(source, sizes, run, last=False, epilogue=None)
        sizes = [1 if a in run else n for a, n in enumerate(sizes)]
        source = replace(
            source,
            strides=[broadcast_strides(Layout.dense(TensorType(tuple(sizes), acc)), len(sizes))],
        )
    plan.reduce(
        source, sizes, [a for r in runs for a in r], last=True, epilogue=epilogue.cast(out_dtype)
    )
    return Launch((out,), tuple(plan.phases), tuple(plan.params), plan.scratch, plan.heavy)


def _runs(shape: Sequence[int], axes: Sequence[int]) -> list[list[int]]:
    """Reduced axes of more than one element, adjacent ones together (axes of one element don't part
    them).
    """
    runs: list[list[int]] = []
    parted = True
    for a, n in enumerate(shape):
        if n == 1:
            continue
        if a in axes:
            if parted:
                runs.append([])
            runs[-1].append(a)
        parted = a not in axes
    return runs
