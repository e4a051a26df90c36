; Steps that run at the same time: a phase whose tasks are whole steps, each on one thread with a
; frame of its own. Its first operand is a table (words): how many words the longest frame has, then
; per step its first phase and how many it has.
define i64 @side_by_side(ptr %frame, i64 %lo, i64 %hi, i64 %worker) {
entry:
  %table = call ptr @pointer(ptr %frame, i64 3)
  %longest = call i64 @word(ptr %table, i64 0)
  %words = add i64 %longest, {{frame_words}}
  %stack = alloca i64, i64 %words, align 16
  %own = getelementptr i64, ptr %stack, i64 {{frame_context}}
  %bases = call ptr @pointer(ptr %frame, i64 {{frame_bases}})
  call void @set_pointer(ptr %own, i64 {{frame_bases}}, ptr %bases)
  call void @set_word(ptr %own, i64 {{frame_stop}}, i64 0)
  call void @set_word(ptr %own, i64 {{frame_deadline}}, i64 9223372036854775807)
  call void @set_word(ptr %own, i64 {{frame_thread}}, i64 0)
  call void @set_word(ptr %own, i64 {{frame_forked}}, i64 0)
  call void @set_word(ptr %own, i64 {{frame_phase}}, i64 0)
  call void @set_word(ptr %own, i64 0, i64 0)
  call void @set_pointer(ptr %own, i64 1, ptr @poll)
  br label %head
head:
  %task = phi i64 [ %lo, %entry ], [ %next_task, %step_done ]
  %more = icmp slt i64 %task, %hi
  br i1 %more, label %step, label %done
step:
  %twice = shl i64 %task, 1
  %at = add i64 %twice, 1
  %entry_at = getelementptr i64, ptr %table, i64 %at
  %phases = call ptr @pointer(ptr %entry_at, i64 0)
  %n = call i64 @word(ptr %entry_at, i64 1)
  br label %phase_head
phase_head:
  %i = phi i64 [ 0, %step ], [ %next, %ran ]
  %some = icmp slt i64 %i, %n
  br i1 %some, label %run, label %step_done
run:
  %offset = mul i64 %i, {{phase_words}}
  %phase = getelementptr i64, ptr %phases, i64 %offset
  %function = call ptr @pointer(ptr %phase, i64 {{phase_function}})
  %tasks = call i64 @word(ptr %phase, i64 {{phase_tasks}})
  call void @dress(ptr %phase, ptr %own)
  %status = call i64 %function(ptr %own, i64 0, i64 %tasks, i64 0)
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %ran, label %failed
ran:
  %next = add i64 %i, 1
  br label %phase_head
step_done:
  %next_task = add i64 %task, 1
  br label %head
failed:
  %detail = call i64 @word(ptr %own, i64 0)
  call void @set_word(ptr %frame, i64 0, i64 %detail)
  ret i64 %status
done:
  ret i64 0
}
