; Threads. One job at a time is shared with the pool: the launching thread publishes a phase's chunks (grain tasks each) as a
; ticket, epoch << 32 | chunks not yet claimed, and workers, itself among them, claim one chunk by one compare-and-swap. So a
; worker that is late or descheduled delays nobody, and what a job is (@job_*) stands still while any chunk of it is unfinished.
; Idle workers spin for a while, then sleep on @wake_word. A thread that launches while the pool is busy runs its job alone.

@ticket = internal global [8 x i64] zeroinitializer, align 64      ; a cache line each for what many threads write
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
@pool_ready = internal global i64 0  ; as many workers as that needs have been started, or tried to
@pool_process = internal global i64 0
@workers = global i64 0              ; alive; their numbers are 1, 2, ...
@threads = internal global [{{max_threads}} x i64] zeroinitializer  ; their pthread_t
@spin_cycles = global i64 0          ; how long to wait awake before sleeping
@main_thread = global i64 0          ; Python's: the one that handles signals

; Runs a light launch: here, now, with the GIL held.
define internal i64 @run_here(ptr %plan, ptr %frame) alwaysinline {
entry:
  %n = call i64 @word(ptr %plan, i64 {{plan_n_phases}})
  %phases = call ptr @pointer(ptr %plan, i64 {{plan_phases}})
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %at = mul i64 %i, {{phase_words}}
  %phase = getelementptr i64, ptr %phases, i64 %at
  %function = call ptr @pointer(ptr %phase, i64 {{phase_function}})
  %tasks = call i64 @word(ptr %phase, i64 {{phase_tasks}})
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
  %threads = load i64, ptr @pool_size
  %slices = mul i64 %each, %threads
  %bytes = add i64 %shared, %slices
  ret i64 %bytes
}

