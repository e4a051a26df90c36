"""Functions on tensors: the names there are, dtypes, products, and what a call costs."""

import timeit

import numpy as np
import pytest

import weft as wf
from weft.ops.define import OPS
from weft.tensor import elementwise, shapes, statistics
from weft.types.dtype import DTYPES

FLOATS = [d for d in DTYPES if d.is_float]
#: the array API standard 2024.12, without what is for complex numbers
STANDARD = """
    arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like
    tril triu zeros zeros_like
    astype can_cast finfo iinfo isdtype result_type
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
    bitwise_or bitwise_right_shift bitwise_xor ceil clip copysign cos cosh divide equal exp expm1
    floor floor_divide greater greater_equal hypot isfinite isinf isnan less less_equal log log1p
    log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply
    negative nextafter not_equal positive pow reciprocal remainder round sign signbit sin sinh
    square sqrt subtract tan tanh trunc
    take take_along_axis
    matmul matrix_transpose tensordot vecdot
    broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll
    squeeze stack tile unstack
    argmax argmin count_nonzero nonzero searchsorted where
    unique_all unique_counts unique_inverse unique_values
    argsort sort
    cumulative_prod cumulative_sum max mean min prod std sum var
    all any diff
"""
CREATION = {
    "arange": (3,), "asarray": ([1.0],), "empty": (3,), "empty_like": (wf.ones(2),), "eye": (2,),
    "from_dlpack": (np.ones(2),), "full": (3, 1.0), "full_like": (wf.ones(2), 1.0),
    "linspace": (0, 1, 3), "ones": (3,), "ones_like": (wf.ones(2),), "zeros": (3,),
    "zeros_like": (wf.ones(2),),
}  # fmt: skip


def test_names_of_the_standard_are_there():
    assert not [n for n in STANDARD.split() if not callable(getattr(wf, n, None))]
    assert wf.ones(3)[:, wf.newaxis].shape == (3, 1) and wf.pi > wf.e and wf.inf != wf.nan


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_a_shape_may_be_said_by_name(name):
    make = getattr(wf, name)
    assert make(shape=(2, 3)).shape == (2, 3) and make(shape=4).shape == (4,)
    with pytest.raises(wf.errors.ShapeError, match="once"):
        make(2, shape=(2,))
    with pytest.raises(wf.errors.ShapeError):
        make(shape=(2.5,))


@pytest.mark.parametrize("name", CREATION)
def test_what_makes_tensors_takes_a_device(name):
    made = getattr(wf, name)(*CREATION[name], device="cpu")
    assert made.device == "cpu"
    assert made.shape == getattr(wf, name)(*CREATION[name], device=None).shape
    with pytest.raises(wf.errors.DeviceError, match=f'{name}.*"cpu".*cuda'):
        getattr(wf, name)(*CREATION[name], device="cuda:0")
    with pytest.raises(wf.errors.DeviceError):
        wf.astype(made, wf.float64, device="mps")


# dtypes


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_astype_between_all_dtypes(dtype):
    a = np.array([0, 1, 100]).astype(dtype.np)
    x = wf.tensor(a)
    for other in DTYPES:
        for _ in range(2):
            y = x.astype(other)
            assert y.dtype is other and (y.numpy() == a.astype(other.np)).all()
    assert x.astype(dtype.name).dtype is dtype and wf.astype(x, dtype, copy=False) is x
    assert wf.astype(x, dtype) is not x


def test_dtype_questions():
    assert wf.can_cast(wf.int8, wf.int16) and not wf.can_cast(wf.int16, wf.int8)
    assert wf.can_cast(wf.zeros(1), wf.float64) and not wf.can_cast(wf.uint64, wf.int64)
    for d in FLOATS:
        info = wf.finfo(d)
        assert info.dtype is d and info.bits == d.bits
        assert float(np.asarray(1 + info.eps).astype(d.np)) > 1
    assert wf.iinfo(wf.zeros(1, dtype=wf.uint8)).max == 255
    with pytest.raises(wf.errors.DTypeError, match="iinfo"):
        wf.finfo(wf.int8)
    with pytest.raises(wf.errors.DTypeError, match="finfo"):
        wf.iinfo(wf.float32)
    kinds = {
        "bool": "b",
        "signed integer": "i",
        "unsigned integer": "u",
        "integral": "iu",
        "real floating": "f",
        "complex floating": "",
        "numeric": "iuf",
    }
    for d in DTYPES:
        for kind, letters in kinds.items():
            assert wf.isdtype(d, kind) == (d.kind in letters)
        assert wf.isdtype(d, d) and wf.isdtype(d, ("bool", "numeric"))
    with pytest.raises(wf.errors.DTypeError):
        wf.isdtype(wf.int8, "whole")
    assert wf.result_type(wf.int8, wf.zeros(1), 1.0) is wf.float32
    assert wf.result_type(wf.int8, 3) is wf.int8 and wf.result_type(1, True) is wf.int64


