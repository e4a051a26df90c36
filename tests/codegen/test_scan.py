import numpy as np
import pytest
from extern_lab import KernelError, Run, dense, layout
from spelled import dtype_of

from weft.codegen.jit import AVX2, SSE2
from weft.errors import DTypeError, ShapeError
from weft.schedule.scan import plan_scan
from weft.types import DTYPES
from weft.types.dtype import bool_, float32, int64

SHAPES = [
    ((17,), 0),
    ((7, 5), 0),
    ((7, 5), 1),
    ((3, 9, 4), 1),
    ((4, 1100), 0),
    ((9, 2, 33), 1),
    ((1, 1), 0),
]
RUNS = [
    Run(),
    Run(guard=False),
    Run(threads=3, split=1),
    Run(split=1000),
    Run(target=AVX2),
    Run(target=SSE2),
]
UFUNC = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def chain(x, op, axis, reverse, result):
    """The definition, step by step."""
    wide = np.moveaxis(x.astype(result.np).astype(result.compute.np), axis, 0)
    out, where = np.empty(wide.shape, result.np), np.empty(wide.shape, np.int64)
    running = at = None
    with np.errstate(all="ignore"):
        for i in range(len(wide))[:: -1 if reverse else 1]:
            new = wide[i]
            if running is None:
                running, at = new.copy(), np.full(new.shape, i)
            elif op in ("add", "mul"):
                running = UFUNC[op](running, new)
            else:
                takes = (new > running if op == "max" else new < running) | (
                    (new != new) & (running == running)
                )
                running, at = np.where(takes, new, running), np.where(takes, i, at)
            out[i], where[i] = running.astype(result.np), at
    return np.moveaxis(out, 0, axis), np.moveaxis(where, 0, axis)


def bits(x):
    return np.ascontiguousarray(x).view(np.dtype(f"u{x.itemsize}"))


def sample(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.is_float:
        x = (rng.standard_normal(shape) * 3).astype(dtype.np)
        x[rng.random(shape) < 0.1] = -0.0
        return x
    return (
        rng.integers(-100, 100, shape).astype(dtype.np)
        if dtype is not bool_
        else rng.random(shape) < 0.5
    )


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("op", UFUNC)
@pytest.mark.parametrize("reverse", [False, True])
def test_is_one_chain_in_order(shape, axis, op, reverse, run):
    x = sample(shape, float32)
    (out,) = run(plan_scan(layout(x), axis, op, reverse=reverse), x)
    assert np.array_equal(bits(out), bits(chain(x, op, axis, reverse, float32)[0]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", UFUNC)
@pytest.mark.parametrize("axis", [0, 1])
def test_every_dtype(dtype, op, axis):
    if dtype is bool_ and op in ("add", "mul"):
        return
    x = sample((37, 19), dtype)
    indices = op in ("max", "min")
    out = Run()(plan_scan(layout(x), axis, op, indices=indices), x)
    want = chain(x, op, axis, False, dtype)
    assert np.array_equal(bits(out[0]), bits(want[0]))
    assert not indices or np.array_equal(out[1], want[1])


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("reverse", [False, True])
def test_indices_are_the_first_of_the_extreme_and_nan_wins(shape, axis, reverse, run):
    x = np.random.default_rng(5).integers(0, 4, shape).astype(np.float32)
    x[np.random.default_rng(6).random(shape) < 0.05] = np.nan
    x[x == 2] = -0.0
    for op in ("max", "min"):
        out, where = run(plan_scan(layout(x), axis, op, reverse=reverse, indices=True), x)
        want = chain(x, op, axis, reverse, float32)
        assert np.array_equal(bits(out), bits(want[0]))
        assert np.array_equal(where, want[1])
        assert np.array_equal(bits(np.take_along_axis(x, where, axis)), bits(out))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("axis", [0, 1])
def test_half_types_round_from_the_unrounded_running_value(name, axis):
    dtype = dtype_of(name)
    x = np.full((4000, 2) if axis == 0 else (2, 4000), 0.25, dtype.np)
    (out,) = Run()(plan_scan(layout(x), axis, "add"), x)
    want = np.cumsum(x.astype(np.float32), axis, dtype=np.float32).astype(dtype.np)
    assert np.array_equal(out, want)
    assert out.max() == dtype.np.type(1000)


@pytest.mark.parametrize("source", ["bool", "int8", "uint32"])
def test_sums_in_another_dtype(source):
    x = sample((5, 300), dtype_of(source))
    for axis in (0, 1):
        (out,) = Run()(plan_scan(layout(x), axis, "add", dtype=int64), x)
        assert np.array_equal(out, np.cumsum(x, axis, dtype=np.int64))


def test_sizes_of_zero():
    for shape, axis in (((0,), 0), ((3, 0), 1), ((3, 0), 0)):
        assert (
            Run()(plan_scan(dense(shape, "f32"), axis, "add"), np.zeros(shape, np.float32))[0].shape
            == shape
        )


def test_bad_arguments_are_refused():
    with pytest.raises(ShapeError, match="dense"):
        plan_scan(layout(np.zeros((4, 6)).T), 0, "add")
    with pytest.raises(DTypeError):
        plan_scan(dense((4,), "bool"), 0, "add")


@pytest.mark.parametrize("shape", [(3_000_000,), (400_000, 4)])
def test_a_long_task_can_be_stopped(shape):
    x = np.zeros(shape, np.float32)
    run = Run(stop_after=1, guard=None)
    with pytest.raises(KernelError) as e:
        run(plan_scan(layout(x), 0, "add"), x)
    assert e.value.code == 2
    run = Run(guard=None)
    run(plan_scan(layout(x), 0, "add"), x)
    assert 2 <= run.polls <= 100
