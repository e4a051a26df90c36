; What a launch gives: memory for the results, Buffers around it, a note if gradients are wanted,
; Tensors.

; A Buffer's address. Most buffers begin where their block's data does and share its int: no need to
; read that.
define internal ptr @address_of(ptr %buffer) alwaysinline {
  %long = call ptr @slot(ptr %buffer, i64 {{buffer_address}})
  %owner = call ptr @slot(ptr %buffer, i64 {{buffer_owner}})
  %its = call ptr @type_of(ptr %owner)
  %class = load ptr, ptr @block_type
  %ours = icmp eq ptr %its, %class
  br i1 %ours, label %block, label %read
block:
  %start = call ptr @pointer(ptr %owner, i64 4)
  %same = icmp eq ptr %start, %long
  br i1 %same, label %whole, label %read
whole:
  %data = call ptr @data_of(ptr %owner)
  ret ptr %data
read:
  %address = call ptr @PyLong_AsVoidPtr(ptr %long)
  ret ptr %address
}

; A Buffer that takes over the references to %address and %owner; null if there is no memory, and
; then they are dropped.
define internal ptr @make_buffer(ptr %layout, ptr %address, ptr %owner) alwaysinline {
  %class = load ptr, ptr @buffer_type
  %buffer = call ptr @PyType_GenericAlloc(ptr %class, i64 0)
  %failed = icmp eq ptr %buffer, null
  br i1 %failed, label %drop, label %fill
drop:
  call void @Py_DecRef(ptr %address)
  call void @Py_DecRef(ptr %owner)
  ret ptr null
fill:
  call void @Py_IncRef(ptr %layout)
  call void @set_slot(ptr %buffer, i64 {{buffer_layout}}, ptr %layout)
  call void @set_slot(ptr %buffer, i64 {{buffer_address}}, ptr %address)
  call void @set_slot(ptr %buffer, i64 {{buffer_owner}}, ptr %owner)
  ret ptr %buffer
}

define internal ptr @layout_of(ptr %plan_object, i64 %i) alwaysinline {
  %layouts = call ptr @slot(ptr %plan_object, i64 {{plan_slot_layouts}})
  %layout = call ptr @item(ptr %layouts, i64 %i)
  ret ptr %layout
}

; The result of a view: a Buffer over the first input's memory.
define internal i64 @view(ptr %plan_object, ptr %plan, ptr %held, ptr %outs) alwaysinline {
  %source = load ptr, ptr %held
  %offset = call i64 @word(ptr %plan, i64 {{plan_view_offset}})
  %moved = icmp ne i64 %offset, 0
  br i1 %moved, label %new, label %same
new:
  %start = call ptr @address_of(ptr %source)
  %there = getelementptr i8, ptr %start, i64 %offset
  %made = call ptr @PyLong_FromVoidPtr(ptr %there)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %lost, label %wrap
same:
  %shared = call ptr @slot(ptr %source, i64 {{buffer_address}})
  call void @Py_IncRef(ptr %shared)
  br label %wrap
wrap:
  %address = phi ptr [ %made, %new ], [ %shared, %same ]
  %owner = call ptr @slot(ptr %source, i64 {{buffer_owner}})
  call void @Py_IncRef(ptr %owner)
  %layout = call ptr @layout_of(ptr %plan_object, i64 0)
  %buffer = call ptr @make_buffer(ptr %layout, ptr %address, ptr %owner)
  store ptr %buffer, ptr %outs
  %none = icmp eq ptr %buffer, null
  br i1 %none, label %lost, label %done
lost:
  ret i64 -1
done:
  ret i64 0
}

; Allocates the outputs and scratch, runs the phases, puts a Buffer around every output. A status.
define internal i64 @compute(ptr %plan_object, ptr %plan, ptr %frame, ptr %outs) alwaysinline {
entry:
  %n_in = call i64 @word(ptr %plan, i64 {{plan_n_in}})
  %n_out = call i64 @word(ptr %plan, i64 {{plan_n_out}})
  %sizes = call ptr @pointer(ptr %plan, i64 {{plan_sizes}})
  %inputs = getelementptr i64, ptr %frame, i64 3
  %operands = getelementptr i64, ptr %inputs, i64 %n_in
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %got ]
  %more = icmp slt i64 %i, %n_out
  br i1 %more, label %body, label %allocated
