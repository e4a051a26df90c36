"""Taking and writing by index, against PyTorch: values, gradients, order, errors."""

import numpy as np
import pytest
import torch

import weft as wf
from weft.errors import DTypeError, IndexRangeError, ShapeError
from weft.ops.indexing import ravel_index

rng = np.random.default_rng(0)


def both(shape):
    a = rng.standard_normal(shape)
    return wf.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)


def agree(got, want, *leaves):
    assert got.shape == tuple(want.shape)
    np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=1e-14, atol=1e-14)
    g = np.cos(np.arange(got.size)).reshape(got.shape)
    got.backward(wf.tensor(g))
    want.backward(torch.tensor(g))
    for x, t in leaves:
        np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["i8", "i4", "u1"])
def test_take(axis, dtype):
    x, t = both((4, 5, 6))
    i = rng.integers(0, 4, 9).astype(dtype)
    agree(
        wf.take(x, wf.tensor(i), axis=axis),
        torch.index_select(t, axis, torch.tensor(i.astype("i8"))),
        (x, t),
    )


def test_take_of_any_shape_from_the_end_and_from_strided():
    a = rng.standard_normal((6, 8))
    for i in (np.array(-1), np.array([[0, -6], [5, 1]]), np.zeros((0, 3), int)):
        for x in (wf.tensor(a), wf.tensor(a)[::-1, ::2], wf.tensor(a).T):
            np.testing.assert_array_equal(
                wf.take(x, wf.tensor(i), axis=0).numpy(), np.take(x.numpy(), i, 0)
            )


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_take_along_axis_and_scatters(axis):
    shape = (3, 4, 5)
    k = [7 if a == axis else n for a, n in enumerate(shape)]
    i = rng.integers(0, shape[axis], k)
    x, t = both(shape)
    agree(
        wf.take_along_axis(x, wf.tensor(i), axis=axis),
        torch.gather(t, axis, torch.tensor(i)),
        (x, t),
    )
    (x, t), (s, u) = both(shape), both(k)
    agree(
        wf.scatter_add(x, axis, wf.tensor(i), s),
        t.scatter_add(axis, torch.tensor(i), u),
        (x, t),
        (s, u),
    )
    once = np.argsort(rng.random(shape), axis)  # every place once: PyTorch leaves the rest open
    (x, t), (s, u) = both(shape), both(shape)
    agree(
        wf.scatter(x, axis, wf.tensor(once), s),
        t.scatter(axis, torch.tensor(once), u),
        (x, t),
        (s, u),
    )


def test_take_along_axis_broadcasts():
    a, i = rng.random((3, 1, 5)), rng.integers(0, 5, (1, 4, 2))
    want = np.take_along_axis(np.broadcast_to(a, (3, 4, 5)), np.broadcast_to(i, (3, 4, 2)), -1)
    np.testing.assert_array_equal(wf.take_along_axis(wf.tensor(a), wf.tensor(i)).numpy(), want)


def test_scatter_of_a_smaller_index():
    """PyTorch has no gradient of the source then."""
    (x, t), (s, u) = both((4, 5)), both((3, 6))
    i = rng.integers(0, 5, (2, 3))
    agree(
        wf.scatter_add(x, 1, wf.tensor(i), s.detach()),
        t.scatter_add(1, torch.tensor(i), u.detach()), (x, t),
    )  # fmt: skip
    assert wf.gradcheck(
        lambda x, s: wf.scatter_add(x, 1, wf.tensor(i), s), [x.detach(), s.detach()]
    )
    x, t = both((4, 5))
    agree(
        wf.scatter(x, 1, wf.tensor(i[:, :1]), 2.5),
        t.scatter(1, torch.tensor(i[:, :1]), 2.5),
        (x, t),
    )


def test_index_add():
    for axis in (0, 1):
        (x, t), (s, u) = both((5, 6)), both((4, 6) if axis == 0 else (5, 4))
        i = np.array([0, 3, 3, 1])
        agree(
            wf.index_add(x, axis, wf.tensor(i), s),
            t.index_add(axis, torch.tensor(i), u),
            (x, t),
            (s, u),
        )


