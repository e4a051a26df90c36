"""Joining, cutting, padding and rearranging against NumPy and PyTorch, values and gradients."""

import numpy as np
import pytest
import torch

import weft as wf
from weft.errors import DTypeError, ShapeError
from weft.ops.padding import extend
from weft.schedule.at import plan_at
from weft.tensor.manipulation import pad

rng = np.random.default_rng(0)


def both(shape):
    a = rng.standard_normal(shape)
    return wf.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)


def agree(got, want, *leaves):
    """Equal values, and equal gradients of (tensor, torch tensor) pairs for the same cotangent."""
    assert got.shape == tuple(want.shape)
    np.testing.assert_array_equal(got.numpy(), want.detach().numpy())
    g = np.cos(np.arange(got.size)).reshape(got.shape)
    got.backward(wf.tensor(g))
    want.backward(torch.tensor(g))
    for x, t in leaves:
        np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis):
    pairs = [both(tuple(n if a == axis % 3 else 3 for a in range(3))) for n in (2, 5, 0, 40)]
    agree(
        wf.concat([x for x, _ in pairs], axis=axis), torch.cat([t for _, t in pairs], axis), *pairs
    )


def test_concat_of_any_layout_and_dtype():
    a, b = np.arange(6).reshape(2, 3), np.arange(4.0, dtype="f4").reshape(2, 2)
    x = wf.concat(
        [wf.tensor(a).T, wf.tensor(a).T[::-1], wf.tensor(b, dtype=wf.float64)[:, ::-1]], axis=0
    )
    want = np.concatenate([a.T, a.T[::-1], b[:, ::-1]], 0)
    assert x.dtype is wf.float64
    np.testing.assert_array_equal(x.numpy(), want)
    assert wf.concat([wf.tensor(a), wf.tensor(b)], axis=None).shape == (10,)


def test_concat_does_not_depend_on_threads():
    xs = [wf.tensor(rng.random((3, n)).astype("f4")) for n in (70_001, 3, 120_000)]
    want, threads = np.concatenate([x.numpy() for x in xs], 1), wf.get_num_threads()
    try:
        for n in (1, 2, 3):
            wf.set_num_threads(n)
            np.testing.assert_array_equal(wf.concat(xs, axis=1).numpy(), want)
    finally:
        wf.set_num_threads(threads)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_stack_split_chunk(axis):
    pairs = [both((4, 5)) for _ in range(3)]
    agree(
        wf.stack([x for x, _ in pairs], axis=axis), torch.stack([t for _, t in pairs], axis), *pairs
    )
    x, t = both((7, 7))
    for sections in (3, [2, 0, 5], 7, 9):
        for a, b in zip(wf.split(x, sections, axis), torch.split(t, sections, axis), strict=True):
            np.testing.assert_array_equal(a.numpy(), b.detach().numpy())
    for n in (1, 2, 3, 9):
        got, want = wf.chunk(x, n, axis), torch.chunk(t, n, axis)
        assert [p.shape for p in got] == [tuple(p.shape) for p in want]


@pytest.mark.parametrize(
    ("mode", "torchs"), [("reflect",) * 2, ("replicate",) * 2, ("circular",) * 2]
)
def test_pad_that_continues(mode, torchs):
    for shape, widths in [((2, 3, 9), (4, 5)), ((2, 3, 5, 6), (1, 2, 3, 0)), ((2, 3, 70), (0, 3))]:
        x, t = both(shape)
        agree(pad(x, widths, mode), torch.nn.functional.pad(t, widths, torchs), (x, t))


def test_pad_with_a_number():
    for shape, widths in [
        ((5,), (1, 2)),
        ((3, 4), (0, 0, 2, 1)),
        ((3, 4, 5), (1, 1, 1, 1)),
        ((3, 8), (-2, 3, -1, 0)),
    ]:
        x, t = both(shape)
        agree(pad(x, widths, value=1.5), torch.nn.functional.pad(t, widths, value=1.5), (x, t))
    v = wf.tensor(2.0, requires_grad=True)
    pad(wf.zeros((2, 3)), (1, 1), value=v).sum().backward()
    assert v.grad.item() == 4


def test_a_new_width_is_no_new_kernel():
    x = wf.zeros((9, 11), dtype=wf.float64)
    specs = set()
    for widths in (((1, 2), (3, 1)), ((2, 1), (1, 4))):
        out = extend.infer(x.type, widths=widths, mode="reflect")
        launch = plan_at(extend.at, [x.data.layout], {"widths": widths, "mode": "reflect"}, out)
        specs.add(launch.phases[0].spec)
    assert len(specs) == 1


