import itertools

import numpy as np
import pytest
from extern_lab import KernelError, Run, layout

from weft.codegen.jit import AVX2, SSE2
from weft.errors import ShapeError
from weft.schedule.window import plan_window_spread

RUNS = [
    Run(),
    Run(guard=False),
    Run(threads=3, split=1),
    Run(split=1000),
    Run(target=AVX2),
    Run(target=SSE2),
]
CASES = [  # windows, kernel, stride, offset, sizes
    ((2, 4, 3), (2, 3), (1, 1), (0, 0), (5, 5)),
    ((3, 4, 3), (3, 3), (2, 2), (1, 1), (7, 6)),
    ((2, 3, 40), (2, 5), (3, 1), (1, 2), (8, 40)),
    ((2, 5), (4,), (3,), (0,), (20,)),
    ((3, 1, 1), (9, 9), (1, 1), (4, 4), (3, 2)),
    ((2, 4, 4), (2, 2), (5, 5), (-3, -1), (9, 30)),
    ((1, 0, 3), (2, 2), (1, 1), (0, 0), (4, 4)),
]


def spread(g, kernel, stride, offset, sizes):
    """The definition, window after window of a row, in the order that is promised."""
    rank = len(kernel)
    out = np.zeros((*g.shape[: g.ndim - rank], *sizes), g.dtype)
    windows = g.shape[g.ndim - rank :]
    for rows in itertools.product(*map(range, windows[:-1]), *map(range, kernel[:-1])):
        lead = tuple(
            o * s + t - p
            for o, t, s, p in zip(rows[: rank - 1], rows[rank - 1 :], stride, offset, strict=False)
        )
        if all(0 <= i < n for i, n in zip(lead, sizes, strict=False)):
            for t, o in itertools.product(range(kernel[-1]), range(windows[-1])):
                i = o * stride[-1] + t - offset[-1]
                if 0 <= i < sizes[-1]:
                    out[(..., *lead, i)] += g[(..., *rows[: rank - 1], o)]
    return out


@pytest.mark.parametrize("run", RUNS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int64])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_element_is_added_to_its_window(case, dtype, run):
    shape, *how = case
    g = (np.random.default_rng(0).normal(size=shape) * 50).astype(dtype)
    (got,) = run(plan_window_spread(layout(g), *how), g)
    assert got.tobytes() == spread(g, *how).tobytes()


def test_a_long_kernel_can_be_stopped():
    g = np.ones((1, 4000, 300), np.float32)
    launch = plan_window_spread(layout(g), (3, 3), (1, 1), (1, 1), (4000, 300))
    with pytest.raises(KernelError):
        Run(stop_after=1, guard=None)(launch, g)


def test_operands_are_dense():
    with pytest.raises(ShapeError, match="dense"):
        plan_window_spread(layout(np.ones((4, 4)).T), (2,), (1,), (0,), (5,))
