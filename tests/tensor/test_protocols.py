"""What Python's own syntax asks of a tensor: comparisons with any integer, divmod, round, format;
and arguments that equal a good one without being it.
"""

import operator

import numpy as np
import pytest
import torch

import weft as wf
from weft.errors import (
    DTypeError,
    GradError,
    IndexRangeError,
    NumericsError,
    ShapeError,
    WeftError,
)

F = wf.nn.functional
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
BY_NAME = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
INTEGERS = (wf.int8, wf.uint8, wf.int32, wf.uint32, wf.int64, wf.uint64)


@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.name)
def test_integers_beyond_the_dtype_compare_as_in_numpy(compare, dtype):
    a = np.array([np.iinfo(dtype.np).min, 0, 1, np.iinfo(dtype.np).max], dtype.np)
    x = wf.tensor(a)
    for n in (-1, 300, -129, 2**31, -(2**31) - 1, 2**40, 2**63, -(2**63), 2**64, -(2**64), 2**70):
        for _ in range(2):  # planned now, and then known
            assert compare(x, n).tolist() == compare(a, n).tolist(), n
            assert compare(n, x).tolist() == compare(n, a).tolist(), n
        name = BY_NAME.get(
            compare.__name__, {"eq": "equal", "ne": "not_equal"}.get(compare.__name__)
        )
        assert getattr(wf, name)(x, n).tolist() == compare(a, n).tolist(), n
        assert getattr(wf, name)(n, x).tolist() == compare(n, a).tolist(), n


@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda f: f.__name__)
def test_floats_compare_with_integers_that_no_float_holds(compare):
    a = [-np.inf, -1.0, 0.0, 3e38, np.inf, np.nan]
    x = wf.tensor(a)
    for n in (10**400, -(10**400)):
        assert compare(x, n).tolist() == [compare(v, n) for v in a]


def test_membership_of_integers_beyond_the_dtype():
    x = wf.tensor([1, 2], dtype=wf.uint8)
    assert 2 in x and 300 not in x and -1 not in x


def test_arithmetic_beyond_the_dtype_is_still_an_error():
    with pytest.raises(NumericsError):
        wf.tensor([1], dtype=wf.uint8) + 300


def test_divmod():
    a, b = np.array([7.5, -7.5, 3.0]), np.array([2.0, 2.0, -1.25])
    for x, y in ((wf.tensor(a), wf.tensor(b)), (wf.tensor(a), 2.0), (7.0, wf.tensor(b))):
        want = np.divmod(*(v.numpy() if isinstance(v, wf.Tensor) else v for v in (x, y)))
        got = divmod(x, y)
        assert [g.tolist() for g in got] == [w.tolist() for w in want]
    assert [g.tolist() for g in divmod(wf.tensor([7, -7]), 2)] == [[3, -4], [1, 1]]
    with pytest.raises(TypeError):
        divmod(wf.tensor([1.0]), "text")


@pytest.mark.parametrize("digits", [None, 0, 1, 2, 5, 11, 13, -1, -2, -11, 400])
def test_round(digits):
    a = np.array([3.14159265358979, -2.5, 0.125, 1234.5678, 15.0, 25.0, 7e11])
    got = round(wf.tensor(a), digits) if digits is not None else round(wf.tensor(a))
    want = np.round(a, digits or 0) if digits != 400 else a
    assert got.tolist() == want.tolist()
    n = np.array([7, 15, 25, -25, 1234, 50])
    assert round(wf.tensor(n), digits).tolist() == np.round(n, min(digits or 0, 0)).tolist()


def test_round_is_differentiable_and_wants_an_integer():
    assert round(wf.tensor(3.14159), 2).item() == pytest.approx(3.14)
    half = round(wf.tensor([1.26], dtype=wf.float16), 1)
    assert half.dtype is wf.float16 and half.item() == pytest.approx(1.3, abs=1e-3)
    with pytest.raises(WeftError, match="integer"):
        round(wf.tensor(1.0), 1.5)


def test_format():
    x = wf.tensor(3.14159)
    assert (
        f"{x:.2f}" == "3.14" and f"{wf.tensor(7):04d}" == "0007" and f"{x * 0:+.1e}" == "+0.0e+00"
    )
    assert f"{wf.tensor([2.5]):.1f}" == "2.5"
    pair = wf.tensor([1.0, 2.0])
    assert f"{pair}" == str(pair) and f"{pair:>30}" == f"{pair!s:>30}"
    with pytest.raises(ShapeError, match=r"one element.*\.2f.*got f32\[2\].*tolist"):
        f"{pair:.2f}"


# equal, but not the same


