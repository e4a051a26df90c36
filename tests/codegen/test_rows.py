"""Fused rows: bit for bit what the same steps give one kernel at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reduce_lab import TARGETS, in_guard, kernel, layout, run
from spelled import dtype_of

from weft.ops.math import exp, log
from weft.ops.scalar import Scalar, const, input_, maximum, param, select, sqrt, substitute
from weft.schedule.map import plan_map
from weft.schedule.reduce import plan_reduce
from weft.schedule.rows import Fold, Map, RowProgram, arrange, plan_rows
from weft.types import DType, TensorType
from weft.types.dtype import bool_, float16, float32, float64, int32, int64

Array = np.ndarray[Any, Any]
SIZES = [1, 3, 10, 16, 17, 31, 63, 64, 65, 100, 128, 200, 1000, 20000]


def rounded(rule: Any, d: DType, *values: int) -> Map:
    """An op's rule on values of `d`, as ops do it: compute in `d.compute`, round once."""
    return Map(rule(*(input_(v, d).cast(d.compute) for v in values)).cast(d))


def softmax(d: DType = float32) -> RowProgram:
    steps = (
        Fold("max", 0, d),
        rounded(lambda x, m: x - m, d, 0, 1),
        rounded(exp, d, 2),
        Fold("sum", 3, d),
        rounded(lambda e, s: e / s, d, 3, 4),
    )
    return RowProgram((("row", d),), steps, (5,))


def log_softmax(d: DType = float32) -> RowProgram:
    steps = (
        Fold("max", 0, d),
        rounded(lambda x, m: x - m, d, 0, 1),
        rounded(exp, d, 2),
        Fold("sum", 3, d),
        rounded(log, d, 4),
        rounded(lambda x, s: x - s, d, 2, 5),
    )
    return RowProgram((("row", d),), steps, (6,))


def layer_norm(d: DType = float32) -> RowProgram:
    """x, weight, bias, epsilon (a Python float) -> result, mean, reciprocal deviation."""
    n, c = param(0), d.compute
    eps = input_(3, float64).cast(d).cast(c)
    steps = (
        Fold("sum", 0, d),  # 4
        Map((input_(4, d).cast(c) / n.cast(c)).cast(d)),  # 5 mean
        rounded(lambda x, m: x - m, d, 0, 5),  # 6
        rounded(lambda x: x * x, d, 6),  # 7
        Fold("sum", 7, d),  # 8
        Map((input_(8, d).cast(c) / n.cast(c)).cast(d)),  # 9 variance
        Map((const(1.0, c) / sqrt(input_(9, d).cast(c) + eps)).cast(d)),  # 10
        rounded(lambda x, r: x * r, d, 6, 10),  # 11
        rounded(lambda x, w: x * w, d, 11, 1),  # 12
        rounded(lambda x, b: x + b, d, 12, 2),  # 13
    )
    inputs = (("row", d), ("column", d), ("column", d), ("one", float64))
    return RowProgram(inputs, steps, (13, 5, 10), numbers=1)


def softmax_gradient(d: DType = float32) -> RowProgram:
    steps = (
        rounded(lambda g, y: g * y, d, 0, 1),
        Fold("sum", 2, d),
        rounded(lambda g, s: g - s, d, 0, 3),
        rounded(lambda y, t: y * t, d, 1, 4),
    )
    return RowProgram((("row", d), ("row", d)), steps, (5,))


def oddments() -> RowProgram:
    """Several folds at a level, bools, integers, a per-row operand, a rule over per-row values
    inside a row rule.
    """
    x, t, s = input_(0, float32), input_(1, int64), input_(2, float32)
    steps = (
        Map(x < s + 0.25),  # 3 bool row
        Fold("any", 3, bool_),  # 4
        Fold("all", 3, bool_),  # 5
        Fold("sum", 3, int64),  # 6
        Map(maximum(x, x * (s + param(0).cast(float32)))),  # 7
        Fold("prod", 7, float32),  # 8
        Fold("min", 7, float32),  # 9
        Map(select(input_(4, bool_), exp(input_(7, float32) - input_(9, float32)), 0.0)),  # 10
        Fold("max", 10, float32),  # 11
        Map(input_(10, float32) / input_(11, float32) + (t + input_(6, int64)).cast(float32)),  # 12
        Map(t.cast(int32)),  # 13
    )
    return RowProgram(
        (("row", float32), ("each", int64), ("each", float32)),
        steps,
        (12, 3, 5, 6, 8, 13, 10),
        numbers=1,
    )


PROGRAMS = {
    "softmax": softmax,
    "log_softmax": log_softmax,
    "layer_norm": layer_norm,
    "softmax_gradient": softmax_gradient,
}


