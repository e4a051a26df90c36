"""When attention is one launch, eagerly and in programs."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.buffer import Layout
from weft.ops.attention import attention
from weft.ops.whole import FEW, whole
from weft.schedule.attention import Attention, plan_attention
from weft.schedule.launch import Machine
from weft.types import TensorType
from weft.types.dtype import bool_, float32, float64, int32

PLAIN = {"causal": True, "scale": 0.5}


def types(q, k, v, *mask, dtype=float32, mask_dtype=bool_):
    return [TensorType(s, dtype) for s in (q, k, v)] + [TensorType(s, mask_dtype) for s in mask]


def test_which_calls_are_one_launch():
    q, k, v = (2, 9, 4), (2, 11, 4), (2, 11, 6)
    assert whole("attention", types(q, k, v), PLAIN)
    assert whole("attention", types(q, k, v, (9, 11)), PLAIN)
    assert whole("attention", types(q, k, v, (1, 11), mask_dtype=float32), PLAIN)
    assert whole("attention", types(q, k[1:], v), PLAIN)
    assert not whole("softmax", types(q, k, v), PLAIN)
    assert not whole("attention", types(q, k, v, (9, 11), mask_dtype=float64), PLAIN)
    assert not whole("attention", types(q, k, v, dtype=int32), PLAIN)
    assert not whole("attention", [*types(q, k, v)[:2], TensorType(v, float64)], PLAIN)
    assert not whole("attention", types(q[2:], k, v), PLAIN)


def test_few_queries_are_left_to_the_products():
    """Packing many keys for them would cost more than it gives."""
    for rows in (1, FEW - 1):
        assert not whole("attention", types((rows, 64), (4096, 64), (4096, 64)), PLAIN)
    assert whole("attention", types((FEW, 64), (4096, 64), (4096, 64)), PLAIN)


def test_which_gradients_are_one_launch():
    g, q, k, v = (8, 9, 6), (8, 9, 4), (8, 11, 4), (8, 11, 6)

    def is_one(*shapes, **how):
        return whole("attention_vjp", [*types(g, q, k)[:1], *types(*shapes, **how)], PLAIN)

    assert is_one(q, k, v)
    assert is_one(q, k, v, (9, 11))
    assert not is_one(q, k, v, (9, 11), mask_dtype=float32)  # the mask has a cotangent, too
    assert not is_one(q, k[1:], v[1:])  # cotangents are sums over the matrices
    assert is_one((2, 9, 4), (2, 11, 4), (2, 11, 6))
    long = (2, 1024, 64)
    assert not is_one(long, long, long)  # too few for a task each


def planned(rows, keys, depth=64, matrices=12, threads=2, name="attention"):
    shapes = [(matrices, rows, depth), (matrices, keys, depth), (matrices, keys, depth)]
    if name == "attention_vjp":
        shapes.insert(0, (matrices, rows, depth))
    layouts = [Layout.dense(TensorType(s, float32)) for s in shapes]
    return plan_attention(name, layouts, PLAIN, Machine(threads))


@pytest.mark.parametrize("name", ["attention", "attention_vjp"])
def test_the_matrix_of_scores_never_exists(name):
    launch = planned(8192, 8192, name=name)
    scores = 8192 * 8192 * 4
    assert launch.worker_scratch < scores / 8
    assert launch.scratch == 0 and len(launch.phases) == 1


def test_few_matrices_are_cut_into_several_tasks():
    assert planned(1024, 1024, matrices=1, threads=8).phases[0].tasks >= 8
    assert planned(1024, 1024, matrices=64).phases[0].tasks == 64
    assert planned(1024, 1024, name="attention_vjp").phases[0].tasks == 12


def test_one_kernel_for_all_shapes():
    specs = {planned(*s).phases[0].spec for s in [(9, 9), (1024, 77), (300, 5000)]}
    assert specs == {Attention(float32, 64, True)}


def test_programs_keep_it_whole():
    x = wf.tensor(np.linspace(-1, 1, 4 * 40 * 8, dtype="f4").reshape(4, 40, 8), requires_grad=True)

    def loss(x):
        return (attention(x, x * 2.0, x + 1.0, **PLAIN) ** 2).sum()

    compiled = wf.compile(loss)
    found = []
    for f in (loss, compiled):
        x.grad = None
        y = f(x)
        y.backward()
        found.append((y.numpy(), x.grad.numpy()))
    for a, b in zip(*found, strict=True):
        assert (a == b).all()
    said = str(compiled.explain(x))
    assert said.count("attention attention ") == 1 and said.count("attention attention_vjp") == 1
    assert "softmax" not in said
