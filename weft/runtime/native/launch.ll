; launch(plan, *args): one eager op, from Python arguments to Python results.

@paused = global i64 0  ; no_grad blocks now open, in any thread
@serial = global i64 0  ; of the last note

@text_no_plan = internal constant [39 x i8] c"launch(plan, *args) needs a Plan first\00"
@text_no_error = internal constant [40 x i8] c"on_error returned instead of raising it\00"

; Stack of a launch, in words: what goes on around the frame (found by poll at negative offsets),
; the frame (for a program, the frame of each step in turn), then per input its buffer (a strong reference: another thread may rebind the tensor
; meanwhile) and room for a scalar, then per output the object made so far: first the block, then
; the Buffer around it, then the Tensor around that.
define ptr @launch(ptr %self, ptr %args, i64 %count) {
entry:
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %first, label %no_plan
first:
  %plan_object = load ptr, ptr %args
  %its_type = call ptr @type_of(ptr %plan_object)
  %plan_class = load ptr, ptr @plan_type
  %is_plan = icmp eq ptr %its_type, %plan_class
  br i1 %is_plan, label %planned, label %no_plan
no_plan:
  %type_error = load ptr, ptr @PyExc_TypeError
  call void @PyErr_SetString(ptr %type_error, ptr @text_no_plan)
  ret ptr null

planned:
  %address = call ptr @slot(ptr %plan_object, i64 {{plan_slot_address}})
  %plan = call ptr @PyLong_AsVoidPtr(ptr %address)
  %inputs = getelementptr ptr, ptr %args, i64 1
  %n_in = call i64 @word(ptr %plan, i64 {{plan_n_in}})
  %n_out = call i64 @word(ptr %plan, i64 {{plan_n_out}})
  %given = sub i64 %count, 1
  %all_given = icmp eq i64 %given, %n_in
  br i1 %all_given, label %inspect, label %miscounted
miscounted:
  %r0 = call ptr @fail(ptr %plan_object, i64 {{status_count}}, i64 %given, ptr %inputs, i64 %given)
  ret ptr %r0

inspect:
  %noted = call i64 @inspect(ptr %inputs, i64 %n_in, ptr %plan)
  %acceptable = icmp sge i64 %noted, 0
  br i1 %acceptable, label %decide, label %unacceptable
unacceptable:
  %which = xor i64 %noted, -1
  %r1 = call ptr @fail(
    ptr %plan_object, i64 {{status_argument}}, i64 %which, ptr %inputs, i64 %n_in)
  ret ptr %r1

decide:
  %has_note = icmp ne i64 %noted, 0
  br i1 %has_note, label %ask_grad, label %unrecorded
ask_grad:
  %recording = call i1 @grad_is_on()
  br i1 %recording, label %record, label %unrecorded
record:
  %keep_known = call i1 @ensure_keep(ptr %plan_object, ptr %plan)
  br i1 %keep_known, label %make_tuples, label %raised
raised:
  ret ptr null
make_tuples:
  %parents0 = call ptr @PyTuple_New(i64 %n_in)
  %saved0 = call ptr @PyTuple_New(i64 %n_in)
  %no_parents = icmp eq ptr %parents0, null
  %no_saved = icmp eq ptr %saved0, null
  %no_tuple = or i1 %no_parents, %no_saved
  br i1 %no_tuple, label %drop_tuples, label %unrecorded
drop_tuples:
  call void @Py_DecRef(ptr %parents0)
  call void @Py_DecRef(ptr %saved0)
  ret ptr null

unrecorded:
  %parents = phi ptr [ null, %decide ], [ null, %ask_grad ], [ %parents0, %make_tuples ]
  %saved = phi ptr [ null, %decide ], [ null, %ask_grad ], [ %saved0, %make_tuples ]
  %n_params = call i64 @word(ptr %plan, i64 {{plan_n_params}})
  %twice = shl i64 %n_in, 1
  %operands = add i64 %n_in, %n_out
  %own_part = add i64 %operands, %n_params
  %step_part = call i64 @word(ptr %plan, i64 {{plan_step_words}})
  %frame_part = call i64 @llvm.smax.i64(i64 %own_part, i64 %step_part)
  %bases_part = add i64 %operands, 2
  %other_part = add i64 %twice, %n_out
  %both = add i64 %frame_part, %other_part
  %all_parts = add i64 %both, %bases_part
  %words = add i64 %all_parts, {{frame_words}}
  %stack = alloca i64, i64 %words, align 16
  %frame = getelementptr i64, ptr %stack, i64 {{frame_context}}
  %operands_at = getelementptr i64, ptr %frame, i64 3
  %out_operands = getelementptr i64, ptr %operands_at, i64 %n_in
  %params_at = getelementptr i64, ptr %out_operands, i64 %n_out
  %held = getelementptr i64, ptr %operands_at, i64 %frame_part
  %scalars = getelementptr i64, ptr %held, i64 %n_in
  %outs = getelementptr i64, ptr %scalars, i64 %n_in
  %bases = getelementptr i64, ptr %outs, i64 %n_out
  call void @set_pointer(ptr %frame, i64 {{frame_bases}}, ptr %bases)
  call void @set_word(ptr %frame, i64 {{frame_phase}}, i64 0)
  call void @set_word(ptr %frame, i64 {{frame_calls}}, i64 0)
  call void @set_word(ptr %frame, i64 {{frame_depth}}, i64 0)
  call void @set_word(ptr %frame, i64 {{frame_stop}}, i64 0)
  call void @set_word(ptr %frame, i64 {{frame_deadline}}, i64 9223372036854775807)
  call void @set_word(ptr %frame, i64 {{frame_thread}}, i64 0)
  call void @set_word(ptr %frame, i64 {{frame_forked}}, i64 0)
  call void @set_word(ptr %frame, i64 0, i64 0)
  call void @set_pointer(ptr %frame, i64 1, ptr @poll)
  call void @set_word(ptr %frame, i64 2, i64 0)
  call void @clear(ptr %held, i64 %n_in)
  call void @clear(ptr %outs, i64 %n_out)
  %gathered = call i64 @gather(
    ptr %plan, ptr %inputs, ptr %frame, ptr %held, ptr %scalars, ptr %parents, ptr %saved)
  %complete = icmp eq i64 %gathered, 0
  br i1 %complete, label %dispatch, label %failed

dispatch:
  %kind = call i64 @word(ptr %plan, i64 {{plan_kind}})
  %is_view = icmp ne i64 %kind, 0
  br i1 %is_view, label %view, label %kernel
view:
  %viewed = call i64 @view(ptr %plan_object, ptr %plan, ptr %held, ptr %outs)
  br label %computed
kernel:
  call void @copy_words(ptr %plan, ptr %params_at, i64 %n_params)
  %ran = call i64 @compute(ptr %plan_object, ptr %plan, ptr %frame, ptr %outs)
  br label %computed
computed:
  %status0 = phi i64 [ %viewed, %view ], [ %ran, %kernel ]
  %fine = icmp eq i64 %status0, 0
  br i1 %fine, label %finish, label %failed

finish:  ; Buffers become Tensors
  %note = call ptr @make_note(ptr %plan_object, ptr %plan, ptr %parents, ptr %saved, ptr %outs)
  %note_failed = icmp eq ptr %note, null
  br i1 %note_failed, label %failed, label %wrap
wrap:
  %result = call ptr @make_tensors(ptr %outs, i64 %n_out, ptr %note)
  call void @Py_DecRef(ptr %note)
  call void @release_all(ptr %held, i64 %n_in)
  ret ptr %result

failed:
  ; make_note takes the tuples over, whether it works or not
  %status = phi i64 [ %gathered, %unrecorded ], [ %status0, %computed ], [ -1, %finish ]
  %parents_left = phi ptr [ %parents, %unrecorded ], [ %parents, %computed ], [ null, %finish ]
  %saved_left = phi ptr [ %saved, %unrecorded ], [ %saved, %computed ], [ null, %finish ]
  %detail = call i64 @word(ptr %frame, i64 0)
  %raised_already = icmp slt i64 %status, 0
  br i1 %raised_already, label %clean, label %raise
raise:
  %phase = call i64 @word(ptr %frame, i64 {{frame_phase}})
  call void @set_word(ptr %plan, i64 {{plan_failed}}, i64 %phase)
  %r2 = call ptr @fail(ptr %plan_object, i64 %status, i64 %detail, ptr %inputs, i64 %n_in)
  br label %clean
clean:
  call void @Py_DecRef(ptr %parents_left)
  call void @Py_DecRef(ptr %saved_left)
  call void @release_all(ptr %outs, i64 %n_out)
  call void @release_all(ptr %held, i64 %n_in)
  ret ptr null
}