def test_writes_happen_in_index_order():
    """Sums add up in order for any number of threads; of assignments the last one stays."""
    n, k = 50, 40_000
    i = rng.integers(0, n, k)
    s = (rng.standard_normal(k) * 10.0 ** rng.integers(-3, 4, k)).astype("f4")
    want = np.zeros(n, "f4")
    for j, v in zip(i, s, strict=True):
        want[j] += v
    threads = wf.get_num_threads()
    try:
        for count in (1, 2, 3):
            wf.set_num_threads(count)
            got = wf.scatter_add(wf.zeros(n), 0, wf.tensor(i), wf.tensor(s))
            assert got.numpy().tobytes() == want.tobytes()
    finally:
        wf.set_num_threads(threads)
    v = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = wf.scatter(wf.zeros(2), 0, wf.tensor([0, 1, 0]), v)
    assert y.tolist() == [3, 2]
    y.backward(wf.tensor([10.0, 20.0]))
    assert v.grad.tolist() == [0, 20, 10]


def test_ravel_index_marks_what_is_out_of_range():
    got = ravel_index(wf.tensor([0, 1, 2]), wf.tensor([0, -5, -1]), sizes=(2, 4))
    assert got[0].item() == 0 and (got[1:] < -(10**15)).all()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda x: wf.take(x, wf.tensor([3]), axis=0),
            IndexRangeError,
            ("axis 0", "size 3", "got 3"),
        ),
        (
            lambda x: wf.take(x, wf.tensor([-5]), axis=1),
            IndexRangeError,
            ("axis 1", "size 4", "got -5"),
        ),
        (lambda x: wf.take(x, wf.tensor([0])), ShapeError, ("axis",)),
        (lambda x: wf.take(x, wf.tensor([0.5]), axis=0), DTypeError, ("float32",)),
        (lambda x: wf.take(x, "a", axis=0), (DTypeError, TypeError), ()),
        (lambda x: wf.take_along_axis(x, wf.tensor([[4]])), IndexRangeError, ("got 4",)),
        (lambda x: wf.take_along_axis(x, wf.tensor([0])), ShapeError, ()),
        (lambda x: wf.take_along_axis(x, wf.zeros((2, 1), dtype=wf.int64)), ShapeError, ()),
        (
            lambda x: wf.scatter_add(x, 0, wf.tensor([[9]]), wf.ones((1, 1))),
            IndexRangeError,
            ("got 9",),
        ),
        (lambda x: wf.scatter_add(x, 0, wf.tensor([0]), wf.ones((1, 1))), ShapeError, ()),
        (
            lambda x: wf.scatter_add(x, 0, wf.zeros((1, 9), dtype=wf.int32), wf.ones((1, 9))),
            ShapeError,
            (),
        ),
        (
            lambda x: wf.scatter(x, 0, wf.zeros((2, 2), dtype=wf.int32), wf.ones((1, 1))),
            ShapeError,
            (),
        ),
        (lambda x: wf.index_add(x, 0, wf.tensor([0, 1]), wf.ones((1, 4))), ShapeError, ()),
        (
            lambda x: wf.index_add(x, 0, wf.tensor([-4]), wf.ones((1, 4))),
            IndexRangeError,
            ("got -4",),
        ),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error) as caught:
        call(wf.zeros((3, 4)))
    assert all(w in str(caught.value) for w in words), caught.value


def test_running_folds():
    for op, theirs in ((wf.cumulative_sum, torch.cumsum), (wf.cumulative_prod, torch.cumprod)):
        for axis in (0, 1):
            x, t = both((5, 70))
            agree(op(x, axis=axis), theirs(t, axis), (x, t))
    for op, theirs in ((wf.cumulative_max, torch.cummax), (wf.cumulative_min, torch.cummin)):
        x, t = both((5, 70))
        agree(op(x, axis=1), theirs(t, 1).values, (x, t))


@pytest.mark.parametrize(
    "row", [[0.0, 2, 3], [2, 0.0, 3, 4], [2, 0.0, 3, 0.0, 5], [0.0, 0.0], [1, 2, 0.0]]
)
def test_gradient_of_products_with_zeros(row):
    x, t = (
        wf.tensor(np.array(row), requires_grad=True),
        torch.tensor(row, dtype=torch.double, requires_grad=True),
    )
    agree(wf.cumulative_prod(x), torch.cumprod(t, 0), (x, t))


def test_running_folds_of_other_dtypes():
    assert wf.cumulative_sum(wf.tensor([100, 100], dtype=wf.int8)).tolist() == [100, 200]
    assert wf.cumulative_sum(wf.tensor([1, 2]), include_initial=True).tolist() == [0, 1, 3]
    assert wf.cumulative_prod(wf.tensor([2, 3]), include_initial=True).tolist() == [1, 2, 6]
    assert wf.cumulative_sum(wf.tensor([True, True])).tolist() == [1, 2]
    with pytest.raises(ShapeError):
        wf.cumulative_sum(wf.zeros((2, 2)))