; Runs a heavy launch: without the GIL, on the pool if it is free, with an eye on signals.
define internal i64 @run_heavy(ptr %plan, ptr %frame) noinline {
entry:
  %limit = load i64, ptr @pool_size  ; before anything that could change it: scratch was measured by it
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
  %i = phi i64 [ 0, %run ], [ %next, %ran ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %at = mul i64 %i, {{phase_words}}
  %phase = getelementptr i64, ptr %phases, i64 %at
  %tasks = call i64 @word(ptr %phase, i64 {{phase_tasks}})
  %grain = call i64 @word(ptr %phase, i64 {{phase_grain}})
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
  %status = phi i64 [ 0, %head ], [ %status0, %ran ]
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
stopped:  ; poll tells the others to stop, if there are any
  %lost = call i64 @word(ptr %frame, i64 {{frame_forked}})
  %alone = icmp ne i64 %lost, 0
  br i1 %alone, label %orphaned, label %doze

out:
  %status = load atomic i64, ptr @job_status acquire, align 8
  ret i64 %status
orphaned:
  ret i64 {{status_interrupted}}
}

; Is there a chunk that worker %id may claim? Gives the ticket, or 0.
define internal i64 @offer(i64 %id) alwaysinline {
  %now = load atomic i64, ptr @ticket seq_cst, align 8
  %left = and i64 %now, 4294967295
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
  %less = sub i64 %offer, 1
  %exchange = cmpxchg ptr @ticket, i64 %offer, i64 %less acq_rel acquire
  %won = extractvalue { i64, i1 } %exchange, 1
  br i1 %won, label %run, label %try
run:
  %function = load ptr, ptr @job_function
  %frame = load ptr, ptr @job_frame
  %tasks = load i64, ptr @job_tasks
  %grain = load i64, ptr @job_grain
  %chunks = load i64, ptr @job_chunks
  %left = and i64 %offer, 4294967295
  %index = sub i64 %chunks, %left
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

; After this the job may be over and its words another's: only %chunks, read before, still speaks of it.
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

; Ends the job early: the first status stays, unclaimed chunks are counted as finished, running tasks are told by poll.
; The caller's own chunk keeps the job alive meanwhile, or it is the launching thread.
define internal void @cancel(ptr %frame, i64 %status) noinline {
entry:
  %first = cmpxchg ptr @job_status, i64 0, i64 %status seq_cst seq_cst
  %stop = getelementptr i64, ptr %frame, i64 {{frame_stop}}
  store atomic i64 1, ptr %stop release, align 8
  br label %try
try:
  %now = load atomic i64, ptr @ticket seq_cst, align 8
  %left = and i64 %now, 4294967295
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

; A worker's life (a pthread start routine; its number comes as the argument). It ends when the pool no longer wants it.
define ptr @worker(ptr %argument) {
entry:
  %id = ptrtoint ptr %argument to i64
  %mode = call i32 @enter_float_mode()
  br label %begin
begin:
  %began = call i64 @cycles()
  br label %loop
loop:
  %worked = call i1 @work(i64 %id)
  br i1 %worked, label %begin, label %idle
idle:
  %dismissed = call i1 @dismissed(i64 %id)
  br i1 %dismissed, label %leave, label %spin
spin:
  call void @relax()
  %now = call i64 @cycles()
  %waited = sub i64 %now, %began
  %patience = load atomic i64, ptr @spin_cycles monotonic, align 8
  %awake = icmp ult i64 %waited, %patience
  br i1 %awake, label %loop, label %doze
doze:  ; the word is read first: a job published after that changes it, and the sleep ends at once
  %word = load atomic i32, ptr @wake_word seq_cst, align 8
  %more = atomicrmw add ptr @sleepers, i64 1 seq_cst
  %offer = call i64 @offer(i64 %id)
  %none = icmp eq i64 %offer, 0
  %dismissed2 = call i1 @dismissed(i64 %id)
  %stay = xor i1 %dismissed2, true
  %sleep = and i1 %none, %stay
  br i1 %sleep, label %asleep, label %awoken
asleep:
  call void @sleep_while(ptr @wake_word, i32 %word, i64 0)
  br label %awoken
awoken:
  %less = atomicrmw sub ptr @sleepers, i64 1 seq_cst
  br label %begin
leave:
  ret ptr null
}

define internal i1 @dismissed(i64 %id) alwaysinline {
  %size = load atomic i64, ptr @pool_size seq_cst, align 8
  %out = icmp sge i64 %id, %size
  ret i1 %out
}

; Starts the workers that are missing (with the GIL held, so one thread at a time).
; Workers don't survive a fork, and what the pool was doing for another thread of the parent is no concern of the child.
define internal void @ensure_workers(i64 %process) {
entry:
  %known = load i64, ptr @pool_process
  %same = icmp eq i64 %known, %process
  br i1 %same, label %look, label %forget
forget:
  store i64 %process, ptr @pool_process
  store i64 0, ptr @pool_ready
  store i64 0, ptr @workers
  store i64 0, ptr @busy
  store i64 0, ptr @ticket
  store i64 0, ptr @sleepers
  br label %look
look:
  %ready = load i64, ptr @pool_ready
  %enough = icmp ne i64 %ready, 0
  br i1 %enough, label %done, label %start
start:
  call void @start_workers()
  store i64 1, ptr @pool_ready
  br label %done
done:
  ret void
}

define internal void @start_workers() {
entry:
  br label %head
head:
  %have = load i64, ptr @workers
  %size = load i64, ptr @pool_size
  %number = add i64 %have, 1
  %missing = icmp slt i64 %number, %size
  br i1 %missing, label %start, label %done
start:
  %thread = getelementptr i64, ptr @threads, i64 %have
  %argument = inttoptr i64 %number to ptr
  %started = call i1 @start_thread(ptr %thread, ptr @worker, ptr %argument)
  br i1 %started, label %count, label %done  ; the system may refuse: fewer do the work
count:
  store i64 %number, ptr @workers
  br label %head
done:
  ret void
}

; Sets how many threads work on a job. Workers beyond that end after the chunk they are at; new ones start with the next job.
; Called with the GIL held, which no worker needs to finish its chunk.
define void @set_pool_size(i64 %size) {
entry:
  store atomic i64 %size, ptr @pool_size seq_cst, align 8
  store i64 0, ptr @pool_ready
  %process = call i64 @process()
  %known = load i64, ptr @pool_process
  %ours = icmp eq i64 %known, %process
  br i1 %ours, label %tell, label %done
tell:
  %count = atomicrmw add ptr @wake_word, i32 1 seq_cst
  call void @wake(ptr @wake_word, i64 2147483647)
  br label %head
head:
  %have = load i64, ptr @workers
  %excess = icmp sge i64 %have, %size
  br i1 %excess, label %dismiss, label %done
dismiss:
  %last = sub i64 %have, 1
  %at = getelementptr i64, ptr @threads, i64 %last
  %thread = load i64, ptr %at
  call void @join_thread(i64 %thread)
  store i64 %last, ptr @workers
  br label %head
done:
  ret void
}

; Signals. Only Python's main thread handles them, and only that thread takes the GIL in the middle of a launch: every 10 ms, or
; less often if others hold on to it.

define internal void @watch_signals(ptr %frame) {
  %here = call i64 @PyThread_get_thread_ident()
  %main = load i64, ptr @main_thread
  %watching = icmp eq i64 %here, %main
  br i1 %watching, label %set, label %done
set:
  %now = call i64 @coarse_time()
  %deadline = add i64 %now, 10000000
  call void @set_word(ptr %frame, i64 {{frame_deadline}}, i64 %deadline)
  br label %done
done:
  ret void
}

; Asked by the launching thread between chunks: has an interrupt or another thread's error ended the job?
define internal i1 @should_stop(ptr %frame) alwaysinline {
  %at = getelementptr i64, ptr %frame, i64 {{frame_stop}}
  %stop = load atomic i64, ptr %at acquire, align 8
  %stopped = icmp ne i64 %stop, 0
  br i1 %stopped, label %yes, label %look
look:
  %deadline = call i64 @word(ptr %frame, i64 {{frame_deadline}})
  %never = icmp eq i64 %deadline, 9223372036854775807
  br i1 %never, label %no, label %clock
clock:
  %now = call i64 @coarse_time()
  %early = icmp slt i64 %now, %deadline
  br i1 %early, label %no, label %check
check:
  %raised = call i1 @check_signals(ptr %frame, i64 %now)
  ret i1 %raised
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i1 @check_signals(ptr %frame, i64 %now) noinline {
  %process = call i64 @process()
  %thread = call ptr @pointer(ptr %frame, i64 {{frame_thread}})
  call void @PyEval_RestoreThread(ptr %thread)
  %raised = call i32 @PyErr_CheckSignals()
  %thread2 = call ptr @PyEval_SaveThread()
  call void @set_pointer(ptr %frame, i64 {{frame_thread}}, ptr %thread2)
  %later = call i64 @coarse_time()
  %took = sub i64 %later, %now
  %ten = mul i64 %took, 10
  %spaced = call i64 @llvm.smax.i64(i64 %ten, i64 10000000)
  %interval = call i64 @llvm.smin.i64(i64 %spaced, i64 60000000)
  %deadline = add i64 %later, %interval
  call void @set_word(ptr %frame, i64 {{frame_deadline}}, i64 %deadline)
  %interrupted = icmp ne i32 %raised, 0
  ; a handler may have forked: the child has no workers, so what they had claimed is lost to it
  %process2 = call i64 @process()
  %forked = icmp ne i64 %process, %process2
  %forked_word = zext i1 %forked to i64
  call void @set_word(ptr %frame, i64 {{frame_forked}}, i64 %forked_word)
  %ended = or i1 %interrupted, %forked
  br i1 %ended, label %stop, label %on
stop:
  %at = getelementptr i64, ptr %frame, i64 {{frame_stop}}
  store atomic i64 1, ptr %at release, align 8
  ret i1 true
on:
  ret i1 false
}
declare i64 @llvm.smax.i64(i64, i64)

; What frame word 1 points to: kernels with long tasks ask every millisecond or so whether to stop.
define i64 @poll(ptr %frame, i64 %worker) {
  %launching = icmp eq i64 %worker, 0
  br i1 %launching, label %look, label %flag
look:
  %stop = call i1 @should_stop(ptr %frame)
  %wide = zext i1 %stop to i64
  ret i64 %wide
flag:
  %at = getelementptr i64, ptr %frame, i64 {{frame_stop}}
  %stopped = load atomic i64, ptr %at acquire, align 8
  ret i64 %stopped
}
