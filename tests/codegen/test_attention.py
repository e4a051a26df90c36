"""Attention in one kernel, and its gradient in another: bit for bit what their bodies give op by
op.
"""

from __future__ import annotations

import numpy as np
import pytest
from launches import KernelError, Run, layout

import weft as wf
from weft.autodiff.custom import derived
from weft.autodiff.mode import no_grad
from weft.codegen.jit import AVX2, SSE2
from weft.ops.attention import attention
from weft.ops.whole import whole
from weft.schedule import fuse
from weft.schedule.attention import plan_attention
from weft.schedule.launch import Machine
from weft.types.dtype import bfloat16, float16, float32, float64

VJP = derived("attention", attention.body, 1)
OPS = {"attention": attention, "attention_vjp": VJP}
FLOATS = [float32, float64, float16, bfloat16]
#: batch, queries, keys, depth, width
SHAPES = [
    ((4,), 3, 5, 4, 6),
    ((2, 3), 100, 120, 64, 48),
    ((4,), 17, 33, 8, 1),
    ((5,), 65, 130, 16, 64),
    ((4,), 9, 1, 5, 3),
    ((4,), 60, 20, 3, 40),
]
ODD = [
    ((4,), 9, 0, 4, 5),
    ((4,), 9, 6, 0, 5),
    ((4,), 9, 6, 5, 0),
    ((4,), 0, 6, 5, 4),
    ((0,), 9, 6, 5, 4),
    ((4,), 8, 16500, 4, 5),
]
MASKS = ["", "bool", "keys", "none", "add"]


def operands(name, shape, dtype=float32, mask="", seed=0, special=""):
    """What an op takes, as arrays."""
    batch, rows, keys, depth, width = shape
    rng = np.random.default_rng(seed)
    sides = [(rows, depth), (keys, depth), (keys, width)]
    if name == "attention_vjp":
        sides.insert(0, (rows, width))
    xs = [_values(rng, (*batch, *side), dtype, special) for side in sides]
    if mask == "bool":
        xs.append(rng.random((rows, keys)) > 0.4)
    elif mask == "keys":
        xs.append(rng.random((1, keys)) > 0.8)
    elif mask == "none":
        xs.append(np.zeros((rows, keys), bool))
    elif mask == "add":
        xs.append(np.where(rng.random((rows, keys)) > 0.3, 0.5, -np.inf).astype(dtype.np))
    return xs


