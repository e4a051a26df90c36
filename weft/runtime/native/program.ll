; Programs: plans of many steps. Each step has a frame of its own, which is written over the last
; one's just before its phases run, from a recipe (words): where its scratch memory starts in the
; arena, how many operands it has, (base, offset in bytes) of each, how many params, the params.
; Bases are the arena, 0 (for absolute addresses), the program's inputs, then its outputs.

; The bases of a program, once its inputs are gathered and its memory is allocated.
define internal void @set_bases(ptr %plan, ptr %frame) alwaysinline {
entry:
  %step_words = call i64 @word(ptr %plan, i64 {{plan_step_words}})
  %single = icmp eq i64 %step_words, 0
  br i1 %single, label %done, label %program
program:
  %bases = call ptr @pointer(ptr %frame, i64 {{frame_bases}})
  %arena = call i64 @word(ptr %frame, i64 2)
  call void @set_word(ptr %bases, i64 0, i64 %arena)
  call void @set_word(ptr %bases, i64 1, i64 0)
  %n_in = call i64 @word(ptr %plan, i64 {{plan_n_in}})
  %n_out = call i64 @word(ptr %plan, i64 {{plan_n_out}})
  %n = add i64 %n_in, %n_out
  %bytes = shl i64 %n, 3
  %to = getelementptr i64, ptr %bases, i64 2
  %from = getelementptr i64, ptr %frame, i64 3
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %to, ptr align 8 %from, i64 %bytes, i1 false)
  call void @stacks_of(ptr %plan, ptr %frame, i1 false)
  br label %done
done:
  ret void
}

; Zeroes the handles of a program's growing stacks, or frees their memory.
define internal void @stacks_of(ptr %plan, ptr %frame, i1 %freeing) {
entry:
  %table = call ptr @pointer(ptr %plan, i64 {{plan_stacks}})
  %none = icmp eq ptr %table, null
  br i1 %none, label %done, label %begin
begin:
  %bases = call ptr @pointer(ptr %frame, i64 {{frame_bases}})
  %arena = call ptr @pointer(ptr %bases, i64 0)
  call void @each_stack(ptr %table, ptr %arena, i1 %freeing)
  br label %done
done:
  ret void
}

; The same for the handles in an arena that a table (words: how many stacks, where each is; how many
; chains of records, where each begins) tells of.
define internal void @each_stack(ptr %table, ptr %arena, i1 %freeing) {
entry:
  %n = call i64 @word(ptr %table, i64 0)
  br label %head
head:
  %i = phi i64 [ 1, %entry ], [ %next, %after ]
  %more = icmp sle i64 %i, %n
  br i1 %more, label %body, label %chains
body:
  %offset = call i64 @word(ptr %table, i64 %i)
  %handle = getelementptr i8, ptr %arena, i64 %offset
  br i1 %freeing, label %release, label %clear
release:
  %memory = call ptr @pointer(ptr %handle, i64 0)
  call void @free(ptr %memory)
  br label %after
clear:
  call void @set_word(ptr %handle, i64 0, i64 0)
  call void @set_word(ptr %handle, i64 1, i64 0)
  call void @set_word(ptr %handle, i64 2, i64 0)
  call void @set_word(ptr %handle, i64 3, i64 0)
  call void @set_word(ptr %handle, i64 4, i64 0)
  br label %after
after:
  %next = add i64 %i, 1
  br label %head
chains:
  %behind = getelementptr i64, ptr %table, i64 %i
  %m = call i64 @word(ptr %behind, i64 0)
  br label %chain_head
chain_head:
  %k = phi i64 [ 1, %chains ], [ %next_k, %chain_after ]
  %more_k = icmp sle i64 %k, %m
  br i1 %more_k, label %chain, label %done
chain:
  %offset_k = call i64 @word(ptr %behind, i64 %k)
  %chain_at = getelementptr i8, ptr %arena, i64 %offset_k
  br i1 %freeing, label %forget, label %begin
forget:
  call void @forget_records(ptr %chain_at)
  br label %chain_after
begin:
  call void @set_word(ptr %chain_at, i64 0, i64 0)
  br label %chain_after
chain_after:
  %next_k = add i64 %k, 1
  br label %chain_head
done:
  ret void
}

; Where to go from a phase that is a jump; below 0: a status, negated.
define internal i64 @jump(ptr %phase, ptr %frame, i64 %here) alwaysinline {
entry:
  %to = call i64 @word(ptr %phase, i64 {{phase_tasks}})
  %when = call i64 @word(ptr %phase, i64 {{phase_grain}})
  %routine = icmp sge i64 %when, {{jump_call}}
  br i1 %routine, label %move, label %leap
move:
  %moved = call i64 @move(ptr %phase, ptr %frame, i64 %here)
  ret i64 %moved
leap:
  %always = icmp eq i64 %when, 0
  br i1 %always, label %go, label %look
look:
  %place = call ptr @pointer(ptr %phase, i64 {{phase_recipe}})
  %bases = call ptr @pointer(ptr %frame, i64 {{frame_bases}})
  %which = call i64 @word(ptr %place, i64 0)
  %offset = call i64 @word(ptr %place, i64 1)
  %base = call ptr @pointer(ptr %bases, i64 %which)
  %at = getelementptr i8, ptr %base, i64 %offset
  %byte = load i8, ptr %at
  %is_true = icmp ne i8 %byte, 0
  %if_true = icmp eq i64 %when, 1
  %yes = icmp eq i1 %is_true, %if_true
  br i1 %yes, label %go, label %stay
stay:
  %next = add i64 %here, 1
  ret i64 %next
go:
  ret i64 %to
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Writes the frame of the step that a phase begins.
define internal void @dress(ptr %phase, ptr %frame) alwaysinline {
entry:
  %recipe = call ptr @pointer(ptr %phase, i64 {{phase_recipe}})
  %none = icmp eq ptr %recipe, null
  br i1 %none, label %done, label %begin
begin:
  call void @set_pointer(ptr %frame, i64 {{frame_phase}}, ptr %phase)
  %bases = call ptr @pointer(ptr %frame, i64 {{frame_bases}})
  %arena = call i64 @word(ptr %bases, i64 0)
  %scratch = call i64 @word(ptr %recipe, i64 0)
  %scratch_at = add i64 %arena, %scratch
  call void @set_word(ptr %frame, i64 2, i64 %scratch_at)
  %n = call i64 @word(ptr %recipe, i64 1)
  %places = getelementptr i64, ptr %recipe, i64 2
  %operands = getelementptr i64, ptr %frame, i64 3
  br label %head
head:
  %i = phi i64 [ 0, %begin ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %numbers
body:
  %twice = shl i64 %i, 1
  %place = getelementptr i64, ptr %places, i64 %twice
  %which = call i64 @word(ptr %place, i64 0)
  %offset = call i64 @word(ptr %place, i64 1)
  %base = call i64 @word(ptr %bases, i64 %which)
  %address = add i64 %base, %offset
  call void @set_word(ptr %operands, i64 %i, i64 %address)
  %next = add i64 %i, 1
  br label %head
numbers:
  %pairs = shl i64 %n, 1
  %count_at = getelementptr i64, ptr %places, i64 %pairs
  %count = call i64 @word(ptr %count_at, i64 0)
  %from = getelementptr i64, ptr %count_at, i64 1
  %to = getelementptr i64, ptr %operands, i64 %n
  %bytes = shl i64 %count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %to, ptr align 8 %from, i64 %bytes, i1 false)
  br label %done
done:
  ret void
}
