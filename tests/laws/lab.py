"""What the laws share: every op record with its samples, and how to run and compare them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.ops.define import OPS, Op, Value
from weft.ops.samples import Sample
from weft.types.dtype import bfloat16, float16, float64

#: relative and absolute error that a different order of the same operations may cause, by dtype
TOLERANCE = {"f64": (1e-12, 1e-12), "f32": (3e-5, 3e-6), "f16": (4e-3, 4e-3), "bf16": (4e-2, 4e-2)}


def cases(wanted: Any = lambda op, sample: True) -> list[Any]:
    """(op, sample) pairs as pytest params, named op-0, op-1, …"""
    return [
        pytest.param(op, s, id=f"{op.name}-{i}")
        for op in sorted(OPS.values(), key=lambda o: o.name)
        if op.samples is not None
        for i, s in enumerate(op.samples())
        if wanted(op, s)
    ]


def tensors(sample: Sample) -> list[Any]:
    return [wf.asarray(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in sample.args]


def run(op: Op, sample: Sample) -> tuple[Any, ...]:
    """The results as tensors."""
    out = op(*tensors(sample), **sample.attrs)
    return out if isinstance(out, tuple) else (out,)


def bits(x: Value) -> bytes:
    return np.ascontiguousarray(x.numpy()).tobytes()


def agree(got: Value, want: Any, loosen: float = 1.0) -> None:
    """Equal within the tolerance of the result's dtype; exactly for integers and bools."""
    a, b = got.numpy(), np.asarray(want)
    assert a.shape == b.shape, (a.shape, b.shape)
    if not got.dtype.is_float:
        np.testing.assert_array_equal(a, b.astype(a.dtype))
        return
    with np.errstate(over="ignore"):
        b = b.astype(a.dtype)  # what is out of range is infinite
    rtol, atol = TOLERANCE[got.dtype.short]
    np.testing.assert_allclose(
        a.astype(np.float64), b.astype(np.float64), rtol=rtol * loosen, atol=atol * loosen, equal_nan=True
    )


def as_float64(sample: Sample) -> Sample | None:
    """The sample in float64, where it has a floating operand; None for one that was made for another dtype."""
    halves = {float16.np, bfloat16.np}
    arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
    if any(a.dtype in halves for a in arrays) or not any(a.dtype.kind == "f" for a in arrays):
        return None
    args = tuple(a.astype(np.float64) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in sample.args)
    attrs = {k: float64 if k == "dtype" and getattr(v, "is_float", False) else v for k, v in sample.attrs.items()}
    return Sample(args, attrs, sample.error, sample.smooth)
