"""Calls that succeed, of the public functions that take more than tensors of one shape.

Each entry gives a list of calls: positional arguments, or (positional, keyword) arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import weft as wf

_RNG = np.random.default_rng(0)


def f(*shape: int) -> Any:
    """A float32 tensor of numbers between 0 and 1."""
    return wf.tensor(_RNG.random(shape).astype(np.float32))


def i(*values: Any) -> Any:
    """An int64 tensor."""
    return wf.tensor(np.array(values, np.int64))


def _square(x: Any = None, *more: Any) -> Any:
    return x if x is None else (x * x).sum()


def _fold() -> list[Any]:
    return [((f(2, 3, 4),), {"axis": (0, -1), "keepdims": True}), (f(2, 3), 1), (f(0, 3), 1)]


def _shaped(**more: Any) -> Callable[[], list[Any]]:
    return lambda: [((2, 3), more), (((2, 3),), more), ((4,), more or {"dtype": wf.int32})]


def _loss() -> list[Any]:
    return [((f(3, 4), f(3, 4)), {"reduction": r}) for r in ("none", "mean", "sum")]


def _along(*values: Any) -> list[Any]:
    return [((f(3, 4),), {"axis": 1}), ((f(5),), {"axis": None})]


def _scattered() -> list[Any]:
    return [
        (f(3, 4), 0, i([0, 2, 1, 1]), f(1, 4)),
        (f(3, 4), 1, i([0], [3], [1]), f(3, 1)),
        (f(4), 0, i(0, 1), 2.0),
    ]


def _pool(spatial: int, *, maximum: bool) -> list[Any]:
    x = f(2, 3, *(8, 9)[:spatial])
    calls: list[Any] = [
        (x, 2),
        (x, (3,) * spatial, 2, 1),
        ((x, 3), {"stride": (2,) * spatial, "padding": 1, "ceil_mode": True}),
    ]
    calls.append(
        (
            (x, 2),
            {"dilation": 2, "return_indices": True} if maximum else {"count_include_pad": False},
        )
    )
    calls.append((f(2, *(90, 11)[:spatial]), (70, 2)[:spatial]))
    return calls


def _conv(spatial: int) -> list[Any]:
    x, w, b = f(2, 4, *(8, 7)[:spatial]), f(6, 4, *(3,) * spatial), f(6)
    return [
        (x, w),
        (x, w, b, 2, 1),
        (f(4, *(8, 7)[:spatial]), w, b, (1,) * spatial, "same"),
        ((x, f(6, 2, *(3,) * spatial)), {"groups": 2, "dilation": 2, "padding": (2,) * spatial}),
        ((x, f(8, 1, *(1,) * spatial)), {"groups": 4, "stride": 3}),
    ]


def _conv_transpose(spatial: int) -> list[Any]:
    x, w = f(2, 4, *(5, 6)[:spatial]), f(4, 6, *(3,) * spatial)
    return [
        (x, w),
        (x, w, f(6), 2, 1, 1),
        ((x, f(4, 3, *(2,) * spatial)), {"groups": 2, "stride": 3, "dilation": 2}),
    ]


def _norm() -> list[Any]:
    return [(f(2, 3, 4), (4,)), (f(2, 3, 4), [3, 4], f(3, 4)), ((f(2, 3), 3), {"eps": 1e-3})]


def _float_attribute(**more: Any) -> Callable[[], list[Any]]:
    return lambda: [((f(3, 4),), more), (f(3, 4),)]


GOOD: dict[str, Callable[[], list[Any]]] = {
    # classes
    "custom_vjp": lambda: [(_square,)],
    "enable_grad": lambda: [()],
    "no_grad": lambda: [()],
    # making
    "arange": lambda: [(5,), (2, 9, 3), (0.0, 1.0, 0.25), ((7,), {"dtype": wf.float16})],
    "asarray": lambda: [
        ([1, 2],),
        (([[1.0, 2.0]],), {"dtype": "float64", "copy": True}),
        ((np.arange(3),), {"copy": False}),
    ],
    "empty": _shaped(),
    "empty_like": lambda: [(f(2, 3),), ((f(2),), {"dtype": wf.int8})],
    "eye": lambda: [(3,), ((3, 4), {"k": -1, "dtype": wf.int16})],
    "from_dlpack": lambda: [(np.arange(3),), (f(2, 2),)],
    "full": lambda: [
        ((2, 3), 7),
        (((4,), 0.5), {"dtype": wf.float16}),
        (((2,), True), {"requires_grad": False}),
    ],
    "full_like": lambda: [(f(2, 3), 7), ((f(2), 0.5), {"dtype": wf.float16})],
    "linspace": lambda: [(0, 1, 5), ((-1.0, 1.0, 4), {"endpoint": False, "dtype": wf.float64})],
    "meshgrid": lambda: [(i(0, 1), i(0, 1, 2)), ((f(2), f(3)), {"indexing": "ij"})],
    "one_hot": lambda: [(i(0, 2), 3), (i(0, 1),), ((i(0, 1), 4), {"dtype": wf.float32})],
    "ones": _shaped(requires_grad=True),
    "ones_like": lambda: [(f(2, 3),), ((f(2),), {"dtype": wf.int8})],
    "tensor": lambda: [
        ([1.0, 2.0],),
        (([[1], [2]],), {"dtype": "int8"}),
        (([0.5],), {"requires_grad": True}),
        (np.arange(3.0),),
    ],
    "tril": lambda: [((f(3, 4),), {"k": -1})],
    "triu": lambda: [((f(2, 3, 4),), {"k": 1})],
    "zeros": _shaped(requires_grad=True),
    "zeros_like": lambda: [(f(2, 3),), ((f(2),), {"dtype": wf.int8})],
    # dtypes
    "astype": lambda: [(f(3), wf.int32), ((f(3), "float64"), {"copy": False})],
    "can_cast": lambda: [(wf.int8, wf.int16), (f(2), "float64")],
    "finfo": lambda: [(wf.float32,), (f(2),)],
    "iinfo": lambda: [(wf.int8,), (i(1),)],
    "isdtype": lambda: [(wf.int8, "integral"), (wf.float32, ("bool", wf.float32))],
    "result_type": lambda: [(wf.int8, wf.int16), (f(2), 1.0), (wf.float16, f(2), 3)],
    # elementwise, with more than tensors
    "clip": lambda: [(f(3), 0.2, 0.8), ((f(3),), {"min": f(3)}), ((i(1, 5),), {"max": 3})],
    "where": lambda: [(f(3) > 0.5, f(3), 0.0), (f(2, 1) > 0.5, 1.0, f(3))],
    # joining and rearranging
    "broadcast_arrays": lambda: [(f(3, 1), f(4)), (f(2),)],
    "broadcast_to": lambda: [(f(3, 1), (2, 3, 4)), (f(), (2,))],
    "chunk": lambda: [(f(5), 2), ((f(4, 6), 3), {"axis": 1})],
    "concat": lambda: [
        ([f(2, 3), f(1, 3)],),
        (([f(2), f(3)],), {"axis": -1}),
        (((f(2), f(1, 2)),), {"axis": None}),
    ],
    "diag": lambda: [(f(3),), ((f(3, 4),), {"offset": 1})],
    "diagonal": lambda: [((f(3, 4),), {"offset": -1})],
    "diff": lambda: [(f(5),), ((f(3, 4),), {"axis": 0, "n": 2, "prepend": f(1, 4)})],
    "expand_dims": lambda: [(f(3), -1), (f(2, 3), (0, 2))],
    "flatten": lambda: [(f(2, 3, 4),), ((f(2, 3, 4),), {"start_dim": 1, "end_dim": -1})],
    "flip": lambda: [(f(2, 3),), ((f(2, 3),), {"axis": (0, 1)})],
    "moveaxis": lambda: [(f(2, 3, 4), 0, -1), (f(2, 3, 4), (0, 1), (1, 2))],
    "permute_dims": lambda: [(f(2, 3, 4), (2, 0, 1))],
    "repeat": lambda: [(f(3), 2), ((f(2, 3), i(1, 0, 2)), {"axis": 1})],
    "reshape": lambda: [(f(2, 3), (3, -1)), ((f(2, 3), (6,)), {"copy": True}), (f(2, 3).T, (6,))],
    "roll": lambda: [(f(5), 2), ((f(3, 4), (1, -1)), {"axis": (0, 1)})],
    "split": lambda: [(f(5), 2), ((f(4, 6), [1, 2, 3]), {"axis": 1})],
    "squeeze": lambda: [(f(1, 3, 1),), (f(1, 3, 1), (0, 2))],
    "stack": lambda: [([f(2, 3), f(2, 3)],), (([f(2), f(2)],), {"axis": -1})],
    "tile": lambda: [(f(2, 3), (2, 1, 2)), (f(3), 2)],
    "unstack": lambda: [(f(2, 3),), ((f(2, 3),), {"axis": 1})],
    # folding, ordering, searching
    **dict.fromkeys(("all", "any", "max", "mean", "min", "prod", "sum"), _fold),
    **{
        n: (lambda: [((f(2, 3),), {"axis": 1, "correction": 1.0, "keepdims": True}), (f(3),)])
        for n in ("std", "var")
    },
    **{
        n: (lambda: [((f(2, 3),), {"axis": 1, "keepdims": True}), (f(3, 2),)])
        for n in ("argmax", "argmin")
    },
    **{
        n: (lambda: [((f(3, 4),), {"axis": 0, "descending": True}), (f(9),)])
        for n in ("sort", "argsort")
    },
    **dict.fromkeys(("cumulative_max", "cumulative_min"), _along),
    **{
        n: (
            lambda: [
                ((f(3, 4),), {"axis": 1, "dtype": wf.float64, "include_initial": True}),
                (f(5),),
            ]
        )
        for n in ("cumulative_prod", "cumulative_sum")
    },
    "count_nonzero": lambda: [((f(2, 3),), {"axis": 1, "keepdims": True}), (i(0, 1),)],
    "searchsorted": lambda: [
        (f(5), f(2, 2)),
        ((i(1, 2, 3), i(2)), {"side": "right", "sorter": i(2, 1, 0)}),
    ],
    "topk": lambda: [(f(3, 5), 2), ((f(6), 3), {"axis": 0, "largest": False})],
    # selecting
    "index_add": lambda: [(f(3, 4), 0, i(0, 2), f(2, 4)), (f(3, 4), -1, i(1), f(3, 1))],
    "scatter": _scattered,
    "scatter_add": lambda: _scattered()[:2],
    "take": lambda: [(f(5), i(0, -1)), ((f(3, 4), [[0, 1], [2, 2]]), {"axis": 0})],
    "take_along_axis": lambda: [
        (f(3, 4), i([0], [3], [1])),
        ((f(3, 4), i([0, 1, 2, 0])), {"axis": 0}),
    ],
    # products
    "einsum": lambda: [
        ("ij,jk->ik", f(2, 3), f(3, 4)),
        ("...i,...i", f(2, 3), f(3)),
        ("ii->i", f(3, 3)),
        ("i,j", f(2), f(3)),
    ],
    "matmul": lambda: [(f(2, 3), f(3, 4)), (f(5, 2, 3), f(3)), (f(3), f(3))],
    "outer": lambda: [(f(2), f(3))],
    "tensordot": lambda: [
        ((f(2, 3), f(3, 4)), {"axes": 1}),
        ((f(2, 3, 4), f(4, 3)), {"axes": ((1, 2), (1, 0))}),
    ],
    "vecdot": lambda: [(f(2, 3), f(3)), ((f(3, 2), f(3, 1)), {"axis": 0})],
    # random
    "bernoulli": lambda: [(f(3),), (0.5, (2, 3)), ((0.5, 4), {"dtype": wf.bool})],
    "get_rng_state": lambda: [()],
    "manual_seed": lambda: [(7,)],
    "permutation": lambda: [(5,), (f(4, 2),)],
    "rand": _shaped(requires_grad=True),
    "randint": lambda: [(0, 10, (2, 3)), (5, (2,)), ((0, 2, 4), {"dtype": wf.uint8})],
    "randn": _shaped(dtype=wf.float64),
    "set_rng_state": lambda: [((7, 0),)],
    # settings
    "get_num_threads": lambda: [()],
    "set_num_threads": lambda: [(2,)],
    # gradients
    "checkpoint": lambda: [(_square,)],
    "grad": lambda: [(_square,), (_square, 0), (_square, (0,))],
    "gradcheck": lambda: [(_square, [wf.tensor([1.0, 2.0], dtype=wf.float64)])],
    "hessian": lambda: [(_square,), (_square, 0)],
    "jacobian": lambda: [(_square,), (_square, 0)],
    "jvp": lambda: [(_square, (f(3),), (f(3),))],
    "value_and_grad": lambda: [(_square,), (_square, (0,))],
    "vjp": lambda: [(_square, f(3))],
}

_FUNCTIONAL: dict[str, Callable[[], list[Any]]] = {
    "adaptive_avg_pool1d": lambda: [(f(2, 3, 8), 4), (f(3, 7), 3), (f(2, 3, 8), (None,))],
    "adaptive_avg_pool2d": lambda: [
        (f(2, 3, 8, 6), (4, 3)),
        (f(3, 7, 5), 3),
        (f(2, 3, 8, 8), (None, 1)),
    ],
    "adaptive_max_pool1d": lambda: [(f(2, 3, 8), 4), ((f(3, 7), 3), {"return_indices": True})],
    "adaptive_max_pool2d": lambda: [
        (f(2, 3, 8, 6), (4, 3)),
        ((f(3, 7, 5), 3), {"return_indices": True}),
    ],
    "avg_pool1d": lambda: _pool(1, maximum=False),
    "avg_pool2d": lambda: [*_pool(2, maximum=False), ((f(1, 4, 4), 2), {"divisor_override": 3})],
    "batch_norm": lambda: [
        (f(4, 3), f(3), f(3)),
        (f(4, 3, 2), None, None, f(3), f(3), True),
        ((f(4, 3), f(3), f(3)), {"momentum": 0.2, "eps": 1e-3}),
    ],
    "bilinear": lambda: [(f(2, 3), f(2, 4), f(5, 3, 4), f(5))],
    "binary_cross_entropy": lambda: [*_loss(), ((f(3), f(3)), {"weight": f(3)})],
    "binary_cross_entropy_with_logits": lambda: [
        *_loss(),
        ((f(3), f(3)), {"weight": f(3), "pos_weight": f(3)}),
    ],
    "celu": _float_attribute(alpha=0.5),
    "conv1d": lambda: _conv(1),
    "conv2d": lambda: _conv(2),
    "conv_transpose1d": lambda: _conv_transpose(1),
    "conv_transpose2d": lambda: _conv_transpose(2),
    "cosine_similarity": lambda: [((f(2, 3), f(2, 3)), {"dim": 0, "eps": 1e-6})],
    "cross_entropy": lambda: [
        (f(3, 4), i(0, 3, 1)),
        ((f(3, 4), f(3, 4)), {"label_smoothing": 0.1}),
        (f(4), i(1)[0]),
        ((f(2, 4, 3), i([0, 1, 2], [3, -100, 1])), {"weight": f(4), "reduction": "none"}),
        ((f(3, 4), i(0, 1, 2)), {"ignore_index": 1}),
    ],
    "dropout": lambda: [(f(3, 4), 0.5, True), (f(3), 0.1, False)],
    "dropout1d": lambda: [(f(2, 3, 4), 0.5), (f(2, 3, 4), 0.0, True)],
    "dropout2d": lambda: [(f(2, 3, 4, 2), 0.5), (f(2, 3, 4, 2), 1.0, True)],
    "elu": _float_attribute(alpha=0.5),
    "embedding": lambda: [(i([0, 2], [1, 1]), f(3, 4)), ((i(0, 2), f(3, 4)), {"padding_idx": -1})],
    "gelu": lambda: [(f(3),), ((f(3),), {"approximate": "tanh"})],
    "glu": lambda: [(f(3, 4),), (f(4, 3), 0)],
    "group_norm": lambda: [(f(2, 4, 3), 2), (f(2, 4, 3), 2, f(4), f(4), 1e-3)],
    "hardshrink": _float_attribute(lambd=0.25),
    "hardtanh": _float_attribute(min_val=-0.5, max_val=0.5),
    "huber_loss": lambda: [*_loss(), ((f(3), f(3)), {"delta": 0.5})],
    "instance_norm": lambda: [(f(2, 4, 3),), ((f(2, 4, 3), f(4), f(4)), {"eps": 1e-3})],
    "kl_div": lambda: [
        *_loss(),
        ((f(3, 2), f(3, 2)), {"log_target": True, "reduction": "batchmean"}),
    ],
    "l1_loss": _loss,
    "layer_norm": _norm,
    "leaky_relu": _float_attribute(negative_slope=0.2),
    "linear": lambda: [(f(2, 3), f(4, 3), f(4)), (f(3), f(4, 3)), (f(2, 3), f(3))],
    "log_softmax": lambda: [(f(3, 4),), ((f(3, 4), 0), {"dtype": wf.float64})],
    "logsumexp": lambda: [(f(3, 4), 1), ((f(3, 4), (0, 1)), {"keepdim": True})],
    "max_pool1d": lambda: _pool(1, maximum=True),
    "max_pool2d": lambda: _pool(2, maximum=True),
    "mse_loss": _loss,
    "nll_loss": lambda: [
        (f(3, 4), i(0, 3, 1)),
        ((f(3, 4), i(0, 3, 1)), {"weight": f(4), "ignore_index": 3}),
    ],
    "normalize": lambda: [(f(2, 3),), ((f(2, 3),), {"p": 1.0, "dim": 0, "eps": 1e-3})],
    "one_hot": lambda: [(i(0, 2), 3), (i(0, 1),)],
    "pad": lambda: [
        (f(2, 3), (1, 2)),
        ((f(2, 3, 4), (1, 2, 0, -1)), {"value": 0.5}),
        (f(2, 3, 4), (1, 1), "reflect"),
        (f(2, 3, 4), (1, 1), "circular"),
        (f(2, 3, 4), (5, 1), "replicate"),
    ],
    "prelu": lambda: [(f(2, 3), f(3)), (f(2, 3), f(1))],
    "rms_norm": _norm,
    "scaled_dot_product_attention": lambda: [
        (f(2, 3, 4), f(2, 5, 4), f(2, 5, 6)),
        ((f(2, 3, 4), f(2, 3, 4), f(2, 3, 4)), {"is_causal": True, "scale": 0.5}),
        ((f(3, 4), f(5, 4), f(5, 6)), {"attn_mask": f(3, 5), "dropout_p": 0.0}),
        ((f(1, 4, 3, 8), f(1, 2, 3, 8), f(1, 2, 3, 8)), {"enable_gqa": True}),
    ],
    "smooth_l1_loss": lambda: [*_loss(), ((f(3), f(3)), {"beta": 0.5})],
    "softmax": lambda: [(f(3, 4),), ((f(3, 4), 0), {"dtype": wf.float64})],
    "softplus": _float_attribute(beta=0.5, threshold=3.0),
    "softshrink": _float_attribute(lambd=0.25),
    "threshold": lambda: [(f(3, 4), 0.1, 2.0)],
}
GOOD["placeholder"] = lambda: [("x", (2, 3), wf.float32), ("x", (None, 3))]
GOOD |= {f"nn.functional.{name}": calls for name, calls in _FUNCTIONAL.items()}

_INDICES: list[Any] = [
    0,
    -1,
    slice(None),
    slice(2, None, -1),
    (0, 1),
    (Ellipsis, 0),
    None,
    (slice(None), None, 2),
    [0, 2],
    ([0, 1], [1, 2]),
    (slice(None), [0, 0, 2]),
    slice(0, 0),
    (),
    True,
]


def _indexed() -> list[Any]:
    masks = [f(3, 4) > 0.5, np.array([True, False, True]), i(0, 2), (i([0], [1]), i(0, 3))]
    return [(f(3, 4), index) for index in (*_INDICES, *masks)]


_SELF = "Tensor."
GOOD |= {
    _SELF + "__getitem__": _indexed,
    _SELF + "__setitem__": lambda: (
        [(x, index, 0.5) for x, index in _indexed()]
        + [(f(3, 4), 0, f(4)), (f(3, 4), [0, 1], f(2, 4))]
    ),
    _SELF + "__contains__": lambda: [(f(3), 0.5)],
    _SELF + "__pow__": lambda: [(f(3), 2), (f(3), f(3))],
    _SELF + "assign": lambda: [(f(3, 4), f(4)), (f(3), 1.0)],
    _SELF + "astype": lambda: [(f(3), wf.int32)],
    _SELF + "backward": lambda: [
        (_square(f(3).requires_grad_()),),
        (f(3).requires_grad_() * 2.0, f(3)),
        ((_square(f(2).requires_grad_()),), {"retain_graph": True}),
    ],
    _SELF + "permute_dims": lambda: [(f(2, 3, 4), 2, 0, 1), (f(2, 3), (1, 0))],
    _SELF + "requires_grad_": lambda: [(f(3), True), (f(3), False)],
    _SELF + "reshape": lambda: [(f(2, 3), 3, -1), (f(2, 3), (6,))],
    _SELF + "to": lambda: [(f(3), "cpu"), (f(3), wf.float16)],
}
