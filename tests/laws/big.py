"""Cases large enough that their work is shared out among threads: every family of kernels, on each
axis that matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from tests.laws.lab import Array, Case
from weft.ops.define import OPS
from weft.ops.samples import Sample, array
from weft.types.dtype import bfloat16, float16, float32, float64, int8, int32, int64

Args = tuple[str, tuple[Any, ...], dict[str, Any]]


def x(*shape: int, seed: int = 0, dtype: Any = float32) -> Array:
    return array(shape, dtype, (-3.0, 3.0), seed)  # type: ignore[no-any-return]


def places(size: int, *shape: int, seed: int = 0) -> Array:
    """Indices, many of them equal."""
    return np.random.default_rng([seed, *shape]).integers(0, size, shape)


def _maps() -> Iterator[Args]:
    yield "add", (x(1000, 300), x(300, seed=1)), {}
    yield "multiply", (x(500, 1, 300), x(7, 1, seed=1)), {}
    yield "exp", (x(300_007),), {}
    yield "gelu", (x(300, 1000, dtype=float16),), {}
    yield "where", (x(300, 1001) > 0, x(300, 1001), x(1001)), {}
    yield "copy", (x(700, 900).T,), {}
    yield "copy", (x(40, 30, 50, 6).transpose(3, 1, 0, 2),), {}
    yield "astype", (x(300, 1000),), {"dtype": bfloat16}
    yield "pad", (x(300, 700), 0.5), {"widths": ((3, 5), (2, 9))}
    yield "roll", (x(300, 700),), {"shifts": (17, 697)}
    yield "concat", (x(1000, 300), x(200, 300, seed=1), x(7, 300)), {"axis": 0}
    yield "normal", (1234, 5), {"shape": (300, 701), "dtype": float32}
    yield "random_bits", (1234, 5), {"shape": (300_001,), "dtype": int64}


def _folds() -> Iterator[Args]:
    for axes in ((0,), (1,), (0, 1)):
        for op in ("sum", "max"):
            yield op, (x(1000, 1001),), {"axes": axes, "keepdims": False}
    for axes in ((0,), (1,), (2,), (0, 2), (1, 2)):
        yield "sum", (x(100, 101, 99),), {"axes": axes, "keepdims": True}
    yield "sum", (x(1_000_003),), {"axes": (0,), "keepdims": False}
    for dtype in (float64, float16, bfloat16, int32):
        yield "sum", (x(3, 300_001, dtype=dtype),), {"axes": (1,), "keepdims": False}
        yield "sum", (x(3001, 129, dtype=dtype),), {"axes": (0,), "keepdims": False}
    yield "prod", (1 + x(1000, 1001) / 1000,), {"axes": (1,), "keepdims": False}
    yield "prod", (1 + x(1000, 1001) / 1000,), {"axes": (0,), "keepdims": False}
    yield "argmax", (x(1000, 1001),), {"axes": (0,), "keepdims": False}
    yield "argmin", (x(1_000_001, dtype=int8),), {"axes": (0,), "keepdims": False}
    yield "any", (x(2000, 1001) > 2.9,), {"axes": (1,), "keepdims": False}


def _contractions() -> Iterator[Args]:
    yield "matmul", (x(300, 700), x(700, 500, seed=1)), {}
    yield "matmul", (x(300, 700), x(500, 700, seed=1).T), {}
    yield "matmul", (x(8, 64, 128), x(8, 128, 96, seed=1)), {}
    yield "matmul", (x(1, 700), x(700, 500, seed=1)), {}
    yield "matmul", (x(2000, 1000), x(1000, seed=1)), {}
    yield "matmul", (x(3, 20_000), x(20_000, 5, seed=1)), {}
    yield "matmul", (x(150, 211, dtype=float64), x(211, 170, seed=1, dtype=float64)), {}
    yield "matmul", (x(150, 211, dtype=float16), x(211, 170, seed=1, dtype=float16)), {}
    yield "matmul", (x(150, 211, dtype=bfloat16), x(211, 170, seed=1, dtype=bfloat16)), {}
    yield "matmul", (x(150, 211, dtype=int32), x(211, 170, seed=1, dtype=int32)), {}
    plain = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    yield "convolution", (x(4, 16, 28, 28), x(32, 16, 3, 3, seed=1)), plain
    yield "convolution", (x(4, 16, 29, 31), x(32, 16, 3, 3, seed=1)), plain | {"stride": (2, 2)}
    yield "convolution", (x(4, 16, 28, 28), x(16, 1, 3, 3, seed=1)), plain | {"groups": 16}
    yield "convolution", (x(1, 64, 28, 28), x(64, 64, 1, 1, seed=1)), plain | {"padding": (0, 0)}
    yield (
        "convolution_transpose",
        (x(2, 16, 14, 14), x(16, 12, 3, 3, seed=1)),
        plain | {"stride": (2, 2), "output_padding": (1, 1)},
    )
    yield (
        "attention",
        (x(8, 100, 64), x(8, 120, 64, seed=1), x(8, 120, 48, seed=2)),
        {"causal": True, "scale": 0.125},
    )
    yield (  # sides that end in the first vector of a panel
        "attention",
        (x(4, 90, 40), x(4, 70, 40, seed=1), x(4, 70, 72, seed=2)),
        {"causal": True, "scale": 0.125},
    )


def _rows() -> Iterator[Args]:
    for op in ("softmax", "log_softmax"):
        yield op, (x(5000, 300),), {"axis": 1}
        yield op, (x(300, 1500),), {"axis": 0}
        yield op, (x(3, 40_000),), {"axis": 1}
    yield "softmax", (x(900, 301, dtype=float16),), {"axis": 1}
    yield "layer_norm", (x(2000, 384), x(384, seed=1), x(384, seed=2)), {"eps": 1e-5}
    yield "layer_norm", (x(4, 40_001),), {"eps": 1e-5}
    yield "rms_norm", (x(2000, 384), x(384, seed=1)), {"eps": 1e-5}
    yield (
        "group_norm",
        (x(16, 32, 28, 28), x(32, seed=1), x(32, seed=2)),
        {"groups": 4, "eps": 1e-5},
    )
    yield "batch_norm", (x(32, 16, 28, 28), x(16, seed=1), x(16, seed=2)), {"eps": 1e-5}
    yield "logsumexp", (x(500, 1001),), {"axes": (1,), "keepdims": False}
    yield "var", (x(1000, 501),), {"axes": (0,), "keepdims": False, "correction": 1.0}
    yield "mean", (x(1000, 501),), {"axes": (0, 1), "keepdims": False}
    yield "cross_entropy", (x(1000, 400), places(400, 1000)), {}
    yield "mse_loss", (x(500, 301), x(500, 301, seed=1)), {"reduction": "mean"}


def _indexing() -> Iterator[Args]:
    yield "take", (x(5000, 64), places(5000, 3000)), {"axis": 0}
    yield "take", (x(64, 5000), places(5000, 3000)), {"axis": 1}
    yield "take_along_axis", (x(1000, 300), places(1000, 900, 300)), {"axis": 0}
    yield "scatter_add", (x(100, 300), places(100, 900, 300), x(900, 300, seed=1)), {"axis": 0}
    yield "scatter_add", (x(3000), places(3000, 300_000), x(300_000, seed=1)), {"axis": 0}
    yield (
        "scatter_add",
        (x(3000, dtype=float16), places(3000, 90_000), x(90_000, seed=1, dtype=float16)),
        {"axis": 0},
    )
    yield "row_add", (x(500, 64), places(500, 5000), x(5000, 64, seed=1)), {"axis": 0}
    yield "row_sum", (places(50, 5000), x(5000, 64, seed=1)), {"shape": (50, 64), "axis": 0}
    running = {"dtype": float32, "reverse": False}
    yield "cumulative_sum", (x(1_000_001),), {"axis": 0} | running
    yield "cumulative_sum", (x(1000, 501),), {"axis": 0} | running
    yield "cumulative_sum", (x(1000, 501),), {"axis": 1} | running | {"reverse": True}
    yield "cumulative_prod", (1 + x(1000, 501) / 100,), {"axis": 0, "dtype": float32}
    yield "cumulative_max", (x(1000, 501),), {"axis": 0}
    yield "sort", (x(300_001),), {"descending": False}
    yield "argsort", (x(1000, 501),), {"descending": True}
    yield "topk", (x(300, 5000),), {"k": 20, "largest": True}
    yield "searchsorted", (np.sort(x(10_000)), x(100_000, seed=1)), {"right": False}
    some = (x(700, 700) > 1).astype(np.float32)
    starts = np.asarray(OPS["nonzero_starts"](some).numpy())
    yield "nonzero_starts", (some,), {}
    yield "nonzero_places", (some, starts), {"many": int((some != 0).sum())}
    windows = {"kernel": (3, 3), "stride": (2, 2), "offset": (1, 1), "sizes": (28, 28)}
    yield "window_sum", (x(16, 16, 56, 56),), windows
    yield "window_max", (x(16, 16, 56, 56),), windows | {"dilation": (1, 1)}


@cache
def cases() -> tuple[Case, ...]:
    families = (_maps, _folds, _contractions, _rows, _indexing)
    said = [args for family in families for args in family()]
    return tuple(
        Case(OPS[name], n, Sample(args, attrs)) for n, (name, args, attrs) in enumerate(said)
    )
