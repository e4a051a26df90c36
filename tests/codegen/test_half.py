import ctypes

import numpy as np
import pytest

from weft.codegen.jit import AVX2, SSE2, Code, compile_object

LOOP = """
define i64 @{name}(ptr %from, ptr %to, i64 %n) {{
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %out
body:
  %p = getelementptr {source}, ptr %from, i64 %i
  %x = load {source}, ptr %p, align 2
  %y = {verb} {source} %x to {to}
  %q = getelementptr {to}, ptr %to, i64 %i
  store {to} %y, ptr %q, align 2
  %next = add i64 %i, 1
  br label %head
out:
  ret i64 0
}}
"""
NARROW = LOOP.format(name="narrow", source="float", to="half", verb="fptrunc")
WIDEN = LOOP.format(name="widen", source="half", to="float", verb="fpext")


def converted(x, name, to, target):
    code = Code(compile_object(NARROW + WIDEN, target))
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int64)
    out = np.empty(x.shape, to)
    function(code.address(name))(x.ctypes.data, out.ctypes.data, x.size)
    return out


@pytest.mark.parametrize("target", [SSE2, AVX2], ids=["sse2", "avx2"])
def test_every_float16_widens_as_the_instruction_does(target):
    x = np.arange(65536).astype(np.uint16).view(np.float16)
    got = converted(x, "widen", np.float32, target)
    bits, want = got.view(np.uint32), x.astype(np.float32).view(np.uint32)
    nan = np.isnan(x)
    assert np.array_equal(bits[~nan], want[~nan])
    assert np.array_equal(bits[nan], want[nan] | 0x400000)


@pytest.mark.parametrize("target", [SSE2, AVX2], ids=["sse2", "avx2"])
def test_float32_rounds_as_the_instruction_does(target):
    exact = np.arange(65536).astype(np.uint16).view(np.float16).astype(np.float32)
    exact = exact[np.isfinite(exact)]
    between = (exact[1:].astype(np.float64) + exact[:-1]) / 2
    near = between.astype(np.float32)
    bits = np.random.default_rng(0).integers(0, 2**32, 300_000, np.uint32).view(np.float32)
    edges = np.array([65504, 65519.996, 65520, 1e30, np.inf, np.nan, 2**-25, 2**-24, 1e-45], "f")
    parts = [exact, near, np.nextafter(near, 9e9, dtype="f"), np.nextafter(near, -9e9, dtype="f")]
    x = np.concatenate([*parts, bits, edges, -edges])
    got = converted(x, "narrow", np.float16, target)
    with np.errstate(over="ignore", invalid="ignore"):
        want = x.astype(np.float16)
    nan = np.isnan(x)
    assert np.array_equal(got.view(np.uint16)[~nan], want.view(np.uint16)[~nan])
    assert np.isnan(got[nan]).all()
    assert np.array_equal(np.signbit(got), np.signbit(x))
