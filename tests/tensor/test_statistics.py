"""Sums, means and the like agree with NumPy, and name what is wrong with bad arguments."""

import math

import numpy as np
import pytest

import weft as wf
from weft.types.dtype import DTYPES

AXES = [None, 0, 1, -1, (0, 1), (2, 0), (0, 1, 2), ()]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all"])
def test_statistics_agree_with_numpy(name, axis, keepdims):
    a = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    for source in (a, a.transpose(2, 0, 1), a[:, ::-2]):
        x = wf.asarray(source)
        for _ in range(2):  # the second call goes by the plan of the first
            got = getattr(wf, name)(x, axis=axis, keepdims=keepdims)
            want = getattr(np, name)(source, axis=axis, keepdims=keepdims)
            assert got.shape == want.shape
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)
        assert getattr(x, name)(axis, keepdims=keepdims).numpy().tobytes() == got.numpy().tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_of_statistics(dtype):
    x = wf.tensor(np.array([[1, 2], [3, 0]]).astype(dtype.np))
    wide = dtype if dtype.is_float else wf.uint64 if dtype.kind == "u" else wf.int64
    assert x.sum().dtype is wide and x.prod(0).dtype is wide
    assert x.max().dtype is dtype and x.argmax().dtype is wf.int64 and x.any().dtype is wf.bool
    assert x.mean().dtype is (dtype if dtype.is_float else wf.float32)
    assert x.std(1).dtype is (dtype if dtype.is_float else wf.float32)
    assert x.sum(dtype=wf.float64).dtype is wf.float64 and x.sum(dtype=wf.int8).dtype is wf.int8
    assert wf.sum(x, dtype="float16").dtype is wf.float16


def test_sum_with_a_dtype_converts_first():
    x = wf.full((300,), 127, dtype=wf.int8)
    assert x.sum(dtype=wf.int8).item() == np.full(300, 127, np.int8).sum(dtype=np.int8)
    assert x.sum(dtype=wf.float64).item() == 300 * 127


@pytest.mark.parametrize("correction", [0, 1, 0.5])
def test_correction(correction):
    a = np.random.default_rng(1).normal(size=(6, 7)).astype(np.float32)
    for f in ("var", "std"):
        want = getattr(np, f)(a, axis=0, ddof=correction)
        np.testing.assert_allclose(
            getattr(wf, f)(wf.tensor(a), 0, correction=correction).numpy(), want, rtol=1e-5
        )


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions(name):
    a = np.random.default_rng(2).integers(0, 4, (3, 4, 5))
    x = wf.tensor(a)
    for axis in (None, 0, 1, 2, -1):
        for keepdims in (False, True):
            want = getattr(np, name)(a, axis=axis, keepdims=keepdims)
            got = getattr(wf, name)(x, axis, keepdims=keepdims)
            assert got.shape == want.shape and (got.numpy() == want).all()
    assert getattr(wf, name)(wf.tensor(3.0)).item() == 0
    assert getattr(wf, name)(x.T).item() == getattr(np, name)(a.T)
    with pytest.raises(wf.errors.ShapeError, match="one axis"):
        getattr(wf, name)(x, (0, 1))
    with pytest.raises(wf.errors.ShapeError):
        getattr(wf, name)(wf.zeros((0, 3)), 0)


@pytest.mark.parametrize("bad", [3, -4, (0, 0), (0, -3), "x", 1.5, [None]])
def test_bad_axes_are_named(bad):
    with pytest.raises(wf.errors.ShapeError, match="sum"):
        wf.zeros((2, 3, 4)).sum(bad)


def test_keepdims_is_a_bool():
    with pytest.raises(wf.errors.DTypeError):
        wf.zeros((2, 3)).sum(0, keepdims="yes")


def test_empty_tensors():
    x = wf.zeros((0, 3))
    assert x.sum(0).tolist() == [0, 0, 0] and x.prod().item() == 1 and x.sum(1).shape == (0,)
    assert x.all().item() is True and x.any().item() is False
    assert math.isnan(x.mean().item())
    with pytest.raises(wf.errors.ShapeError, match="max"):
        x.max()


@pytest.mark.filterwarnings("ignore:.*freedom|invalid|divide:RuntimeWarning")
@pytest.mark.parametrize("correction", [0, 0.5, 1, 3])
def test_a_correction_beyond_the_count_leaves_nothing_to_divide_by(correction):
    varied = wf.compile(lambda x: x.var(correction=correction), dynamic=True, fallback=False)
    for n in (7, 2, 1, 0):
        a = np.arange(n, dtype=np.float32)
        with np.errstate(all="ignore"):
            var, std = np.var(a, ddof=correction), np.std(a, ddof=correction)
        x = wf.asarray(a)
        np.testing.assert_allclose(wf.var(x, correction=correction).numpy(), var, rtol=1e-6)
        np.testing.assert_allclose(wf.std(x, correction=correction).numpy(), std, rtol=1e-6)
        assert varied(x).numpy().tobytes() == x.var(correction=correction).numpy().tobytes()
