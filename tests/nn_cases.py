"""Calls of the functions of neural networks that PyTorch has too."""

from dataclasses import dataclass, field

import numpy as np
import torch


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
        "instance_norm",
        (normal(2, 3, 7), normal(3), uniform(3), {"use_input_stats": False}),
        fixed=(1, 2),
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
        (IMAGE, 5, 3, 0, {"dilation": 2, "ceil_mode": True}),  # every window sticks out
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
        (normal(2, 4, 4), 5, 3, {"ceil_mode": True}),
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
RESIZED = [
    *cases(
        "interpolate",
        (LINE, 5),
        (LINE, {"scale_factor": 2.5}),
        (IMAGE, (4, 20)),
        (IMAGE, {"scale_factor": 2}),
        (IMAGE, {"scale_factor": (0.4, 1.3)}),
        (LINE, 5, {"mode": "linear"}),
        (LINE, {"scale_factor": 1.7, "mode": "linear"}),
        (LINE, 30, {"mode": "linear", "align_corners": True}),
        (IMAGE, (13, 5), {"mode": "bilinear"}),
        (IMAGE, {"scale_factor": (2, 0.6), "mode": "bilinear"}),
        (IMAGE, (1, 16), {"mode": "bilinear", "align_corners": True}),
    ),
    *cases("pixel_shuffle", (IMAGE, 2), (normal(9, 2, 3), 3)),
    *cases("pixel_unshuffle", (IMAGE[:, :, :8], 2), (normal(2, 9, 3), 3)),
]
CASES = [
    *RESIZED,
    *ACTIVATIONS,
    *NORMALIZATIONS,
    *LOSSES,
    *LINEAR,
    *ATTENTION,
    *CONVOLUTIONS,
    *POOLS,
]