; Are the arguments of the kinds the plan expects? 1 if a gradient could be wanted (the op has one
; and an input has a note), 0 if not, -1 - i if argument i is wrong.
define internal i64 @inspect(ptr %inputs, i64 %n, ptr %plan) alwaysinline {
entry:
  %kinds = call ptr @pointer(ptr %plan, i64 {{plan_kinds}})
  %class = load ptr, ptr @tensor_type
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %continue ]
  %noted = phi i64 [ 0, %entry ], [ %noted2, %continue ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %kind = call i64 @word(ptr %kinds, i64 %i)
  %is_tensor = icmp eq i64 %kind, 0
  br i1 %is_tensor, label %tensor, label %continue
tensor:
  %object = call ptr @pointer(ptr %inputs, i64 %i)
  %right = call i1 @is_a(ptr %object, ptr %class)
  br i1 %right, label %look, label %wrong
look:
  %note = call ptr @slot(ptr %object, i64 {{tensor_note}})
  %none = icmp eq ptr %note, @_Py_NoneStruct
  %unset = icmp eq ptr %note, null
  %without = or i1 %none, %unset
  %kept = select i1 %without, i64 %noted, i64 1
  br label %continue
continue:
  %noted2 = phi i64 [ %noted, %body ], [ %kept, %look ]
  %next = add i64 %i, 1
  br label %head
wrong:
  %code = xor i64 %i, -1
  ret i64 %code
done:
  %differentiable = call i64 @word(ptr %plan, i64 {{plan_differentiable}})
  %wanted = and i64 %noted, %differentiable
  ret i64 %wanted
}

