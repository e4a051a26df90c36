"""Random numbers: reproducible everywhere, of the right distributions, never the same twice."""

import threading

import numpy as np
import pytest
from scipy import stats

import weft as wf
from weft.errors import DTypeError, ShapeError
from weft.ops.random import uniform

N = 200_000


@pytest.fixture(autouse=True)
def _seeded():
    wf.manual_seed(1234)


def test_the_first_numbers_of_a_seed():
    """These hold on every machine: a change here breaks everybody's experiments."""
    wf.manual_seed(0)
    bits = wf.randint(0, 2**63 - 1, (2,)).tolist()
    a, b = wf.rand(3).tolist(), wf.randn(3).tolist()
    wf.manual_seed(0)
    assert wf.randint(0, 2**63 - 1, (2,)).tolist() == bits
    # Threefry-2x32-20 of zeros, from the authors' known answers
    assert wf.get_rng_state() == (0, 2)
    word = 0x6B200159 | 0x99BA4EFE << 32
    assert bits[0] == word * (2**63 - 1) >> 64
    wf.set_rng_state((0, 2))
    assert wf.rand(3).tolist() == a and wf.randn(3).tolist() == b


def test_a_seed_starts_over_and_states_can_be_kept():
    a = wf.rand(5)
    state = wf.get_rng_state()
    b = wf.randn(5)
    wf.set_rng_state(state)
    assert (wf.randn(5) == b).all()
    wf.manual_seed(1234)
    assert (wf.rand(5) == a).all()
    wf.manual_seed(1235)
    assert (wf.rand(5) != a).any()


@pytest.mark.parametrize("make", [wf.rand, wf.randn])
@pytest.mark.parametrize("dtype", [wf.float64, wf.float32, wf.float16, wf.bfloat16])
def test_numbers_do_not_depend_on_shape_or_threads(make, dtype):
    threads = wf.get_num_threads()
    try:
        seen = []
        for n, shape in [(1, (300, 400)), (2, (120_000,)), (3, (2, 3, 20_000))]:
            wf.set_num_threads(n)
            wf.manual_seed(5)
            x = make(shape, dtype=dtype)
            assert x.dtype is dtype and x.shape == shape
            seen.append(x.numpy().tobytes())
        assert len(set(seen)) == 1
    finally:
        wf.set_num_threads(threads)


def test_calls_go_on_where_the_last_one_stopped():
    wf.manual_seed(5)
    whole = wf.rand(100)
    wf.manual_seed(5)
    assert (wf.concat([wf.rand(37), wf.rand(63)]) == whole).all()


def test_a_call_makes_no_new_plan():
    wf.rand(8)
    before = len(uniform.plans)
    for _ in range(5):
        wf.rand(8)
    assert len(uniform.plans) == before


def test_distributions():
    u, z = wf.rand(N, dtype=wf.float64).numpy(), wf.randn(N, dtype=wf.float64).numpy()
    assert stats.kstest(u, "uniform").pvalue > 1e-3 and (u >= 0).all() and (u < 1).all()
    assert stats.kstest(z, "norm").pvalue > 1e-3
    assert stats.kstest(wf.randn(N).numpy(), "norm").pvalue > 1e-3
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 0.01
    counts = np.bincount(wf.randint(-3, 7, (N,)).numpy() + 3, minlength=10)
    assert counts.size == 10 and stats.chisquare(counts).pvalue > 1e-3
    assert abs(wf.bernoulli(0.3, (N,)).numpy().mean() - 0.3) < 0.01


def test_randint_reaches_the_ends_of_every_dtype():
    for d in (wf.int8, wf.uint8, wf.int64, wf.uint64):
        low, high = (0, 2**d.bits) if d.kind == "u" else (-(2 ** (d.bits - 1)), 2 ** (d.bits - 1))
        x = wf.randint(low, high, (5000,), dtype=d).numpy()
        assert x.dtype == d.np and (d.bits > 8 or len(set(x.tolist())) == 256)
        assert (wf.randint(high - 1, high, (3,), dtype=d).numpy() == high - 1).all()
    assert set(wf.randint(3, (100,)).tolist()) == {0, 1, 2}


def test_bernoulli_of_a_tensor():
    p = wf.tensor([[0.0, 1.0], [0.5, 0.5]])
    x = wf.bernoulli(p)
    assert x.shape == (2, 2) and x.dtype is wf.float32 and x[0].tolist() == [0, 1]
    assert wf.bernoulli(0.5, (3,), dtype=wf.bool).dtype is wf.bool


def test_permutation():
    p = wf.permutation(1000).numpy()
    assert sorted(p) == list(range(1000)) and (p != np.arange(1000)).sum() > 900
    x = wf.arange(12).reshape(6, 2)
    rows = wf.permutation(x).numpy()
    assert sorted(rows[:, 0]) == [0, 2, 4, 6, 8, 10] and (rows[:, 1] == rows[:, 0] + 1).all()
    assert wf.permutation(0).shape == (0,)
    firsts = [int(wf.permutation(4)[0].item()) for _ in range(2000)]
    assert stats.chisquare(np.bincount(firsts)).pvalue > 1e-3


def test_threads_never_draw_the_same_numbers():
    drawn = []

    def work():
        for _ in range(50):
            drawn.append(wf.rand(16).numpy().tobytes())

    team = [threading.Thread(target=work) for _ in range(4)]
    for t in team:
        t.start()
    for t in team:
        t.join()
    assert len(set(drawn)) == 200


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: wf.rand(-1), ShapeError),
        (lambda: wf.rand(2, dtype=wf.int8), DTypeError),
        (lambda: wf.randn("a"), ShapeError),
        (lambda: wf.randint(5, 5, (2,)), ShapeError),
        (lambda: wf.randint(0, 300, (2,), dtype=wf.int8), ShapeError),
        (lambda: wf.randint(0, 5, (2,), dtype=wf.float32), DTypeError),
        (lambda: wf.randint(0.5, 2, (2,)), ShapeError),
        (lambda: wf.bernoulli(1.5, (2,)), ShapeError),
        (lambda: wf.bernoulli(float("nan"), (2,)), ShapeError),
        (lambda: wf.permutation(-1), ShapeError),
        (lambda: wf.permutation(1.5), ShapeError),
        (lambda: wf.manual_seed("a"), ShapeError),
        (lambda: wf.set_rng_state((1,)), ShapeError),
        (lambda: wf.set_rng_state((-1, 0)), ShapeError),
    ],
)
def test_bad_arguments_are_named(call, error):
    with pytest.raises(error):
        call()
