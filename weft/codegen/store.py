"""Kernels of stores: see `weft.schedule.store`."""

from __future__ import annotations

from weft.schedule.stack import Field
from weft.schedule.store import Store

_FIRST = 1 << 12  # bytes that a place begins with

_HEAD = """
declare ptr @malloc(i64)
declare ptr @realloc(ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.smax.i64(i64, i64)
define i64 @kernel(ptr %frame, i64 %lo, i64 %hi, i64 %worker) {
entry:
"""

#: %a: the handle, %b: the store, %d: the store with what is put. If that store's entries are not
#: the last here, because another was made of it too, or elsewhere, they are copied behind the last
_PUT = f"""
  %count_at = getelementptr i64, ptr %a, i64 {int(Field.COUNT)}
  %room_at = getelementptr i64, ptr %a, i64 {int(Field.ROOM)}
  %first_at = getelementptr i64, ptr %b, i64 1
  %held_at = getelementptr i64, ptr %b, i64 2
  %number = load i64, ptr %count_at
  %known = load ptr, ptr %b
  %first = load i64, ptr %first_at
  %held = load i64, ptr %held_at
  %empty = icmp eq ptr %known, null
  %here = icmp eq ptr %known, %a
  %end = add i64 %first, %held
  %last = icmp eq i64 %end, %number
  %top = and i1 %here, %last
  %start = select i1 %top, i64 %first, i64 %number
  %joins = or i1 %empty, %top
  %copied = select i1 %joins, i64 0, i64 %held
  %place = add i64 %number, %copied
  %after = add i64 %place, 1
  store i64 %after, ptr %count_at
  %need = mul i64 %after, %size
  %room = load i64, ptr %room_at
  %old = load ptr, ptr %a
  %fits = icmp sle i64 %need, %room
  br i1 %fits, label %ready, label %grow
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
  br label %ready
ready:
  %memory = phi ptr [ %old, %entry ], [ %new, %grown ]
  br i1 %joins, label %write, label %copy
copy:
  %source = load ptr, ptr %known
  %skip = mul i64 %first, %size
  %from = getelementptr i8, ptr %source, i64 %skip
  %behind = mul i64 %number, %size
  %onto = getelementptr i8, ptr %memory, i64 %behind
  %before = mul i64 %held, %size
  call void @llvm.memcpy.p0.p0.i64(ptr %onto, ptr %from, i64 %before, i1 false)
  br label %write
write:
  %begin = mul i64 %place, %size
  %there = getelementptr i8, ptr %memory, i64 %begin
{{values}}
  %more = add i64 %held, 1
  %start_at = getelementptr i64, ptr %d, i64 1
  %more_at = getelementptr i64, ptr %d, i64 2
  store ptr %a, ptr %d
  store i64 %start, ptr %start_at
  store i64 %more, ptr %more_at
  ret i64 0
}}
"""

