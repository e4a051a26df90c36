"""Elementwise rules over `Scalar`s, compiled and run on NumPy arrays for any target: a vector body
and a scalar tail, so both are tried.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from spelled import dtype_of

from weft.codegen import jit, verbs
from weft.codegen.text import Text, Value, module
from weft.ops import scalar as s
from weft.types.dtype import DType, bool_

Rule = Callable[..., s.Scalar]
Array = np.ndarray[Any, Any]
TARGETS = {"host": jit.host(), "avx2": jit.AVX2, "sse2": jit.SSE2}
KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 3)


def function(name: str, rule: Rule, dtypes: Sequence[DType], lanes: int) -> tuple[Text, DType]:
    """`name(frame, lo, hi, worker)`, which applies `rule` to elements lo..hi-1, and its result's
    dtype.
    """
    root = rule(*(s.input_(i, d) for i, d in enumerate(dtypes)))
    t = Text(f"i64 @{name}(ptr %frame, i64 %lo, i64 %hi, i64 %worker)")
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
        whole = t.op("udiv", t.sub(hi, lo), Value("i64", str(lanes)))
        tail = t.add(lo, t.mul(whole, lanes))
        with t.loop(lo, tail, lanes) as i:
            body(i, lanes)
    with t.loop(tail, hi) as i:
        body(i, 1)
    t.ret()
    return t, root.dtype


def lower(rule: Rule, dtypes: Sequence[DType], lanes: int) -> tuple[str, DType]:
    """A module with that one function, named `kernel`."""
    t, out = function("kernel", rule, dtypes, lanes)
    return module(t), out


class Rules:
    """Several rules, each with its dtypes, compiled as one module; call them by name."""

    def __init__(
        self,
        rules: Mapping[str, tuple[Any, ...]],
        target: jit.Target | None = None,
        lanes: int = 16,
    ) -> None:
        self.dtypes = {k: [dtype_of(d) for d in ds] for k, (_, *ds) in rules.items()}
        made = {k: function(f"k_{k}", v[0], self.dtypes[k], lanes) for k, v in rules.items()}
        self.out = {k: d for k, (_, d) in made.items()}
        self.code = jit.Code(jit.compile_object(module(*(t for t, _ in made.values())), target))

    def __call__(self, name: str, *arrays: Any) -> Array:
        dtypes = self.dtypes[name]
        ins = [np.ascontiguousarray(a, d.np) for a, d in zip(arrays, dtypes, strict=True)]
        out = np.empty(ins[0].shape, self.out[name].np)
        assert all(a.size == out.size for a in ins)
        frame = np.array([0, 0, 0, *(a.ctypes.data for a in (*ins, out))], np.int64)
        assert KERNEL(self.code.address(f"k_{name}"))(frame.ctypes.data, 0, out.size, 0) == 0
        return out


class Lab:
    """One rule for `dtypes`, compiled; call it with arrays of equal size."""

    def __init__(
        self, rule: Rule, *dtypes: Any, target: jit.Target | None = None, lanes: int = 16
    ) -> None:
        self.rules = Rules({"one": (rule, *dtypes)}, target, lanes)
        self.function = KERNEL(self.rules.code.address("k_one"))

    def __call__(self, *arrays: Any) -> Array:
        return self.rules("one", *arrays)


def run(rule: Rule, *arrays: Array, target: jit.Target | None = None, lanes: int = 16) -> Array:
    """`rule` over `arrays`, whose dtypes decide the kernel's."""
    return Lab(rule, *(a.dtype for a in arrays), target=target, lanes=lanes)(*arrays)
