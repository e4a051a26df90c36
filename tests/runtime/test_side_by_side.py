"""Small products that run at the same time, in groups one behind the other."""

import pytest

import weft as wf


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_groups_that_follow_each_other(count):
    wf.manual_seed(0)
    w, xs = wf.randn(40, 144), [wf.randn(64, 144) for _ in range(count)]

    def f(*xs):
        return [x @ w.T for x in xs]

    for a, b in zip(f(*xs), wf.compile(f, fallback=False)(*xs), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()
