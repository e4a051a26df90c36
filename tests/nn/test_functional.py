"""Functions of neural networks agree with PyTorch, in value and in gradient."""

import numpy as np
import pytest
import torch
import torch.nn.functional as T
from nn_cases import CASES, normal, rng

import weft as wf
import weft.nn.functional as F

SINGLE = ("hardsigmoid", "celu")  # PyTorch rounds a constant of theirs to float32


def is_float(x):
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def run(case, dtype):
    """Values and gradients of both, for one case."""

    def call(f, make):
        leaves = []

        def given(position, x):
            if not isinstance(x, np.ndarray):
                return x
            wanted = is_float(x) and position not in case.fixed
            t = make(x.astype(dtype) if is_float(x) else x, wanted)
            if wanted:
                leaves.append(t)
            return t

        args = [given(i, x) for i, x in enumerate(case.args)]
        kwargs = {k: given(k, v) for k, v in case.kwargs.items()}
        return f(*args, **kwargs), leaves

    mine, my_leaves = call(getattr(F, case.name), lambda x, g: wf.tensor(x, requires_grad=g))
    theirs, their_leaves = call(
        case.theirs or getattr(T, case.name), lambda x, g: torch.tensor(x, requires_grad=g)
    )
    return mine, my_leaves, theirs, their_leaves


@pytest.mark.filterwarnings("ignore")  # of PyTorch's own
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_pytorch(case, dtype):
    mine, my_leaves, theirs, their_leaves = run(case, dtype)
    rtol, atol = (2e-5, 2e-5) if dtype is np.float32 or case.name in SINGLE else (1e-9, 1e-10)
    assert mine.shape == tuple(theirs.shape) and mine.numpy().dtype == theirs.detach().numpy().dtype
    np.testing.assert_allclose(mine.numpy(), theirs.detach().numpy(), rtol, atol)
    if not my_leaves:
        return
    cotangent = rng(9).normal(size=mine.shape).astype(dtype)
    (mine * wf.tensor(cotangent)).sum().backward()
    (theirs * torch.tensor(cotangent)).sum().backward()
    for a, b in zip(my_leaves, their_leaves, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol * 5, atol * 5)


HALVES = [
    c for c in CASES if c.name not in ("one_hot",) and all(a.size for a in c.args if is_float(a))
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", sorted({c.name for c in HALVES}))
def test_half_types_round_little(name, dtype):
    """Against the float64 result of the rounded operands: an ulp or two of the half type."""
    case = next(c for c in HALVES if c.name == name)
    step = wf.finfo(getattr(wf, dtype)).eps
    rounded = [wf.tensor(a).astype(dtype) if is_float(a) else a for a in case.args]
    wide = [wf.tensor(a.astype("f8").numpy()) if isinstance(a, wf.Tensor) else a for a in rounded]

    def call(args):
        made = (wf.tensor(a) if isinstance(a, np.ndarray) else a for a in args)
        return getattr(F, name)(*made, **case.kwargs)

    mine, want = call(rounded), call(wide).numpy()
    assert mine.dtype.name == dtype
    big = np.abs(want).max(initial=1.0)
    np.testing.assert_allclose(mine.numpy().astype("f8"), want, rtol=4 * step, atol=4 * step * big)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({c.name for c in CASES} - {"one_hot", "hardsigmoid"}))
def test_second_gradients_agree_with_pytorch(name):
    case = next(c for c in CASES if c.name == name and all(a.size for a in c.args if is_float(a)))
    mine, my_leaves, theirs, their_leaves = run(case, np.float64)
    (mine * mine).sum().backward(create_graph=True)
    gm = my_leaves[0].grad
    for leaf in my_leaves:
        leaf.grad = None
    (gt,) = torch.autograd.grad((theirs * theirs).sum(), their_leaves[:1], create_graph=True)
    if not gt.requires_grad:
        return
    (gm * gm).sum().backward()
    (gt * gt).sum().backward()
    for a, b in zip(my_leaves, their_leaves, strict=True):
        if b.grad is not None:
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), 1e-7, 1e-8)


# what a table can't say