@pytest.mark.parametrize(
    ("shift", "axis"),
    [(1, None), (-3, 0), ((1, 2), (0, 1)), ((5, -7), (1, 1)), (2, (0, 1)), (0, 1)],
)
def test_roll(shift, axis):
    x, t = both((4, 6))
    given = (
        shift if isinstance(shift, tuple) or not isinstance(axis, tuple) else (shift,) * len(axis)
    )
    agree(wf.roll(x, shift, axis=axis), torch.roll(t, given, axis), (x, t))


def test_flip_tile_repeat():
    x, t = both((2, 3))
    agree(wf.flip(x), torch.flip(t, (0, 1)), (x, t))
    for reps in [(2,), (2, 3), (2, 1, 3), (0, 2)]:
        x, t = both((2, 3))
        agree(wf.tile(x, reps), torch.tile(t, reps), (x, t))
    for repeats, axis in [(2, 0), (3, 1), (2, None), ([1, 0, 2], 1)]:
        x, t = both((2, 3))
        n = torch.tensor(repeats) if isinstance(repeats, list) else repeats
        agree(wf.repeat(x, repeats, axis=axis), torch.repeat_interleave(t, n, axis), (x, t))
    none = wf.zeros((2, 0))
    assert wf.repeat(none, [], axis=1).shape == wf.repeat(none, 3, axis=1).shape == (2, 0)


def test_diagonals_and_triangles():
    for offset in (-2, 0, 1, 7):
        x, t = both((2, 4, 5))
        agree(
            wf.diagonal(x, offset=offset),
            torch.diagonal(t, offset, -2, -1) if offset < 7 else t[:, :0, 0],
            (x, t),
        )
        x, t = both((2, 4, 5))
        agree(wf.tril(x, k=offset), torch.tril(t, offset), (x, t))
    for offset in (-2, 0, 1):
        x, t = both((4,))
        agree(wf.diag(x, offset=offset), torch.diag(t, offset), (x, t))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_diff(n):
    x, t = both((4, 6))
    agree(wf.diff(x, n=n, axis=0), torch.diff(t, n, 0), (x, t))
    a = np.array([[True, False, False]])
    np.testing.assert_array_equal(wf.diff(wf.tensor(a)).numpy(), np.diff(a))
    np.testing.assert_array_equal(
        wf.diff(wf.tensor([1, 4]), prepend=wf.tensor([0]), append=wf.tensor([9])).numpy(), [1, 3, 5]
    )
    assert wf.diff(wf.tensor([1, 4]), n=0, prepend=wf.tensor([0])).tolist() == [1, 4]  # as NumPy


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: wf.concat([]), ShapeError),
        (lambda x: wf.concat(x), DTypeError),
        (lambda x: wf.concat([x, x[0]]), ShapeError),
        (lambda x: wf.concat([x], axis=2), ShapeError),
        (lambda x: wf.stack([x, x[:1]]), ShapeError),
        (lambda x: wf.split(x, 0), ShapeError),
        (lambda x: wf.split(x, [1, 1]), ShapeError),
        (lambda x: wf.split(x, "a"), ShapeError),
        (lambda x: wf.chunk(x, 0), ShapeError),
        (lambda x: wf.tile(x, (-1,)), ShapeError),
        (lambda x: wf.repeat(x, -1), ShapeError),
        (lambda x: wf.repeat(x, [1, 2], axis=0), ShapeError),
        (lambda x: wf.roll(x, (1, 2), axis=0), ShapeError),
        (lambda x: wf.flip(x, axis=5), ShapeError),
        (lambda x: wf.diff(x, n=-1), ShapeError),
        (lambda x: pad(x, (1,)), ShapeError),
        (lambda x: pad(x, (4, 0), "reflect"), ShapeError),
        (lambda x: pad(x, (1, 1), "mirror"), ShapeError),
        (lambda x: pad(x, (-5, 0)), ShapeError),
        (lambda x: wf.diag(wf.zeros((2, 2, 2))), ShapeError),
        (
            lambda x: wf.concat([wf.zeros(1, dtype=wf.uint64), wf.zeros(1, dtype=wf.int8)]),
            DTypeError,
        ),
    ],
)
def test_bad_arguments_are_named(call, error):
    with pytest.raises(error):
        call(wf.zeros((3, 4)))
