; Ctrl-C. Only Python's main thread handles signals, and only that thread takes the GIL in the
; middle of a launch: every 10 ms, or less often if others hold on to it.

@main_thread = global i64 0

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

; Asked by the launching thread between chunks: has an interrupt or another thread's error ended the
; job?
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
