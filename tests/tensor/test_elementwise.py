"""Functions on each element agree with NumPy, and name what is wrong with bad arguments."""

import numpy as np
import pytest

import weft as wf
from weft.ops.define import OPS
from weft.tensor import elementwise
from weft.types.dtype import DTYPES

ONE = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_invert",
    "ceil",
    "cos",
    "cosh",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "isfinite",
    "isinf",
    "isnan",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "negative",
    "positive",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "softplus",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]
TWO = [
    "add",
    "atan2",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "copysign",
    "divide",
    "equal",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "less",
    "less_equal",
    "logaddexp",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "not_equal",
    "pow",
    "remainder",
    "subtract",
]


@pytest.mark.parametrize("name", list(elementwise.__test__))
def test_elementwise_functions_have_the_name_and_an_example(name):
    f = getattr(wf, name)
    assert f.__name__ == name and ">>>" in f.__doc__ and f.__module__ == "weft.tensor.elementwise"


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_operand(name):
    op = OPS[name]
    sample = next(s for s in op.samples() if s.args[0].shape == (7,))
    x = sample.args[0]
    got = getattr(wf, name)(wf.tensor(x))
    if name != "erfinv" and name != "digamma":
        np.testing.assert_allclose(
            got.numpy(), op.reference(x).astype(got.numpy().dtype), rtol=2e-6
        )
    again = getattr(wf, name)(wf.tensor(x))  # by the plan of the first call
    assert again.numpy().tobytes() == got.numpy().tobytes()
    from_array = getattr(wf, name)(x)
    assert from_array.numpy().tobytes() == got.numpy().tobytes()


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_operands(name):
    op = OPS[name]
    a, b = next(s for s in op.samples() if s.args[0].shape == (7,)).args
    f = getattr(wf, name)
    got = f(wf.tensor(a), wf.tensor(b))
    np.testing.assert_allclose(got.numpy(), op.reference(a, b).astype(got.numpy().dtype), rtol=2e-6)
    assert f(a, wf.tensor(b)).numpy().tobytes() == got.numpy().tobytes()
    assert f(wf.tensor(a), wf.tensor(b)).numpy().tobytes() == got.numpy().tobytes()
    with pytest.raises(wf.errors.DTypeError):
        f(wf.tensor(a), "two")
    with pytest.raises(wf.errors.DTypeError):
        f(wf.tensor(a), None)


def test_python_numbers_give_way():
    x = wf.tensor([1, 2], dtype=wf.int8)
    assert wf.add(x, 1).dtype is wf.int8
    assert wf.add(x, 1.0).dtype is wf.float32
    assert wf.multiply(2.0, wf.tensor([1.0], dtype=wf.bfloat16)).dtype is wf.bfloat16


def test_clip_with_open_sides():
    a = np.array([-2.0, 0.5, 2.0, np.nan], np.float32)
    x = wf.tensor(a)
    np.testing.assert_array_equal(wf.clip(x, -1, 1).numpy(), np.clip(a, -1, 1))
    np.testing.assert_array_equal(wf.clip(x, max=1).numpy(), np.clip(a, None, 1))
    np.testing.assert_array_equal(wf.clip(x, min=-1).numpy(), np.clip(a, -1, None))
    np.testing.assert_array_equal(wf.clip(x).numpy(), a)
    i = wf.tensor([-5, 0, 5])
    assert wf.clip(i, min=-1).tolist() == [-1, 0, 5] and wf.clip(i, max=1).dtype is wf.int64
    bounds = wf.tensor([0.0, 1.0, 1.0, 0.0])
    np.testing.assert_array_equal(wf.clip(x, 0, bounds).numpy(), np.clip(a, 0, bounds.numpy()))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.is_float], ids=str)
def test_the_next_float_is_one_of_the_dtype(dtype):
    a, b = [1, -2, 0, 0, float("inf"), 3, np.nan, 0.5], [2, 5, -1, 1, 0, 3, 1, -1]
    x, y = (wf.tensor(v, dtype=dtype) for v in (a, b))
    got = wf.nextafter(x, y).numpy()
    assert got.tobytes() == np.nextafter(x.numpy(), y.numpy()).tobytes()
    assert got[0] > 1 and got[2] < 0
