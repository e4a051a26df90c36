"""Runs an `at` rule on NumPy arrays of any strides, each in memory that ends (or begins) at an
unreadable page.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from extern_lab import Guarded
from spelled import dtype_of

from weft.buffer import Layout
from weft.codegen import at
from weft.codegen.jit import Code, Target, compile_object
from weft.schedule.at import AtSpec, plan_at
from weft.types import TensorType

_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 3)


@cache
def compiled(spec: AtSpec, target: Target | None) -> Code:
    return Code(compile_object(at.lower(spec), target))


def place(x: np.ndarray, behind: bool, keep: list[Any]) -> tuple[Layout, int]:
    """The layout of an array and where its first element now is."""
    layout = Layout(TensorType(x.shape, dtype_of(x.dtype)), [s // x.itemsize for s in x.strides])
    reach = [(n - 1) * s for n, s in zip(x.shape, layout.strides, strict=True)] if x.size else []
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    g = Guarded((high - low + 1) * x.itemsize if x.size else 0, behind)
    keep.append(g)
    if x.size:
        steps = [s * x.itemsize for s in layout.strides]
        np.ndarray(x.shape, x.dtype, g.bytes, -low * x.itemsize, steps)[...] = x
    return layout, g.address - low * x.itemsize


def run(
    rule: Callable[..., Any],
    *xs: Any,
    shape: tuple[int, ...],
    dtype: Any,
    attrs: dict[str, Any] | None = None,
    target: Target | None = None,
    behind: bool = True,
    split: int = 1,
) -> np.ndarray:
    """The result of `rule` over arrays, and Python numbers passed in memory."""
    keep: list[Any] = []
    operands, addresses = [], []
    for x in xs:
        if isinstance(x, np.ndarray):
            layout, address = place(x, behind, keep)
            operands.append(layout)
        else:
            travels = dtype_of(np.float64 if isinstance(x, float) else np.int64)
            operands.append(travels)
            address = place(np.asarray(x, travels.np), behind, keep)[1]
        addresses.append(address)
    launch = plan_at(rule, operands, attrs or {}, TensorType(shape, dtype_of(dtype)))
    (out,) = launch.outs
    g = Guarded(out.type.nbytes, behind)
    g.bytes[:] = 0xA5
    frame = np.array([0, 0, 0, *addresses, g.address, *launch.params], np.int64)
    for phase in launch.phases:
        function = _KERNEL(compiled(phase.spec, target).address(phase.function))
        for lo in range(0, phase.tasks, split):
            assert function(frame.ctypes.data, lo, min(lo + split, phase.tasks), 0) == 0
    result = (
        g.bytes.view(out.type.dtype.np).reshape(shape)
        if out.type.size
        else np.empty(shape, out.type.dtype.np)
    )
    return np.array(result)
