"""Kernels at the same time: the two matmuls of relu(X1 @ W1 + X2 @ W2)."""

from __future__ import annotations

import pytest

import weft as wf

pytestmark = pytest.mark.tiny


def two(x1, w1, x2, w2):
    return wf.relu(x1 @ w1 + x2 @ w2)


@pytest.fixture
def same_threads_after():
    before = wf.get_num_threads()
    yield
    wf.set_num_threads(before)


@pytest.mark.usefixtures("same_threads_after")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_two_matmuls_run_at_the_same_time(threads):
    wf.set_num_threads(threads)
    xs = [wf.rand(64, 64) - 0.5 for _ in range(4)]
    compiled = wf.compile(two, fallback=False)
    assert compiled(*xs).tolist() == two(*xs).tolist()
    said = compiled.explain(*xs)
    if threads == 1:
        assert "at the same time" not in str(said)
    else:
        assert said.forward.together[:2] == (2, 0)
        assert said.kernels[2] == ("add", "relu")  # and neither of them alone
        assert "at the same time" in str(said)


def test_dependent_matmuls_do_not():
    xs = [wf.rand(64, 64) - 0.5 for _ in range(3)]
    compiled = wf.compile(lambda a, b, c: a @ b @ c, fallback=False)
    assert max(compiled.explain(*xs).forward.together) == 1


def test_memory_of_kernels_at_the_same_time_is_their_own():
    """Many pairs in a row, each result read later: nothing is overwritten too early."""

    def chain(x, ws):
        for a, b in ws:
            x = wf.relu(x @ a + x.mT @ b) * 0.125
        return x

    x = wf.rand(64, 64)
    ws = [(wf.rand(64, 64), wf.rand(64, 64)) for _ in range(4)]
    compiled = wf.compile(chain, fallback=False)
    want = chain(x, ws).tolist()
    assert all(compiled(x, ws).tolist() == want for _ in range(20))
