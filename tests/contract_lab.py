"""What a contraction means, spelled out in NumPy: one chain of fma per element, windows read by
indexing. And random ones.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import random
from typing import Any

import ml_dtypes
import numpy as np

from weft.ops.contraction import Contraction, Window, labels
from weft.schedule import contract, contract_blocks

Array = np.ndarray[Any, Any]
_libm = ctypes.CDLL(ctypes.util.find_library("m"))
_libm.fma.restype, _libm.fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3
_fma64 = np.vectorize(_libm.fma, otypes=[np.float64])


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once. float32 by float64 rounded to odd, so that only the second rounding
    counts.
    """
    if c.dtype == np.float64:
        return _fma64(a, b, c)
    p, c64 = a.astype(np.float64) * b, c.astype(np.float64)
    s = p + c64
    back = s - p
    error = (p - (s - back)) + (c64 - back)
    even = s.view(np.int64) & 1 == 0
    inexact = np.isfinite(s) & (error != 0) & even
    s = np.where(inexact, np.nextafter(s, np.where(error > 0, np.inf, -np.inf)), s)
    return s.astype(np.float32)


def spread(x: Array, axes: tuple[Any, ...], sizes: dict[str, int], order: list[str]) -> Array:
    """An operand with one axis for each label of `order`, windows read out; of size 1 for labels
    it lacks.
    """
    k = 0
    for axis in axes:
        if isinstance(axis, Window):
            pos, tap = np.ogrid[: sizes[axis.pos], : sizes[axis.tap]]
            q, r = np.divmod(pos * axis.stride + tap * axis.dilation - axis.pad, axis.step)
            ok = (r == 0) & (q >= 0) & (q < x.shape[k])
            if x.shape[k] == 0:
                x = np.zeros((*x.shape[:k], 1, *x.shape[k + 1 :]), x.dtype)
            x = np.take(x, np.where(ok, q, 0), axis=k)
            x = np.where(
                ok.reshape((1,) * k + ok.shape + (1,) * (x.ndim - k - 2)), x, np.zeros((), x.dtype)
            )
            k += 1
        k += 1
    have = list(labels(axes))
    x = np.transpose(x, [have.index(n) for n in order if n in have])
    return x.reshape([sizes[n] if n in have else 1 for n in order])


def left_out(c: Contraction, sizes: dict[str, int], order: list[str]) -> Array:
    """Which terms are none: a position and a tap that no element lies at, if the position is an
    axis of the result and the tap one of the other operand, summed over.
    """
    out = np.zeros([1] * len(order), bool)
    everywhere = [*labels(c.a), *labels(c.b)]
    for own, other in ((c.a, c.b), (c.b, c.a)):
        for w in own:
            if not isinstance(w, Window) or w.pos not in c.out or w.tap in c.out:
                continue
            if w.tap in other and everywhere.count(w.pos) == 1 and everywhere.count(w.tap) == 2:
                at = np.ogrid[tuple(slice(sizes[n]) for n in order)]
                pos, tap = at[order.index(w.pos)], at[order.index(w.tap)]
                out = out | ((pos * w.stride + tap * w.dilation - w.pad) % w.step != 0)
    return out


@np.errstate(all="ignore")
def oracle(a: Array, b: Array, c: Contraction) -> Array:
    """The contraction, by its definition."""
    sizes = dict(c.sizes)
    for axes, x in ((c.a, a), (c.b, b)):
        sizes |= {n: k for n, k in zip(axes, x.shape, strict=True) if isinstance(n, str)}
    depth = [n for n in dict.fromkeys(labels(c.a)) if n not in c.out]
    order = [*c.out, *depth]
    d = len(c.out)
    wide = {np.dtype(np.float16): np.float32, np.dtype(ml_dtypes.bfloat16): np.float32}.get(
        a.dtype, a.dtype
    )
    steps = math.prod(sizes[n] for n in depth)
    xs = [
        np.broadcast_to(s, (*s.shape[:d], *(sizes[n] for n in depth)))
        .reshape(*s.shape[:d], steps)
        .astype(wide)
        for s in (spread(x, axes, sizes, order) for axes, x in ((c.a, a), (c.b, b)))
    ]
    shape = [sizes[n] for n in c.out]
    none = np.broadcast_to(left_out(c, sizes, order), [sizes[n] for n in order])
    none = none.reshape(*shape, steps)
    out = np.zeros(shape, wide)
    for k in range(steps):
        p, q = np.broadcast_arrays(xs[0][..., k], xs[1][..., k])
        more = (p * q + out).astype(wide) if np.dtype(wide).kind in "iu" else fma(p, q, out)
        out = np.where(none[..., k], out, more)
    return out.astype(a.dtype)