def _values(rng, shape, dtype, special):
    x = rng.standard_normal(shape)
    flat = x.reshape(-1)
    if special and flat.size > 20:
        some = rng.integers(0, flat.size, flat.size // 3)
        lowest = {float16: 6, float64: 300}.get(dtype, 40)
        flat[some] *= 10.0 ** -rng.integers(0, lowest, some.size)
        flat[rng.integers(0, flat.size, flat.size // 3)] = -0.0
        if special == "infinite":
            flat[rng.integers(0, flat.size, 3)] = [np.inf, np.nan, -np.inf]
        if special == "huge":
            flat[rng.integers(0, flat.size, 2)] = float(wf.finfo(dtype).max)
    with np.errstate(all="ignore"):
        return x.astype(dtype.np)


def by_ops(name, xs, monkeypatch, **attrs):
    """The body, op by op."""
    with monkeypatch.context() as m, no_grad():
        m.setattr(fuse, "whole", lambda *_: False)
        out = OPS[name].body(*(wf.tensor(np.ascontiguousarray(x)) for x in xs), **attrs)
    return [o.numpy() for o in (out if isinstance(out, tuple) else (out,))]


def launched(name, xs, vector=64, threads=1, how=None, **attrs):
    layouts = [layout(x) for x in xs]
    assert whole(name, [x.type for x in layouts], attrs)
    launch = plan_attention(name, layouts, attrs, Machine(threads, vector))
    return (how or Run(threads))(launch, *xs)


def check(got, want, said=""):
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        as_bits = [np.ascontiguousarray(x).view(f"u{x.itemsize}") for x in (a, b)]
        both_nan = np.isnan(a.astype("f8")) & np.isnan(b.astype("f8"))
        assert ((as_bits[0] == as_bits[1]) | both_nan).all(), f"result {i} {said}"


def cases(name):
    return [m for m in MASKS if name == "attention" or m != "add"]


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.short)
@pytest.mark.parametrize("causal", [False, True])
def test_has_the_bits_of_its_body(name, dtype, causal, monkeypatch):
    for n, shape in enumerate(SHAPES):
        for mask in cases(name):
            xs = operands(name, shape, dtype, mask, n)
            want = by_ops(name, xs, monkeypatch, causal=causal, scale=-0.37)
            check(launched(name, xs, causal=causal, scale=-0.37), want, f"of {shape}, {mask}")


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("special", ["tiny", "infinite", "huge"])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.short)
def test_special_values(name, special, dtype, monkeypatch):
    for seed in range(4):
        for mask in cases(name):
            xs = operands(name, ((5,), 65, 90, 16, 24), dtype, mask, seed, special)
            want = by_ops(name, xs, monkeypatch, causal=True, scale=0.5)
            check(launched(name, xs, causal=True, scale=0.5), want, f"{mask} {seed}")


@pytest.mark.parametrize("name", OPS)
def test_keys_left_out_add_their_zeros(name, monkeypatch):
    """A sum that underflowed to -0 becomes +0 with the first +0 that is added to it."""
    xs = operands(name, ((4,), 90, 90, 2, 8))
    *_, k, v = xs
    for x in (k, v):
        x[...] = -1e-45
        x[:, 60:, ::2] = 1.0
    xs[-3][...] = 1e-3
    for causal in (True, False):
        want = by_ops(name, xs, monkeypatch, causal=causal, scale=1e-3)
        check(launched(name, xs, causal=causal, scale=1e-3), want)
    if name == "attention":
        signs = np.signbit(by_ops(name, xs, monkeypatch, causal=True, scale=1e-3)[0])
        assert signs[:, 2:20, 1].all() and not signs[:, 2:20, 0].any()


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("shape", ODD, ids=str)
def test_empty_and_long(name, shape, monkeypatch):
    for causal in (False, True):
        xs = operands(name, shape)
        want = by_ops(name, xs, monkeypatch, causal=causal, scale=-0.5)
        check(launched(name, xs, causal=causal, scale=-0.5), want)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize(("vector", "target"), [(64, None), (32, AVX2), (16, SSE2)])
@pytest.mark.parametrize("behind", [True, False])
def test_every_target_between_guard_pages(name, vector, target, behind, monkeypatch):
    for dtype in FLOATS:
        for mask in cases(name)[:2]:
            xs = operands(name, ((2, 2), 37, 45, 10, 21), dtype, mask, 1, "tiny")
            want = by_ops(name, xs, monkeypatch, causal=True, scale=0.3)
            how = Run(target=target, guard=behind)
            check(launched(name, xs, vector, how=how, causal=True, scale=0.3), want)


@pytest.mark.parametrize("name", OPS)
def test_threads_and_order_of_tasks_change_no_bit(name, monkeypatch):
    xs = operands(name, ((5,), 300, 150, 16, 20))
    for causal in (False, True):
        want = by_ops(name, xs, monkeypatch, causal=causal, scale=0.3)
        for how in (Run(3, split=1), Run(3, split=1, shuffle=1), Run(2, split=4)):
            check(launched(name, xs, threads=3, how=how, causal=causal, scale=0.3), want)


@pytest.mark.parametrize("name", OPS)
def test_operands_may_lie_anywhere(name, monkeypatch):
    def laid(x, how):
        if x.dtype == bool and how != "columns":
            return x
        if how == "heads":  # [batch, rows, heads, columns] seen as [batch, heads, rows, columns]
            return np.swapaxes(np.ascontiguousarray(np.swapaxes(x, -2, -3)), -2, -3)
        if how == "columns":
            return np.ascontiguousarray(np.swapaxes(x, -1, -2)).swapaxes(-1, -2)
        if how == "gaps":
            wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
            wide[..., ::2] = x
            return wide[..., ::2]
        return np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1]

    for how in ("heads", "columns", "gaps", "back"):
        for dtype in (float32, float16):
            xs = operands(name, ((2, 3), 40, 50, 32, 32), dtype, "bool")
            want = by_ops(name, xs, monkeypatch, causal=True, scale=0.3)
            check(launched(name, [laid(x, how) for x in xs], causal=True, scale=0.3), want, how)


def test_matrices_are_broadcast(monkeypatch):
    _, k, v = operands("attention", ((1, 4), 20, 30, 8, 8))
    q = operands("attention", ((3, 1), 20, 30, 8, 8))[0]
    xs = [q, k, v[0, 0], np.random.default_rng(0).random((3, 1, 1, 30)) > 0.3]
    want = by_ops("attention", xs, monkeypatch, causal=False, scale=0.3)
    check(launched("attention", xs, causal=False, scale=0.3), want)
    wide = [np.broadcast_to(x, (3, 4, *x.shape[-2:])) for x in xs[:3]]
    check(launched("attention", [*wide, xs[3]], causal=False, scale=0.3), want)


def test_rows_do_not_depend_on_the_others():
    q, k, v = operands("attention", ((2,), 90, 70, 16, 16))
    for causal in (False, True):
        (many,) = launched("attention", [q, k, v], causal=causal, scale=0.3)
        for rows in (8, 15, 29, 61):
            (few,) = launched("attention", [q[:, :rows], k, v], causal=causal, scale=0.3)
            check([few], [many[:, :rows]])


@pytest.mark.parametrize("name", OPS)
def test_stops_when_asked(name):
    xs = operands(name, ((4,), 200, 40, 8, 8))
    with pytest.raises(KernelError) as e:
        launched(name, xs, how=Run(stop_after=2), causal=False, scale=0.3)
    assert e.value.code == 2