# products


def test_products_agree_with_numpy():
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((2, 3, 4), (4, 3)))
    x, y = wf.tensor(a), wf.tensor(b)
    close = lambda got, want: np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)
    for _ in range(2):
        close(wf.matmul(x, y), a @ b)
    close(x.matmul(y), a @ b)
    close(wf.tensordot(x, y, axes=1), np.tensordot(a, b, axes=1))
    close(wf.tensordot(x, y, axes=((1, 2), (1, 0))), np.tensordot(a, b, axes=((1, 2), (1, 0))))
    close(wf.vecdot(x, y.T), (a * b.T).sum(-1))
    close(wf.vecdot(x, x, axis=1), (a * a).sum(1))
    close(wf.outer(x[0, 0], x[0, 1]), np.outer(a[0, 0], a[0, 1]))
    for equation in ["ijk,kl->ijl", "ijk,kj->i", "ijk->kji", "ijk,ijk->", "...k,kl->...l"]:
        operands = (
            (a, b)
            if "," in equation and equation != "ijk,ijk->"
            else (a, a)
            if "," in equation
            else (a,)
        )
        close(wf.einsum(equation, *map(wf.tensor, operands)), np.einsum(equation, *operands))
    for bad in [
        lambda: wf.matmul(x, x),
        lambda: wf.tensordot(x, y, axes=9),
        lambda: wf.einsum("ij,jk", x, y),
        lambda: wf.vecdot(x, y),
        lambda: wf.einsum("ijk->q", x),
    ]:
        with pytest.raises(wf.errors.ShapeError):
            bad()
    with pytest.raises(wf.errors.DTypeError):
        wf.einsum(x, "ij")


def test_gradients_flow_through_the_functions():
    x = wf.tensor(np.arange(6, dtype=np.float32).reshape(2, 3), requires_grad=True)
    y = x.reshape(3, -1).permute_dims((1, 0)).sum(axis=1, keepdims=True).squeeze().expand_dims(0)
    (y * wf.tensor([[1.0, 10.0]])).sum().backward()
    assert x.grad.tolist() == [[1.0, 10.0, 1.0], [10.0, 1.0, 10.0]]


@pytest.mark.parametrize(
    "method", ["reshape", "sum", "mean", "permute_dims", "astype", "exp", "argmax"]
)
def test_methods_are_there(method):
    assert callable(getattr(wf.Tensor, method))


def test_plans_found_by_spelling_are_forgotten_with_the_rest():
    x = wf.zeros((3, 5))
    before = x.sum(-1).numpy()
    n = wf.get_num_threads()
    wf.set_num_threads(1)
    try:
        assert not OPS["sum"].plans
        assert (x.sum(-1).numpy() == before).all()
    finally:
        wf.set_num_threads(n)


def test_hot_functions_cost_little_more_than_an_operator():
    """A ratio within one process, so that a busy machine does not matter much."""
    x = wf.zeros((4, 4))
    calls = {"add": lambda: x + x, "sum": lambda: x.sum(), "reshape": lambda: x.reshape(2, 8)}
    for f in calls.values():
        f()
    best = {k: min(timeit.repeat(f, number=2000, repeat=15)) for k, f in calls.items()}
    assert best["sum"] < 2.5 * best["add"] and best["reshape"] < 2.5 * best["add"]


def test_public_names_are_functions_with_docstrings():
    for module in (elementwise, shapes, statistics):
        for name in vars(module):
            f = getattr(wf, name, None)
            if callable(f) and not name.startswith("_"):
                assert f.__doc__, name
