import math

import numpy as np
import pytest
from kernel_lab import TARGETS, run
from spelled import dtype_of

from weft.ops import random_bits as r
from weft.ops.scalar import const
from weft.types import DTYPES
from weft.types.dtype import bfloat16, bool_, float16, float32, float64, int64, uint32, uint64

KEY = 0x0123456789ABCDEF
N = 200_000
FLOATS = [float64, float32, float16, bfloat16]


def counters(n=N, step=1):
    return np.arange(n, dtype=np.uint64) * np.uint64(step)


def made(rule, *args, key=KEY, at=None, **how):
    at = counters() if at is None else at
    return run(lambda c: rule(const(key, uint64), c, *args), at, **how)


def reference(at, key=KEY):
    """The two words of each counter, in NumPy."""
    split = lambda x: (
        (x & np.uint64(0xFFFFFFFF)).astype(np.uint32),
        (x >> np.uint64(32)).astype(np.uint32),
    )
    return r.threefry(split(np.full(at.shape, key, np.uint64)), split(at))


def distance(sample, cdf):
    """Kolmogorov and Smirnov's statistic times the root of the sample's size: above 1.95 in one of
    a thousand samples.
    """
    x = np.sort(np.asarray(sample, np.float64))
    n = len(x)
    f = cdf(x)
    return max((np.arange(1, n + 1) / n - f).max(), (f - np.arange(n) / n).max()) * math.sqrt(n)


phi = np.vectorize(lambda z: 0.5 * math.erfc(-z / math.sqrt(2)))


@pytest.mark.parametrize(
    ("key", "counter", "want"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_known_answers(key, counter, want):
    """Random123's kat_vectors, threefry2x32 with 20 rounds."""
    k, c = key[0] | key[1] << 32, counter[0] | counter[1] << 32
    (got,) = made(r.bits, uint64, key=k, at=np.array([c], np.uint64))
    assert int(got) == want[0] | want[1] << 32
    assert r.derive(k, c) == int(got)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [1, 16])
def test_bits_are_the_same_everywhere(target, lanes):
    at = np.array([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, *range(5, 40)], np.uint64)
    how = {"at": at, "target": TARGETS[target], "lanes": lanes}
    low, high = reference(at)
    assert np.array_equal(made(r.bits, uint32, **how), low)
    assert np.array_equal(
        made(r.bits, uint64, **how), low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    )
    for rule in (r.uniform, r.normal):
        for dtype in FLOATS:
            got = made(rule, dtype, **how)
            want = made(rule, dtype, at=at)
            assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if not d.is_float], ids=str)
def test_bits_of_every_integer_dtype(dtype):
    x = made(r.bits, dtype, at=counters(4096))
    assert x.dtype == dtype.np
    ones = np.unpackbits(x.view(np.uint8)).reshape(4096, -1).mean(0)
    used = 1 if dtype is bool_ else dtype.bits
    assert np.sum(np.abs(ones - 0.5) < 0.04) == used


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_uniform(dtype):
    x = made(r.uniform, dtype)
    assert x.dtype == dtype.np
    wide = x.astype(np.float64)
    assert wide.min() >= 0 and wide.max() < 1
    if dtype.bits >= 32:
        assert distance(wide, lambda v: v) < 1.95
        assert abs(wide.mean() - 0.5) < 0.003
        assert abs(wide.var() - 1 / 12) < 0.001
        scaled = wide * 2.0 ** (24 if dtype is float32 else 53)
        assert np.array_equal(scaled, np.rint(scaled))
    else:
        exact = made(r.uniform, float32).astype(np.float64)
        step = 2.0 ** (
            np.floor(np.log2(np.maximum(exact, 2.0**-30))) - (10 if dtype is float16 else 7)
        )
        assert np.all(wide <= exact) and np.all(exact - wide < step)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_normal(dtype):
    x = made(r.normal, dtype, at=counters(step=r.counters("normal", dtype)))
    wide = x.astype(np.float64)
    assert np.isfinite(wide).all()
    if dtype.bits >= 32:
        assert distance(wide, phi) < 1.95
    assert abs(wide.mean()) < 0.01
    assert abs(wide.var() - 1) < 0.01
    assert abs((wide**3).mean()) < 0.03
    assert abs((wide**4).mean() - 3) < 0.06
    assert abs(np.corrcoef(wide[1:], wide[:-1])[0, 1]) < 0.01


def test_normal_is_the_transform_it_says():
    at = counters(5000)
    low, high = reference(at)
    u = (
        ((low.astype(np.float32).astype(np.float64) + 0.5) * 2.0**-32)
        .astype(np.float32)
        .astype(np.float64)
    )
    v = high.astype(np.float64) * 2.0**-32
    want = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)
    assert np.max(np.abs(made(r.normal, float32, at=at) - want)) < 2e-6
    words = [
        a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
        for a, b in (reference(at), reference(at + np.uint64(1)))
    ]
    u = ((words[0] >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    want = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * (words[1].astype(np.float64) * 2.0**-64))
    assert np.max(np.abs(made(r.normal, float64, at=at) - want)) < 5e-15


@pytest.mark.parametrize("name", ["int64", "uint64", "int32", "uint8", "int8"])
@pytest.mark.parametrize(
    ("low", "span"), [(0, 1), (-5, 11), (3, 2**40 + 7), (-(2**63), 0), (7, 2**64 - 1)]
)
def test_integers_are_the_high_half_of_a_product(name, low, span):
    dtype = dtype_of(name)
    at = counters(300)
    got = made(r.integers, const(low, int64), const(span, uint64), dtype, at=at)
    a, b = reference(at)
    words = [int(x) | int(y) << 32 for x, y in zip(a, b, strict=True)]
    want = [low + (w * (span or 2**64) >> 64) for w in words]
    assert [int(x) for x in got] == [
        int(np.array(w & (2**64 - 1), np.uint64).astype(dtype.np)) for w in want
    ]


def test_integers_are_even():
    x = made(r.integers, const(-3, int64), const(7, int64), int64)
    counts = np.bincount(x + 3, minlength=7)
    assert len(counts) == 7
    assert (
        (counts - N / 7) ** 2 / (N / 7)
    ).sum() < 22.5  # chi squared with 6 degrees, one in a thousand


def test_streams_are_unrelated():
    one, other = (made(r.uniform, float32, key=r.derive(KEY, n)).astype(np.float64) for n in (0, 1))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.01
    assert len({r.derive(k, n) for k in range(50) for n in range(50)}) == 2500
