"""Tensors of data, numbers and ranges: values, dtypes, shared memory, errors."""

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest
import torch

import weft as wf
from weft.errors import AllocationError, DTypeError, NumericsError, ShapeError
from weft.ops.creation import arange, full, linspace

DTYPES = [
    wf.float64, wf.float32, wf.float16, wf.bfloat16, wf.int64, wf.int32, wf.int16, wf.int8,
    wf.uint64, wf.uint32, wf.uint16, wf.uint8, wf.bool,
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.5, wf.float32),
        (3, wf.int64),
        (True, wf.bool),
        ([1, 2.5], wf.float32),
        ([], wf.float32),
        ([[True, False]], wf.bool),
        (np.float64(2), wf.float64),
        ([np.float64(2)], wf.float64),
        (np.arange(3, dtype=np.int8), wf.int8),
        (2**63, wf.uint64),
        ((1, 2), wf.int64),
        (range(3), wf.int64),
    ],
)
def test_dtype_of_data(data, dtype):
    x = wf.tensor(data)
    assert x.dtype is dtype
    np.testing.assert_array_equal(x.numpy(), np.asarray(data).astype(dtype.np))


def test_tensor_copies():
    a = np.arange(4.0)
    for big in (a, np.zeros(10_000)):
        x = wf.tensor(big)
        big[0] = 99
        assert x[0].item() == 0
    y = wf.tensor(x)
    assert y.data.address != x.data.address and not y.requires_grad


def test_tensors_of_every_layout_and_byte_order():
    a = np.arange(24, dtype=">i4").reshape(2, 3, 4)
    for b in (a, a[::-1, :, ::2], a.T, a[:, 1:2], np.broadcast_to(a[0, 0], (3, 4))):
        np.testing.assert_array_equal(wf.tensor(b).numpy(), b)


@pytest.mark.parametrize(
    ("data", "dtype", "error"),
    [
        ([[1], [1, 2]], None, ShapeError),
        ("abc", None, DTypeError),
        (["a"], None, DTypeError),
        (None, None, DTypeError),
        (object(), None, DTypeError),
        ({"a": 1}, None, DTypeError),
        (1j, None, DTypeError),
        ([2**70], None, NumericsError),
        ([300], "int8", NumericsError),
        ([-1], "uint8", NumericsError),
        ([1.0], "complex64", DTypeError),
        ([1.0], 7, DTypeError),
        (np.array([1], "M8[s]"), None, DTypeError),
    ],
)
def test_bad_data_is_named(data, dtype, error):
    with pytest.raises(error):
        wf.tensor(data, dtype=dtype)


def test_asarray_gives_tensors_back_and_shares_on_request():
    x = wf.tensor([1.0, 2.0])
    assert wf.asarray(x) is x and wf.asarray(x, copy=True) is not x
    assert wf.asarray(x, dtype=wf.int32).dtype is wf.int32
    a = np.arange(3.0)
    shared = wf.asarray(a, copy=False)
    a[0] = 5
    assert shared.tolist() == [5, 1, 2]
    for bad in ([1.0], a.astype(">f8")):
        with pytest.raises(TypeError):
            wf.asarray(bad, copy=False)
    with pytest.raises(TypeError):
        wf.asarray(x, dtype=wf.int32, copy=False)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_shares_memory_with_torch_and_numpy(dtype):
    t = torch.arange(6).to(getattr(torch, dtype.name)).reshape(2, 3).T
    x = wf.from_dlpack(t)
    assert x.data.address == t.data_ptr() and x.dtype is dtype and x.shape == (3, 2)
    np.testing.assert_array_equal(x.numpy().astype(float), t.double().numpy())
    if dtype is not wf.bfloat16:
        a = np.arange(6).astype(dtype.np)[::-2]
        y = wf.from_dlpack(a)
        assert y.data.address == a.__array_interface__["data"][0]
        np.testing.assert_array_equal(y.numpy(), a)


def test_dlpack_takes_read_only_arrays_and_keeps_the_owner():
    a = np.arange(3.0)
    a.flags.writeable = False
    x = wf.from_dlpack(a)
    assert x.tolist() == [0, 1, 2]

    t = torch.arange(3.0)
    alive = weakref.ref(t.untyped_storage())
    x = wf.from_dlpack(t)
    view = x[1:]
    del t, x
    gc.collect()
    assert view.tolist() == [1, 2]
    del alive


def test_dlpack_refuses_what_it_cannot_take():
    with pytest.raises(DTypeError):
        wf.from_dlpack([1, 2])
    with pytest.raises(DTypeError):
        wf.from_dlpack(np.zeros(2, np.complex64))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (33, 70)])
def test_fills(dtype, shape):
    for f, n in ((wf.zeros, 0), (wf.ones, 1)):
        x = f(shape, dtype=dtype)
        assert x.dtype is dtype and x.shape == shape and (x.numpy() == n).all()
    x = wf.full(shape, 1, dtype=dtype)
    assert (x.numpy() == 1).all() and wf.empty(shape, dtype=dtype).shape == shape
    assert (wf.zeros_like(x) == 0).all() and (wf.ones_like(x) == 1).all()
    assert wf.full_like(x, 0, dtype=wf.int8).dtype is wf.int8 and wf.empty_like(x).type is x.type


