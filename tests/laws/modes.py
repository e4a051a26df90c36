"""The floating-point mode of the host program: rounding, and what becomes of denormal numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from weft.codegen import jit

MODES = {"FTZ and DAZ": 0x9FC0, "down": 0x3F80, "up": 0x5F80, "towards zero": 0x7F80}
_STANDARD = 0x1F80

_TEXT = """
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.x86.sse.stmxcsr(ptr)
define void @set(i32 %mode) {
  %at = alloca i32
  store i32 %mode, ptr %at
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  ret void
}
define i32 @get() {
  %at = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %mode = load i32, ptr %at
  ret i32 %mode
}
"""


@cache
def _functions() -> tuple[Any, Any, Any]:
    code = jit.Code(jit.compile_object(_TEXT))
    put = ctypes.CFUNCTYPE(None, ctypes.c_int32)(code.address("set"))
    return put, ctypes.CFUNCTYPE(ctypes.c_int32)(code.address("get")), code


@contextmanager
def host_mode(name: str) -> Iterator[None]:
    """Run a block in that mode, and see that it is still the mode at the end."""
    put, get, _ = _functions()
    put(MODES[name])
    try:
        yield
        then = get()
    finally:
        put(_STANDARD)
    assert then & 0xFFC0 == MODES[name], f"the host's mode was left as {then:#x}"
