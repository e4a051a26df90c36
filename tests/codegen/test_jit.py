import ctypes
import threading

import numpy as np
import pytest

from weft.codegen import jit
from weft.codegen.text import SELDOM
from weft.errors import WeftError

pytestmark = pytest.mark.tiny

MULTIPLY_ADD = """
define i64 @kernel(ptr %a, ptr %b, ptr %c) {
  %x = load <16 x float>, ptr %a, align 4
  %y = load <16 x float>, ptr %b, align 4
  %z = load <16 x float>, ptr %c, align 4
  %p = fmul <16 x float> %x, %y
  %s = fadd <16 x float> %p, %z
  store <16 x float> %s, ptr %c, align 4
  ret i64 7
}
"""
KIND = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)


@pytest.mark.parametrize("target", [None, jit.AVX2, jit.SSE2], ids=["host", "avx2", "sse2"])
def test_a_product_is_rounded_before_it_is_added_to(target):
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, 16)).astype(np.float32)
    want = a * b + c
    code = jit.Code(jit.compile_object(MULTIPLY_ADD, target))
    assert KIND(code.address("kernel"))(a.ctypes.data, b.ctypes.data, c.ctypes.data) == 7
    assert c.tobytes() == want.tobytes()


def test_one_text_gives_one_object_whichever_thread_compiles_it():
    want = jit.compile_object(MULTIPLY_ADD)
    found = []

    def work():
        for _ in range(5):
            found.append(jit.compile_object(MULTIPLY_ADD))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [want] * 20


def test_variables_become_registers_every_time_a_pipeline_is_used():
    text = """
define i64 @kernel(i64 %n) {
  %v = alloca i64, align 64
  store i64 %n, ptr %v, align 64
  %m = load i64, ptr %v, align 64
  ret i64 %m
}
"""
    sizes = {len(jit.compile_object(text)) for _ in range(3)}
    straight = jit.compile_object("define i64 @kernel(i64 %n) { ret i64 %n }")
    assert sizes == {len(straight)}


def test_the_target_comes_from_the_environment(monkeypatch):
    monkeypatch.delenv("WEFT_CPU", raising=False)
    here = jit.host.__wrapped__()
    for said, target in {"": here, "native": here, "haswell": jit.AVX2, "x86-64": jit.SSE2}.items():
        monkeypatch.setenv("WEFT_CPU", said)
        assert jit.host.__wrapped__() == target
    monkeypatch.setenv("WEFT_CPU", "z80")
    with pytest.raises(WeftError, match=r"WEFT_CPU.*haswell"):
        jit.host.__wrapped__()


def test_a_module_of_functions_that_run_seldom_takes_less_work_and_does_the_same():
    well = "define i64 @kernel(i64 %n) {\nentry:\n  %m = mul i64 %n, 3\n  ret i64 %m\n}\n"
    fast = well.replace("entry:", f"{SELDOM}\nentry:")
    other = "define i64 @other(i64 %n) {\nentry:\n  ret i64 %n\n}\n"
    a, b = jit.compile_object(well), jit.compile_object(fast)
    assert a != b
    for made in (a, b):
        code = jit.Code(made)
        assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("kernel"))(14) == 42
    # beside one that is not, none is
    assert jit.compile_object(fast + other) == jit.compile_object(well + other)


def test_a_function_that_is_not_there():
    with pytest.raises(WeftError, match="no function 'other'"):
        jit.Code(jit.compile_object(MULTIPLY_ADD)).address("other")


def test_fingerprints_tell_targets_apart():
    prints = {t.fingerprint for t in (jit.host(), jit.AVX2, jit.SSE2)}
    assert len(prints) == 3
    assert all("llvm" in p for p in prints)
