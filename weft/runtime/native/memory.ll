; A caching allocator whose blocks are Python objects.
;
; A block is a 64-byte header and its data. The header *is* the owner object that buffers refer to,
; so a result costs no second allocation: taking a block from its free list and PyObject_Init is
; all. Header, in words:
;   0 reference count | 1 type | 2 size class | 3 next free block
;   | 4 the data's address as a Python int, made once | 5 capacity in bytes
;   | 6 bytes mapped (0: from aligned_alloc)
; Everything here runs with the GIL held (launch, or the death of a block), so there are no locks;
; pool workers never come here.

@free_blocks = internal global [320 x ptr] zeroinitializer  ; per size class
@cache_limit = global i64 268435456
@bytes_used = global i64 0
@bytes_cached = global i64 0
@bytes_peak = global i64 0
@blocks_made = global i64 0    ; asked of the system, ever
@blocks_freed = global i64 0   ; given back to it
@eviction_hand = internal global i64 0

; Size classes: 64 steps of 64 bytes up to 4 KiB, then 4 per power of two.
; 4097..5120 is class 64, 5121..6144 class 65, and so on to 2**62.
define internal i64 @size_class(i64 %bytes) alwaysinline {
  %small = icmp ule i64 %bytes, 4096
  br i1 %small, label %fine, label %coarse
fine:
  %some = call i64 @llvm.umax.i64(i64 %bytes, i64 1)
  %less = add i64 %some, -1
  %class = lshr i64 %less, 6
  ret i64 %class
coarse:
  %last = add i64 %bytes, -1
  %zeros = call i64 @llvm.ctlz.i64(i64 %last, i1 true)
  %log = sub i64 63, %zeros
  %shift = sub i64 %log, 2
  %quarters = lshr i64 %last, %shift  ; 4..7
  %above = sub i64 %log, 12
  %octave = mul i64 %above, 4
  %step = add i64 %quarters, 60
  %class2 = add i64 %octave, %step
  ret i64 %class2
}
declare i64 @llvm.umax.i64(i64, i64)

define internal i64 @class_bytes(i64 %class) {
  %small = icmp ult i64 %class, 64
  br i1 %small, label %fine, label %coarse
fine:
  %count = add i64 %class, 1
  %bytes = shl i64 %count, 6
  ret i64 %bytes
coarse:
  %above = sub i64 %class, 64
  %octave = lshr i64 %above, 2
  %quarter = and i64 %above, 3
  %quarters = add i64 %quarter, 5
  %shift = add i64 %octave, 10
  %bytes2 = shl i64 %quarters, %shift
  ret i64 %bytes2
}

; A block with room for %bytes and one reference to it, or null.
define internal ptr @new_block(i64 %bytes) {
  %class = call i64 @size_class(i64 %bytes)
  %list = getelementptr ptr, ptr @free_blocks, i64 %class
  %first = load ptr, ptr %list
  %none = icmp eq ptr %first, null
  br i1 %none, label %system, label %reuse
reuse:
  %next = call ptr @pointer(ptr %first, i64 3)
  store ptr %next, ptr %list
  %size = call i64 @word(ptr %first, i64 5)
  %cached = load i64, ptr @bytes_cached
  %cached2 = sub i64 %cached, %size
  store i64 %cached2, ptr @bytes_cached
  br label %found
system:
  %made = call ptr @ask_system(i64 %class)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %nothing, label %found
nothing:
  ret ptr null
found:
  %block = phi ptr [ %first, %reuse ], [ %made, %system ]
  %capacity = call i64 @word(ptr %block, i64 5)
  %used = load i64, ptr @bytes_used
  %used2 = add i64 %used, %capacity
  store i64 %used2, ptr @bytes_used
  %peak = load i64, ptr @bytes_peak
  %peak2 = call i64 @llvm.umax.i64(i64 %peak, i64 %used2)
  store i64 %peak2, ptr @bytes_peak
  %type = load ptr, ptr @block_type
  %object = call ptr @PyObject_Init(ptr %block, ptr %type)
  ret ptr %block
}

define internal ptr @data_of(ptr %block) alwaysinline {
  %data = getelementptr i8, ptr %block, i64 64
  ret ptr %data
}

; tp_dealloc of a block: back to its free list.
define void @free_block(ptr %block) {
  %type = call ptr @type_of(ptr %block)
  %capacity = call i64 @word(ptr %block, i64 5)
  %used = load i64, ptr @bytes_used
  %used2 = sub i64 %used, %capacity
  store i64 %used2, ptr @bytes_used
  %cached = load i64, ptr @bytes_cached
  %cached2 = add i64 %cached, %capacity
  %limit = load i64, ptr @cache_limit
  %fits = icmp ule i64 %cached2, %limit
  br i1 %fits, label %keep, label %full
full:
  %kept = call i1 @make_room(i64 %capacity)
  br i1 %kept, label %keep, label %drop
keep:
  %now = load i64, ptr @bytes_cached
  %then = add i64 %now, %capacity
  store i64 %then, ptr @bytes_cached
  %class = call i64 @word(ptr %block, i64 2)
  %list = getelementptr ptr, ptr @free_blocks, i64 %class
  %first = load ptr, ptr %list
  call void @set_pointer(ptr %block, i64 3, ptr %first)
  store ptr %block, ptr %list
  br label %done
drop:
  call void @release(ptr %block)
  br label %done
done:
  call void @Py_DecRef(ptr %type)
  ret void
}

