"""Reductions: the documented order, bit for bit, whatever the layout, the target, the threads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from reduce_lab import TARGETS, in_guard, layout, run
from reduce_oracle import reduce as oracle
from spelled import dtype_of

from weft.codegen.lower import lower_apart
from weft.ops.scalar import input_, param
from weft.schedule.reduce import plan_fold, plan_reduce
from weft.schedule.reduce_spec import ReduceSpec
from weft.types.dtype import float32, int64

Array = np.ndarray[Any, Any]
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
INTS = [np.int8, np.uint16, np.int32, np.uint64]
CASES = [
    ((16,), (0,)),
    ((17,), (0,)),
    ((3, 10), (1,)),
    ((5, 100), (1,)),
    ((2, 20000), (1,)),
    ((70000,), (0,)),
    ((100, 5), (0,)),
    ((7, 9, 33), (1,)),
    ((700, 40), (0,)),
    ((20, 30, 40), (0, 2)),
    ((5, 4, 6, 7), (0, 2, 3)),
    ((4, 1, 33, 1), (2,)),
    ((4, 1, 33, 1), (1,)),
    ((33, 1, 4), (0, 1)),
    ((), ()),
    ((6, 5), ()),
    ((2, 70, 3, 90), (1, 3)),
    ((300, 3), (0,)),
    ((9, 65, 2), (1, 2)),
    ((129, 1), (0,)),
]


def make(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return np.asarray(rng.standard_normal(shape) * np.exp(rng.standard_normal(shape) * 2)).astype(
        dtype
    )


def reduce(
    monoid: str,
    x: Array,
    axes: tuple[int, ...],
    out: Any = None,
    *,
    keepdims: bool = False,
    plan_threads: int = 2,
    **how: Any,
) -> Array:
    wanted = dtype_of(out or x.dtype)
    return run(plan_reduce(monoid, layout(x), axes, keepdims, wanted, plan_threads), x, **how)  # type: ignore[no-any-return]


def same(a: Array, b: Array) -> None:
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape and a.dtype == b.dtype
    if a.tobytes() != b.tobytes():
        bits = f"u{a.itemsize}"
        bad = np.flatnonzero(
            np.ascontiguousarray(a).view(bits) != np.ascontiguousarray(b).view(bits)
        )
        raise AssertionError(
            f"{bad.size} of {a.size} differ, first {bad[0]}: {a.flat[bad[0]]!r} {b.flat[bad[0]]!r}"
        )


def apart(x: Array) -> list[Array]:
    """The same values in other layouts."""
    if x.ndim == 0:
        return []
    wide = np.zeros((*x.shape[:-1], x.shape[-1] * 2 + 3), x.dtype)[..., 1 : 1 + 2 * x.shape[-1] : 2]
    cut = np.zeros((*x.shape[:-1], x.shape[-1] + 3), x.dtype)[..., 1 : 1 + x.shape[-1]]
    wide[...], cut[...] = x, x
    flipped = (
        np.ascontiguousarray(x[::-1, ..., ::-1])[::-1, ..., ::-1]
        if x.ndim > 1
        else np.ascontiguousarray(x[::-1])[::-1]
    )
    moved = np.ascontiguousarray(np.moveaxis(x, -1, 0))
    return [np.asfortranarray(x), wide, cut, flipped, np.moveaxis(moved, 0, -1)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("monoid", ["sum", "prod", "max", "min"])
def test_follows_the_documented_order(monoid: str, dtype: Any) -> None:
    for shape, axes in CASES:
        x = make(shape, dtype)
        if monoid == "prod":
            x = np.asarray(1 + np.tanh(make(shape, np.float32)) / 20).astype(dtype)
        for keepdims in (False, True):
            same(
                reduce(monoid, x, axes, keepdims=keepdims),
                oracle(monoid, x, axes, x.dtype, keepdims),
            )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("monoid", ["sum", "max"])
def test_layout_changes_no_bit(monoid: str, dtype: Any) -> None:
    for shape, axes in CASES:
        x = make(shape, dtype)
        wanted = reduce(monoid, x, axes)
        for other in apart(x):
            same(reduce(monoid, other, axes), wanted)


def test_broadcast_operand() -> None:
    x = np.broadcast_to(make((5, 1, 7), np.float32), (5, 300, 7))
    for axes in ((0,), (1,), (2,), (1, 2), (0, 1, 2)):
        same(reduce("sum", x, axes), reduce("sum", np.ascontiguousarray(x), axes))


@pytest.mark.parametrize("target", ["avx2", "sse2"])
def test_vector_width_changes_no_bit(target: str) -> None:
    for monoid in ("sum", "max", "argmax"):
        for dtype in (np.float32, np.float64, np.float16):
            for shape, axes in (((3, 300), (1,)), ((300, 37), (0,)), ((4, 9), (1,))):
                x = make(shape, dtype)
                for y in (x, np.asfortranarray(x)):
                    out = np.int64 if monoid == "argmax" else None
                    same(
                        reduce(monoid, y, axes, out, target=TARGETS[target]),
                        reduce(monoid, y, axes, out),
                    )


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((600, 500), (0,)),
        ((600, 500), (1,)),
        ((300000,), (0,)),
        ((3, 100000), (1,)),
        ((3000, 33), (0,)),
        ((40, 50, 60), (0, 2)),
    ],
)
def test_threads_and_splits_change_no_bit(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = make(shape, np.float32)
    wanted = oracle("sum", x, axes, np.float32)
    for y in (x, np.asfortranarray(x)):
        for threads in (1, 2, 3, 7):
            same(reduce("sum", y, axes, plan_threads=threads, threads=threads), wanted)
            same(reduce("sum", y, axes, plan_threads=threads, shuffle=threads), wanted)
    if len(axes) == 1:
        for threads in (1, 2, 7):
            got = reduce("argmax", x, axes, np.int64, plan_threads=threads, shuffle=threads)
            same(got, x.argmax(axes[0]))


def test_row_does_not_depend_on_the_others() -> None:
    x = make((64, 1000), np.float32)
    whole = reduce("sum", x, (1,))
    for i in (0, 13, 63):
        same(reduce("sum", x[i : i + 1], (1,)), whole[i : i + 1])
    y = make((8, 40, 30), np.float32)
    same(reduce("sum", y[3:4], (1,)), reduce("sum", y, (1,))[3:4])


@pytest.mark.parametrize("dtype", INTS)
def test_integers_as_numpy(dtype: Any) -> None:
    for shape, axes in (((5, 100), (1,)), ((100, 5), (0,)), ((6, 7, 8), (0, 2)), ((40000,), (0,))):
        x = make(shape, dtype)
        for y in (x, np.asfortranarray(x)):
            wide = np.uint64 if x.dtype.kind == "u" else np.int64
            same(reduce("sum", y, axes, wide), x.sum(axes, wide))
            same(reduce("prod", y, axes, wide), x.prod(axes, wide))
            same(reduce("sum", y, axes, dtype), x.sum(axes, dtype))
            same(reduce("max", y, axes), x.max(axes))
            same(reduce("min", y, axes), x.min(axes))
            same(reduce("any", y, axes, bool), np.asarray(x.any(axes)))
            same(reduce("all", y, axes, bool), np.asarray(x.all(axes)))


def test_bools() -> None:
    rng = np.random.default_rng(0)
    for chance in (0.0, 0.02, 0.98, 1.0):
        x = rng.random((30, 90)) < chance
        for axes in ((0,), (1,), (0, 1)):
            for y in (x, np.asfortranarray(x)):
                same(reduce("any", y, axes, bool), np.asarray(x.any(axes)))
                same(reduce("all", y, axes, bool), np.asarray(x.all(axes)))
                same(reduce("sum", y, axes, np.int64), np.asarray(x.sum(axes)))
                same(reduce("max", y, axes), np.asarray(x.max(axes)))
        same(reduce("argmax", x, (1,), np.int64), x.argmax(1))
    for value in (np.nan, 0.0, -0.0, 2.0):
        assert reduce("any", np.full(3, value), (0,), bool) == bool(value)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint16, np.int64]
)
def test_arg_reductions_as_numpy(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    for shape in ((4, 7), (3, 64), (5, 1000), (2, 40000)):
        few = rng.integers(0, 4, shape).astype(dtype)  # ties
        arrays = [few, np.zeros(shape, dtype)]
        if np.dtype(dtype).kind not in "iu":
            gaps = few.copy()
            gaps[rng.random(shape) < 0.01] = np.nan
            arrays += [gaps, np.full(shape, -np.inf, dtype), np.full(shape, np.inf, dtype)]
            arrays.append(np.where(rng.random(shape) < 0.5, 0.0, -0.0).astype(dtype))
        for x in arrays:
            for axis in (0, 1, None):
                axes = (0, 1) if axis is None else (axis,)
                for y in (x, np.asfortranarray(x), x[:, ::-1]):
                    same(reduce("argmax", y, axes, np.int64), np.asarray(y.argmax(axis)))
                    same(reduce("argmin", y, axes, np.int64), np.asarray(y.argmin(axis)))


def test_nan_infinity_and_signed_zero() -> None:
    nan, inf = np.float32(np.nan), np.float32(np.inf)
    assert np.isnan(reduce("max", np.array([1, nan, 3], np.float32), (0,)))
    assert np.isnan(reduce("min", np.array([1, nan, -inf], np.float32), (0,)))
    odd = np.array([0xFFC00001, 0x7FC00002], np.uint32).view(np.float32)
    same(reduce("sum", odd, (0,)), np.asarray(nan))
    same(reduce("sum", np.array([inf, -inf, 1], np.float32), (0,)), np.asarray(nan))
    same(reduce("sum", np.full(5, -0.0, np.float32), (0,)), np.asarray(np.float32(0)))
    for shape, axes in (((5, 700), (1,)), ((700, 5), (0,))):
        x = make(shape, np.float32)
        x[np.random.default_rng(0).random(shape) < 0.001] = nan
        for y in (x, *apart(x)):
            for monoid in ("sum", "max", "min", "prod"):
                same(reduce(monoid, y, axes), oracle(monoid, x, axes, np.float32))


def test_empty() -> None:
    for shape, axes in (
        ((3, 0, 4), (1,)),
        ((0,), (0,)),
        ((3, 0), (1,)),
        ((0, 3), (0, 1)),
        ((2, 0, 3, 4), (1, 3)),
    ):
        x = np.zeros(shape, np.float32)
        same(reduce("sum", x, axes), np.asarray(x.sum(axes)))
        same(reduce("prod", x, axes), np.asarray(x.prod(axes)))
        same(reduce("all", x, axes, bool), np.asarray(x.all(axes)))
        assert reduce("sum", x, ()).shape == shape
    assert reduce("max", np.zeros((0, 3), np.float32), (1,)).shape == (0,)


def test_stays_inside_its_operands() -> None:
    for dtype in (np.float32, np.int8, np.float16, np.float64):
        for shape, axes in CASES:
            x = make(shape, dtype)
            wanted = {monoid: reduce(monoid, x, axes) for monoid in ("sum", "max")}
            for front in (False, True):
                y, _keep = in_guard(shape, dtype, front)
                z, _keep_too = in_guard(shape[::-1], dtype, front)
                y[...], z.T[...] = x, x
                for monoid in ("sum", "max"):
                    same(reduce(monoid, y, axes, guard=True), wanted[monoid])
                    same(reduce(monoid, z.T, axes, guard=True), wanted[monoid])


def test_rule_and_epilogue() -> None:
    """Mean of squared differences: a broadcast operand, a rule, a division by a param."""
    x, mean = make((40, 300), np.float32), make((40, 1), np.float32)
    a, b = input_(0, float32), input_(1, float32)
    for y in (x, np.asfortranarray(x)):
        for axes in ((0,), (1,), (0, 1)):
            n = int(np.prod([x.shape[i] for i in axes]))
            launch = plan_fold(
                "sum",
                [layout(y), layout(mean)],
                (a - b) * (a - b),
                axes,
                False,
                float32,
                2,
                epilogue=a / param(0).cast(float32),
                numbers=(n,),
            )
            square = (x - mean) * (x - mean)
            same(run(launch, y, mean), oracle("sum", square, axes, np.float32) / np.float32(n))


@pytest.mark.parametrize("target", TARGETS)
def test_a_long_rule_has_the_same_bits_for_rows_of_any_length(target: str) -> None:
    rule = input_(0, float32)
    for k in range(12):
        rule = rule * rule.like(0.75) + rule.like(k % 3 - 1.0)
    for n in (1, 15, 16, 17, 63, 64, 65, 200, 16384 + 70):
        x = make((5, n), np.float32)
        y = x
        for k in range(12):
            y = y * np.float32(0.75) + np.float32(k % 3 - 1.0)
        launch = plan_fold("sum", [layout(x)], rule, (1,), False, float32, 2)
        same(run(launch, x, target=TARGETS[target]), oracle("sum", y, (1,), np.float32))


def test_a_phase_is_shared_wherever_its_params_stand() -> None:
    x = layout(np.zeros((70, 900), np.float32))
    spec = plan_reduce("sum", x, (1,), False, float32, 2).phases[0].spec
    assert isinstance(spec, ReduceSpec)
    (main, part), (other, same) = (
        lower_apart(s) for s in (spec, replace(spec, first=7, operands=spec.operands + 2))
    )
    assert part == same and main != other


def test_half_sums_round_once() -> None:
    x = np.full((1, 5000), 1.0009765625, np.float16)
    exact = np.float16(np.float32(5000 * 1.0009765625))
    assert reduce("sum", x, (1,))[0] == exact
    same(
        reduce("sum", make((40, 50, 60), np.float16), (0, 2)),
        oracle("sum", make((40, 50, 60), np.float16), (0, 2), np.float16),
    )


def test_equal_specs_are_one_kernel() -> None:
    plans = [
        plan_reduce("sum", layout(np.zeros(s, np.float32)), (1,), False, float32, 2)
        for s in ((3, 5), (70, 900))
    ]
    assert plans[0].phases[0].spec == plans[1].phases[0].spec
    assert plans[0].phases[0].spec.key() == plans[1].phases[0].spec.key()
    other = plan_reduce("sum", layout(np.zeros((3, 5), np.int64)), (1,), False, int64, 2)
    assert other.phases[0].spec != plans[0].phases[0].spec
