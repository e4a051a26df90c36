"""The largest elements of windows, by the kernel for long rows and by the general one."""

import itertools

import numpy as np
import pytest
from extern_lab import Run, layout

import weft as wf
from weft.buffer import Layout
from weft.codegen.jit import AVX2, SSE2
from weft.errors import ShapeError
from weft.ops.define import OPS
from weft.ops.pooling import max_at
from weft.schedule.at import plan_at
from weft.schedule.window_max import plan_window_max
from weft.types import TensorType
from weft.types.dtype import float32

RUNS = [
    Run(),
    Run(guard=False),
    Run(threads=3, split=1),
    Run(split=1000),
    Run(target=AVX2),
    Run(target=SSE2),
]
CASES = [  # x, kernel, stride, offset, sizes
    ((3, 20, 40), (3, 3), (2, 2), (1, 1), (10, 20)),
    ((2, 9, 33), (2, 2), (2, 2), (0, 0), (4, 16)),
    ((2, 3, 7, 50), (3, 5), (1, 1), (1, 2), (7, 50)),
    ((1, 6, 64), (1, 8), (3, 1), (0, 0), (2, 57)),
    ((4, 5, 17), (5, 3), (2, 1), (4, 8), (7, 32)),
    ((2, 70, 35), (4, 6), (1, 2), (0, 0), (67, 20)),
    ((1, 2, 40), (3, 3), (9, 2), (5, 0), (2, 16)),
]


def windows(kernel, stride, offset, sizes, **_):
    return {"kernel": kernel, "stride": stride, "offset": offset, "sizes": sizes} | {
        "dilation": (1,) * len(kernel)
    }


def larger(a, b):
    return np.where(np.isnan(a), a, np.where(a > b, a, b))


def largest(x, kernel, stride, offset, sizes, dilation):
    """The definition, column after column of the windows."""
    out = np.full((*x.shape[:-2], *sizes), -np.inf, x.dtype)
    for t in itertools.product(*map(range, kernel[::-1])):
        for o in itertools.product(*map(range, sizes)):
            at = [a * s + n - p for a, s, n, p in zip(o, stride, t[::-1], offset, strict=True)]
            if all(0 <= i < n for i, n in zip(at, x.shape[-2:], strict=True)):
                out[(..., *o)] = larger(out[(..., *o)], x[(..., *at)])
    return out


def elements(shape, dtype):
    """Many equal ones, zeros of both signs, NaNs and infinities."""
    rng = np.random.default_rng(0)
    x = rng.integers(-1, 2, shape).astype(dtype) * rng.choice([0.0, 1.0], shape).astype(dtype)
    x[rng.random(shape) < 0.02] = np.nan
    x[rng.random(shape) < 0.1] = -np.inf
    return x


@pytest.mark.parametrize("run", RUNS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_is_the_largest_of_each_window(case, dtype, run):
    shape, *how = case
    attrs = windows(*how)
    x = elements(shape, dtype)
    launch = plan_window_max(layout(x), **attrs)
    assert launch is not None
    (got,) = run(launch, x)
    assert got.tobytes() == largest(x, **attrs).tobytes()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_has_the_bits_of_the_general_kernel(case):
    shape, *how = case
    attrs = windows(*how)
    x = elements(shape, np.float32)
    out = TensorType((*shape[:-2], *attrs["sizes"]), float32)
    run = Run()
    (got,) = run(plan_window_max(layout(x), **attrs), x)
    (want,) = run(plan_at(max_at, (layout(x),), attrs, out), x)
    assert got.tobytes() == want.tobytes()


def test_what_it_is_not_made_for_it_leaves():
    x = Layout.dense(TensorType((2, 20, 40), float32))
    attrs = windows((3, 3), (2, 2), (1, 1), (10, 20))
    assert plan_window_max(x, **attrs) is not None
    turned = Layout(x.type, (800, 1, 20))
    for other in (
        {"dilation": (1, 2)},
        {"stride": (2, 3)},
        {"offset": (0, -1)},
        {"sizes": (10, 8)},
    ):
        assert plan_window_max(x, **attrs | other) is None
    assert plan_window_max(turned, **attrs) is None


def test_windows_of_too_many_taps_are_refused_at_once():
    window = {"kernel": (2**61, 9), "stride": (1, 2), "offset": (4, 4), "sizes": (12, 6)}
    with pytest.raises(ShapeError, match="taps"):
        OPS["large_window_max"](wf.ones((2, 12, 12)), **window, dilation=(1, 1))