; Makes room in the cache for %bytes by giving up blocks of one class after the other, so that sizes
; no longer in use go. False if they can never fit.
define internal i1 @make_room(i64 %bytes) {
entry:
  %limit = load i64, ptr @cache_limit
  %never = icmp ugt i64 %bytes, %limit
  br i1 %never, label %no, label %look
look:
  %cached = load i64, ptr @bytes_cached
  %wanted = add i64 %cached, %bytes
  %fits = icmp ule i64 %wanted, %limit
  br i1 %fits, label %yes, label %evict
evict:
  %hand = load i64, ptr @eviction_hand
  %moved = add i64 %hand, 1
  %end = icmp uge i64 %moved, 320
  %turn = select i1 %end, i64 0, i64 %moved
  store i64 %turn, ptr @eviction_hand
  %freed = call i64 @drop_one(i64 %turn)
  br label %look
yes:
  ret i1 true
no:
  ret i1 false
}

; Gives one cached block of a class back to the system: its size, or 0 if there is none.
define internal i64 @drop_one(i64 %class) {
  %list = getelementptr ptr, ptr @free_blocks, i64 %class
  %block = load ptr, ptr %list
  %none = icmp eq ptr %block, null
  br i1 %none, label %empty, label %some
some:
  %next = call ptr @pointer(ptr %block, i64 3)
  store ptr %next, ptr %list
  %size = call i64 @word(ptr %block, i64 5)
  %cached = load i64, ptr @bytes_cached
  %less = sub i64 %cached, %size
  store i64 %less, ptr @bytes_cached
  call void @release(ptr %block)
  ret i64 %size
empty:
  ret i64 0
}

define internal void @release(ptr %block) {
  %made = load i64, ptr @blocks_freed
  %more = add i64 %made, 1
  store i64 %more, ptr @blocks_freed
  %long = call ptr @pointer(ptr %block, i64 4)
  call void @Py_DecRef(ptr %long)
  %mapped = call i64 @word(ptr %block, i64 6)
  %heap = icmp eq i64 %mapped, 0
  br i1 %heap, label %to_heap, label %to_system
to_heap:
  call void @free(ptr %block)
  ret void
to_system:
  %failed = call i32 @munmap(ptr %block, i64 %mapped)
  ret void
}

; A new block of a class; if the system has no more, after giving it all that is cached.
define internal ptr @ask_system(i64 %class) {
  %first = call ptr @make_block(i64 %class)
  %got = icmp ne ptr %first, null
  br i1 %got, label %done, label %again
done:
  ret ptr %first
again:
  %freed = call i64 @drop_cache()
  %second = call ptr @make_block(i64 %class)
  ret ptr %second
}

define internal ptr @make_block(i64 %class) {
  %length = alloca i64
  %capacity = call i64 @class_bytes(i64 %class)
  %bytes = add i64 %capacity, 64
  %large = icmp uge i64 %bytes, 262144
  br i1 %large, label %pages, label %heap
pages:
  %mapping = call ptr @map_pages(i64 %bytes, ptr %length)
  %mapped = load i64, ptr %length
  br label %got
heap:
  %piece = call ptr @aligned_alloc(i64 64, i64 %bytes)
  br label %got
got:
  %block = phi ptr [ %mapping, %pages ], [ %piece, %heap ]
  %from_system = phi i64 [ %mapped, %pages ], [ 0, %heap ]
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %nothing, label %fill
nothing:
  ret ptr null
fill:
  %made = load i64, ptr @blocks_made
  %more = add i64 %made, 1
  store i64 %more, ptr @blocks_made
  call void @set_word(ptr %block, i64 2, i64 %class)
  call void @set_word(ptr %block, i64 5, i64 %capacity)
  call void @set_word(ptr %block, i64 6, i64 %from_system)
  %data = call ptr @data_of(ptr %block)
  %long = call ptr @PyLong_FromVoidPtr(ptr %data)
  call void @set_pointer(ptr %block, i64 4, ptr %long)
  %lost = icmp eq ptr %long, null
  br i1 %lost, label %undo, label %ready
undo:
  call void @PyErr_Clear()
  call void @release(ptr %block)
  ret ptr null
ready:
  ret ptr %block
}

; Gives every cached block back to the system: how many bytes that was.
define internal i64 @drop_cache() {
entry:
  br label %each
each:
  %class = phi i64 [ 0, %entry ], [ %next, %emptied ], [ %class, %more ]
  %total = phi i64 [ 0, %entry ], [ %total, %emptied ], [ %sum, %more ]
  %size = call i64 @drop_one(i64 %class)
  %sum = add i64 %total, %size
  %had = icmp ne i64 %size, 0
  br i1 %had, label %more, label %emptied
more:
  br label %each
emptied:
  %next = add i64 %class, 1
  %end = icmp eq i64 %next, 320
  br i1 %end, label %done, label %each
done:
  ret i64 %total
}

; trim() -> bytes given back
define ptr @trim(ptr %self, ptr %nothing) {
  %bytes = call i64 @drop_cache()
  %result = call ptr @PyLong_FromLongLong(i64 %bytes)
  ret ptr %result
}
