import numpy as np
import pytest
from extern_lab import Run, dense, layout
from spelled import dtype_of

from weft.codegen.jit import AVX2, SSE2
from weft.errors import DTypeError, ShapeError
from weft.schedule.search import plan_count_nonzero, plan_nonzero, plan_searchsorted
from weft.types import DTYPES
from weft.types.dtype import bool_

RUNS = [Run(), Run(guard=False), Run(threads=3, split=1), Run(target=AVX2), Run(target=SSE2)]


def numbers(dtype, n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random(n) < 0.5 if dtype is bool_ else rng.integers(-40, 40, n).astype(dtype.np)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 100, 1000])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_searchsorted_is_numpys(dtype, n, right):
    ordered, values = np.sort(numbers(dtype, n)), numbers(dtype, 50, 1).reshape(5, 10)
    (out,) = Run()(plan_searchsorted(layout(ordered), layout(values), right=right), ordered, values)
    assert np.array_equal(out, np.searchsorted(ordered, values, "right" if right else "left"))


@pytest.mark.parametrize("run", RUNS)
def test_searchsorted_knows_nan_and_zeros(run):
    ordered = np.array([-np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan, np.nan], np.float32)
    values = np.array([np.nan, 0.0, -0.0, np.inf, -np.inf, 0.5, -2, 2, 1], np.float32)
    left, right = (
        [run(plan_searchsorted(layout(ordered), layout(values), right=r), ordered, values)[0]]
        for r in (False, True)
    )
    assert left[0].tolist() == [6, 2, 2, 5, 0, 4, 1, 5, 4]
    assert right[0].tolist() == [8, 4, 4, 6, 1, 4, 1, 5, 5]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 100, 40_000])
@pytest.mark.parametrize(
    "name", ["float32", "float64", "bfloat16", "int16", "uint8", "bool", "int64"]
)
def test_positions_of_nonzero(name, n, run):
    x = numbers(dtype_of(name), n) * (np.random.default_rng(1).random(n) < 0.3)
    x = x.astype(dtype_of(name).np)
    if dtype_of(name).is_float:
        x[::7], x[3::11] = -0.0, np.nan
    want = np.flatnonzero(x)
    (starts,) = run(plan_count_nonzero(layout(x)), x)
    assert starts[-1] == len(want)
    (out,) = run(plan_nonzero(layout(x), layout(starts), len(want)), x, starts)
    assert np.array_equal(out, want)


def test_bad_arguments_are_refused():
    with pytest.raises(ShapeError, match="dense"):
        plan_count_nonzero(layout(np.zeros((4, 6)).T))
    with pytest.raises(ShapeError, match="one axis"):
        plan_searchsorted(dense((2, 2), "f32"), dense((3,), "f32"))
    with pytest.raises(DTypeError, match="one dtype"):
        plan_searchsorted(dense((2,), "f32"), dense((3,), "f64"))
