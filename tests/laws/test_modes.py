"""The law of the host's mode: a program that flushes denormals or rounds another way changes no
bit, neither in kernels already made nor in those made meanwhile, on this thread or on the pool's.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from mxcsr import MODES

import weft as wf
from tests.laws.lab import Case, each, everything, forget_plans, good, records, same_bits
from tests.laws.modes import host_mode
from tests.robustness.lab import run
from weft.ops.define import OPS
from weft.ops.samples import Sample
from weft.runtime import kernels
from weft.types.dtype import bfloat16, float16, float32

pytestmark = pytest.mark.xdist_group("modes")
N = 300  # rows and columns: enough to be shared among threads


def tiny(*shape: int, dtype: type = np.float32, seed: int = 0) -> np.ndarray:
    """Numbers around the smallest normal one: many of them, and of their sums, are denormal."""
    x = np.random.default_rng(seed).standard_normal(shape)
    return (x * float(np.finfo(dtype).tiny)).astype(dtype)


def plain(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@cache
def _cases() -> list[Case]:
    x, y = tiny(N, N), plain(N, N)
    rows = {"axes": (1,), "keepdims": False}
    said = [
        *((op, (x, y), {}) for op in ("add", "subtract", "multiply", "divide", "maximum", "less")),
        *((op, (y,), {}) for op in ("exp", "tanh", "gelu", "sigmoid", "sin", "erf", "expm1")),
        *((op, (abs(x),), {}) for op in ("log", "sqrt", "rsqrt", "square", "copy", "log1p")),
        ("multiply", (x, 0.3), {}),
        ("add", (x, 1e-40), {}),
        ("multiply", (tiny(N, N, dtype=np.float64), plain(N, N)), {}),
        *(("astype", (x,), {"dtype": d}) for d in (float16, bfloat16)),
        ("astype", (plain(N, N) * 1e-7,), {"dtype": float16}),
        ("astype", (tiny(N, N).astype(np.float64),), {"dtype": float32}),
        ("sum", (x,), rows),
        ("sum", (y,), {"axes": (0,), "keepdims": False}),
        ("prod", (y,), rows),
        ("matmul", (x, y), {}),
        ("matmul", (plain(N, N).astype(np.float16), plain(N, N, seed=2).astype(np.float16)), {}),
        ("softmax", (y * 40,), {"axis": 1}),
        ("layer_norm", (y, plain(N), plain(N, seed=3)), {"eps": 1e-5}),
        ("var", (y,), {"axes": (1,), "keepdims": False, "correction": 1.0}),
        ("cumulative_sum", (x,), {"axis": 1, "dtype": float32, "reverse": False}),
        ("scatter_add", (tiny(9, N), np.arange(N * N).reshape(N, N) % 9, x), {"axis": 0}),
        ("normal", (1, 2), {"shape": (N, N), "dtype": float32}),
        ("linspace", (0.1, 0.7), {"size": N, "endpoint": True, "dtype": float32}),
    ]
    return [Case(OPS[name], n, Sample(args, attrs)) for n, (name, args, attrs) in enumerate(said)]


def _one_of_each() -> list[Case]:
    """A sample of every op: what is rounded on the way to its kernel must not show either."""
    return [max(good(op), key=lambda c: sum(map(np.size, c.sample.args))) for op in records()]


@pytest.fixture(scope="module")
def want():
    return {case: everything(case) for case in _cases() + _one_of_each()}


@pytest.fixture
def threads():
    before = wf.get_num_threads()
    wf.set_num_threads(3)
    yield
    wf.set_num_threads(before)


@pytest.mark.parametrize("mode", MODES)
def test_the_hosts_mode_changes_no_bit(mode, want, threads):
    def check(case):
        with host_mode(mode):
            got = everything(case)
        same_bits(got, want[case], f"rounding {mode}")

    forget_plans()
    each(want, check)


@pytest.mark.parametrize("mode", MODES)
def test_kernels_made_in_the_hosts_mode_are_the_same(mode, want, threads, monkeypatch):
    monkeypatch.setattr(kernels, "_live", {})
    monkeypatch.setattr(kernels, "_pinned", {})
    monkeypatch.setattr(kernels, "disk", lambda: Nowhere)

    def check(case):
        forget_plans()
        with host_mode(mode):
            got = everything(case)
        same_bits(got, want[case], f"made rounding {mode}")

    try:
        each(_cases(), check)
    finally:
        forget_plans()


class Nowhere:
    """A cache that keeps nothing."""

    @staticmethod
    def get(key):
        return None

    @staticmethod
    def put(key, value):
        pass


FRESH = """
import sys
from contextlib import nullcontext
from tests.laws.modes import host_mode
import weft as wf
from weft.runtime import start

with host_mode(*sys.argv[1:]) if sys.argv[1:] else nullcontext():
    x = wf.tensor([0.1, 0.7, 1e-40, -16777217.0])
    assert not start.engine.cache_info().currsize, "an engine only to make a tensor"
    y = wf.tanh(x) * 0.3 + x.mean()
print(x.numpy().tobytes().hex(), y.numpy().tobytes().hex())
"""


def test_a_process_that_starts_in_the_hosts_mode():
    said = {mode: run(FRESH, mode) for mode in MODES} | {"nearest": run(FRESH)}
    assert len(set(said.values())) == 1, said
