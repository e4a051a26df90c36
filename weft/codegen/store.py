"""Kernels of stores: see `weft.schedule.store`."""

from __future__ import annotations

from weft.schedule.stack import Field
from weft.schedule.store import Store

_FIRST = 1 << 12  # bytes that a place begins with

_HEAD = """
declare ptr @realloc(ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.smax.i64(i64, i64)
define i64 @kernel(ptr %frame, i64 %lo, i64 %hi, i64 %worker) {
entry:
  %a_at = getelementptr i64, ptr %frame, i64 3
  %b_at = getelementptr i64, ptr %frame, i64 4
  %c_at = getelementptr i64, ptr %frame, i64 5
  %d_at = getelementptr i64, ptr %frame, i64 6
  %size_at = getelementptr i64, ptr %frame, i64 7
  %a = load ptr, ptr %a_at
  %b = load ptr, ptr %b_at
  %c = load ptr, ptr %c_at
  %d = load ptr, ptr %d_at
  %size = load i64, ptr %size_at
"""

#: %a: the handle, %b: the store, %c: the value, %d: the store with it
_PUT = f"""
  %count_at = getelementptr i64, ptr %a, i64 {int(Field.COUNT)}
  %room_at = getelementptr i64, ptr %a, i64 {int(Field.ROOM)}
  %number = load i64, ptr %count_at
  %after = add i64 %number, 1
  store i64 %after, ptr %count_at
  %need = mul i64 %after, %size
  %room = load i64, ptr %room_at
  %old = load ptr, ptr %a
  %fits = icmp sle i64 %need, %room
  br i1 %fits, label %write, label %grow
grow:
  %twice = shl i64 %need, 1
  %bytes = call i64 @llvm.smax.i64(i64 %twice, i64 {_FIRST})
  %new = call ptr @realloc(ptr %old, i64 %bytes)
  %none = icmp eq ptr %new, null
  br i1 %none, label %lost, label %grown
lost:
  store i64 %bytes, ptr %frame
  ret i64 3
grown:
  store ptr %new, ptr %a
  store i64 %bytes, ptr %room_at
  br label %write
write:
  %memory = phi ptr [ %old, %entry ], [ %new, %grown ]
  %begin = mul i64 %number, %size
  %there = getelementptr i8, ptr %memory, i64 %begin
  call void @llvm.memcpy.p0.p0.i64(ptr %there, ptr %c, i64 %size, i1 false)
  %known = load i64, ptr %b
  %first_at = getelementptr i64, ptr %b, i64 1
  %held_at = getelementptr i64, ptr %b, i64 2
  %first = load i64, ptr %first_at
  %held = load i64, ptr %held_at
  %empty = icmp eq i64 %known, 0
  %start = select i1 %empty, i64 %number, i64 %first
  %more = add i64 %held, 1
  %start_at = getelementptr i64, ptr %d, i64 1
  %more_at = getelementptr i64, ptr %d, i64 2
  store ptr %a, ptr %d
  store i64 %start, ptr %start_at
  store i64 %more, ptr %more_at
  ret i64 0
}}
"""

#: %a: the store, %b: the number, %c: otherwise, %d: the value
_GET = """
  %handle = load ptr, ptr %a
  %first_at = getelementptr i64, ptr %a, i64 1
  %first = load i64, ptr %first_at
  %number = load i64, ptr %b
  %empty = icmp eq ptr %handle, null
  br i1 %empty, label %otherwise, label %read
read:
  %memory = load ptr, ptr %handle
  %place = add i64 %first, %number
  %begin = mul i64 %place, %size
  %there = getelementptr i8, ptr %memory, i64 %begin
  call void @llvm.memcpy.p0.p0.i64(ptr %d, ptr %there, i64 %size, i1 false)
  ret i64 0
otherwise:
  %element = load {type}, ptr %c, align 1
  br label %head
head:
  %i = phi i64 [ 0, %otherwise ], [ %next, %fill ]
  %left = icmp slt i64 %i, %size
  br i1 %left, label %fill, label %done
fill:
  %to = getelementptr i8, ptr %d, i64 %i
  store {type} %element, ptr %to, align 1
  %next = add i64 %i, {bytes}
  br label %head
done:
  ret i64 0
}
"""


def lower(spec: Store) -> str:
    if spec.what == "put":
        return _HEAD + _PUT
    body = _GET.replace("{type}", f"i{8 * spec.itemsize}").replace("{bytes}", str(spec.itemsize))
    return _HEAD + body
