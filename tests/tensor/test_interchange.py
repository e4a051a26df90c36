"""Values in and out: DLPack with NumPy and PyTorch, `__array__`, pickling, copies. Memory is shared
where that is promised, and a value never changes but by who was lent its memory and writes to it.
"""

import copy
import gc
import pickle
import weakref

import ml_dtypes
import numpy as np
import pytest
import torch

import weft as wf
from weft.errors import DeviceError, DTypeError, ShapeError, SharingError
from weft.types import DTYPES

EVERY = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
NUMPYS = pytest.mark.parametrize(
    "dtype", [d for d in DTYPES if d is not wf.bfloat16], ids=lambda d: d.name
)
SHAPES = [(), (0,), (3,), (2, 0, 3), (3, 4, 5)]


def some(shape, dtype):
    return wf.astype(wf.arange(int(np.prod(shape))).reshape(shape), dtype)


def address(a):
    return a.__array_interface__["data"][0]


class Old:
    """A producer, or through its kwargs a consumer, from before DLPack had versions."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, stream=None):
        return self.x.__dlpack__()

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


# out


@EVERY
@pytest.mark.parametrize("shape", SHAPES)
def test_torch_sees_the_same_memory(dtype, shape):
    x = some(shape, dtype)
    t = torch.from_dlpack(x)
    assert t.dtype is getattr(torch, dtype.name) and tuple(t.shape) == shape
    assert t.data_ptr() == x.data.address or not x.size
    assert t.double().tolist() == x.astype(wf.float64).tolist()


@EVERY
def test_torch_sees_views(dtype):
    x = some((4, 6), dtype)
    for view in (x.T, x[1:, ::2], x[2], x[:, None, 3]):
        t = torch.from_dlpack(view)
        assert t.data_ptr() == view.data.address and tuple(t.shape) == view.shape
        assert t.double().tolist() == view.astype(wf.float64).tolist()


@NUMPYS
@pytest.mark.parametrize("shape", SHAPES)
def test_numpy_sees_the_same_memory_and_cannot_write(dtype, shape):
    x = some(shape, dtype)
    a = np.from_dlpack(x)
    assert a.dtype == dtype.np and a.shape == shape and not a.flags.writeable
    assert address(a) == x.data.address or not x.size
    assert a.tolist() == x.tolist()


def test_axes_that_others_do_not_take_are_copied():
    x = some((3, 4), wf.float32)
    for view in (x[::-1], wf.broadcast_to(x[0], (5, 4)), x[:, ::-2]):
        t = torch.from_dlpack(view)
        assert t.tolist() == view.tolist()
        t.zero_()
        with pytest.raises(SharingError, match="repeated or runs backwards"):
            view.__dlpack__(max_version=(1, 0), copy=False)
    assert x.tolist() == np.arange(12.0).reshape(3, 4).tolist()


@pytest.mark.parametrize("dtype", [wf.float32, wf.bfloat16], ids=lambda d: d.name)
def test_a_consumer_that_cannot_be_told_gets_a_copy(dtype):
    x = some((6,), dtype)
    t = torch.from_dlpack(x.__dlpack__())  # a capsule of the old kind
    t.zero_()
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(BufferError, match=r"before 1\.0"):
        x.__dlpack__(copy=False)


@pytest.mark.parametrize("dtype", [wf.float32, wf.bfloat16], ids=lambda d: d.name)
def test_a_copy_that_was_asked_for_is_the_consumers(dtype):
    x = some((6,), dtype)
    t = torch.from_dlpack(x, copy=True)
    t.zero_()
    assert t.data_ptr() != x.data.address and x.tolist() == [0, 1, 2, 3, 4, 5]
    if dtype is wf.float32:
        a = np.from_dlpack(x, copy=True)
        a[0] = 9
        assert x.tolist()[0] == 0


def test_other_devices_and_streams_are_refused():
    x = wf.ones(3)
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="CPU"):
        x.__dlpack__(max_version=(1, 0), dl_device=(2, 0))
    with pytest.raises(BufferError, match="streams"):
        x.__dlpack__(stream=3)


def test_who_borrowed_memory_keeps_it_alive():
    x = wf.arange(100_000) + 1
    t, a = torch.from_dlpack(x), np.from_dlpack(x)
    del x
    gc.collect()
    for _ in range(20):
        wf.zeros(100_000) + 1.0
    assert int(t[-1]) == a[-1] == 100_000


def test_memory_that_was_lent_out_is_given_back():
    def lend():
        x = wf.zeros(1 << 20)
        torch.from_dlpack(x), np.from_dlpack(x), torch.from_dlpack(x.__dlpack__())

    lend()
    gc.collect()
    from_start = torch.from_dlpack(wf.zeros(4))
    used = [_used() for _ in range(3) if lend() is None]
    assert max(used) == min(used), used
    assert from_start.tolist() == [0.0] * 4


def _used():
    gc.collect()
    return wf.runtime.start.engine().memory_stats().used


# in


@EVERY
@pytest.mark.parametrize("shape", SHAPES)
def test_memory_of_torch(dtype, shape):
    t = torch.arange(int(np.prod(shape))).to(getattr(torch, dtype.name)).reshape(shape)
    x, y = wf.from_dlpack(t), wf.tensor(t)
    assert x.dtype is y.dtype is dtype and x.shape == y.shape == shape
    assert x.data.address == t.data_ptr() or not x.size
    assert x.astype(wf.float64).tolist() == y.astype(wf.float64).tolist() == t.double().tolist()
    t.zero_()
    assert y.astype(wf.float64).tolist() == some(shape, dtype).astype(wf.float64).tolist()


@EVERY
def test_strided_memory_of_torch(dtype):
    t = torch.arange(24).to(getattr(torch, dtype.name)).reshape(2, 3, 4).permute(2, 0, 1)[::2]
    for x in (wf.from_dlpack(t), wf.asarray(t), wf.from_dlpack(Old(t))):
        assert x.dtype is dtype and x.astype(wf.float64).tolist() == t.double().tolist()
    assert wf.from_dlpack(t).data.address == t.data_ptr()


@NUMPYS
def test_memory_of_numpy(dtype):
    base = np.arange(24).astype(dtype.np).reshape(4, 6)
    for a in (base, base.T, base[::-2, 1:], base[0, 0], base[:, :0], np.asfortranarray(base)):
        a = np.asarray(a)
        x = wf.from_dlpack(a)
        assert x.dtype is dtype and x.shape == a.shape and x.tolist() == a.tolist()
        assert x.data.address == address(a) or not x.size


def test_bfloat16_makes_the_round_trip():
    t = torch.tensor([1.5, -0.0, float("inf"), 3e-40, 1e30], dtype=torch.bfloat16)
    x = wf.from_dlpack(t)
    back = torch.from_dlpack(x)
    assert x.dtype is wf.bfloat16 and back.dtype is torch.bfloat16
    assert back.data_ptr() == t.data_ptr() == x.data.address
    assert torch.equal(back.view(torch.int16), t.view(torch.int16))
    assert wf.tensor(t).numpy().tobytes() == x.numpy().tobytes()
    assert wf.tensor(t, dtype=wf.float32).tolist() == t.float().tolist()
    a = np.array([1.5, 2.5], ml_dtypes.bfloat16)
    assert wf.tensor(a).dtype is wf.bfloat16 and wf.tensor(a).tolist() == [1.5, 2.5]
    assert wf.tensor(a).numpy().dtype == ml_dtypes.bfloat16


def test_a_producer_from_before_versions_is_taken():
    a = np.arange(5.0)
    assert wf.from_dlpack(Old(a)).data.address == address(a)


@pytest.mark.parametrize("copy", [None, False, True])
def test_a_copy_is_made_if_asked_for(copy):
    a = np.arange(6.0)
    x = wf.from_dlpack(a[::2], copy=copy)
    a[:] = -1
    assert x.tolist() == ([0.0, 2.0, 4.0] if copy else [-1.0] * 3)


def test_read_only_sources_are_taken():
    a = np.arange(5.0)
    a.flags.writeable = False
    for x in (wf.from_dlpack(a), wf.asarray(a, copy=False), wf.tensor(a)):
        x[0] = 7.0  # the tensor is given another value; the array keeps its own
        x += 1.0
        assert x.tolist() == [8.0, 2.0, 3.0, 4.0, 5.0]
    assert a.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    from_bytes = np.frombuffer(bytes(12), np.float32)
    assert wf.asarray(from_bytes, copy=False).tolist() == [0.0, 0.0, 0.0]


def test_assignment_never_writes_to_shared_memory():
    a, t = np.arange(4.0), torch.arange(4.0)
    for x in (wf.asarray(a, copy=False), wf.from_dlpack(a), wf.from_dlpack(t)):
        x[1:] = 9.0
        x *= 2.0
    assert a.tolist() == t.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_the_producer_lives_as_long_as_a_view():
    class Array(np.ndarray):
        pass

    a = np.arange(6.0).view(Array)
    alive = weakref.ref(a)
    view = wf.from_dlpack(a)[2:]
    del a
    gc.collect()
    assert alive() is not None and view.tolist() == [2.0, 3.0, 4.0, 5.0]
    del view
    gc.collect()
    assert alive() is None


def test_what_cannot_be_taken_is_named():
    with pytest.raises(DTypeError, match="__dlpack__"):
        wf.from_dlpack([1.0])
    with pytest.raises(DTypeError, match="dtype"):
        wf.from_dlpack(np.zeros(2, np.complex64))
    with pytest.raises(DTypeError, match="an array of object"):
        wf.tensor(np.array([1, 2], dtype=object))
    for read in (wf.from_dlpack, wf.tensor, wf.asarray):
        with pytest.raises(DTypeError, match="grad"):
            read(torch.ones(2, requires_grad=True))
    with pytest.raises(ShapeError, match="aligned"):
        wf.from_dlpack(np.zeros(9, np.uint8)[1:].view(np.float64))

    class Elsewhere:
        def __dlpack__(self, **kwargs):
            raise AssertionError("not asked")

        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(DeviceError, match="CPU"):
        wf.from_dlpack(Elsewhere())


# __array__


@EVERY
def test_arrays_are_read_only_and_share(dtype):
    x = some((2, 3), dtype)
    for a in (x.numpy(), np.asarray(x), np.asarray(x, copy=False), np.array(x, copy=None)):
        assert a.dtype == dtype.np and address(a) == x.data.address and not a.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 1


@EVERY
def test_a_copy_can_be_written(dtype):
    x = some((2, 3), dtype)
    for a in (
        np.array(x),
        np.array(x, copy=True),
        np.asarray(x, copy=True),
        x.__array__(copy=True),
    ):
        a[...] = 1
    assert x.astype(wf.int64).tolist() == some((2, 3), dtype).astype(wf.int64).tolist()


def test_array_of_another_dtype():
    x = wf.tensor([0.5, 1.5])
    assert np.asarray(x, np.float64).tolist() == [0.5, 1.5]
    assert np.asarray(x, dtype="int8").dtype == np.int8
    assert np.array(x, np.float16).dtype == np.float16
    for kind in (ValueError, SharingError):
        with pytest.raises(kind, match="without a copy"):
            np.asarray(x, np.float64, copy=False)


def test_a_tensor_with_a_history_is_still_an_array():
    x = wf.ones(3, requires_grad=True)
    assert np.asarray(x * 2.0).tolist() == [2.0, 2.0, 2.0]
    assert np.add(x, 1.0).tolist() == [2.0, 2.0, 2.0]


# pickling and copies


@EVERY
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickled(dtype, protocol):
    for x in (*(some(s, dtype) for s in SHAPES), some((3, 4), dtype).T[::-1]):
        y = pickle.loads(pickle.dumps(x, protocol))
        assert y.type is x.type and y.data.layout.is_dense
        assert y.numpy().tobytes() == np.ascontiguousarray(x.numpy()).tobytes()
        assert not y.requires_grad


def test_a_leaf_stays_one_when_pickled_or_copied():
    w = wf.tensor([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    for other in (pickle.loads(pickle.dumps(w)), copy.copy(w), copy.deepcopy(w)):
        assert other.requires_grad and other.is_leaf and other.grad is None
        (other * 3.0).sum().backward()
        assert other.grad.tolist() == [3.0, 3.0]
    assert w.grad.tolist() == [2.0, 4.0]
    noted = w * 2.0
    for other in (pickle.loads(pickle.dumps(noted)), copy.copy(noted), copy.deepcopy(noted)):
        assert not other.requires_grad and other.tolist() == [2.0, 4.0]


def test_copies_are_cells_of_their_own():
    x = wf.arange(4)
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    assert shallow.data.address == x.data.address != deep.data.address
    for other in (shallow, deep):
        other[0] = 9
    assert x.tolist() == [0, 1, 2, 3] and shallow.tolist() == deep.tolist() == [9, 1, 2, 3]


def test_deep_copies_keep_what_is_one_one():
    x = wf.arange(4)
    a, b = copy.deepcopy([x, x])
    assert a is b and a is not x


def test_a_deep_copy_of_shared_memory_is_not_shared():
    a = np.arange(3.0)
    x = copy.deepcopy(wf.asarray(a, copy=False))
    a[0] = 5.0
    assert x.tolist() == [0.0, 1.0, 2.0]
