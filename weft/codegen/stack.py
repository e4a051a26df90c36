"""Kernels of growing stacks: see `weft.schedule.stack`."""

from __future__ import annotations

from weft.schedule.stack import Stack

_FIRST = 1 << 16  # bytes that a stack begins with

_HEAD = """
declare ptr @realloc(ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i64 @kernel(ptr %frame, i64 %lo, i64 %hi, i64 %worker) {
entry:
  %handle_at = getelementptr i64, ptr %frame, i64 3
  %handle = load ptr, ptr %handle_at
  %count_at = getelementptr i64, ptr %handle, i64 1
  %room_at = getelementptr i64, ptr %handle, i64 2
  %count = load i64, ptr %count_at
"""


def lower(spec: Stack) -> str:
    params = 4 + spec.count
    lines = [_HEAD, f"  %params = getelementptr i64, ptr %frame, i64 {params}"]
    lines.append("  %first = load i64, ptr %params")
    if spec.what == "more":
        lines += [
            "  %flag_at = getelementptr i64, ptr %frame, i64 4",
            "  %flag = load ptr, ptr %flag_at",
            "  %more = icmp sgt i64 %count, %first",
            "  %byte = zext i1 %more to i8",
            "  store i8 %byte, ptr %flag",
        ]
        return "\n".join([*lines, "  ret i64 0", "}"])
    if spec.what == "push":
        lines += [
            "  %after = add i64 %count, 1",
            "  %need = mul i64 %after, %first",
            "  %room = load i64, ptr %room_at",
            "  %fits = icmp sle i64 %need, %room",
            "  br i1 %fits, label %ready, label %grow",
            "grow:",
            "  %twice = shl i64 %need, 1",
            f"  %small = icmp slt i64 %twice, {_FIRST}",
            f"  %bytes = select i1 %small, i64 {_FIRST}, i64 %twice",
            "  %old = load ptr, ptr %handle",
            "  %new = call ptr @realloc(ptr %old, i64 %bytes)",
            "  %none = icmp eq ptr %new, null",
            "  br i1 %none, label %lost, label %grown",
            "lost:",
            "  store i64 %bytes, ptr %frame",
            "  ret i64 3",
            "grown:",
            "  store ptr %new, ptr %handle",
            "  store i64 %bytes, ptr %room_at",
            "  br label %ready",
            "ready:",
            "  %start = mul i64 %count, %first",
        ]
    else:
        lines += ["  %after = sub i64 %count, 1", "  %start = mul i64 %after, %first"]
    lines += [
        "  store i64 %after, ptr %count_at",
        "  %memory = load ptr, ptr %handle",
        "  %place = getelementptr i8, ptr %memory, i64 %start",
    ]
    for i in range(spec.count):
        source, target = (f"%v{i}", f"%p{i}") if spec.what == "push" else (f"%p{i}", f"%v{i}")
        lines += [
            f"  %v{i}_at = getelementptr i64, ptr %frame, i64 {4 + i}",
            f"  %v{i} = load ptr, ptr %v{i}_at",
            f"  %o{i}_at = getelementptr i64, ptr %params, i64 {1 + 2 * i}",
            f"  %o{i} = load i64, ptr %o{i}_at",
            f"  %n{i}_at = getelementptr i64, ptr %params, i64 {2 + 2 * i}",
            f"  %n{i} = load i64, ptr %n{i}_at",
            f"  %p{i} = getelementptr i8, ptr %place, i64 %o{i}",
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 %n{i}, i1 false)",
        ]
    return "\n".join([*lines, "  ret i64 0", "}"])
