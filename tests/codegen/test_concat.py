"""Kernels that join operands and that spread elements among zeros, with unreadable pages around."""

import numpy as np
import pytest
from extern_lab import Run, layout

from weft.ops.basic_index import basic_spread
from weft.schedule.concat import BLOCK, plan_concat, plan_stack
from weft.schedule.extern_table import EXTERNS

rng = np.random.default_rng(0)


@pytest.mark.parametrize("guard", [True, False])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32, np.float64])
def test_concat(dtype, guard):
    for _ in range(40):
        ndim = int(rng.integers(1, 4))
        axis = int(rng.integers(ndim))
        shape = rng.integers(1, 70, ndim)
        xs = []
        for _ in range(int(rng.integers(1, 6))):
            shape[axis] = rng.integers(0, 40)
            xs.append((rng.random(shape) * 100).astype(dtype))
        (y,) = Run(guard=guard)(plan_concat([layout(x) for x in xs], axis), *xs)
        np.testing.assert_array_equal(y, np.concatenate(xs, axis))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_stack(axis):
    xs = [rng.random((5, 33)).astype("f4") for _ in range(4)]
    (y,) = Run()(plan_stack([layout(x) for x in xs], axis), *xs)
    np.testing.assert_array_equal(y, np.stack(xs, axis))


def test_blocks_end_anywhere():
    """Tasks cut the result wherever operands end, and any number of threads runs them."""
    xs = [rng.random((3, n)).astype("f4") for n in (BLOCK // 8 + 1, 3, BLOCK // 3)]
    launch = plan_concat([layout(x) for x in xs], 1)
    assert launch.phases[0].tasks > 2
    for threads in (1, 2, 3):
        (y,) = Run(threads=threads)(launch, *xs)
        np.testing.assert_array_equal(y, np.concatenate(xs, 1))


@pytest.mark.parametrize("guard", [True, False])
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64])
def test_spread(dtype, guard):
    for s in basic_spread.samples():
        if s.error is None:
            x = s.args[0].astype(dtype)
            launch = EXTERNS["spread"]((layout(x),), s.attrs, None, 1)
            (y,) = Run(guard=guard, threads=2)(launch, x)
            np.testing.assert_array_equal(y, basic_spread.reference(x, **s.attrs))
