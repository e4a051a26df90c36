"""The steps of random programs: ops of every kind on values that are there.

Each is made while it is run eagerly once, so that shapes fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import weft as wf
import weft.nn.functional as F
from tests import extremes

FLOATS = [wf.float32, wf.float32, wf.float32, wf.float64, wf.float16, wf.bfloat16]
OTHERS = [wf.int64, wf.int32, wf.int8, wf.uint8, wf.bool]
SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33]


@dataclass
class Step:
    """A value made of earlier ones."""

    name: str
    operands: tuple[int, ...]
    f: Callable[..., Any]
    attrs: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        said = [f"%{i}" for i in self.operands] + [f"{k}={v}" for k, v in self.attrs.items()]
        return f"{self.name}({', '.join(said)})"


class Maker:
    def __init__(self, seed: int) -> None:
        self.rng, self.other = np.random.default_rng(seed), np.random.default_rng((seed, 1))
        self.steps: list[Step] = []
        self.values: list[wf.Tensor] = []
        self.arrays: list[tuple[np.ndarray, Any]] = []

    # choices

    def one(self, xs: Any) -> Any:
        return xs[int(self.rng.integers(len(xs)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def array(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        if dtype.is_float:
            a = self.rng.standard_normal(shape) * self.one([0.5, 1.0, 2.0])
            if self.chance(0.2):
                a = np.where(self.rng.random(shape) < 0.2, -0.0, a)
        elif dtype is wf.bool:
            a = self.rng.integers(0, 2, shape)
        else:
            a = self.rng.integers(0 if dtype is wf.uint8 else -9, 10, shape)
        a = np.asarray(a).astype(dtype.np)
        return extremes.among(a, self.other, 0.1) if self.other.random() < 0.25 else a

    def shape(self) -> tuple[int, ...]:
        if self.chance(0.08):
            return self.one([(64, 300), (130, 257), (3, 40, 70), (20000,), (8, 4, 20, 20)])
        if self.chance(0.04):
            return self.one([(0,), (3, 0), (0, 4)])
        sizes = SIZES if self.chance(0.6) else SIZES[:5]
        return tuple(self.one(sizes) for _ in range(self.one([0, 1, 1, 2, 2, 2, 3, 3, 4])))

    def input(self, shape: tuple[int, ...] | None = None, dtype: Any = None) -> None:
        dtype = dtype or (self.one(FLOATS) if self.chance(0.85) else self.one(OTHERS))
        array = self.array(self.shape() if shape is None else shape, dtype)
        self.arrays.append((array, dtype))
        self.values.append(wf.asarray(array))

    def pick(self, want: Callable[[wf.Tensor], bool] = lambda x: True) -> int | None:
        """A value, late ones and inputs rather than others."""
        found = [i for i, x in enumerate(self.values) if want(x) and x.size <= 1 << 17]
        if not found:
            return None
        return self.one(found[-4:]) if self.chance(0.6) else self.one(found)

    # steps

    def add(self, name: str, operands: tuple[int, ...], f: Any, **attrs: Any) -> None:
        try:
            out = f(*(self.values[i] for i in operands), **attrs)
        except wf.errors.WeftError:
            return  # not an op for such operands
        outs = out if isinstance(out, tuple) else (out,)
        for i, _ in enumerate(outs):
            pick = f if len(outs) == 1 and not isinstance(out, tuple) else picked(f, i)
            self.steps.append(Step(name, operands, pick, attrs))
            self.values.append(outs[i])

    def step(self) -> None:
        kinds = [
            (self.unary, 5), (self.binary, 6), (self.scalar, 3), (self.fold, 4), (self.view, 5),
            (self.product, 3), (self.rows, 3), (self.choose, 2), (self.cast, 1.5),
            (self.gather, 2), (self.join, 1.5), (self.convolve, 0.7), (self.scan, 1),
            (self.draw, 0.7), (self.write, 1), (self.integers, 1),
        ]  # fmt: skip
        weights = np.array([w for _, w in kinds], float)
        kind = kinds[int(self.rng.choice(len(kinds), p=weights / weights.sum()))][0]
        kind()

    def floating(self) -> int | None:
        return self.pick(lambda x: x.dtype.is_float)

    def unary(self) -> None:
        i = self.floating()
        if i is None:
            return
        name, f = self.one(UNARY)
        self.add(name, (i,), f)

    def binary(self) -> None:
        i = self.pick()
        if i is None:
            return
        x = self.values[i]
        j = self.pick(lambda y: broadcasts(x.shape, y.shape))
        if j is None:
            return
        if self.chance(0.5):
            i, j = j, i
        name, f = self.one(BINARY)
        if name == "subtract" and wf.bool in (x.dtype, self.values[j].dtype, self.values[i].dtype):
            return
        self.add(name, (i, j), f)

    def scalar(self) -> None:
        i = self.floating()
        if i is None:
            return
        n = self.one([2.0, -0.5, 0.0, -0.0, 3, 1, 0.1, 1e-3])
        name, f = self.one(SCALAR)
        self.add(f"{name} {n}", (i,), lambda x: f(x, n))

    def fold(self) -> None:
        i = self.pick(lambda x: x.ndim > 0 and x.size > 0)
        if i is None:
            return
        x = self.values[i]
        name = self.one(["sum", "sum", "mean", "max", "min", "prod", "var", "any", "all"])
        if (name in ("mean", "var") and not x.dtype.is_float) or (
            name in ("max", "min") and x.dtype is wf.bool
        ):
            name = "sum"
        axes = tuple(sorted(a for a in range(x.ndim) if self.chance(0.5)))
        axis: Any = axes if axes and self.chance(0.8) else self.one([None, -1, 0])
        if self.chance(0.1) and x.dtype is not wf.bool:
            name, axis = "argmax", self.one([0, -1])
        f = getattr(wf, name)
        self.add(name, (i,), f, axis=axis, keepdims=self.chance(0.5))

    def view(self) -> None:
        i = self.pick()
        if i is None:
            return
        x = self.values[i]
        kind = self.one(["reshape", "permute", "slice", "expand", "flip", "spread", "merge"])
        if kind == "reshape":
            sizes = list(x.shape)
            if len(sizes) >= 2 and x.size:
                at = int(self.rng.integers(len(sizes) - 1))
                sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
                self.add("reshape", (i,), lambda x, shape: x.reshape(shape), shape=tuple(sizes))
            elif sizes and sizes[0] and sizes[0] % 4 == 0:
                shape = (4, sizes[0] // 4)
                self.add("reshape", (i,), lambda x, shape: x.reshape(shape), shape=shape)
        elif kind == "permute":
            axes = tuple(int(a) for a in self.rng.permutation(x.ndim))
            self.add("permute_dims", (i,), wf.permute_dims, axes=axes)
        elif kind == "slice" and x.ndim:
            key = tuple(self.one(KEYS) for _ in range(int(self.rng.integers(1, x.ndim + 1))))
            if any(isinstance(k, int) and not n for k, n in zip(key, x.shape, strict=False)):
                return
            self.add("index", (i,), lambda x, key: x[key], key=key)
        elif kind == "expand":
            self.add("expand_dims", (i,), wf.expand_dims, axis=self.one([0, -1]))
        elif kind == "flip" and x.ndim:
            self.add("flip", (i,), wf.flip, axis=self.one([0, -1]))
        elif kind == "spread" and x.ndim < 4 and x.size < 2000:
            shape = (self.one([2, 3, 5]), *(self.one([2, 4]) if n == 1 else n for n in x.shape))
            self.add("broadcast_to", (i,), wf.broadcast_to, shape=shape)
        elif kind == "merge":
            self.add("reshape", (i,), lambda x: x.reshape(-1))

    def product(self) -> None:
        i = self.pick(lambda x: x.dtype.is_float and x.ndim >= 1 and x.size <= 1 << 15)
        if i is None:
            return
        x = self.values[i]
        j = self.pick(
            lambda y: (
                y.dtype is x.dtype
                and 1 <= y.ndim <= 2
                and x.shape[-1] in y.shape
                and y.size <= 1 << 15
            )
        )
        if j is None or (self.chance(0.3) and x.ndim == 2):
            self.add("gram", (i,), lambda x: x @ x.mT if x.ndim > 1 else x @ x)
            return
        turn = self.values[j].shape[0] != x.shape[-1]
        if turn:
            self.add("matmul of transposed", (i, j), lambda x, y: x @ y.T)
        else:
            self.add("matmul", (i, j), lambda x, y: x @ y)

    def rows(self) -> None:
        i = self.pick(lambda x: x.dtype.is_float and x.ndim >= 1 and x.size > 0)
        if i is None:
            return
        x = self.values[i]
        axis = self.one([-1, -1, 0])
        n = x.shape[-1]
        cases = {
            "softmax": lambda x: F.softmax(x, dim=axis),
            "log_softmax": lambda x: F.log_softmax(x, dim=axis),
            "layer_norm": lambda x: F.layer_norm(x, (n,)),
            "standardize": lambda x: (
                (x - x.mean(axis=-1, keepdims=True)) / (x.std(axis=-1, keepdims=True) + 1)
            ),
            "mean of squares": lambda x: (x * x).mean(axis=axis),
        }
        name = self.one(list(cases))
        self.add(f"{name} {axis}", (i,), cases[name])

    def choose(self) -> None:
        i = self.floating()
        if i is None:
            return
        x = self.values[i]
        j = self.pick(lambda y: y.dtype.is_float and broadcasts(x.shape, y.shape))
        if j is None:
            return
        self.add("where", (i, j), lambda x, y: wf.where(x > 0, x, y * 2))

    def cast(self) -> None:
        i = self.floating()
        if i is None:
            return
        to = self.one([wf.float32, wf.float64, wf.float16, wf.bfloat16, wf.bool])
        self.add(f"astype {to.name}", (i,), lambda x: x.astype(to))

    def gather(self) -> None:
        i = self.pick(lambda x: x.ndim >= 1 and min(x.shape) > 0)
        if i is None:
            return
        n = self.values[i].shape[0]
        index = wf.asarray(self.rng.integers(-n, n, self.one([1, 3, 6])))
        kind = self.one(["take", "index", "sort"])
        if kind == "take":
            self.add("take", (i,), lambda x: wf.take(x, index, axis=0))
        elif kind == "index":
            self.add("x[i]", (i,), lambda x: x[index])
        else:
            self.add("sort", (i,), lambda x: wf.sort(x, axis=-1))

    def join(self) -> None:
        i = self.pick(lambda x: x.ndim >= 1)
        if i is None:
            return
        x = self.values[i]
        j = self.pick(lambda y: y.shape == x.shape and y.dtype is x.dtype)
        assert j is not None
        if self.chance(0.5):
            self.add("concat", (i, j), lambda x, y: wf.concat([x, y], axis=-1))
        elif x.ndim < 4:
            self.add("stack", (i, j), lambda x, y: wf.stack([x, y], axis=0))

    def convolve(self) -> None:
        i = self.pick(
            lambda x: (
                x.dtype is wf.float32 and x.ndim == 4 and min(x.shape) > 0 and min(x.shape[2:]) >= 3
            )
        )
        if i is None:
            i = self.pick(lambda x: x.dtype is wf.float32 and x.ndim == 2 and min(x.shape) >= 3)
            if i is not None:
                self.add("as image", (i,), lambda x: x.reshape(1, 1, *x.shape))
            return
        kind = self.one(["conv2d", "max_pool2d", "avg_pool2d", "batch_norm"])
        channels = self.values[i].shape[1]
        if kind == "conv2d":
            w = wf.asarray(self.array((self.one([1, 3, 8]), channels, 3, 3), wf.float32))
            stride, pad = self.one([1, 2]), self.one([0, 1])
            self.add("conv2d", (i,), lambda x: F.conv2d(x, w, None, stride, pad))
        elif kind == "batch_norm":
            self.add("batch_norm", (i,), lambda x: F.batch_norm(x, None, None, training=True))
        else:
            self.add(kind, (i,), lambda x: getattr(F, kind)(x, 2))

    def scan(self) -> None:
        i = self.pick(lambda x: x.dtype.is_float and x.ndim >= 1)
        if i is not None:
            self.add("cumulative_sum", (i,), wf.cumulative_sum, axis=self.one([0, -1]))

    def draw(self) -> None:
        i = self.floating()
        if i is None:
            return
        if self.chance(0.5):
            self.add("dropout", (i,), lambda x: F.dropout(x, 0.5))
        else:
            self.add("noise", (i,), lambda x: x + wf.randn(x.shape).astype(x.dtype))

    def write(self) -> None:
        """`x[key] = v` of a copy."""
        i = self.pick(lambda x: x.ndim >= 1 and min(x.shape) > 0 and x.dtype.is_float)
        if i is None:
            return

        def f(x: wf.Tensor) -> wf.Tensor:
            y = x.clone()
            y[0] = y[-1] * 2
            y += 1
            return y

        self.add("assign", (i,), f)

    def integers(self) -> None:
        i = self.pick(lambda x: x.dtype in (wf.int64, wf.int32, wf.int8))
        if i is None:
            return
        name, f = self.one(INTEGER)
        self.add(name, (i,), f)


def picked(f: Any, i: int) -> Any:
    return lambda *xs, **attrs: f(*xs, **attrs)[i]


def broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


UNARY = [
    ("tanh", wf.tanh), ("sigmoid", wf.sigmoid), ("relu", wf.relu), ("negative", wf.negative),
    ("abs", wf.abs), ("sqrt of abs", lambda x: wf.sqrt(wf.abs(x))), ("sin", wf.sin),
    ("exp of tanh", lambda x: wf.exp(wf.tanh(x))), ("log1p of abs", lambda x: wf.log1p(wf.abs(x))),
    ("square", wf.square), ("gelu", F.gelu), ("silu", F.silu), ("copy", lambda x: x.clone()),
    ("floor", wf.floor), ("sign", wf.sign), ("detach", lambda x: x.detach()),
    ("reciprocal", lambda x: 1 / (wf.abs(x) + 1)),
]  # fmt: skip
BINARY = [
    ("add", wf.add), ("subtract", wf.subtract), ("multiply", wf.multiply),
    ("maximum", wf.maximum), ("minimum", wf.minimum), ("greater", wf.greater),
    ("divide", lambda x, y: x / (wf.abs(y) + 1)), ("less_equal", wf.less_equal),
]  # fmt: skip
SCALAR = [
    ("add", lambda x, n: x + n), ("rsub", lambda x, n: n - x), ("multiply", lambda x, n: x * n),
    ("maximum", lambda x, n: wf.maximum(x, n)), ("where", lambda x, n: wf.where(x > n, x, n)),
]  # fmt: skip
INTEGER = [
    ("floor_divide", lambda x: x // 3), ("remainder", lambda x: x % 5), ("xor", lambda x: x ^ 3),
    ("shift", lambda x: x << 1), ("as float", lambda x: x.astype(wf.float32)),
]  # fmt: skip
KEYS = [
    slice(None), slice(None, None, 2), slice(1, None), slice(None, None, -1), slice(-3, -1),
    slice(None, 2), None, Ellipsis, 0, -1,
]  # fmt: skip
