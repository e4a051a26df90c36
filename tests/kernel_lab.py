"""Elementwise rules over `Scalar`s, compiled and run on NumPy arrays: a vector body and a scalar tail, for any target."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.codegen import jit, verbs
from weft.codegen.text import Text, Value, module
from weft.ops import scalar as s
from weft.types.dtype import DType, as_dtype, bool_

Rule = Callable[..., s.Scalar]
TARGETS = {"host": jit.host(), "avx2": jit.AVX2, "sse2": jit.SSE2}


def lower(rule: Rule, dtypes: Sequence[DType], lanes: int) -> tuple[str, DType]:
    """A module whose `kernel(frame, lo, hi, worker)` applies `rule` to elements lo..hi-1, and the result's dtype."""
    root = rule(*(s.input_(i, d) for i, d in enumerate(dtypes)))
    t = Text("i64 @kernel(ptr %frame, i64 %lo, i64 %hi, i64 %worker)")
    frame, lo, hi = Value("ptr", "%frame"), Value("i64", "%lo"), Value("i64", "%hi")
    pointers = [t.pointer(frame, 3 + i) for i in range(len(dtypes) + 1)]

    def body(i: Value, width: int) -> None:
        def leaf(n: s.Scalar, args: list[Value]) -> Value:
            at = t.at(pointers[n.value], verbs.memory(n.dtype), i)
            x = t.load(verbs.memory(n.dtype, width), at, n.dtype.itemsize)
            return t.convert("trunc", x, verbs.register(bool_, width)) if n.dtype is bool_ else x

        (out,) = verbs.emit(t, [root], width, leaf)
        if root.dtype is bool_:
            out = t.convert("zext", out, verbs.memory(bool_, width))
        t.store(out, t.at(pointers[-1], verbs.memory(root.dtype), i), root.dtype.itemsize)

    tail = lo
    if lanes > 1:
        tail = t.add(lo, t.mul(t.let("i64", f"udiv i64 {t.sub(hi, lo).name}, {lanes}"), lanes))
        with t.loop(lo, tail, lanes) as i:
            body(i, lanes)
    with t.loop(tail, hi) as i:
        body(i, 1)
    t.ret()
    return module(t), root.dtype


class Lab:
    """`rule` for `dtypes`, compiled; call it with arrays of equal size."""

    def __init__(
        self,
        rule: Rule,
        *dtypes: Any,
        target: jit.Target | None = None,
        lanes: int = 16,
    ) -> None:
        self.dtypes = [as_dtype(d) for d in dtypes]
        self.text, self.out = lower(rule, self.dtypes, lanes)
        self.code = jit.Code(jit.compile_object(self.text, target))
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 3)
        self.function = kind(self.code.address("kernel"))

    def __call__(self, *arrays: Any) -> np.ndarray[Any, Any]:
        ins = [np.ascontiguousarray(a, d.np) for a, d in zip(arrays, self.dtypes, strict=True)]
        out = np.empty(ins[0].shape, self.out.np)
        frame = np.array([0, 0, 0, *(a.ctypes.data for a in (*ins, out))], np.int64)
        assert all(a.size == out.size for a in ins)
        assert self.function(frame.ctypes.data, 0, out.size, 0) == 0
        return out


def run(rule: Rule, *arrays: Any, target: jit.Target | None = None, lanes: int = 16) -> np.ndarray[Any, Any]:
    """`rule` over `arrays`, whose dtypes decide the kernel's."""
    return Lab(rule, *(a.dtype for a in arrays), target=target, lanes=lanes)(*arrays)
