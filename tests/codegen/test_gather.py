import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from extern_lab import KernelError, Run, dense, layout

from weft.codegen.jit import AVX2, SSE2
from weft.errors import ShapeError
from weft.schedule.gather import GatherElements, GatherRows, plan_take, plan_take_along_axis
from weft.types import DTYPES

SHAPES = [
    ((11,), 0),
    ((7, 5), 0),
    ((7, 5), 1),
    ((3, 9, 4), 1),
    ((50, 2), 0),
    ((4, 300), 0),
    ((2, 3, 70000), 1),
]
RUNS = [
    Run(),
    Run(guard=False),
    Run(threads=3, split=1),
    Run(split=1000),
    Run(target=AVX2),
    Run(target=SSE2),
]


def numbers(rng, shape, dtype):
    return rng.integers(0, 100, shape).astype(dtype.np)


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_take_is_numpys(shape, axis, run):
    rng = np.random.default_rng(1)
    x = rng.standard_normal(shape).astype(np.float32)
    index = rng.integers(-shape[axis], shape[axis], (5, 4))
    (out,) = run(plan_take(layout(x), layout(index), axis), x, index)
    assert same(out, np.take(x, index, axis))


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("k", [1, 13])
@pytest.mark.parametrize(("shape", "axis"), SHAPES[:-1])
def test_take_along_axis_is_numpys(shape, axis, k, run):
    rng = np.random.default_rng(2)
    x = rng.standard_normal(shape).astype(np.float32)
    index = rng.integers(-shape[axis], shape[axis], (*shape[:axis], k, *shape[axis + 1 :]))
    (out,) = run(plan_take_along_axis(layout(x), layout(index), axis), x, index)
    assert same(out, np.take_along_axis(x, index, axis))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("inner", [1, 2, 3, 67])
def test_every_dtype(dtype, inner):
    rng = np.random.default_rng(3)
    x = numbers(rng, (6, 9, inner), dtype)
    index = rng.integers(-9, 9, 21)
    assert same(Run()(plan_take(layout(x), layout(index), 1), x, index)[0], np.take(x, index, 1))
    index = rng.integers(-9, 9, (6, 10, inner))
    assert same(
        Run()(plan_take_along_axis(layout(x), layout(index), 1), x, index)[0],
        np.take_along_axis(x, index, 1),
    )


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.is_int], ids=str)
def test_every_index_dtype(dtype):
    x = np.arange(12.0)
    index = np.arange(0 if dtype.kind == "u" else -12, 12).astype(dtype.np)
    assert same(Run()(plan_take(layout(x), layout(index), 0), x, index)[0], x[index])
    rows = x.reshape(12, 1) + np.arange(5.0)
    assert same(Run()(plan_take(layout(rows), layout(index), 0), rows, index)[0], rows[index])


@pytest.mark.parametrize("inner", [1, 5])
@pytest.mark.parametrize("place", [0, 3, 8, 18])
@pytest.mark.parametrize("bad", [9, -10, 2**62, -(2**63)])
def test_out_of_range_is_named(inner, place, bad):
    x = np.zeros((9, inner), np.float32)
    index = np.zeros(19, np.int64)
    index[place] = bad
    with pytest.raises(KernelError) as e:
        Run()(plan_take(layout(x), layout(index), 0), x, index)
    assert (e.value.code, e.value.detail) == (1, bad)
    wide = np.repeat(index[:, None], inner, 1)
    with pytest.raises(KernelError) as e:
        Run()(plan_take_along_axis(layout(x), layout(wide), 0), x, wide)
    assert (e.value.code, e.value.detail) == (1, bad)


def test_unsigned_indices_are_never_negative():
    x = np.zeros(9, np.float32)
    for index in (np.full(9, 2**64 - 1, np.uint64), np.full(3, 255, np.uint8)):
        with pytest.raises(KernelError):
            Run()(plan_take(layout(x), layout(index), 0), x, index)


def test_sizes_of_zero():
    x, none = np.zeros((3, 0, 4)), np.zeros(0, np.int64)
    assert Run()(plan_take(layout(x), layout(none), 1), x, none)[0].shape == (3, 0, 4)
    assert Run()(plan_take(layout(x), dense((7,), "i64"), 0), x, np.zeros(7, np.int64))[
        0
    ].shape == (7, 0, 4)
    zero = np.zeros(1, np.int64)
    with pytest.raises(KernelError):
        Run()(plan_take(layout(x), layout(zero), 1), x, zero)


def test_an_index_without_axes_drops_the_axis():
    x = np.arange(12.0).reshape(3, 4)
    index = np.array(-1)
    assert same(Run()(plan_take(layout(x), layout(index), 0), x, index)[0], x[-1])


def test_views_are_refused():
    x = np.zeros((4, 6))
    with pytest.raises(ShapeError, match="dense"):
        plan_take(layout(x.T), dense((2,), "i64"), 0)


def test_shapes_do_not_make_new_kernels():
    specs = {
        plan_take(dense((n, d), "f32"), dense((n,), "i32"), 0).phases[0].spec
        for n in (2, 5)
        for d in (3, 400)
    }
    assert len(specs) == 1
    assert GatherRows(DTYPES[4]).key() != GatherElements(4, DTYPES[4]).key()


@pytest.mark.parametrize("behind", [True, False])
def test_guard_pages_catch_one_byte_too_many(behind):
    code = (
        f"import ctypes, extern_lab; g = extern_lab.Guarded(5, {behind});"
        f"ctypes.string_at(g.address - {not behind:d}, 6)"
    )
    paths = os.pathsep.join(p for p in sys.path if p)
    child = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths}, check=False
    )
    assert child.returncode == -signal.SIGSEGV