body:
  %bytes = call i64 @word(ptr %sizes, i64 %i)
  %block = call ptr @new_block(i64 %bytes)
  call void @set_pointer(ptr %outs, i64 %i, ptr %block)
  %lost = icmp eq ptr %block, null
  br i1 %lost, label %no_output, label %got
got:
  %data = call ptr @data_of(ptr %block)
  call void @set_pointer(ptr %operands, i64 %i, ptr %data)
  %next = add i64 %i, 1
  br label %head
no_output:
  br label %no_memory
no_memory:
  %wanted = phi i64 [ %bytes, %no_output ], [ %scratch, %take_scratch ]
  call void @set_word(ptr %frame, i64 0, i64 %wanted)
  ret i64 {{status_memory}}

allocated:
  %scratch = call i64 @scratch_bytes(ptr %plan)
  %scratchless = icmp eq i64 %scratch, 0
  br i1 %scratchless, label %run, label %take_scratch
take_scratch:
  %room = call ptr @new_block(i64 %scratch)
  %roomless = icmp eq ptr %room, null
  br i1 %roomless, label %no_memory, label %place
place:
  %room_data = call ptr @data_of(ptr %room)
  call void @set_pointer(ptr %frame, i64 2, ptr %room_data)
  br label %run
run:
  %scratch_block = phi ptr [ null, %allocated ], [ %room, %place ]
  call void @set_bases(ptr %plan, ptr %frame)
  %old_mode = call i32 @enter_float_mode()
  %heavy = call i64 @word(ptr %plan, i64 {{plan_heavy}})
  %is_light = icmp eq i64 %heavy, 0
  br i1 %is_light, label %light, label %shared
light:
  %status_light = call i64 @run_here(ptr %plan, ptr %frame)
  br label %ran
shared:
  %status_heavy = call i64 @run_heavy(ptr %plan, ptr %frame)
  br label %ran
ran:
  %status = phi i64 [ %status_light, %light ], [ %status_heavy, %shared ]
  call void @leave_float_mode(i32 %old_mode)
  call void @end_calls(ptr %frame)
  call void @stacks_of(ptr %plan, ptr %frame, i1 true)
  call void @Py_DecRef(ptr %scratch_block)
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %wrap, label %failed
failed:
  ret i64 %status

wrap:
  %k = phi i64 [ 0, %ran ], [ %k2, %wrapped ]
  %left = icmp slt i64 %k, %n_out
  br i1 %left, label %one, label %done
one:
  %layout = call ptr @layout_of(ptr %plan_object, i64 %k)
  %owner = call ptr @pointer(ptr %outs, i64 %k)
  %address = call ptr @pointer(ptr %owner, i64 4)
  call void @Py_IncRef(ptr %address)
  %buffer = call ptr @make_buffer(ptr %layout, ptr %address, ptr %owner)
  call void @set_pointer(ptr %outs, i64 %k, ptr %buffer)
  %bufferless = icmp eq ptr %buffer, null
  br i1 %bufferless, label %python_failed, label %wrapped
wrapped:
  %k2 = add i64 %k, 1
  br label %wrap
python_failed:
  ret i64 -1
done:
  ret i64 0
}