def test_fills_know_their_limits():
    assert wf.full((1,), 2**64 - 1, dtype=wf.uint64).tolist() == [2**64 - 1]
    assert wf.full((2,), 0.1, dtype=wf.float64).tolist() == [0.1, 0.1]
    assert wf.full((2,), wf.tensor(2.5)).tolist() == [2.5, 2.5]
    for call, error in [
        (lambda: wf.full((1,), 300, dtype=wf.int8), NumericsError),
        (lambda: wf.full((1,), "a"), DTypeError),
        (lambda: wf.full((1,), [1, 2]), (ShapeError, DTypeError)),
        (lambda: wf.zeros(-1), ShapeError),
        (lambda: wf.zeros((2.5,)), ShapeError),
        (lambda: wf.zeros("ab"), ShapeError),
        (lambda: wf.zeros((2**40, 2**40)), ShapeError),
        (lambda: wf.zeros((1,) * 40), ShapeError),
        (lambda: wf.zeros(10**13), AllocationError),
        (lambda: wf.empty(10**13), AllocationError),
    ]:
        with pytest.raises(error):
            call()
    assert wf.zeros(3).tolist() == [0, 0, 0]  # the next one is right


def test_a_fill_has_a_gradient():
    v = wf.tensor(2.0, requires_grad=True)
    wf.full((3, 4), v).sum().backward()
    assert v.grad.item() == 12


@pytest.mark.parametrize(
    "args",
    [
        (5,),
        (2, 9),
        (2, 9, 3),
        (9, 2, -2),
        (0,),
        (-3,),
        (5, 5),
        (0.5, 2.0, 0.25),
        (3, 0),
        (1, 2, 0.3),
        (70,),
    ],
)
def test_arange(args):
    want = np.arange(*args)
    got = wf.arange(*args)
    assert got.dtype is (wf.int64 if want.dtype.kind == "i" else wf.float32)
    np.testing.assert_array_equal(got.numpy(), want.astype(got.dtype.np))


def test_arange_checks_its_arguments():
    assert wf.arange(3, dtype=wf.float16).dtype is wf.float16
    for args, error in [
        ((0, 5, 0), ShapeError), ((float("nan"),), NumericsError), ((float("inf"),), NumericsError),
        (("a",), DTypeError), ((0, 10**15, 1e-300), (ShapeError, AllocationError)),
    ]:  # fmt: skip
        with pytest.raises(error):
            wf.arange(*args)
    with pytest.raises(NumericsError):
        wf.arange(300, dtype=wf.int8)
    with pytest.raises(DTypeError):
        wf.arange(3, dtype=wf.bool)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 50, 1001])
@pytest.mark.parametrize("ends", [(0.0, 1.0), (-1.5, 7.25), (3.0, -3.0), (0.1, 0.7), (1e-30, 1e30)])
def test_linspace_has_exact_ends(n, ends):
    x = wf.linspace(*ends, n, dtype=wf.float64).numpy()
    np.testing.assert_allclose(x, np.linspace(*ends, n), rtol=1e-14, atol=1e-15)
    if n > 1:
        assert x[0] == ends[0] and x[-1] == ends[1]
    open_ended = wf.linspace(*ends, n, dtype=wf.float64, endpoint=False).numpy()
    np.testing.assert_allclose(
        open_ended, np.linspace(*ends, n, endpoint=False), rtol=1e-14, atol=1e-15
    )


def test_a_new_range_is_no_new_kernel_and_no_new_plan():
    wf.arange(0, 50), wf.linspace(0, 1, 50), wf.full((5,), 1.5)
    before = len(arange.plans), len(linspace.plans), len(full.plans)
    wf.arange(100, 150), wf.linspace(3, 4, 50), wf.full((5,), 2.5)
    assert (len(arange.plans), len(linspace.plans), len(full.plans)) == before


def test_matrices():
    for n, m, k in [(3, 3, 0), (2, 5, 1), (5, 2, -1), (3, 3, 10**20), (0, 2, 0)]:
        want = np.eye(n, m, min(k, 99))
        np.testing.assert_array_equal(wf.eye(n, m, k=k).numpy(), want)
    x = np.random.default_rng(0).random((2, 5, 7)).astype("f4")
    for k in (-9, -1, 0, 2, 9):
        np.testing.assert_array_equal(wf.tril(wf.tensor(x), k=k).numpy(), np.tril(x, k))
        np.testing.assert_array_equal(wf.triu(wf.tensor(x), k=k).numpy(), np.triu(x, k))


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid(indexing):
    parts = [np.arange(n) for n in (2, 3, 4)]
    for k in range(4):
        want = np.meshgrid(*parts[:k], indexing=indexing)
        got = wf.meshgrid(*map(wf.tensor, parts[:k]), indexing=indexing)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g.numpy(), w)
    with pytest.raises(ShapeError):
        wf.meshgrid(wf.arange(2), indexing="yx")


def test_bfloat16_data():
    a = np.array([1.5, -2.25], ml_dtypes.bfloat16)
    assert wf.tensor(a).dtype is wf.bfloat16 and wf.tensor(a).tolist() == [1.5, -2.25]
    assert wf.tensor([1.0, 2.0], dtype=wf.bfloat16).tolist() == [1.0, 2.0]


def test_tensor_copies_memory_that_others_can_write():
    raw = bytearray(8)
    x = wf.tensor(np.frombuffer(raw, np.uint8))
    y = wf.tensor(memoryview(raw))
    t = torch.zeros(3)
    z = wf.tensor(t)
    raw[0], t[0] = 9, 9
    assert x[0].item() == 0 and y[0].item() == 0 and z[0].item() == 0