#: %a: the list of all memory, %b: the store, %d: the store with what is put. A store's handle is
#: memory of the list, and so is what it says holds the entries; what held them before stays there.
#: A store that another was made of too gets a handle of its own
_PUT_APART = f"""
  %known = load ptr, ptr %b
  %held_at = getelementptr i64, ptr %b, i64 2
  %held = load i64, ptr %held_at
  %more = add i64 %held, 1
  %need = mul i64 %more, %size
  %before = mul i64 %held, %size
  %list = load ptr, ptr %a
  %empty = icmp eq ptr %known, null
  br i1 %empty, label %begin, label %look
begin:
  %from = phi ptr [ %a, %entry ], [ %old, %look ]
  %first_bytes = add i64 %need, 64
  %block = call ptr @malloc(i64 %first_bytes)
  %no_block = icmp eq ptr %block, null
  br i1 %no_block, label %lost, label %begun
begun:
  store ptr %list, ptr %block
  store ptr %block, ptr %a
  %made = getelementptr i64, ptr %block, i64 1
  %made_room_at = getelementptr i64, ptr %made, i64 {int(Field.ROOM)}
  %made_memory = getelementptr i8, ptr %block, i64 64
  store ptr %made_memory, ptr %made
  store i64 %need, ptr %made_room_at
  call void @llvm.memcpy.p0.p0.i64(ptr %made_memory, ptr %from, i64 %before, i1 false)
  br label %write
look:
  %old = load ptr, ptr %known
  %last_at = getelementptr i64, ptr %known, i64 {int(Field.COUNT)}
  %last = load i64, ptr %last_at
  %top = icmp eq i64 %last, %held
  br i1 %top, label %measure, label %begin
measure:
  %room_at = getelementptr i64, ptr %known, i64 {int(Field.ROOM)}
  %room = load i64, ptr %room_at
  %fits = icmp sle i64 %need, %room
  br i1 %fits, label %write, label %grow
grow:
  %twice = shl i64 %need, 1
  %bytes = add i64 %twice, 64
  %chunk = call ptr @malloc(i64 %bytes)
  %no_chunk = icmp eq ptr %chunk, null
  br i1 %no_chunk, label %lost, label %grown
lost:
  %wanted = phi i64 [ %first_bytes, %begin ], [ %bytes, %grow ]
  store i64 %wanted, ptr %frame
  ret i64 3
grown:
  store ptr %list, ptr %chunk
  store ptr %chunk, ptr %a
  %new = getelementptr i8, ptr %chunk, i64 64
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %old, i64 %before, i1 false)
  store ptr %new, ptr %known
  store i64 %twice, ptr %room_at
  br label %write
write:
  %handle = phi ptr [ %made, %begun ], [ %known, %measure ], [ %known, %grown ]
  %memory = phi ptr [ %made_memory, %begun ], [ %old, %measure ], [ %new, %grown ]
  %there = getelementptr i8, ptr %memory, i64 %before
{{values}}
  %count_at = getelementptr i64, ptr %handle, i64 {int(Field.COUNT)}
  %first_at = getelementptr i64, ptr %d, i64 1
  %more_at = getelementptr i64, ptr %d, i64 2
  store i64 %more, ptr %count_at
  store ptr %handle, ptr %d
  store i64 0, ptr %first_at
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
  %held_at = getelementptr i64, ptr %a, i64 2
  %held = load i64, ptr %held_at
  %there_is = icmp ult i64 %number, %held
  br i1 %there_is, label %read, label %otherwise
read:
  %memory = load ptr, ptr %handle
  %place = add i64 %first, %number
  %begin = mul i64 %place, %size
  %entry_at = getelementptr i8, ptr %memory, i64 %begin
  %there = getelementptr i8, ptr %entry_at, i64 %part
  call void @llvm.memcpy.p0.p0.i64(ptr %d, ptr %there, i64 %bytes, i1 false)
  ret i64 0
otherwise:
  %element = load {type}, ptr %c, align 1
  br label %head
head:
  %i = phi i64 [ 0, %otherwise ], [ %next, %fill ]
  %left = icmp slt i64 %i, %bytes
  br i1 %left, label %fill, label %done
fill:
  %to = getelementptr i8, ptr %d, i64 %i
  store {type} %element, ptr %to, align 1
  %next = add i64 %i, {step}
  br label %head
done:
  ret i64 0
}
"""


#: a value of an entry
_VALUE = """
  %to{i} = getelementptr i8, ptr %there, i64 %part{i}
  call void @llvm.memcpy.p0.p0.i64(ptr %to{i}, ptr %x{i}, i64 %bytes{i}, i1 false)
"""


def lower(spec: Store) -> str:
    if spec.what != "get":
        values = range(spec.count)
        names = ["ptr %a", "ptr %b", *(f"ptr %x{i}" for i in values), "ptr %d", "i64 %size"]
        names += [f"i64 %{word}{i}" for i in values for word in ("part", "bytes")]
        body = _PUT_APART if spec.what == "put apart" else _PUT
        body = body.replace("{values}", "".join(_VALUE.replace("{i}", str(i)) for i in values))
        return _HEAD + _loaded(names) + body
    names = ["ptr %a", "ptr %b", "ptr %c", "ptr %d", "i64 %size", "i64 %part", "i64 %bytes"]
    body = _GET.replace("{type}", f"i{8 * spec.itemsize}").replace("{step}", str(spec.itemsize))
    return _HEAD + _loaded(names) + body


def _loaded(names: list[str]) -> str:
    """Words of the frame, each with its type."""
    out = ""
    for k, said in enumerate(names, 3):
        type_, name = said.split()
        out += f"  {name}_at_ = getelementptr i64, ptr %frame, i64 {k}\n"
        out += f"  {name} = load {type_}, ptr {name}_at_\n"
    return out