; The note of a recorded launch, which takes over the two tuples; None when not recording (%parents
; is null); null: raised.
define internal ptr @make_note(
    ptr %plan_object, ptr %plan, ptr %parents, ptr %saved, ptr %outs
) alwaysinline {
entry:
  %recording = icmp ne ptr %parents, null
  br i1 %recording, label %record, label %nothing
nothing:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
record:
  %class = load ptr, ptr @note_type
  %note = call ptr @PyType_GenericAlloc(ptr %class, i64 0)
  %noteless = icmp eq ptr %note, null
  br i1 %noteless, label %drop, label %fill
drop:
  call void @Py_DecRef(ptr %parents)
  call void @Py_DecRef(ptr %saved)
  ret ptr null
fill:
  call void @set_slot(ptr %note, i64 {{note_parents}}, ptr %parents)
  call void @set_slot(ptr %note, i64 {{note_saved}}, ptr %saved)
  %call = call ptr @slot(ptr %plan_object, i64 {{plan_slot_call}})
  call void @Py_IncRef(ptr %call)
  call void @set_slot(ptr %note, i64 {{note_call}}, ptr %call)
  %output = call ptr @output_for_note(ptr %plan, ptr %outs)
  call void @set_slot(ptr %note, i64 {{note_output}}, ptr %output)
  %serial = call ptr @next_serial(ptr null, ptr null)
  call void @set_slot(ptr %note, i64 {{note_serial}}, ptr %serial)
  %no_serial = icmp eq ptr %serial, null
  %no_output = icmp eq ptr %output, null
  %incomplete = or i1 %no_serial, %no_output
  br i1 %incomplete, label %undo, label %done
undo:
  call void @Py_DecRef(ptr %note)
  ret ptr null
done:
  ret ptr %note
}

; What a note keeps of the results: None, the Buffer, or with several results the tuple of their
; Buffers.
define internal ptr @output_for_note(ptr %plan, ptr %outs) alwaysinline {
entry:
  %mask = call i64 @word(ptr %plan, i64 {{plan_keep}})
  %bit = and i64 %mask, {{keep_output}}
  %wanted = icmp ne i64 %bit, 0
  br i1 %wanted, label %keep, label %nothing
nothing:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
keep:
  %n = call i64 @word(ptr %plan, i64 {{plan_n_out}})
  %single = icmp eq i64 %n, 1
  br i1 %single, label %one, label %many
one:
  %only = load ptr, ptr %outs
  call void @Py_IncRef(ptr %only)
  ret ptr %only
many:
  %tuple = call ptr @tuple_of(ptr %outs, i64 %n)
  ret ptr %tuple
}

; A tuple of new references to %n objects, or null.
define internal ptr @tuple_of(ptr %objects, i64 %n) {
entry:
  %tuple = call ptr @PyTuple_New(i64 %n)
  %failed = icmp eq ptr %tuple, null
  br i1 %failed, label %done, label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %object = call ptr @pointer(ptr %objects, i64 %i)
  call void @Py_IncRef(ptr %object)
  call void @set_item(ptr %tuple, i64 %i, ptr %object)
  %next = add i64 %i, 1
  br label %head
done:
  ret ptr %tuple
}

; A Tensor around every Buffer in %outs, whose references it takes over: the Tensor, or a tuple of
; several; null: raised. The note belongs to the first result; the others (indices and such) carry
; none.
define internal ptr @make_tensors(ptr %outs, i64 %n, ptr %note) alwaysinline {
entry:
  %class = load ptr, ptr @tensor_type
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %fill ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %all
body:
  %tensor = call ptr @PyType_GenericAlloc(ptr %class, i64 0)
  %failed = icmp eq ptr %tensor, null
  br i1 %failed, label %drop, label %fill
fill:
  %buffer = call ptr @pointer(ptr %outs, i64 %i)
  call void @set_slot(ptr %tensor, i64 {{tensor_data}}, ptr %buffer)
  %is_first = icmp eq i64 %i, 0
  %its_note = select i1 %is_first, ptr %note, ptr @_Py_NoneStruct
  call void @Py_IncRef(ptr %its_note)
  call void @set_slot(ptr %tensor, i64 {{tensor_note}}, ptr %its_note)
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  call void @set_slot(ptr %tensor, i64 {{tensor_leaf}}, ptr @_Py_NoneStruct)
  call void @set_pointer(ptr %outs, i64 %i, ptr %tensor)
  %next = add i64 %i, 1
  br label %head
drop:
  call void @release_all(ptr %outs, i64 %n)
  ret ptr null
all:
  %single = icmp eq i64 %n, 1
  br i1 %single, label %one, label %many
one:
  %only = load ptr, ptr %outs
  ret ptr %only
many:
  %tuple = call ptr @tuple_of(ptr %outs, i64 %n)
  call void @release_all(ptr %outs, i64 %n)
  ret ptr %tuple
}