def operands(program: RowProgram, rows: tuple[int, ...], n: int, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    shapes = {"row": (*rows, n), "each": rows, "column": (n,), "one": ()}
    out = []
    for kind, d in program.inputs:
        if kind == "one":
            out.append(np.asarray(1e-5, d.np))
        elif d.is_float:
            out.append(rng.standard_normal(shapes[kind]).astype(d.np))
        else:
            out.append(rng.integers(-9, 9, shapes[kind]).astype(d.np))
    return out


def types(program: RowProgram, rows: tuple[int, ...], n: int) -> list[TensorType]:
    kinds = program.kinds
    return [
        TensorType((*rows, n) if kinds[v] in ("row", "column") else rows, program.dtype(v))
        for v in program.outputs
    ]


def fused(
    program: RowProgram,
    arrays: list[Array],
    rows: tuple[int, ...],
    n: int,
    threads: int = 2,
    **how: Any,
) -> list[Array]:
    launch = plan_rows(
        program,
        [layout(a) for a in arrays],
        rows,
        n,
        types(program, rows, n),
        threads,
        (n,) * program.numbers,
    )
    assert launch is not None
    out = run(launch, *arrays, **how)
    return [out] if isinstance(out, np.ndarray) else list(out)


def unfused(program: RowProgram, arrays: list[Array], rows: tuple[int, ...], n: int) -> list[Array]:
    """Step by step: a reduction or a map of its own for each."""
    values = [
        a[..., None] if kind == "each" else a
        for (kind, _), a in zip(program.inputs, arrays, strict=True)
    ]
    for v, step in enumerate(program.steps, len(program.inputs)):
        if isinstance(step, Fold):
            x = np.broadcast_to(values[step.value], (*rows, n))
            values.append(
                run(plan_reduce(step.monoid, layout(x), (len(rows),), True, step.dtype, 2), x)
            )
            continue
        used = list(program.reads(v))

        def leaf(s: Scalar, used: list[int] = used) -> Scalar | None:
            if s.verb == "param":
                return const(n, int64)
            return input_(used.index(s.value), s.dtype) if s.verb == "input" else None

        ins = [values[u] for u in used]
        shape = np.broadcast_shapes(*(i.shape for i in ins)) if ins else ()
        out = TensorType(shape, step.rule.dtype)
        values.append(
            run(plan_map([substitute(step.rule, leaf)], [layout(i) for i in ins], out), *ins)
        )
    wanted = zip(program.outputs, types(program, rows, n), strict=True)
    return [
        np.broadcast_to(values[v], t.shape)
        if v >= 0 and program.kinds[v] == "row"
        else values[v].reshape(t.shape)
        for v, t in wanted
    ]  # type: ignore[arg-type]


def same(a: list[Array], b: list[Array]) -> None:
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        assert x.shape == y.shape and x.dtype == y.dtype, (i, x.shape, y.shape, x.dtype, y.dtype)
        if x.tobytes() != y.tobytes():
            bits = f"u{x.itemsize}"
            u, v = (np.ascontiguousarray(z).view(bits).ravel() for z in (x, y))
            first = int(np.flatnonzero(u != v)[0])
            raise AssertionError(f"output {i} at {first}: {x.flat[first]} and {y.flat[first]}")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_fused_equals_unfused(name: str, dtype: str) -> None:
    program = PROGRAMS[name](dtype_of(dtype))
    for n in SIZES:
        arrays = operands(program, (5,), n)
        same(fused(program, arrays, (5,), n), unfused(program, arrays, (5,), n))


def test_many_kinds_of_steps() -> None:
    program = oddments()
    for n in SIZES:
        arrays = operands(program, (4,), n)
        same(fused(program, arrays, (4,), n), unfused(program, arrays, (4,), n))


def test_special_values() -> None:
    for n in (7, 200):
        x = operands(softmax(), (6,), n)[0]
        x[0, 3], x[1, 2], x[2, 5], x[3, :] = np.nan, np.inf, -np.inf, -np.inf
        x[4, 1:3] = np.inf, -np.inf
        for name in ("softmax", "log_softmax"):
            same(fused(PROGRAMS[name](), [x], (6,), n), unfused(PROGRAMS[name](), [x], (6,), n))


@pytest.mark.parametrize("target", ["avx2", "sse2"])
def test_vector_width_changes_no_bit(target: str) -> None:
    for program in (softmax(), layer_norm(), softmax(float64), log_softmax(float16)):
        for n in (10, 150):
            arrays = operands(program, (3,), n)
            same(
                fused(program, arrays, (3,), n, target=TARGETS[target]),
                fused(program, arrays, (3,), n),
            )


def test_threads_and_splits_change_no_bit() -> None:
    for n in (10, 300):
        program, rows = softmax(), (700,)
        arrays = operands(program, rows, n)
        wanted = fused(program, arrays, rows, n, threads=1)
        for threads in (2, 3, 7):
            same(fused(program, arrays, rows, n, threads), wanted)
            launch = plan_rows(
                program, [layout(a) for a in arrays], rows, n, types(program, rows, n), threads
            )
            assert launch is not None
            same([run(launch, *arrays, threads=threads)], wanted)
            same([run(launch, *arrays, shuffle=threads)], wanted)


def test_workers_keep_rows_apart() -> None:
    """What one worker keeps between levels must not lie where another's does."""
    x = operands(softmax(), (3,), 100)[0]
    launch = plan_rows(softmax(), [layout(x)], (3,), 100, [TensorType((3, 100), float32)], 2)
    assert launch is not None and launch.worker_scratch % 64 == 0
    out = np.empty((3, 100), np.float32)
    raw = np.full(3 * launch.worker_scratch + 64, 0xA5, np.uint8)
    scratch = raw[-raw.ctypes.data % 64 :]
    addresses = [scratch.ctypes.data, x.ctypes.data, out.ctypes.data]
    frame = np.array([0, 0, *addresses, *launch.params], np.int64)
    call, _ = kernel(launch.phases[0].spec)
    assert call(frame.ctypes.data, 0, launch.phases[0].tasks, 1) == 0
    same([out], fused(softmax(), [x], (3,), 100))
    slices = scratch[: 3 * launch.worker_scratch].reshape(3, -1)
    assert [bool((part != 0xA5).any()) for part in slices] == [False, True, False]


def test_row_does_not_depend_on_the_others() -> None:
    for n in (10, 300):
        x = operands(softmax(), (9,), n)[0]
        whole = fused(softmax(), [x], (9,), n)[0]
        for i in (0, 4, 8):
            same(fused(softmax(), [x[i : i + 1]], (1,), n), [whole[i : i + 1]])


def test_rows_of_any_layout() -> None:
    program = layer_norm()
    for n in (9, 100):
        x, w, b, eps = operands(program, (3, 4, 5), n)
        wanted = fused(program, [x, w, b, eps], (3, 4, 5), n)
        wide = np.zeros((3, 4, 5, n + 7), np.float32)[..., 3 : 3 + n]
        wide[...] = x
        moved = np.ascontiguousarray(x.transpose(2, 0, 1, 3)).transpose(1, 2, 0, 3)
        flipped = np.ascontiguousarray(x[::-1, :, ::-1])[::-1, :, ::-1]
        for other in (wide, moved, flipped):
            same(fused(program, [other, w, b, eps], (3, 4, 5), n), wanted)
        spread = np.broadcast_to(x[:, :1], x.shape)
        same(
            fused(program, [spread, w, b, eps], (3, 4, 5), n),
            fused(program, [spread.copy(), w, b, eps], (3, 4, 5), n),
        )


def test_what_cannot_be_one_kernel() -> None:
    def plan(x: Array, rows: tuple[int, ...], n: int) -> Any:
        return plan_rows(softmax(), [layout(x)], rows, n, [TensorType((*rows, n), float32)], 2)

    assert plan(np.zeros((4, 8), np.float32)[:, ::2], (4,), 4) is None
    assert plan(np.zeros((8, 4), np.float32).T, (4,), 8) is None
    assert plan(np.zeros((2, 70000), np.float32), (2,), 70000) is None
    assert plan(np.zeros((4, 0), np.float32), (4,), 0) is None
    empty = plan(np.zeros((0, 4), np.float32), (0,), 4)
    assert empty is not None and not empty.phases


def test_stays_inside_its_operands() -> None:
    for n in (5, 16, 40, 64, 131):
        for front in (False, True):
            program = layer_norm()
            arrays = operands(program, (3,), n)
            held = [in_guard(a.shape, a.dtype, front) for a in arrays]
            for (g, _), a in zip(held, arrays, strict=True):
                g[...] = a
            same(
                fused(program, [g for g, _ in held], (3,), n, guard=True),
                fused(program, arrays, (3,), n),
            )


def test_dear_values_are_kept_and_cheap_ones_computed_again() -> None:
    first, second, third = arrange(softmax())
    assert (first.keeps, second.keeps, third.keeps) == ((), (3,), ())
    assert third.computes == (5,)
    assert all(not level.keeps for level in arrange(layer_norm()))
    assert len(arrange(layer_norm())) == 3


def test_equal_programs_are_one_kernel() -> None:
    def spec(rows: tuple[int, ...], n: int) -> Any:
        x = np.zeros((*rows, n), np.float32)
        launch = plan_rows(softmax(), [layout(x)], rows, n, [TensorType(x.shape, float32)], 2)
        assert launch is not None
        return launch.phases[0].spec

    assert spec((3,), 5) == spec((40, 50), 700)
    assert hash(spec((3,), 5)) == hash(spec((40, 50), 700))
