"""Functions that change shapes agree with NumPy, and name what is wrong with bad arguments."""

import numpy as np
import pytest

import weft as wf


def test_reshape_spellings():
    a = np.arange(24, dtype=np.int32)
    x = wf.tensor(a)
    for _ in range(2):
        for shape in [(2, 12), (2, -1), (-1,), (2, 3, 4), (1, 24, 1), (-1, 4)]:
            want = a.reshape(shape)
            for got in (
                x.reshape(*shape),
                x.reshape(shape),
                x.reshape(list(shape)),
                wf.reshape(x, shape),
            ):
                assert got.shape == want.shape and (got.numpy() == want).all()
    assert wf.reshape(x, 24).shape == (24,) and wf.tensor(5).reshape().shape == ()
    t = x.reshape(4, 6).T
    assert (t.reshape(-1).numpy() == a.reshape(4, 6).T.reshape(-1)).all()


@pytest.mark.parametrize(
    "shape", [(5, 5), (-1, -1), (-1, 0), (7, -1), (-2, 12), "ab", (2.5, 4), None]
)
def test_reshape_errors(shape):
    with pytest.raises(wf.errors.ShapeError):
        wf.reshape(wf.arange(24), shape)


def test_reshape_and_copies():
    x = wf.arange(6)
    assert wf.reshape(x, (2, 3), copy=False).data.address == x.data.address
    assert wf.reshape(x, (2, 3), copy=True).data.address != x.data.address
    with pytest.raises(wf.errors.ShapeError, match="copy"):
        wf.reshape(x.reshape(2, 3).T, (6,), copy=False)


def test_moving_axes():
    a = np.arange(24).reshape(2, 3, 4)
    x = wf.tensor(a)
    for axes in [(0, 1, 2), (2, 0, 1), (-1, 0, -2)]:
        for got in (wf.permute_dims(x, axes), x.permute_dims(*axes), x.permute_dims(axes)):
            assert (got.numpy() == a.transpose(axes)).all()
    for source, to in [(0, -1), (2, 0), ((0, 1), (1, 2)), ((0, 2), (2, 0)), ([-1], [0])]:
        assert (wf.moveaxis(x, source, to).numpy() == np.moveaxis(a, source, to)).all()
    assert (wf.matrix_transpose(x).numpy() == a.transpose(0, 2, 1)).all()
    assert (x.mT.numpy() == a.transpose(0, 2, 1)).all() and (x.T.numpy() == a.T).all()
    for bad in [
        lambda: wf.permute_dims(x, (0, 1)),
        lambda: wf.permute_dims(x, (0, 1, 1)),
        lambda: wf.permute_dims(x, 3),
        lambda: wf.matrix_transpose(wf.arange(3)),
        lambda: wf.moveaxis(x, 0, (1, 2)),
        lambda: wf.moveaxis(x, (0, 0), (1, 2)),
        lambda: wf.moveaxis(x, 3, 0),
    ]:
        with pytest.raises(wf.errors.ShapeError):
            bad()


def test_axes_of_one_element():
    x = wf.zeros((1, 3, 1, 4))
    assert x.squeeze().shape == (3, 4) and x.squeeze(0).shape == (3, 1, 4)
    assert x.squeeze((0, -2)).shape == (3, 4) and wf.squeeze(x, axis=2).shape == (1, 3, 4)
    assert wf.expand_dims(wf.zeros(3)).shape == (1, 3) and wf.expand_dims(
        wf.zeros(3), axis=-1
    ).shape == (3, 1)
    assert (
        wf.expand_dims(wf.zeros((3, 4)), axis=(0, 2)).shape
        == np.expand_dims(np.zeros((3, 4)), (0, 2)).shape
    )
    assert wf.zeros((3, 4)).expand_dims(1).shape == (3, 1, 4)
    for bad in [lambda: x.squeeze(1), lambda: x.squeeze(7), lambda: wf.expand_dims(x, axis=9)]:
        with pytest.raises(wf.errors.ShapeError):
            bad()


def test_flatten():
    x = wf.zeros((2, 3, 4))
    assert x.flatten().shape == (24,) and wf.flatten(x, 1).shape == (2, 12)
    assert wf.flatten(x, 0, 1).shape == (6, 4) and wf.flatten(wf.tensor(1.0)).shape == (1,)
    with pytest.raises(wf.errors.ShapeError, match="start_dim"):
        wf.flatten(x, 2, 1)


def test_broadcasting():
    a = np.arange(3)[:, None]
    x = wf.tensor(a)
    assert (wf.broadcast_to(x, (2, 3, 4)).numpy() == np.broadcast_to(a, (2, 3, 4))).all()
    got = wf.broadcast_arrays(x, wf.zeros(4), 1.0)
    assert [g.shape for g in got] == [(3, 4)] * 3
    with pytest.raises(wf.errors.ShapeError):
        wf.broadcast_to(x, (2, 4))
    with pytest.raises(wf.errors.ShapeError, match="broadcast"):
        wf.broadcast_arrays(x, wf.zeros((4, 4)))


def test_unstack():
    a = np.arange(24).reshape(2, 3, 4)
    for axis in (0, 1, -1):
        got = wf.unstack(wf.tensor(a), axis=axis)
        assert len(got) == a.shape[axis]
        for k, g in enumerate(got):
            assert (g.numpy() == a.take(k, axis)).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda a: wf.zeros(a),
        lambda a: wf.ones((a, 3)),
        lambda a: wf.rand(a, 3),
        lambda a: wf.randn((a, 3)),
        lambda a: wf.arange(2).reshape(a, 1),
        lambda a: wf.arange(2).reshape((a, 1)),
        lambda a: wf.reshape(wf.arange(2), a),
        lambda a: wf.reshape(wf.arange(2), (a, 1)),
        lambda a: wf.permute_dims(wf.zeros((4, 5, 6)), (a, 0, 1)),
        lambda a: wf.zeros((4, 5, 6)).sum((a, 0)),
        lambda a: wf.max(wf.ones((4, 5, 6)), axis=(a, 0)),
        lambda a: wf.min(wf.ones((4, 5, 6)), axis=(a, 0)),
        lambda a: wf.mean(wf.ones((4, 5, 6)), axis=(a, 0)),
    ],
)
def test_a_float_is_no_size_and_no_axis_after_the_integer_it_is_equal_to(call):
    for _ in range(2):
        call(2)
        with pytest.raises(wf.errors.ShapeError):
            call(2.0)
    assert call(np.int64(2)).shape == call(2).shape
