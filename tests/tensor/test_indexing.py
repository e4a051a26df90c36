"""x[...] and x[...] = v against NumPy: values, errors, gradients."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import weft as wf
from weft.errors import DTypeError, IndexRangeError, ShapeError, WeftError
from weft.ops.basic_index import basic_index

COMMON = settings(max_examples=300)
PICKS = [(), (2,), (3,), (1,), (2, 3), (1, 3), (0,)]


@st.composite
def indexed(draw, *, zeros=True):
    """An array of any layout and an index into it, as NumPy would be told."""
    shape = draw(st.lists(st.integers(0 if zeros else 1, 5), max_size=4).map(tuple))
    order = draw(st.permutations(range(len(shape))))
    base = np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape([shape[a] for a in order])
    a = base.transpose(np.argsort(order)) if shape else base
    picks, items, axis = draw(st.sampled_from(PICKS)), [], 0
    kinds = ["int", "slice", "slice", "new", "dots", "array", "array", "mask", "stop"]
    while axis < len(shape):
        kind, n = draw(st.sampled_from(kinds)), shape[axis]
        if kind == "stop":
            break
        if kind == "new":
            items.append(None)
        elif kind == "dots" and Ellipsis not in [e for e in items if e is Ellipsis]:
            items.append(Ellipsis)
            axis = draw(st.integers(axis, len(shape)))
        elif kind == "int" and n:
            items.append(draw(st.integers(-n, n - 1)))
            axis += 1
        elif kind == "array" and n:
            size = draw(st.sampled_from([picks, (1,) * len(picks), ()]))
            values = draw(
                st.lists(
                    st.integers(-n, n - 1), min_size=int(np.prod(size)), max_size=int(np.prod(size))
                )
            )
            items.append(np.array(values, draw(st.sampled_from(["i8", "i4", "i1"]))).reshape(size))
            axis += 1
        elif kind == "mask":
            rank = draw(st.integers(0, min(2, len(shape) - axis)))
            over = shape[axis : axis + rank]
            if 0 in over and any(e is Ellipsis for e in items):
                continue  # NumPy lets an empty mask stand for an axis of another size
            bits = draw(
                st.lists(st.booleans(), min_size=int(np.prod(over)), max_size=int(np.prod(over)))
            )
            items.append(np.array(bits, bool).reshape(over))
            axis += rank
        elif kind == "slice":
            ends = st.none() | st.integers(-n - 2, n + 2)
            step = draw(st.none() | st.sampled_from([1, 2, -1, -2, 3]))
            items.append(slice(draw(ends), draw(ends), step))
            axis += 1
    return a, items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)


def said(index, how):
    """The index with its arrays as tensors or lists."""
    if isinstance(index, tuple):
        return tuple(said(e, how) for e in index)
    if isinstance(index, np.ndarray) and how:
        return (
            wf.tensor(index)
            if how == "tensor" or not (index.ndim and index.size)
            else index.tolist()
        )
    return index


@COMMON
@given(indexed(), st.sampled_from(["", "tensor", "list"]))
def test_reading_is_numpys(case, how):
    a, index = case
    x = wf.asarray(a, copy=False)
    try:
        want = a[index]
    except IndexError:
        with pytest.raises(IndexError):
            x[said(index, how)]
        return
    for _ in range(2):  # planned, then found again
        got = x[said(index, how)]
        assert got.shape == want.shape
        np.testing.assert_array_equal(got.numpy(), want)


@COMMON
@given(indexed(), st.sampled_from(["number", "full", "broadcast", "one"]))
def test_assignment_is_numpys(case, kind):
    a, index = case
    try:
        shape = a[index].shape
    except IndexError:
        return
    count = lambda s: -1.0 - np.arange(np.prod(s, dtype=int), dtype=np.float64).reshape(s)
    v = {
        "number": 7.5,
        "full": count(shape),
        "broadcast": count(shape[1:]),
        "one": np.full((1, 1), 3.0),
    }[kind]
    want = np.array(a)
    try:
        want[index] = v
    except (ValueError, TypeError):
        return
    x = wf.asarray(a, copy=False)
    others = x[...], x.reshape(x.shape)
    x[index] = v if kind == "number" else wf.tensor(v)
    np.testing.assert_array_equal(x.numpy(), want)
    for other in others:
        np.testing.assert_array_equal(other.numpy(), a)


@settings(max_examples=80)
@given(indexed())
def test_gradient_of_reading(case):
    a, index = case
    try:
        picked = a[index]
    except IndexError:
        return
    x = wf.tensor(a, requires_grad=True)
    g = np.cos(np.arange(picked.size)).reshape(picked.shape)
    x[index].backward(wf.tensor(g))
    want = np.zeros_like(a)
    np.add.at(want, index, g)
    np.testing.assert_allclose(x.grad.numpy(), want, atol=1e-12)


@settings(max_examples=80)
@given(indexed(), st.booleans())
def test_gradient_of_assignment(case, full):
    """The places written lose their gradient; the value gets that of the write that stayed."""
    a, index = case
    try:
        picked = a[index]
    except IndexError:
        return
    x = wf.tensor(a, requires_grad=True)
    v = wf.tensor(np.ones(picked.shape if full else ()), requires_grad=True)
    y = x * 1.0
    y[index] = v
    g = np.cos(np.arange(a.size)).reshape(a.shape)
    y.backward(wf.tensor(g))
    places = np.full(a.shape, -1)
    places[index] = np.arange(picked.size).reshape(picked.shape)
    np.testing.assert_allclose(x.grad.numpy(), np.where(places < 0, g, 0.0), atol=1e-12)
    want = np.zeros(picked.size)
    np.add.at(want, places[places >= 0], g[places >= 0])
    got = np.zeros(picked.shape) if v.grad is None else v.grad.numpy()
    np.testing.assert_allclose(got, want.reshape(picked.shape) if full else want.sum(), atol=1e-12)


def test_gradients_of_gradients_pass_through_indexing():
    index = wf.tensor([2, 0, 2])

    def f(x):
        y = x * x
        y[1] = x[0] * x[2]
        return (y[index] * y[1:4]).sum()

    assert wf.gradcheck(lambda x: wf.grad(f)(x), [wf.tensor(np.array([0.3, -0.7, 1.1, 0.5]))])


def test_a_basic_index_is_one_view():
    x = wf.zeros((4, 5, 6))
    for index in [0, (1, 2), (slice(None), 3), slice(1, 3), (None, 2, ..., -1)]:
        basic_index.plans.clear()
        y = x[index]
        assert len(basic_index.plans) == 1 and y.data.owner is x.data.owner


def test_an_index_found_again_is_not_mistaken_for_another():
    x = wf.tensor([[1, 2], [3, 4]])
    assert x[1].shape == (2,) and x[True].shape == (1, 2, 2)
    assert x[1, 0].item() == 3 and x[True, 0].shape == (1, 2)
    assert x[0:1].shape == (1, 2) and x[0, 1].shape == () and x[0, 1, None].shape == (1,)
    with pytest.raises(IndexError):
        x[1.0]
    with pytest.raises(TypeError):
        x[0.0:1]


@pytest.mark.parametrize(
    ("index", "error", "words"),
    [
        (3, IndexRangeError, ("axis 0", "size 3", "got 3")),
        (-4, IndexRangeError, ("axis 0", "got -4")),
        ((0, 4), IndexRangeError, ("axis 1", "size 4", "got 4")),
        ((0, 0, 0), IndexRangeError, ("at most 2", "got 3")),
        ((..., ...), IndexRangeError, ("...",)),
        ([0, 3], IndexRangeError, ("axis 0", "size 3", "got 3")),
        ((slice(None), [1, -5]), IndexRangeError, ("axis 1", "size 4", "got -5")),
        (([0, 1], [0, 9]), IndexRangeError, ("axis 1", "got 9")),
        (([0, 1], [0, 1, 2]), IndexRangeError, ("broadcast",)),
        (np.ones((2,), bool), IndexRangeError, ("mask", "axis 0")),
        (1.5, DTypeError, ("float",)),
        ([0.5], DTypeError, ("float64",)),
        ("a", DTypeError, ("str",)),
        ([[0], [1, 2]], ShapeError, ("equal lengths",)),
        (slice(None, None, 0), ShapeError, ("step",)),
    ],
)
def test_a_bad_index_is_named(index, error, words):
    x = wf.zeros((3, 4))
    for act in (lambda: x[index], lambda: x.__setitem__(index, 1.0)):
        with pytest.raises(error) as caught:
            act()
        assert all(w in str(caught.value) for w in words), caught.value
    assert (x == 0).all()


def test_a_bad_value_is_named():
    x = wf.zeros((3, 4))
    for value in (wf.zeros(3), [1.0, 2.0], wf.zeros((2, 3, 4))):
        with pytest.raises(ShapeError):
            x[1:] = value
        with pytest.raises(ShapeError):
            x[[0, 2]] = value
    for value in ("a", None, object()):
        with pytest.raises(WeftError):
            x[0] = value


def test_assignment_casts_to_the_tensors_dtype():
    x = wf.tensor([1, 2, 3])
    x[1] = 7.9
    x[[2]] = wf.tensor([9.9])
    assert x.dtype is wf.int64 and x.tolist() == [1, 7, 9]


def test_the_last_of_several_writes_stays():
    x = wf.zeros(3)
    x[[0, 1, 0]] = wf.tensor([1.0, 2.0, 3.0])
    assert x.tolist() == [3.0, 2.0, 0.0]


def test_an_augmented_assignment_through_an_index():
    x = wf.arange(6).reshape(2, 3)
    x[0] += 10
    x[:, 1] *= 2
    assert x.tolist() == [[10, 22, 12], [3, 8, 5]]