define internal i1 @grad_is_on() alwaysinline {
  %pauses = load i64, ptr @paused
  %never = icmp eq i64 %pauses, 0
  br i1 %never, label %on, label %look
look:
  %value = alloca ptr
  store ptr null, ptr %value
  %variable = load ptr, ptr @grad_mode
  %failed = call i32 @PyContextVar_Get(ptr %variable, ptr null, ptr %value)
  %found = load ptr, ptr %value
  call void @Py_DecRef(ptr %found)
  %answer = icmp ne ptr %found, @_Py_FalseStruct
  ret i1 %answer
on:
  ret i1 true
}

; The keep mask is worked out when the first gradient is wanted. False: that raised.
define internal i1 @ensure_keep(ptr %plan_object, ptr %plan) alwaysinline {
  %mask = call i64 @word(ptr %plan, i64 {{plan_keep}})
  %known = icmp sge i64 %mask, 0
  br i1 %known, label %yes, label %ask
ask:
  %function = load ptr, ptr @resolve_keep
  %answer = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(
    ptr %function, ptr %plan_object, ptr null)
  call void @Py_DecRef(ptr %answer)
  %worked = icmp ne ptr %answer, null
  ret i1 %worked
yes:
  ret i1 true
}

define internal void @clear(ptr %objects, i64 %n) alwaysinline {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  call void @set_word(ptr %objects, i64 %i, i64 0)
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

define internal void @release_all(ptr %objects, i64 %n) alwaysinline {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %object = call ptr @pointer(ptr %objects, i64 %i)
  call void @Py_DecRef(ptr %object)
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

define internal void @copy_words(ptr %plan, ptr %to, i64 %n) alwaysinline {
entry:
  %from = call ptr @pointer(ptr %plan, i64 {{plan_params}})
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %value = call i64 @word(ptr %from, i64 %i)
  call void @set_word(ptr %to, i64 %i, i64 %value)
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

; The inputs' addresses into the frame, their buffers into %held, and, when recording, what the note
; is to hold of them. A status; word 0 of the frame then says which argument it was.
define internal i64 @gather(
    ptr %plan, ptr %inputs, ptr %frame, ptr %held, ptr %scalars, ptr %parents, ptr %saved
) alwaysinline {
entry:
  %n = call i64 @word(ptr %plan, i64 {{plan_n_in}})
  %kinds = call ptr @pointer(ptr %plan, i64 {{plan_kinds}})
  %mask = call i64 @word(ptr %plan, i64 {{plan_keep}})
  %class = load ptr, ptr @buffer_type
  %operands = getelementptr i64, ptr %frame, i64 3
  %recording = icmp ne ptr %parents, null
  %layouts = call ptr @pointer(ptr %plan, i64 {{plan_layouts}})
  %any_layout = icmp eq ptr %layouts, null
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %continue ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %object = call ptr @pointer(ptr %inputs, i64 %i)
  %kind = call i64 @word(ptr %kinds, i64 %i)
  %is_tensor = icmp eq i64 %kind, 0
  br i1 %is_tensor, label %tensor, label %number

tensor:
  %data = call ptr @slot(ptr %object, i64 {{tensor_data}})
  %unset = icmp eq ptr %data, null
  br i1 %unset, label %wrong, label %check
check:
  %its = call ptr @type_of(ptr %data)
  %is_buffer = icmp eq ptr %its, %class
  br i1 %is_buffer, label %lies, label %wrong
lies:  ; a program is planned for inputs that lie in memory in one way
  br i1 %any_layout, label %take, label %compare
compare:
  %layout = call ptr @slot(ptr %data, i64 {{buffer_layout}})
  %expected = call ptr @pointer(ptr %layouts, i64 %i)
  %as_planned = icmp eq ptr %layout, %expected
  br i1 %as_planned, label %take, label %elsewhere
elsewhere:  ; or for one that is this very buffer
  %is_itself = icmp eq ptr %data, %expected
  br i1 %is_itself, label %take, label %refused
take:
  call void @Py_IncRef(ptr %data)
  call void @set_pointer(ptr %held, i64 %i, ptr %data)
  %address = call ptr @address_of(ptr %data)
  call void @set_pointer(ptr %operands, i64 %i, ptr %address)
  br i1 %recording, label %note_tensor, label %continue
note_tensor:
  %note = call ptr @slot(ptr %object, i64 {{tensor_note}})
  %noteless = icmp eq ptr %note, null
  %parent = select i1 %noteless, ptr @_Py_NoneStruct, ptr %note
  call void @Py_IncRef(ptr %parent)
  call void @set_item(ptr %parents, i64 %i, ptr %parent)
  %maskable = icmp ult i64 %i, 62
  %place = select i1 %maskable, i64 %i, i64 63  ; never set: a concat saves none of its inputs
  %bit = shl i64 1, %place
  %masked = and i64 %mask, %bit
  %wanted = icmp ne i64 %masked, 0
  %kept = select i1 %wanted, ptr %data, ptr @_Py_NoneStruct
  call void @Py_IncRef(ptr %kept)
  call void @set_item(ptr %saved, i64 %i, ptr %kept)
  br label %continue

number:
  %dtype = add i64 %kind, -1
  %slot = getelementptr i64, ptr %scalars, i64 %i
  %status = call i64 @scalar(ptr %object, i64 %dtype, ptr %slot)
  %converted = icmp eq i64 %status, 0
  br i1 %converted, label %use, label %refused
use:
  call void @set_pointer(ptr %operands, i64 %i, ptr %slot)
  br i1 %recording, label %note_number, label %continue
note_number:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  call void @set_item(ptr %parents, i64 %i, ptr @_Py_NoneStruct)
  call void @Py_IncRef(ptr %object)
  call void @set_item(ptr %saved, i64 %i, ptr %object)
  br label %continue

continue:
  %next = add i64 %i, 1
  br label %head
wrong:
  br label %refused
refused:
  %why = phi i64 [ {{status_argument}}, %wrong ], [ {{status_layout}}, %elsewhere ],
    [ %status, %number ]
  call void @set_word(ptr %frame, i64 0, i64 %i)
  ret i64 %why
done:
  ret i64 0
}

; Raises for a status, through on_error(plan, status, detail, args). Gives null, what a failed
; launch returns.
define internal ptr @fail(
    ptr %plan_object, i64 %status, i64 %detail, ptr %inputs, i64 %n
) noinline cold {
entry:
  %set = call ptr @PyErr_Occurred()  ; an interrupt was raised where it was noticed
  %raised = icmp ne ptr %set, null
  br i1 %raised, label %done, label %build
build:
  %args = call ptr @tuple_of(ptr %inputs, i64 %n)
  %status_object = call ptr @PyLong_FromLongLong(i64 %status)
  %detail_object = call ptr @PyLong_FromLongLong(i64 %detail)
  %a = icmp eq ptr %args, null
  %b = icmp eq ptr %status_object, null
  %c = icmp eq ptr %detail_object, null
  %ab = or i1 %a, %b
  %abc = or i1 %ab, %c
  br i1 %abc, label %drop, label %report
report:
  %function = load ptr, ptr @on_error
  %answer = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(
    ptr %function, ptr %plan_object, ptr %status_object, ptr %detail_object, ptr %args, ptr null)
  %silent = icmp ne ptr %answer, null
  br i1 %silent, label %insist, label %drop
insist:
  call void @Py_DecRef(ptr %answer)
  %system_error = load ptr, ptr @PyExc_SystemError
  call void @PyErr_SetString(ptr %system_error, ptr @text_no_error)
  br label %drop
drop:
  call void @Py_DecRef(ptr %args)
  call void @Py_DecRef(ptr %status_object)
  call void @Py_DecRef(ptr %detail_object)
  br label %done
done:
  ret ptr null
}

; allocate(layout, bytes) -> Buffer, its contents undefined
define ptr @allocate(ptr %self, ptr %args, i64 %count) {
  %layout = load ptr, ptr %args
  %wanted = call ptr @pointer(ptr %args, i64 1)
  %flag = alloca i32
  %bytes = call i64 @PyLong_AsLongLongAndOverflow(ptr %wanted, ptr %flag)
  %block = call ptr @new_block(i64 %bytes)
  %lost = icmp eq ptr %block, null
  br i1 %lost, label %no_memory, label %wrap
no_memory:
  %r = call ptr @fail(ptr @_Py_NoneStruct, i64 {{status_memory}}, i64 %bytes, ptr %args, i64 0)
  ret ptr null
wrap:
  %address = call ptr @pointer(ptr %block, i64 4)
  call void @Py_IncRef(ptr %address)
  %buffer = call ptr @make_buffer(ptr %layout, ptr %address, ptr %block)
  ret ptr %buffer
}

; pause(), resume(): a no_grad block opens, closes
define ptr @pause(ptr %self, ptr %nothing) {
  %now = load i64, ptr @paused
  %more = add i64 %now, 1
  store i64 %more, ptr @paused
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
}

define ptr @resume(ptr %self, ptr %nothing) {
  %now = load i64, ptr @paused
  %less = sub i64 %now, 1
  store i64 %less, ptr @paused
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
}

; enter_mode() -> the host's floating-point mode (0: the standard one, which is set from now on)
define ptr @enter_mode(ptr %self, ptr %nothing) {
  %mode = call i32 @enter_float_mode()
  %wide = zext i32 %mode to i64
  %result = call ptr @PyLong_FromLongLong(i64 %wide)
  ret ptr %result
}

; leave_mode(mode): back to the host's
define ptr @leave_mode(ptr %self, ptr %args, i64 %count) {
  %given = load ptr, ptr %args
  %flag = alloca i32
  %wide = call i64 @PyLong_AsLongLongAndOverflow(ptr %given, ptr %flag)
  %mode = trunc i64 %wide to i32
  call void @leave_float_mode(i32 %mode)
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
}

; next_serial() -> the number of a note
define ptr @next_serial(ptr %self, ptr %nothing) {
  %last = load i64, ptr @serial
  %now = add i64 %last, 1
  store i64 %now, ptr @serial
  %result = call ptr @PyLong_FromLongLong(i64 %now)
  ret ptr %result
}
