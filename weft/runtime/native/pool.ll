; Threads. One job at a time is shared with the pool: the launching thread publishes a phase's
; chunks (grain tasks each) as a ticket, and workers, itself among them, claim one chunk by one
; compare-and-swap. So a worker that is late or descheduled delays nobody, and what a job is
; (@job_*) stands still while any chunk of it is unfinished. Idle workers spin for a while, then
; sleep on @wake_word. A thread that launches while the pool is busy runs its job alone.
;
; A ticket is epoch << 32 | first unclaimed chunk << 16 | how many are unclaimed. Workers of even
; number (the launching thread is 0) claim from the front, the others from the back: from job to job
; a thread meets the same part of the data, which may still be in its own cache.

; a cache line each for what many threads write
@ticket = internal global [8 x i64] zeroinitializer, align 64
@finished = internal global [8 x i64] zeroinitializer, align 64    ; chunks done or given up
@wake_word = internal global [8 x i64] zeroinitializer, align 64   ; i32, counts jobs
@sleepers = internal global [8 x i64] zeroinitializer, align 64

@job_function = internal global ptr null, align 64
@job_frame = internal global ptr null
@job_tasks = internal global i64 0
@job_grain = internal global i64 0
@job_chunks = internal global i64 0
@job_status = internal global i64 0
@job_limit = internal global i64 0   ; workers below this number may join
@job_waiting = internal global i64 0 ; the launching thread sleeps on @finished

@busy = internal global i64 0        ; a job is under way
@pool_size = global i64 1            ; threads that work on a job, the launching one included
@spin_cycles = global i64 0          ; how long to wait awake before sleeping

; Runs a light launch: here, now, with the GIL held.
define internal i64 @run_here(ptr %plan, ptr %frame) alwaysinline {
entry:
  %n = call i64 @word(ptr %plan, i64 {{plan_n_phases}})
  %phases = call ptr @pointer(ptr %plan, i64 {{plan_phases}})
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %work ], [ %target, %leap ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %at = mul i64 %i, {{phase_words}}
  %phase = getelementptr i64, ptr %phases, i64 %at
  %function = call ptr @pointer(ptr %phase, i64 {{phase_function}})
  %is_jump = icmp eq ptr %function, null
  br i1 %is_jump, label %leap, label %work
leap:
  %target = call i64 @jump(ptr %phase, ptr %frame, i64 %i)
  %there = icmp sge i64 %target, 0
  br i1 %there, label %head, label %refused
refused:
  %why = sub i64 0, %target
  ret i64 %why
work:
  %tasks = call i64 @word(ptr %phase, i64 {{phase_tasks}})
  call void @dress(ptr %phase, ptr %frame)
  %status = call i64 %function(ptr %frame, i64 0, i64 %tasks, i64 0)
  %next = add i64 %i, 1
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %head, label %failed
failed:
  ret i64 %status
done:
  ret i64 0
}

; Shared scratch and a slice for every thread that may work on the launch.
define internal i64 @scratch_bytes(ptr %plan) alwaysinline {
  %shared = call i64 @word(ptr %plan, i64 {{plan_scratch}})
  %each = call i64 @word(ptr %plan, i64 {{plan_worker_scratch}})
  %heavy = call i64 @word(ptr %plan, i64 {{plan_heavy}})
  %alone = icmp eq i64 %heavy, 0
  %size = load i64, ptr @pool_size
  %threads = select i1 %alone, i64 1, i64 %size
  %slices = mul i64 %each, %threads
  %bytes = add i64 %shared, %slices
  ret i64 %bytes
}

