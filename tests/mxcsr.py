"""The processor's floating-point mode and flags, of the thread that asks."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from weft.codegen import jit

MODES = {"FTZ and DAZ": 0x9FC0, "down": 0x3F80, "up": 0x5F80, "towards zero": 0x7F80}
STANDARD = 0x1F80
DENORMAL = 2  # the flag that an operand was denormal

_TEXT = """
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.x86.sse.stmxcsr(ptr)
define void @put(i32 %mode) {
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
    put = ctypes.CFUNCTYPE(None, ctypes.c_int32)(code.address("put"))
    return put, ctypes.CFUNCTYPE(ctypes.c_int32)(code.address("get")), code


def put(mode: int) -> None:
    _functions()[0](mode)


def get() -> int:
    return _functions()[1]()
