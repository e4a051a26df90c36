; Calls of a program's routines: functions that may call themselves. A call has a frame (words),
; allocated when it begins and freed when it ends: the frame of the call around it, that one's
; bases, the phase to go back to, where the handles in its arena are said, bytes of all frames so
; far; then its bases (its arena, 0 for absolute addresses, operands and results, its record), then
; its arena.
;
; The recipe of a call: bytes of the arena, how many operands, (base, offset) of each from the
; bases of the caller, a table of handles in the arena (see each_stack), then, if it has a record,
; (base, offset) of the word where its address is, or is to be written, (base, offset) of the head
; of the chain of all records, whether the address of the head is there instead, bytes.
;
; A record outlives its call: the chain it is in is freed as a whole. Its first word is the address
; of the chain's head. What was allocated for it begins with the address of the next.

@calls_limit = global i64 1073741824  ; bytes of frames

define internal i64 @move(ptr %phase, ptr %frame, i64 %here) noinline {
entry:
  %when = call i64 @word(ptr %phase, i64 {{phase_grain}})
  %leaving = icmp eq i64 %when, {{jump_return}}
  br i1 %leaving, label %leave, label %stay
leave:
  %back = call i64 @end_call(ptr %frame)
  ret i64 %back
stay:
  %forgetting = icmp eq i64 %when, {{jump_forget}}
  br i1 %forgetting, label %forget, label %enter
forget:
  %chain_place = call ptr @pointer(ptr %phase, i64 {{phase_recipe}})
  %own_bases = call ptr @pointer(ptr %frame, i64 {{frame_bases}})
  %chain_at = call i64 @address(ptr %own_bases, ptr %chain_place)
  %chain = inttoptr i64 %chain_at to ptr
  call void @forget_records(ptr %chain)
  %following = add i64 %here, 1
  ret i64 %following

enter:
  %recipe = call ptr @pointer(ptr %phase, i64 {{phase_recipe}})
  %arena_bytes = call i64 @word(ptr %recipe, i64 0)
  %n = call i64 @word(ptr %recipe, i64 1)
  %around = call ptr @pointer(ptr %frame, i64 {{frame_calls}})
  %outermost = icmp eq ptr %around, null
  br i1 %outermost, label %measure, label %count
count:
  %held0 = call i64 @word(ptr %around, i64 4)
  br label %measure
measure:
  %held = phi i64 [ 0, %enter ], [ %held0, %count ]
  %words = add i64 %n, 8
  %head_bytes = shl i64 %words, 3
  %both = add i64 %head_bytes, %arena_bytes
  %bytes = add i64 %both, 64
  %total = add i64 %held, %bytes
  %limit = load i64, ptr @calls_limit
  %depth = call i64 @word(ptr %frame, i64 {{frame_depth}})
  %deep = icmp sge i64 %depth, {{most_calls}}
  %much = icmp sgt i64 %total, %limit
  %refused = or i1 %deep, %much
  br i1 %refused, label %too_deep, label %take
too_deep:
  call void @set_word(ptr %frame, i64 0, i64 %depth)
  call void @set_pointer(ptr %frame, i64 {{frame_phase}}, ptr %phase)
  ret i64 -{{status_depth}}
take:
  %call = call ptr @malloc(i64 %bytes)
  %none = icmp eq ptr %call, null
  br i1 %none, label %no_memory, label %fill
no_memory:
  call void @set_word(ptr %frame, i64 0, i64 %bytes)
  call void @set_pointer(ptr %frame, i64 {{frame_phase}}, ptr %phase)
  ret i64 -{{status_memory}}
fill:
  %callers = call ptr @pointer(ptr %frame, i64 {{frame_bases}})
  %return = add i64 %here, 1
  call void @set_pointer(ptr %call, i64 0, ptr %around)
  call void @set_pointer(ptr %call, i64 1, ptr %callers)
  call void @set_word(ptr %call, i64 2, i64 %return)
  call void @set_word(ptr %call, i64 4, i64 %total)
  %bases = getelementptr i64, ptr %call, i64 5
  %behind = getelementptr i8, ptr %call, i64 %head_bytes
  %behind_at = ptrtoint ptr %behind to i64
  %up = add i64 %behind_at, 63
  %arena = and i64 %up, -64
  call void @set_word(ptr %bases, i64 0, i64 %arena)
  call void @set_word(ptr %bases, i64 1, i64 0)
  %operands = getelementptr i64, ptr %bases, i64 2
  %places = getelementptr i64, ptr %recipe, i64 2
  br label %head
head:
  %i = phi i64 [ 0, %fill ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %filled
body:
  %twice = shl i64 %i, 1
  %place = getelementptr i64, ptr %places, i64 %twice
  %address = call i64 @address(ptr %callers, ptr %place)
  call void @set_word(ptr %operands, i64 %i, i64 %address)
  %next = add i64 %i, 1
  br label %head
filled:
  %pairs = shl i64 %n, 1
  %stacks = getelementptr i64, ptr %places, i64 %pairs
  call void @set_pointer(ptr %call, i64 3, ptr %stacks)
  %arena_at = inttoptr i64 %arena to ptr
  call void @each_stack(ptr %stacks, ptr %arena_at, i1 false)
  %plain = icmp eq i64 %when, {{jump_call}}
  br i1 %plain, label %begin, label %remember
remember:
  %n_stacks = call i64 @word(ptr %stacks, i64 0)
  %chains_at = add i64 %n_stacks, 1
  %chains = getelementptr i64, ptr %stacks, i64 %chains_at
  %n_chains = call i64 @word(ptr %chains, i64 0)
  %memory_at = add i64 %n_chains, 1
  %memory = getelementptr i64, ptr %chains, i64 %memory_at
  %slot_at = call i64 @address(ptr %callers, ptr %memory)
  %slot = inttoptr i64 %slot_at to ptr
  %keeping = icmp eq i64 %when, {{jump_keep}}
  br i1 %keeping, label %keep, label %find
keep:
  %kept = call i64 @new_record(ptr %callers, ptr %memory)
  %lost = icmp eq i64 %kept, 0
  br i1 %lost, label %no_record, label %note
no_record:
  call void @free(ptr %call)
  br label %no_memory
note:
  call void @set_word(ptr %slot, i64 0, i64 %kept)
  br label %find
find:
  %found = call i64 @word(ptr %slot, i64 0)
  call void @set_word(ptr %operands, i64 %n, i64 %found)
  br label %begin
begin:
  call void @set_pointer(ptr %frame, i64 {{frame_calls}}, ptr %call)
  call void @set_pointer(ptr %frame, i64 {{frame_bases}}, ptr %bases)
  %deeper = add i64 %depth, 1
  call void @set_word(ptr %frame, i64 {{frame_depth}}, i64 %deeper)
  %to = call i64 @word(ptr %phase, i64 {{phase_tasks}})
  ret i64 %to
}
declare ptr @malloc(i64)

; The address that a place (base, offset) means.
define internal i64 @address(ptr %bases, ptr %place) alwaysinline {
  %which = call i64 @word(ptr %place, i64 0)
  %offset = call i64 @word(ptr %place, i64 1)
  %base = call i64 @word(ptr %bases, i64 %which)
  %address = add i64 %base, %offset
  ret i64 %address
}

; A record, put into its chain: where it lies, or 0.
define internal i64 @new_record(ptr %bases, ptr %memory) {
entry:
  %head_place = getelementptr i64, ptr %memory, i64 2
  %named = call i64 @address(ptr %bases, ptr %head_place)
  %indirect = call i64 @word(ptr %memory, i64 4)
  %direct = icmp eq i64 %indirect, 0
  br i1 %direct, label %take, label %look
look:
  %named_at = inttoptr i64 %named to ptr
  %known = call i64 @word(ptr %named_at, i64 0)
  br label %take
take:
  %head = phi i64 [ %named, %entry ], [ %known, %look ]
  %bytes = call i64 @word(ptr %memory, i64 5)
  %more = add i64 %bytes, 72
  %block = call ptr @malloc(i64 %more)
  %none = icmp eq ptr %block, null
  br i1 %none, label %lost, label %link
lost:
  ret i64 0
link:
  %head_at = inttoptr i64 %head to ptr
  %next = call i64 @word(ptr %head_at, i64 0)
  call void @set_word(ptr %block, i64 0, i64 %next)
  call void @set_pointer(ptr %head_at, i64 0, ptr %block)
  %start = ptrtoint ptr %block to i64
  %behind = add i64 %start, 71
  %lies = and i64 %behind, -64
  %lies_at = inttoptr i64 %lies to ptr
  call void @set_word(ptr %lies_at, i64 0, i64 %head)
  ret i64 %lies
}

; Frees all records of a chain.
define internal void @forget_records(ptr %head) {
entry:
  br label %look
look:
  %block = call ptr @pointer(ptr %head, i64 0)
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %drop
drop:
  %next = call ptr @pointer(ptr %block, i64 0)
  call void @set_pointer(ptr %head, i64 0, ptr %next)
  call void @free(ptr %block)
  br label %look
done:
  ret void
}

; Ends the innermost call: the phase to go back to.
define internal i64 @end_call(ptr %frame) {
  %call = call ptr @pointer(ptr %frame, i64 {{frame_calls}})
  %stacks = call ptr @pointer(ptr %call, i64 3)
  %bases = getelementptr i64, ptr %call, i64 5
  %arena = call ptr @pointer(ptr %bases, i64 0)
  call void @each_stack(ptr %stacks, ptr %arena, i1 true)
  %around = call ptr @pointer(ptr %call, i64 0)
  %callers = call ptr @pointer(ptr %call, i64 1)
  %back = call i64 @word(ptr %call, i64 2)
  call void @set_pointer(ptr %frame, i64 {{frame_calls}}, ptr %around)
  call void @set_pointer(ptr %frame, i64 {{frame_bases}}, ptr %callers)
  %depth = call i64 @word(ptr %frame, i64 {{frame_depth}})
  %less = sub i64 %depth, 1
  call void @set_word(ptr %frame, i64 {{frame_depth}}, i64 %less)
  call void @free(ptr %call)
  ret i64 %back
}

; Ends all calls that are under way: of a launch that failed in one.
define internal void @end_calls(ptr %frame) {
entry:
  br label %head
head:
  %call = call ptr @pointer(ptr %frame, i64 {{frame_calls}})
  %none = icmp eq ptr %call, null
  br i1 %none, label %done, label %body
body:
  %back = call i64 @end_call(ptr %frame)
  br label %head
done:
  ret void
}