; Runs a heavy launch: without the GIL, on the pool if it is free, with an eye on signals.
define internal i64 @run_heavy(ptr %plan, ptr %frame) noinline {
entry:
  %size = load i64, ptr @pool_size  ; scratch was measured by it
  %planned = call i64 @word(ptr %plan, i64 {{plan_threads}})
  %limit = call i64 @llvm.smin.i64(i64 %size, i64 %planned)
  %several = icmp sgt i64 %limit, 1
  %process = call i64 @process()
  br i1 %several, label %prepare, label %go
prepare:
  call void @ensure_workers(i64 %process)
  br label %go
go:
  call void @watch_signals(ptr %frame)
  %thread = call ptr @PyEval_SaveThread()
  call void @set_pointer(ptr %frame, i64 {{frame_thread}}, ptr %thread)
  br i1 %several, label %try, label %run
try:
  %claim = cmpxchg ptr @busy, i64 0, i64 1 acq_rel acquire
  %claimed = extractvalue { i64, i1 } %claim, 1
  br label %run
run:
  %shared = phi i1 [ false, %go ], [ %claimed, %try ]
  %n = call i64 @word(ptr %plan, i64 {{plan_n_phases}})
  %phases = call ptr @pointer(ptr %plan, i64 {{plan_phases}})
  br label %head
head:
  %i = phi i64 [ 0, %run ], [ %next, %ran ], [ %target, %leap ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %at = mul i64 %i, {{phase_words}}
  %phase = getelementptr i64, ptr %phases, i64 %at
  %function = call ptr @pointer(ptr %phase, i64 {{phase_function}})
  %is_jump = icmp eq ptr %function, null
  br i1 %is_jump, label %leap, label %work
leap:
  %target = call i64 @jump(ptr %phase, ptr %frame, i64 %i)
  %there = icmp sge i64 %target, 0
  br i1 %there, label %head, label %refused
refused:
  %why = sub i64 0, %target
  br label %end
work:
  %tasks = call i64 @word(ptr %phase, i64 {{phase_tasks}})
  %grain = call i64 @word(ptr %phase, i64 {{phase_grain}})
  call void @dress(ptr %phase, ptr %frame)
  %parallel = icmp sgt i64 %tasks, %grain
  %share = and i1 %shared, %parallel
  br i1 %share, label %together, label %alone
together:
  %status_together = call i64 @run_together(ptr %phase, ptr %frame, i64 %limit)
  br label %ran
alone:
  %status_alone = call i64 @run_alone(ptr %phase, ptr %frame)
  br label %ran
ran:
  %status0 = phi i64 [ %status_together, %together ], [ %status_alone, %alone ]
  %next = add i64 %i, 1
  %fine = icmp eq i64 %status0, 0
  br i1 %fine, label %head, label %end
end:
  %status = phi i64 [ 0, %head ], [ %status0, %ran ], [ %why, %refused ]
  %lost = call i64 @word(ptr %frame, i64 {{frame_forked}})
  %here = icmp eq i64 %lost, 0
  %ours = and i1 %shared, %here
  br i1 %ours, label %release, label %back
release:
  store atomic i64 0, ptr @busy release, align 8
  br label %back
back:
  %thread2 = call ptr @pointer(ptr %frame, i64 {{frame_thread}})
  call void @PyEval_RestoreThread(ptr %thread2)
  ret i64 %status
}

; One phase on the launching thread, chunk by chunk.
define internal i64 @run_alone(ptr %phase, ptr %frame) {
entry:
  %function = call ptr @pointer(ptr %phase, i64 {{phase_function}})
  %tasks = call i64 @word(ptr %phase, i64 {{phase_tasks}})
  %grain = call i64 @word(ptr %phase, i64 {{phase_grain}})
  br label %head
head:
  %lo = phi i64 [ 0, %entry ], [ %hi, %next ]
  %more = icmp slt i64 %lo, %tasks
  br i1 %more, label %body, label %done
body:
  %end = add i64 %lo, %grain
  %hi = call i64 @llvm.smin.i64(i64 %end, i64 %tasks)
  %status = call i64 %function(ptr %frame, i64 %lo, i64 %hi, i64 0)
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %next, label %failed
next:
  %stop = call i1 @should_stop(ptr %frame)
  br i1 %stop, label %stopped, label %head
failed:
  ret i64 %status
stopped:
  ret i64 {{status_interrupted}}
done:
  ret i64 0
}
declare i64 @llvm.smin.i64(i64, i64)

; One phase on the pool.
define internal i64 @run_together(ptr %phase, ptr %frame, i64 %limit) {
entry:
  %function = call ptr @pointer(ptr %phase, i64 {{phase_function}})
  %tasks = call i64 @word(ptr %phase, i64 {{phase_tasks}})
  %grain = call i64 @word(ptr %phase, i64 {{phase_grain}})
  %up = add i64 %tasks, %grain
  %up1 = sub i64 %up, 1
  %chunks = sdiv i64 %up1, %grain
  store ptr %function, ptr @job_function
  store ptr %frame, ptr @job_frame
  store i64 %tasks, ptr @job_tasks
  store i64 %grain, ptr @job_grain
  store i64 %chunks, ptr @job_chunks
  store atomic i64 0, ptr @job_status monotonic, align 8
  store atomic i64 0, ptr @job_waiting monotonic, align 8
  store atomic i64 %limit, ptr @job_limit monotonic, align 8
  store atomic i64 0, ptr @finished monotonic, align 8
  %old = load atomic i64, ptr @ticket monotonic, align 8
  %epoch = lshr i64 %old, 32
  %epoch1 = add i64 %epoch, 1
  %high = shl i64 %epoch1, 32
  %new = or i64 %high, %chunks
  store atomic i64 %new, ptr @ticket seq_cst, align 8  ; also publishes the stores above
  %count = atomicrmw add ptr @wake_word, i32 1 seq_cst
  %asleep = load atomic i64, ptr @sleepers seq_cst, align 8
  %any = icmp ne i64 %asleep, 0
  br i1 %any, label %rouse, label %mine
rouse:
  %others = sub i64 %chunks, 1
  call void @wake(ptr @wake_word, i64 %others)
  br label %mine

mine:
  %worked = call i1 @work(i64 0)
  br i1 %worked, label %between, label %nothing_left
between:
  %stop = call i1 @should_stop(ptr %frame)
  br i1 %stop, label %give_up, label %mine
give_up:
  call void @cancel(ptr %frame, i64 {{status_interrupted}})
  br label %nothing_left

nothing_left:  ; what others have claimed is still being worked on: wait, awake for a while
  %began = call i64 @cycles()
  br label %look
look:
  %done = load atomic i64, ptr @finished acquire, align 8
  %complete = icmp eq i64 %done, %chunks
  br i1 %complete, label %out, label %wait
wait:
  call void @relax()
  %now = call i64 @cycles()
  %waited = sub i64 %now, %began
  %patience = load i64, ptr @spin_cycles
  %awake = icmp ult i64 %waited, %patience
  br i1 %awake, label %look, label %doze
doze:
  store atomic i64 1, ptr @job_waiting seq_cst, align 8
  %done2 = load atomic i64, ptr @finished seq_cst, align 8
  %complete2 = icmp eq i64 %done2, %chunks
  br i1 %complete2, label %out, label %sleep
sleep:
  %expected = trunc i64 %done2 to i32
  call void @sleep_while(ptr @finished, i32 %expected, i64 10000000)
  %stop2 = call i1 @should_stop(ptr %frame)
  br i1 %stop2, label %stopped, label %doze
stopped:
  %lost = call i64 @word(ptr %frame, i64 {{frame_forked}})
  %alone = icmp ne i64 %lost, 0
  br i1 %alone, label %orphaned, label %tell_others
tell_others:  ; by poll; whether or not they still ask, this launch has been interrupted
  call void @cancel(ptr %frame, i64 {{status_interrupted}})
  br label %doze

out:
  %status = load atomic i64, ptr @job_status acquire, align 8
  ret i64 %status
orphaned:
  ret i64 {{status_interrupted}}
}

; Is there a chunk that worker %id may claim? Gives the ticket, or 0.
define internal i64 @offer(i64 %id) alwaysinline {
  %now = load atomic i64, ptr @ticket seq_cst, align 8
  %left = and i64 %now, {{max_chunks}}
  %some = icmp ne i64 %left, 0
  %limit = load atomic i64, ptr @job_limit monotonic, align 8
  %allowed = icmp slt i64 %id, %limit
  %both = and i1 %some, %allowed
  %offer = select i1 %both, i64 %now, i64 0
  ret i64 %offer
}

; Claims a chunk and runs it. False: there was none.
define internal i1 @work(i64 %id) {
entry:
  br label %try
try:
  %offer = call i64 @offer(i64 %id)
  %none = icmp eq i64 %offer, 0
  br i1 %none, label %idle, label %claim
claim:
  %odd = trunc i64 %id to i1
  %front = select i1 %odd, i64 0, i64 65536  ; one further on
  %less = sub i64 %offer, 1
  %claimed = add i64 %less, %front
  %exchange = cmpxchg ptr @ticket, i64 %offer, i64 %claimed acq_rel acquire
  %won = extractvalue { i64, i1 } %exchange, 1
  br i1 %won, label %run, label %try
run:
  %function = load ptr, ptr @job_function
  %frame = load ptr, ptr @job_frame
  %tasks = load i64, ptr @job_tasks
  %grain = load i64, ptr @job_grain
  %chunks = load i64, ptr @job_chunks
  %left = and i64 %offer, {{max_chunks}}
  %shifted = lshr i64 %offer, 16
  %first = and i64 %shifted, {{max_chunks}}
  %beyond = add i64 %first, %left
  %last = sub i64 %beyond, 1
  %index = select i1 %odd, i64 %last, i64 %first
  %lo = mul i64 %index, %grain
  %end = add i64 %lo, %grain
  %hi = call i64 @llvm.smin.i64(i64 %end, i64 %tasks)
  %status = call i64 %function(ptr %frame, i64 %lo, i64 %hi, i64 %id)
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %report, label %failed
failed:
  call void @cancel(ptr %frame, i64 %status)
  br label %report
report:
  call void @count_finished(i64 1, i64 %chunks)
  ret i1 true
idle:
  ret i1 false
}

; After this the job may be over and its words another's: only %chunks, read before, still speaks of
; it.
define internal void @count_finished(i64 %n, i64 %chunks) {
  %before = atomicrmw add ptr @finished, i64 %n seq_cst
  %now = add i64 %before, %n
  %last = icmp eq i64 %now, %chunks
  br i1 %last, label %tell, label %done
tell:
  %waiting = load atomic i64, ptr @job_waiting seq_cst, align 8
  %asleep = icmp ne i64 %waiting, 0
  br i1 %asleep, label %rouse, label %done
rouse:
  call void @wake(ptr @finished, i64 1)
  br label %done
done:
  ret void
}

; Ends the job early: the first status stays, unclaimed chunks are counted as finished, running
; tasks are told by poll. The caller's own chunk keeps the job alive meanwhile, or it is the
; launching thread.
define internal void @cancel(ptr %frame, i64 %status) noinline {
entry:
  %first = cmpxchg ptr @job_status, i64 0, i64 %status seq_cst seq_cst
  %stop = getelementptr i64, ptr %frame, i64 {{frame_stop}}
  store atomic i64 1, ptr %stop release, align 8
  br label %try
try:
  %now = load atomic i64, ptr @ticket seq_cst, align 8
  %left = and i64 %now, {{max_chunks}}
  %none = icmp eq i64 %left, 0
  br i1 %none, label %done, label %empty
empty:
  %emptied = sub i64 %now, %left
  %exchange = cmpxchg ptr @ticket, i64 %now, i64 %emptied seq_cst seq_cst
  %won = extractvalue { i64, i1 } %exchange, 1
  br i1 %won, label %count, label %try
count:
  %chunks = load i64, ptr @job_chunks
  call void @count_finished(i64 %left, i64 %chunks)
  br label %done
done:
  ret void
}
