"""Functions of neural networks agree with PyTorch, in value and in gradient."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
import torch.nn.functional as T

import weft as wf
import weft.nn.functional as F


def rng(seed=0):
    return np.random.default_rng(seed)


def normal(*shape, seed=0):
    return rng(seed).normal(size=shape)


def uniform(*shape, low=0.05, high=0.95, seed=0):
    return rng(seed).uniform(low, high, shape)


@dataclass
class Case:
    """A call made in both frameworks: floating arrays are differentiated, others just passed."""

    name: str
    args: tuple
    kwargs: dict = field(default_factory=dict)
    theirs: object = None  # PyTorch's function where it has another name or place
    fixed: tuple = ()  # positions of floating arguments that take no gradient

    def __str__(self):
        said = [str(a.shape) if isinstance(a, np.ndarray) else str(a) for a in self.args[:3]]
        said += [f"{k}={_short(v)}" for k, v in self.kwargs.items()]
        return "-".join([self.name, *said])


def _short(v):
    return v.shape if isinstance(v, np.ndarray) else v


def cases(name, *calls, **more):
    return [
        Case(
            name,
            c[:-1] if isinstance(c[-1], dict) else c,
            c[-1] if isinstance(c[-1], dict) else {},
            **more,
        )
        for c in calls
    ]


SIMPLE = [
    "relu",
    "relu6",
    "leaky_relu",
    "elu",
    "celu",
    "selu",
    "gelu",
    "silu",
    "mish",
    "sigmoid",
    "logsigmoid",
    "tanh",
    "hardtanh",
    "hardswish",
    "hardsigmoid",
    "softplus",
    "softsign",
    "tanhshrink",
    "softshrink",
    "hardshrink",
]
X = normal(3, 5)
ACTIVATIONS = [
    *(
        c
        for name in SIMPLE
        for c in cases(name, (normal(4, 37) * 3,), (normal(5),), (normal(),), (normal(0, 3),))
    ),
    *cases("leaky_relu", (X, 0.2)),
    *cases("elu", (X, 0.7)),
    *cases("celu", (X, 0.7)),
    *cases("hardtanh", (X, -0.5, 0.7)),
    *cases("softplus", (X * 4, {"beta": 2.0, "threshold": 3.0})),
    *cases("softshrink", (X, 0.3)),
    *cases("hardshrink", (X, 0.3)),
    *cases("threshold", (X, 0.1, 7.0)),
    *cases("gelu", (X * 3, {"approximate": "tanh"})),
    *cases(
        "prelu",
        (X, uniform(5)),
        (X, uniform(1)),
        (normal(2, 5, 3, 3), uniform(5)),
        (normal(4), uniform(1)),
    ),
    *cases("glu", (normal(3, 6),), (normal(4, 3), 0), (normal(2, 4, 3), {"dim": 1})),
    *cases(
        "softmax",
        (X, -1),
        (normal(2, 70) * 9, 1),
        (normal(2, 5, 3), 1),
        (normal(2, 5, 3), 0),
        (normal(4), 0),
    ),
    *cases(
        "log_softmax", (X, -1), (normal(2, 70) * 9, 1), (normal(2, 5, 3), 1), (normal(2, 5, 3), 0)
    ),
    *cases(
        "logsumexp",
        (X, -1),
        (X, 0),
        (X * 100, 1, {"keepdim": True}),
        (normal(2, 3, 4), (0, 2)),
        theirs=torch.logsumexp,
    ),
]
NORMALIZATIONS = [
    *cases(
        "layer_norm",
        (X, (5,)),
        (X, (5,), uniform(5)),
        (X, (5,), uniform(5), normal(5)),
        (normal(2, 3, 70), (70,), uniform(70), normal(70), 1e-3),
        (normal(2, 3, 4), (3, 4), uniform(3, 4), normal(3, 4)),
        (X, (5,), None, normal(5)),
    ),
    *cases(
        "rms_norm",
        (X, (5,)),
        (X, (5,), uniform(5)),
        (X, (5,), uniform(5), 1e-3),
        (normal(2, 3, 4), (3, 4), uniform(3, 4)),
    ),
    *cases(
        "group_norm",
        (normal(2, 6, 4), 3),
        (normal(2, 6, 4, 3), 2, uniform(6)),
        (normal(2, 6, 4, 3), 1, uniform(6), normal(6), 1e-3),
    ),
    *cases(
        "instance_norm",
        (normal(2, 3, 7), {"weight": uniform(3), "bias": normal(3)}),
        (normal(2, 3, 4, 5),),
    ),
    *cases(
        "batch_norm",
        (normal(4, 3), None, None, {"training": True}),
        (normal(4, 3, 5), None, None, uniform(3), {"training": True}),
        (normal(2, 3, 4, 5), None, None, uniform(3), normal(3), {"training": True, "eps": 1e-3}),
        (normal(4, 3), None, None, None, normal(3), {"training": True}),
    ),
    *cases(
        "batch_norm",
        (normal(4, 3), normal(3), uniform(3)),
        (normal(2, 3, 4, 5), normal(3), uniform(3), uniform(3, seed=1), normal(3, seed=2)),
        fixed=(1, 2),
    ),
    *cases(
        "normalize",
        (X,),
        (X, 1.0),
        (X, 3.0, 0),
        (X, float("inf")),
        (normal(2, 3, 4), {"dim": -1}),
        (X * 0,),
    ),
    *cases(
        "cosine_similarity",
        (X, normal(3, 5, seed=1)),
        (X, normal(3, 5, seed=1), 0),
        (normal(2, 3, 4), normal(3, 4, seed=1), {"dim": -1}),
    ),
]
PAIR = (normal(3, 5), normal(3, 5, seed=1))
REDUCTIONS = [{"reduction": r} for r in ("mean", "sum", "none")]
CLASSES = np.array([1, 0, 4])
LOSSES = [
    *(
        c
        for r in REDUCTIONS
        for n in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
        for c in cases(n, (*PAIR, r))
    ),
    *cases("smooth_l1_loss", (*PAIR, {"beta": 0.3}), (*PAIR, {"beta": 0.0})),
    *cases("huber_loss", (*PAIR, {"delta": 0.3})),
    *cases("mse_loss", (normal(300, 70), normal(300, 70, seed=1)), (normal(), normal(seed=1))),
    *(
        c
        for r in REDUCTIONS
        for c in [
            *cases("binary_cross_entropy", (uniform(3, 5), uniform(3, 5, seed=1), r)),
            *cases(
                "binary_cross_entropy",
                (uniform(3, 5), uniform(3, 5, seed=1), uniform(5), r),
                fixed=(2,),
            ),
            *cases(
                "binary_cross_entropy_with_logits", (normal(3, 5) * 5, uniform(3, 5, seed=1), r)
            ),
            *cases(
                "binary_cross_entropy_with_logits",
                (normal(3, 5), uniform(3, 5), uniform(5), {"pos_weight": uniform(5, seed=2), **r}),
                fixed=(2, "pos_weight"),
            ),
            *cases(
                "kl_div",
                (normal(3, 5), uniform(3, 5), r),
                (normal(3, 5), normal(3, 5, seed=1), {"log_target": True, **r}),
            ),
            *cases(
                "nll_loss",
                (normal(3, 5), CLASSES, r),
                (normal(2, 5, 4), np.arange(8).reshape(2, 4) % 5, r),
            ),
            *cases(
                "nll_loss",
                (normal(3, 5), CLASSES, uniform(5), {"ignore_index": 4, **r}),
                fixed=(2,),
            ),
            *cases(
                "cross_entropy",
                (normal(3, 5), CLASSES, r),
                (normal(3, 5) * 100, CLASSES, r),
                (normal(64, 130), np.arange(64) % 130, r),
                (normal(3, 5), np.array([1, -100, 2]), r),
                (normal(3, 5), CLASSES, {"label_smoothing": 0.1, **r}),
                (normal(2, 5, 4), np.arange(8).reshape(2, 4) % 5, r),
                (
                    normal(2, 5, 4, 2),
                    np.arange(16).reshape(2, 4, 2) % 5,
                    {"label_smoothing": 0.3, **r},
                ),
                (normal(5), np.array(2), r),
            ),
            *cases(
                "cross_entropy",
                (normal(3, 5), CLASSES, uniform(5), {"ignore_index": 0, **r}),
                (normal(3, 5), CLASSES, uniform(5), {"label_smoothing": 0.2, **r}),
                fixed=(2,),
            ),
            *cases(
                "cross_entropy",
                (normal(3, 5), uniform(3, 5), r),
                (normal(2, 5, 4), uniform(2, 5, 4), {"label_smoothing": 0.2, **r}),
            ),
            *cases("cross_entropy", (normal(2, 5, 4), uniform(2, 5, 4), uniform(5), r), fixed=(2,)),
        ]
    ),
    *cases("kl_div", (normal(3, 5), uniform(3, 5), {"reduction": "batchmean"})),
]
LINEAR = [
    *cases(
        "linear",
        (X, normal(4, 5)),
        (X, normal(4, 5), normal(4)),
        (normal(2, 3, 5), normal(4, 5), normal(4)),
        (normal(5), normal(5)),
    ),
    *cases(
        "bilinear",
        (X, normal(3, 4), normal(2, 5, 4)),
        (normal(2, 3, 5), normal(2, 3, 4), normal(6, 5, 4), normal(6)),
    ),
    *cases(
        "embedding",
        (np.array([[1, 0], [3, 3]]), normal(4, 3)),
        (np.array([1, 2, 1]), normal(4, 3), {"padding_idx": 1}),
    ),
    *cases("embedding", (np.array([3, 2]), normal(4, 3), {"padding_idx": -1})),
    *cases("one_hot", (np.array([0, 3, 1]),), (np.array([[0], [2]]), 5)),
    *cases(
        "pad",
        (X, (1, 2)),
        (X, (1, 2, 0, 3), "constant", 2.5),
        (X, (-1, 2)),
        (X, (0, -2, 1, -1)),
        (normal(2, 3, 4, 5), (1, 1, 2, 0)),
    ),
    *(
        c
        for m in ("reflect", "replicate", "circular")
        for c in cases("pad", (normal(2, 3, 5), (1, 2), m), (normal(2, 3, 5, 4), (1, 2, 3, 1), m))
    ),
]
Q, K, V = normal(2, 3, 4, 8), normal(2, 3, 5, 8, seed=1), normal(2, 3, 5, 6, seed=2)
MASK = np.arange(20).reshape(4, 5) % 3 > 0
ATTENTION = cases(
    "scaled_dot_product_attention",
    (Q, K, V),
    (Q, K, V, {"is_causal": True}),
    (Q, K, V, {"scale": 0.3}),
    (Q, K, V, {"attn_mask": MASK}),
    (Q, K, V, {"attn_mask": normal(2, 1, 4, 5)}),
    (normal(4, 8), normal(5, 8), normal(5, 8)),
    (normal(2, 4, 3, 8), normal(2, 2, 5, 8), normal(2, 2, 5, 8), {"enable_gqa": True}),
)
IMAGE, LINE = normal(2, 4, 9, 8), normal(2, 4, 12)
CONVOLUTIONS = [
    *cases(
        "conv2d",
        (IMAGE, normal(6, 4, 3, 3)),
        (IMAGE, normal(6, 4, 3, 3), normal(6), {"padding": 1}),
        (IMAGE, normal(6, 4, 3, 2), normal(6), {"stride": (2, 1), "padding": (1, 0)}),
        (IMAGE, normal(6, 4, 3, 3), {"dilation": 2, "padding": "same"}),
        (IMAGE, normal(6, 4, 4, 4), {"padding": "same"}),
        (IMAGE, normal(6, 2, 3, 3), {"groups": 2, "padding": "valid"}),
        (IMAGE, normal(4, 1, 3, 3), {"groups": 4, "padding": 1, "stride": 2}),
        (IMAGE[0], normal(6, 4, 1, 1), normal(6)),
    ),
    *cases(
        "conv1d",
        (LINE, normal(6, 4, 3)),
        (LINE, normal(6, 4, 3), normal(6), {"padding": 2, "stride": 2}),
        (LINE, normal(6, 2, 4), {"groups": 2, "dilation": 2, "padding": "same"}),
        (LINE[0], normal(6, 4, 3)),
    ),
    *cases(
        "conv_transpose2d",
        (IMAGE, normal(4, 3, 3, 3)),
        (IMAGE, normal(4, 3, 3, 3), normal(3), {"stride": 2, "padding": 1, "output_padding": 1}),
        (IMAGE, normal(4, 3, 2, 3), {"groups": 2, "stride": (1, 2)}),
        (IMAGE, normal(4, 3, 3, 3), {"dilation": 2}),
        (IMAGE[0], normal(4, 3, 2, 2), normal(3)),
    ),
    *cases(
        "conv_transpose1d",
        (LINE, normal(4, 3, 3)),
        (LINE, normal(4, 3, 3), normal(3), {"stride": 3, "padding": 1, "output_padding": 2}),
        (LINE[0], normal(4, 3, 2)),
    ),
]
POOLS = [
    *cases(
        "max_pool2d",
        (IMAGE, 2),
        (IMAGE, 3, 2),
        (IMAGE, 3, 2, 1),
        (IMAGE, (3, 2), (1, 3), (1, 0)),
        (IMAGE, 3, 2, 1, {"ceil_mode": True}),
        (IMAGE, 2, 1, 0, {"dilation": 3}),
        (IMAGE[0], 3),
        (normal(1, 2, 20, 20), 9, 1, 4),
        (normal(2, 3, 40, 70), 3, 2, 1),
    ),
    *cases(
        "max_pool1d",
        (LINE, 2),
        (LINE, 3, 2, 1),
        (LINE[0], 4, 1),
        (LINE, 3, {"ceil_mode": True, "stride": 4}),
    ),
    *cases(
        "avg_pool2d",
        (IMAGE, 2),
        (IMAGE, 3, 2),
        (IMAGE, 3, 2, 1),
        (IMAGE, 3, 1, 1),
        (IMAGE, 3, 2, 1, {"count_include_pad": False}),
        (IMAGE, 3, 2, 1, {"ceil_mode": True}),
        (IMAGE, 3, 2, 1, {"ceil_mode": True, "count_include_pad": False}),
        (IMAGE, (2, 3), (3, 1), {"divisor_override": 5}),
        (IMAGE[0], 3),
        (normal(1, 2, 20, 20), 9, 1, 4),
        (normal(2, 3, 40, 70), 3, 2, 1),
    ),
    *cases(
        "avg_pool1d",
        (LINE, 2),
        (LINE, 3, 2, 1),
        (LINE[0], 4, 1),
        (LINE, 5, 3, 2, {"ceil_mode": True}),
    ),
    *cases(
        "adaptive_avg_pool2d",
        (IMAGE, 1),
        (IMAGE, (3, 4)),
        (IMAGE, (5, 3)),
        (IMAGE, (None, 4)),
        (IMAGE[0], 2),
        (IMAGE, 10),
    ),
    *cases(
        "adaptive_max_pool2d",
        (IMAGE, 1),
        (IMAGE, (3, 4)),
        (IMAGE, (5, 3)),
        (IMAGE, (None, 4)),
        (IMAGE[0], 2),
    ),
    *cases("adaptive_avg_pool1d", (LINE, 1), (LINE, 4), (LINE, 5)),
    *cases("adaptive_max_pool1d", (LINE, 1), (LINE, 4), (LINE, 5)),
]
CASES = [*ACTIVATIONS, *NORMALIZATIONS, *LOSSES, *LINEAR, *ATTENTION, *CONVOLUTIONS, *POOLS]


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


BAD = [
    (wf.errors.ShapeError, lambda: F.mse_loss(wf.zeros(3), wf.zeros(4))),
    (wf.errors.ShapeError, lambda: F.mse_loss(wf.zeros(3), wf.zeros((3, 1)))),
    (wf.errors.ShapeError, lambda: F.mse_loss(wf.zeros(3), wf.zeros(3), reduction="average")),
    (wf.errors.DTypeError, lambda: F.mse_loss(wf.arange(3), wf.zeros(3))),
    (wf.errors.ShapeError, lambda: F.cross_entropy(wf.zeros((3, 5)), wf.tensor([1, 2]))),
    (wf.errors.IndexRangeError, lambda: F.cross_entropy(wf.zeros((2, 5)), wf.tensor([1, 5]))),
    (
        wf.errors.ShapeError,
        lambda: F.cross_entropy(wf.zeros((2, 5)), wf.tensor([1, 2]), label_smoothing=2),
    ),
    (
        wf.errors.ShapeError,
        lambda: F.cross_entropy(wf.zeros((2, 5)), wf.tensor([1, 2]), weight=wf.ones(4)),
    ),
    (wf.errors.DTypeError, lambda: F.softmax(wf.arange(3))),
    (wf.errors.ShapeError, lambda: F.softmax(wf.zeros((3, 4)), 2)),
    (wf.errors.DTypeError, lambda: F.gelu(wf.zeros(3), approximate="erf")),
    (wf.errors.ShapeError, lambda: F.glu(wf.zeros(3))),
    (wf.errors.ShapeError, lambda: F.layer_norm(wf.zeros((3, 4)), (3,))),
    (wf.errors.ShapeError, lambda: F.layer_norm(wf.zeros((3, 4)), (4,), wf.zeros(3))),
    (wf.errors.ShapeError, lambda: F.group_norm(wf.zeros((2, 6, 3)), 4)),
    (wf.errors.ShapeError, lambda: F.batch_norm(wf.zeros((1, 3)), None, None, training=True)),
    (wf.errors.ShapeError, lambda: F.batch_norm(wf.zeros((2, 3)), None, None)),
    (wf.errors.ShapeError, lambda: F.linear(wf.zeros((2, 3)), wf.zeros((4, 5)))),
    (wf.errors.DTypeError, lambda: F.embedding(wf.zeros(2), wf.zeros((4, 5)))),
    (wf.errors.IndexRangeError, lambda: F.embedding(wf.tensor([4]), wf.zeros((4, 5)))),
    (
        wf.errors.IndexRangeError,
        lambda: F.embedding(wf.tensor([3]), wf.zeros((4, 5)), padding_idx=4),
    ),
    (wf.errors.IndexRangeError, lambda: F.one_hot(wf.tensor([3]), 3)),
    (wf.errors.IndexRangeError, lambda: F.one_hot(wf.tensor([-1]))),
    (wf.errors.ShapeError, lambda: F.dropout(wf.zeros(3), 1.5)),
    (wf.errors.ShapeError, lambda: F.pad(wf.zeros((3, 4)), (1, 2, 3))),
    (wf.errors.ShapeError, lambda: F.pad(wf.zeros((3, 4)), (1, 2), "mirror")),
    (wf.errors.ShapeError, lambda: F.pad(wf.zeros((3, 4)), (4, 0), "reflect")),
    (wf.errors.ShapeError, lambda: F.pad(wf.zeros((3, 4)), (-3, -2))),
    (wf.errors.ShapeError, lambda: F.conv2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 2, 3, 3)))),
    (wf.errors.ShapeError, lambda: F.conv2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 9, 9)))),
    (
        wf.errors.ShapeError,
        lambda: F.conv2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 3, 3)), stride=0),
    ),
    (
        wf.errors.ShapeError,
        lambda: F.conv2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 3, 3)), padding=-1),
    ),
    (
        wf.errors.ShapeError,
        lambda: F.conv2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 3, 3)), padding="full"),
    ),
    (
        wf.errors.ShapeError,
        lambda: F.conv2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 3, 3)), padding="same", stride=2),
    ),
    (
        wf.errors.ShapeError,
        lambda: F.conv2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 3, 3)), wf.zeros(3)),
    ),
    (wf.errors.ShapeError, lambda: F.conv1d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 3)))),
    (
        wf.errors.ShapeError,
        lambda: F.conv_transpose2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 3, 3))),
    ),
    (
        wf.errors.ShapeError,
        lambda: F.conv_transpose2d(
            wf.zeros((1, 3, 8, 8)), wf.zeros((3, 3, 3, 3)), output_padding=1
        ),
    ),
    (wf.errors.ShapeError, lambda: F.max_pool2d(wf.zeros((3, 4)), 2)),
    (wf.errors.ShapeError, lambda: F.max_pool2d(wf.zeros((1, 3, 4, 4)), 5)),
    (wf.errors.ShapeError, lambda: F.max_pool2d(wf.zeros((1, 3, 4, 4)), 2, padding=2)),
    (wf.errors.ShapeError, lambda: F.max_pool2d(wf.zeros((1, 3, 4, 4)), 0)),
    (wf.errors.ShapeError, lambda: F.avg_pool2d(wf.zeros((1, 3, 4, 4)), 2, divisor_override=0)),
    (wf.errors.ShapeError, lambda: F.adaptive_avg_pool2d(wf.zeros((1, 3, 4, 4)), 0)),
    (wf.errors.ShapeError, lambda: F.adaptive_avg_pool2d(wf.zeros((1, 3, 4, 4)), (2, 2, 2))),
    (
        wf.errors.ShapeError,
        lambda: F.scaled_dot_product_attention(
            wf.zeros((3, 4)), wf.zeros((3, 5)), wf.zeros((3, 4))
        ),
    ),
]


@pytest.mark.parametrize(("error", "call"), BAD, ids=range(len(BAD)))
def test_bad_arguments_are_named(error, call):
    with pytest.raises(error, match=":"):
        call()
