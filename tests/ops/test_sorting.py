"""Order, search, distinct and nonzero elements, against NumPy and PyTorch."""

import numpy as np
import pytest
import torch

import weft as wf
from weft.errors import DTypeError, ShapeError
from weft.ops import searching
from weft.schedule import search

rng = np.random.default_rng(0)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("descending", [False, True])
def test_sort_and_argsort(axis, descending):
    a = rng.integers(-9, 9, (50, 60)).astype("f4")
    x, t = wf.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    values, places = torch.sort(t, dim=axis, descending=descending, stable=True)
    got = wf.sort(x, axis=axis, descending=descending)
    np.testing.assert_array_equal(got.numpy(), values.detach().numpy())
    np.testing.assert_array_equal(
        wf.argsort(x, axis=axis, descending=descending).numpy(), places.numpy()
    )
    g = np.arange(a.size, dtype="f4").reshape(a.shape)
    got.backward(wf.tensor(g))
    values.backward(torch.tensor(g))
    np.testing.assert_array_equal(x.grad.numpy(), t.grad.numpy())


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
def test_topk(largest, axis):
    a = rng.permutation(3000).reshape(50, 60).astype("f8")
    x, t = wf.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    got, want = wf.topk(x, 7, axis, largest), torch.topk(t, 7, axis, largest)
    np.testing.assert_array_equal(got.values.numpy(), want.values.detach().numpy())
    np.testing.assert_array_equal(got.indices.numpy(), want.indices.numpy())
    (got.values * got.values).sum().backward()
    (want.values * want.values).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), t.grad.numpy())


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side):
    ordered, values = np.sort(rng.integers(0, 50, 40)), rng.integers(-5, 60, (3, 7))
    want = np.searchsorted(ordered, values, side)
    np.testing.assert_array_equal(
        wf.searchsorted(wf.tensor(ordered), wf.tensor(values), side=side).numpy(), want
    )
    mixed = wf.searchsorted(wf.tensor(ordered, dtype=wf.float32), wf.tensor(values), side=side)
    np.testing.assert_array_equal(mixed.numpy(), want)
    order = rng.permutation(40)
    sorter = np.argsort(order)
    np.testing.assert_array_equal(
        wf.searchsorted(
            wf.tensor(ordered[order]), wf.tensor(values), side=side, sorter=wf.tensor(sorter)
        ).numpy(),
        want,
    )


@pytest.mark.parametrize("shape", [(0,), (1,), (70,), (3, 4, 5), (2, 0, 3), (200, 170)])
def test_nonzero(shape):
    a = rng.integers(0, 3, shape)
    for g, w in zip(wf.nonzero(wf.tensor(a)), np.nonzero(a), strict=True):
        np.testing.assert_array_equal(g.numpy(), w)
    assert wf.count_nonzero(wf.tensor(a)).item() == np.count_nonzero(a)
    mask = a > 0
    np.testing.assert_array_equal(wf.tensor(a)[wf.tensor(mask)].numpy(), a[mask])
    for axis in range(len(shape)):
        got = wf.count_nonzero(wf.tensor(a), axis=axis, keepdims=True)
        np.testing.assert_array_equal(got.numpy(), np.count_nonzero(a, axis=axis, keepdims=True))


def test_both_sides_count_in_the_same_blocks():
    assert searching.BLOCK == search.BLOCK


@pytest.mark.parametrize("dtype", ["i8", "f4", "?", "u1", "f2"])
@pytest.mark.parametrize("shape", [(0,), (1,), (70,), (3, 40)])
def test_unique(dtype, shape):
    a = rng.integers(0, 20, shape).astype(dtype)
    values, indices, inverse, counts = np.unique(
        a, return_index=True, return_inverse=True, return_counts=True
    )
    got = wf.unique_all(wf.tensor(a))
    for g, w in zip(got, (values, indices, inverse.reshape(shape), counts), strict=True):
        np.testing.assert_array_equal(g.numpy(), w)
    assert wf.unique_values(wf.tensor(a)).shape == values.shape
    assert wf.unique_counts(wf.tensor(a)).counts.shape == counts.shape
    assert wf.unique_inverse(wf.tensor(a)).inverse_indices.shape == shape


def test_unique_of_odd_floats():
    x = wf.tensor([float("nan"), 1.0, 0.0, float("nan"), -0.0])
    got = wf.unique_all(x)
    assert got.counts.tolist() == [2, 1, 1, 1] and got.indices.tolist() == [2, 1, 0, 3]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: wf.sort(wf.tensor(1.0)), ShapeError),
        (lambda: wf.sort(wf.zeros(2), axis=1), ShapeError),
        (lambda: wf.sort(wf.zeros(2), descending=1), DTypeError),
        (lambda: wf.topk(wf.zeros(3), 4), ShapeError),
        (lambda: wf.topk(wf.zeros(3), -1), ShapeError),
        (lambda: wf.topk(wf.zeros(3), 1.5), ShapeError),
        (lambda: wf.searchsorted(wf.zeros((2, 2)), wf.zeros(1)), ShapeError),
        (lambda: wf.searchsorted(wf.zeros(2), wf.zeros(1), side="middle"), ShapeError),
        (lambda: wf.nonzero(wf.tensor(1.0)), ShapeError),
        (lambda: wf.argsort(wf.tensor(1.0)), ShapeError),
    ],
)
def test_bad_arguments_are_named(call, error):
    with pytest.raises(error):
        call()