def values(rng: np.random.Generator, shape: Any, dtype: Any) -> Array:
    """Numbers of many magnitudes, with zeros of both signs."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    x = rng.standard_normal(shape) * np.exp2(rng.integers(-4, 4, shape))
    return np.where(rng.random(shape) < 0.05, np.copysign(0.0, x), x).astype(dtype)


def laid_out(
    rnd: random.Random, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any
) -> Array:
    """An array of that shape somewhere in a larger one: transposed, sliced, reversed, repeated."""
    perm = (
        rnd.sample(range(len(shape)), len(shape)) if rnd.random() < 0.6 else list(range(len(shape)))
    )
    base, index = [], []
    for axis in perm:
        kind = rnd.choice(["", "", "", "step", "reverse", "repeat"]) if rnd.random() < 0.5 else ""
        n = shape[axis]
        if kind == "step":
            step = rnd.choice([2, 3])
            base.append(n * step + 1)
            index.append(slice(1, 1 + n * step, step))
        elif kind == "reverse":
            base.append(n)
            index.append(slice(None, None, -1))
        elif kind == "repeat" and n:
            base.append(1)
            index.append(slice(None))
        else:
            base.append(n)
            index.append(slice(None))
    x = values(rng, base, dtype)[tuple(index)]
    x = np.broadcast_to(x, [shape[axis] for axis in perm])
    return np.transpose(x, np.argsort(perm))


def random_contraction(
    rnd: random.Random, most: int
) -> tuple[Contraction, tuple[int, ...], tuple[int, ...]]:
    """A contraction and shapes for its operands, of at most about `most` products."""
    counts = {
        kind: rnd.choices([0, 1, 2, 3], [2, 6, 2, 1] if kind != "b" else [6, 3, 1, 0])[0]
        for kind in "bmnk"
    }
    names = {kind: [f"{kind}{i}" for i in range(n)] for kind, n in counts.items()}
    sizes: dict[str, int] = {}
    budget = float(most)
    for kind in rnd.sample("bmnk", 4):
        for n in names[kind]:
            high = max(1, min(40, int(budget)))
            sizes[n] = rnd.choice([rnd.randint(1, high), rnd.randint(1, min(high, 5)), 1])
            budget /= sizes[n]
    if rnd.random() < 0.03 and sizes:
        sizes[rnd.choice(sorted(sizes))] = 0
    a: list[Any] = rnd.sample(
        [*names["b"], *names["m"], *names["k"]], counts["b"] + counts["m"] + counts["k"]
    )
    b: list[Any] = rnd.sample(
        [*names["b"], *names["n"], *names["k"]], counts["b"] + counts["n"] + counts["k"]
    )
    out = rnd.sample(
        [*names["b"], *names["m"], *names["n"]], counts["b"] + counts["m"] + counts["n"]
    )
    shapes = []
    for axes in (a, b):
        while len(axes) > 1 and rnd.random() < 0.4:
            plain = [x for x in axes if isinstance(x, str)]
            if len(plain) < 2:
                break
            p, q = rnd.sample(plain, 2)
            w = Window(
                p,
                q,
                rnd.choice([1, 1, 2, 3, -1]),
                rnd.choice([1, 1, 2, -1, -2]),
                rnd.randint(-3, 4),
                rnd.choice([1, 1, 1, 2, 3]),
            )
            axes[axes.index(p)] = w
            axes.remove(q)
        shape = []
        for x in axes:
            if isinstance(x, Window):
                reach = abs(x.stride) * max(sizes[x.pos] - 1, 0) + abs(x.dilation) * max(
                    sizes[x.tap] - 1, 0
                )
                shape.append(max(1, reach // x.step + rnd.randint(-3, 3)))
            else:
                shape.append(sizes[x])
        shapes.append(tuple(shape))
    c = Contraction(tuple(a), tuple(b), tuple(out), tuple(sorted(sizes.items())))
    return c, shapes[0], shapes[1]


def turn_images(monkeypatch: Any) -> None:
    """From now on channels are the lanes of images, and tiles are transposed, whatever it costs."""
    monkeypatch.setattr(contract, "HEAVY", 0)
    monkeypatch.setattr(contract_blocks, "ALONE", 0)
    monkeypatch.setattr(contract_blocks, "LONG", 0)
    monkeypatch.setattr(contract_blocks, "TURN_COST", -1e12)