def test_arguments_that_equal_a_known_one_are_still_checked():
    x = wf.ones((2, 3))
    calls = {
        lambda axis: x.sum(axis=axis): (1, 1.0),
        lambda axis: wf.max(x, axis=axis): (0, 0.0),
        lambda axis: wf.min(x, axis=axis): (1, 1.0),
        lambda axis: wf.mean(x, axis=axis): (1, 1.0),
        lambda keep: x.sum(axis=0, keepdims=keep): (False, 0),
        lambda keep: wf.mean(x, axis=0, keepdims=keep): (True, 1),
        lambda axis: F.softmax(x, axis): (1, 1.0),
        lambda axis: F.log_softmax(x, axis): (0, 0.0),
        lambda axis: wf.concat([x, x], axis=axis): (0, 0.0),
        lambda axis: wf.stack([x, x], axis=axis): (1, 1.0),
        lambda i: x[i]: (1, 1.0),
    }
    for f, (good, bad) in calls.items():
        for _ in range(3):
            f(good)
        with pytest.raises(WeftError):
            f(bad)


def test_an_index_of_true_is_a_mask():
    x = wf.arange(6).reshape(2, 3)
    for _ in range(2):
        assert x[1].shape == (3,) and x[True].shape == (1, 2, 3)
        assert x[0].shape == (3,) and x[False].shape == (0, 2, 3)


# errors in the words of who called


def test_convolutions_name_the_function():
    x, w = wf.ones((1, 3, 5, 5)), wf.ones((2, 2, 3, 3))
    for f, a, b in (
        (F.conv2d, x, w),
        (F.conv1d, x[:, :, 0], w[:, :, 0]),
        (F.conv1d, wf.ones((1, 3, 4)), wf.ones((2, 3, 9))),
        (F.conv_transpose2d, x, w),
        (F.conv_transpose1d, x[:, :, 0], w[:, :, 0]),
    ):
        with pytest.raises(ShapeError) as caught:
            f(a, b)
        assert caught.value.place == f.__name__


@pytest.mark.parametrize("bad", [-1, -9, 3, 77])
def test_a_class_or_row_out_of_range_is_shown(bad):
    for call in (
        lambda: F.embedding(wf.tensor([0, bad]), wf.ones((3, 2))),
        lambda: F.cross_entropy(wf.ones((2, 3)), wf.tensor([0, bad])),
        lambda: F.nll_loss(wf.ones((2, 3)), wf.tensor([0, bad])),
    ):
        with pytest.raises(IndexRangeError, match=rf"in \[0, 3\), got {bad}$"):
            call()


def test_narrow_indices_into_long_tables():
    table = wf.arange(300).reshape(300, 1) * 1.0
    index = wf.tensor([3, 127], dtype=wf.int8)
    assert F.embedding(index, table).tolist() == [[3.0], [127.0]]
    x, t = np.ones((2, 300), np.float32), wf.tensor([3, 127], dtype=wf.int8)
    assert F.cross_entropy(wf.tensor(x), t, ignore_index=-1000).item() == pytest.approx(np.log(300))
    with pytest.raises(IndexRangeError, match="got -5"):
        F.embedding(wf.tensor([-5], dtype=wf.int8), table)


# gradients and seeds


def test_only_a_leaf_stops_requiring_a_gradient():
    w = wf.ones(2, requires_grad=True)
    y = w * 2.0
    for stop in (lambda: y.requires_grad_(False), lambda: setattr(y, "requires_grad", False)):
        with pytest.raises(GradError, match=r"multiply.*detach"):
            stop()
    assert y.requires_grad and not y.detach().requires_grad
    assert not w.requires_grad_(False).requires_grad
    assert not wf.ones(2).requires_grad_(False).requires_grad
    with pytest.raises(RuntimeError):
        (torch.ones(2, requires_grad=True) * 2).requires_grad_(False)


def test_no_grad_holds_for_every_step_of_a_generator():
    w = wf.ones(2, requires_grad=True)

    @wf.no_grad()
    def steps():
        got = yield (w * 2.0).requires_grad
        try:
            yield got, (w * 2.0).requires_grad
        except KeyError:
            yield (w * 2.0).requires_grad
        return (w * 2.0).requires_grad

    g = steps()
    assert next(g) is False and (w * 2.0).requires_grad
    assert g.send(5) == (5, False) and (w * 2.0).requires_grad
    assert g.throw(KeyError()) is False and (w * 2.0).requires_grad
    with pytest.raises(StopIteration) as end:
        next(g)
    assert end.value.value is False and (w * 2.0).requires_grad

    closed = []

    @wf.no_grad
    def closing():
        try:
            yield 1
        finally:
            closed.append((w * 2.0).requires_grad)

    c = closing()
    next(c)
    c.close()
    assert closed == [False] and (w * 2.0).requires_grad


def test_seeds_of_64_bits():
    for seed in (0, -1, 2**64 - 1, -(2**63)):
        wf.manual_seed(seed)
    for seed in (2**64, -(2**63) - 1, 2**100):
        with pytest.raises(NumericsError, match="64 bits"):
            wf.manual_seed(seed)
    with pytest.raises((ShapeError, DTypeError)):
        wf.manual_seed(1.5)
    wf.manual_seed(0)
