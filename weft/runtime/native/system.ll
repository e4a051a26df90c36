; What belongs to this kind of machine and system: x86-64 Linux. A port rewrites this file and
; nothing else.

declare i64 @syscall(i64, ...)
declare i32 @clock_gettime(i32, ptr)
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @madvise(ptr, i64, i32)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @getpid()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare void @llvm.x86.sse2.pause()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare i64 @llvm.readcyclecounter()
declare i64 @llvm.ctlz.i64(i64, i1)

; Rounding to nearest, denormals kept, exceptions masked: what every kernel's bits are defined for
; (0x1F80).
@standard_mode = internal constant i32 8064

; Sets the standard floating-point mode. Gives the mode to go back to, or 0 if nothing had to
; change.
define internal i32 @enter_float_mode() alwaysinline {
  %mode = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %mode)
  %found = load i32, ptr %mode
  %control = and i32 %found, 65472  ; without the sticky exception flags
  %standard = icmp eq i32 %control, 8064
  br i1 %standard, label %same, label %other
other:
  call void @llvm.x86.sse.ldmxcsr(ptr @standard_mode)
  ret i32 %found
same:
  ret i32 0
}

define internal void @leave_float_mode(i32 %mode) alwaysinline {
  %changed = icmp ne i32 %mode, 0
  br i1 %changed, label %restore, label %done
restore:
  %at = alloca i32
  store i32 %mode, ptr %at
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  br label %done
done:
  ret void
}

define internal void @relax() alwaysinline {
  call void @llvm.x86.sse2.pause()
  ret void
}

define internal i64 @cycles() alwaysinline {
  %now = call i64 @llvm.readcyclecounter()
  ret i64 %now
}

; Nanoseconds of CLOCK_MONOTONIC_COARSE: a few ns to read, right to 1-4 ms.
define internal i64 @coarse_time() {
  %time = alloca [2 x i64]
  %failed = call i32 @clock_gettime(i32 6, ptr %time)
  %seconds = call i64 @word(ptr %time, i64 0)
  %rest = call i64 @word(ptr %time, i64 1)
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}

; Sleeps while the i32 at %at is %expected, at most %nanoseconds (0: without limit; else less than a
; second).
define internal void @sleep_while(ptr %at, i32 %expected, i64 %nanoseconds) {
  %limit = alloca [2 x i64]
  call void @set_word(ptr %limit, i64 0, i64 0)
  call void @set_word(ptr %limit, i64 1, i64 %nanoseconds)
  %endless = icmp eq i64 %nanoseconds, 0
  %timeout = select i1 %endless, ptr null, ptr %limit
  ; futex(FUTEX_WAIT | FUTEX_PRIVATE)
  %woken = call i64 (i64, ...) @syscall(
    i64 202, ptr %at, i64 128, i32 %expected, ptr %timeout, ptr null, i64 0)
  ret void
}

define internal void @wake(ptr %at, i64 %count) {
  ; futex(FUTEX_WAKE | FUTEX_PRIVATE)
  %woken = call i64 (i64, ...) @syscall(
    i64 202, ptr %at, i64 129, i64 %count, ptr null, ptr null, i64 0)
  ret void
}

define internal i64 @process() {
  %id = call i32 @getpid()
  %wide = zext i32 %id to i64
  ret i64 %wide
}

; Every signal but those a faulty instruction raises (ILL TRAP ABRT BUS FPE SEGV SYS): handlers run
; on the program's own threads.
@not_for_workers = internal constant [16 x i64] [i64 -1073743097,
  i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1,
  i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1]

define internal i1 @start_thread(ptr %thread, ptr %function, ptr %argument) {
  %old = alloca [16 x i64]
  %masked = call i32 @pthread_sigmask(i32 2, ptr @not_for_workers, ptr %old)  ; SIG_SETMASK
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr %function, ptr %argument)
  %restored = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  %started = icmp eq i32 %failed, 0
  ret i1 %started
}

define internal void @join_thread(i64 %thread) {
  %failed = call i32 @pthread_join(i64 %thread, ptr null)
  ret void
}

@huge_pages = global i64 0  ; does the system give them to who asks?

; Fresh zeroed pages of at least %bytes, or null; their length goes to %length. Touching memory for
; the first time costs more than computing what is written there, and eight times more in small
; pages: from 2 MiB on it begins on a huge page, and ends on one if at least half of that is used.
define internal ptr @map_pages(i64 %bytes, ptr %length) {
  %up = add i64 %bytes, 4095
  %small = and i64 %up, -4096
  %asked = load i64, ptr @huge_pages
  %able = icmp ne i64 %asked, 0
  %large = icmp ugt i64 %bytes, 2097152
  %huge = and i1 %able, %large
  %tail_used = and i64 %small, 2097151
  %mostly = icmp uge i64 %tail_used, 1048576
  %rounded_up = add i64 %small, 2097151
  %rounded = and i64 %rounded_up, -2097152
  %round = and i1 %huge, %mostly
  %whole = select i1 %round, i64 %rounded, i64 %small
  store i64 %whole, ptr %length
  %slack = select i1 %huge, i64 2097152, i64 0
  %reserve = add i64 %whole, %slack
  ; PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS
  %start = call ptr @mmap(ptr null, i64 %reserve, i32 3, i32 34, i32 -1, i64 0)
  %from = ptrtoint ptr %start to i64
  %failed = icmp eq i64 %from, -1
  br i1 %failed, label %none, label %mapped
none:
  ret ptr null
mapped:
  br i1 %huge, label %align, label %done
align:
  %past = add i64 %from, 2097151
  %first = and i64 %past, -2097152
  %head = sub i64 %first, %from
  %tail = sub i64 %slack, %head
  %end = add i64 %first, %whole
  %rest = inttoptr i64 %end to ptr
  %aligned = inttoptr i64 %first to ptr
  %has_head = icmp ne i64 %head, 0
  br i1 %has_head, label %cut_head, label %headless
cut_head:
  %cut = call i32 @munmap(ptr %start, i64 %head)
  br label %headless
headless:
  %has_tail = icmp ne i64 %tail, 0
  br i1 %has_tail, label %cut_tail, label %advise
cut_tail:
  %cut2 = call i32 @munmap(ptr %rest, i64 %tail)
  br label %advise
advise:
  %told = call i32 @madvise(ptr %aligned, i64 %whole, i32 14)  ; MADV_HUGEPAGE
  ret ptr %aligned
done:
  ret ptr %start
}