def test_batch_norm_moves_running_statistics():
    x = normal(6, 3, 4).astype(np.float32)
    mean, var = wf.zeros(3), wf.ones(3)
    their_mean, their_var = torch.zeros(3), torch.ones(3)
    for _ in range(3):
        F.batch_norm(wf.tensor(x), mean, var, training=True, momentum=0.3)
        T.batch_norm(torch.tensor(x), their_mean, their_var, training=True, momentum=0.3)
    np.testing.assert_allclose(mean.numpy(), their_mean.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(var.numpy(), their_var.numpy(), rtol=1e-5)
    assert not mean.requires_grad


def test_pooling_gives_indices():
    x = normal(2, 3, 9, 8).astype(np.float32)
    for f, args in [
        ("max_pool2d", (3, 2, 1)),
        ("max_pool2d", (9, 1, 4)),
        ("adaptive_max_pool2d", ((4, 5),)),
        ("adaptive_max_pool2d", (2,)),
    ]:
        if f == "max_pool2d" and args[0] == 9:
            x = normal(1, 2, 12, 12).astype(np.float32)
        mine = getattr(F, f)(wf.tensor(x), *args, return_indices=True)
        theirs = getattr(T, f)(torch.tensor(x), *args, return_indices=True)
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_ties_in_a_window_give_the_gradient_to_the_first():
    x = wf.tensor(np.ones((1, 4, 4), np.float32), requires_grad=True)
    F.max_pool2d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]]


def test_dropout_keeps_the_mean():
    wf.manual_seed(0)
    x = wf.tensor(np.ones((200, 200)), requires_grad=True)
    y = F.dropout(x, 0.25)
    values = set(np.unique(y.numpy()))
    assert len(values) == 2 and 0.0 in values and abs(max(values) - 1 / 0.75) < 1e-12
    assert abs(y.mean().item() - 1) < 0.02
    y.sum().backward()
    assert (x.grad.numpy() == y.numpy()).all()
    assert (F.dropout(x, 1.0).numpy() == 0).all() and (
        F.dropout(x, 0.5, training=False).numpy() == 1
    ).all()
    channels = F.dropout2d(wf.ones((8, 16, 3, 3))).numpy()
    assert (channels == channels[:, :, :1, :1]).all() and 0 < (channels == 0).mean() < 1


def test_a_query_that_sees_nothing_gives_zeros():
    q = wf.tensor(normal(3, 4).astype(np.float32), requires_grad=True)
    mask = np.ones((3, 3), bool)
    mask[1] = False
    out = F.scaled_dot_product_attention(q, q, q, attn_mask=wf.tensor(mask))
    assert (out.numpy()[1] == 0).all()
    out.sum().backward()
    assert np.isfinite(q.grad.numpy()).all()


def test_losses_stay_finite_where_logarithms_do_not():
    x = wf.tensor([0.0, 1.0, 1.0], requires_grad=True)
    loss = F.binary_cross_entropy(x, wf.tensor([1.0, 0.0, 1.0]))
    loss.backward()
    assert abs(loss.item() - 200 / 3) < 1e-4 and np.isfinite(x.grad.numpy()).all()
    y = wf.tensor([[1e4, -1e4]], requires_grad=True)
    F.cross_entropy(y, wf.tensor([1])).backward()
    assert y.grad.tolist() == [[1.0, -1.0]]


def test_cross_entropy_rows_do_not_depend_on_each_other():
    x = normal(7, 33).astype(np.float32)
    t = np.arange(7) % 33
    whole = F.cross_entropy(wf.tensor(x), wf.tensor(t), reduction="none").numpy()
    alone = [
        F.cross_entropy(wf.tensor(x[i : i + 1]), wf.tensor(t[i : i + 1]), reduction="none").numpy()[
            0
        ]
        for i in range(7)
    ]
    assert whole.tobytes() == np.array(alone).tobytes()


@pytest.mark.parametrize("dtype", [wf.int64, wf.uint8, wf.int8, wf.uint64], ids=str)
def test_one_hot_in_a_program_checks_its_indices_too(dtype):
    known = wf.compile(lambda y: F.one_hot(y, 5) * 0.5, fallback=False)
    y = wf.tensor([[0, 4], [1, 1]], dtype=dtype)
    assert known(y).tolist() == (F.one_hot(y, 5) * 0.5).tolist()
    for wrong in ([[5, 0], [0, 0]], *([[[0, -1], [0, 0]]] if dtype.kind == "i" else [])):
        with pytest.raises(wf.errors.IndexRangeError):
            known(wf.tensor(wrong, dtype=dtype))
    with pytest.raises(wf.errors.CaptureError, match=r"say how many classes there are$"):
        wf.compile(lambda y: F.one_hot(y), fallback=False)(y)
