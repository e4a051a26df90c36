; The pool's threads: started by the first launch that wants them, ended when the pool shrinks.

@workers = global i64 0              ; alive; their numbers are 1, 2, ...
@threads = internal global [{{max_threads}} x i64] zeroinitializer  ; their pthread_t
@pool_ready = internal global i64 0  ; as many as the pool's size needs were started, or tried to
@pool_process = internal global i64 0  ; whose they are

; A worker's life (a pthread start routine; its number comes as the argument). It ends when the pool
; no longer wants it.
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

; Starts the workers that are missing (with the GIL held, so one thread at a time). Workers don't
; survive a fork, and what the pool was doing for another thread of the parent is no concern of the
; child.
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

; Sets how many threads work on a job. Workers beyond that end after the chunk they are at; new ones
; start with the next job. Called with the GIL held, which no worker needs to finish its chunk.
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
