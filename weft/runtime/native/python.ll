; What the engine calls of CPython: exported functions only. Object layout is probed when the engine
; starts and substituted here.

declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyObject_Init(ptr, ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare i32 @PyType_IsSubtype(ptr, ptr)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare i32 @PyObject_IsTrue(ptr)
declare ptr @PyTuple_New(i64)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_FromVoidPtr(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare i64 @PyLong_AsUnsignedLongLong(ptr)
declare double @PyFloat_AsDouble(ptr)
declare i32 @PyContextVar_Get(ptr, ptr, ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare void @PyErr_SetString(ptr, ptr)
declare ptr @PyErr_NoMemory()
declare i32 @PyErr_CheckSignals()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i64 @PyThread_get_thread_ident()

@_Py_NoneStruct = external global i8
@_Py_FalseStruct = external global i8
@PyFloat_Type = external global i8
@PyLong_Type = external global i8
@PyExc_TypeError = external global ptr
@PyExc_SystemError = external global ptr

; Given once by Engine, which keeps every one of them alive.
@tensor_type = global ptr null
@buffer_type = global ptr null
@note_type = global ptr null
@plan_type = global ptr null
@block_type = global ptr null
@grad_mode = global ptr null     ; ContextVar: is this context recording?
@resolve_keep = global ptr null  ; resolve_keep(plan): writes the keep mask
@on_error = global ptr null      ; on_error(plan, status, detail, args): raises

define internal ptr @slot(ptr %object, i64 %offset) alwaysinline {
  %at = getelementptr i8, ptr %object, i64 %offset
  %found = load ptr, ptr %at
  ret ptr %found
}

; Only for slots of fresh objects, which hold nothing yet. The object takes over the reference.
define internal void @set_slot(ptr %object, i64 %offset, ptr %value) alwaysinline {
  %at = getelementptr i8, ptr %object, i64 %offset
  store ptr %value, ptr %at
  ret void
}

define internal ptr @type_of(ptr %object) alwaysinline {
  %type = call ptr @slot(ptr %object, i64 {{object_type}})
  ret ptr %type
}

define internal i1 @is_a(ptr %object, ptr %type) alwaysinline {
  %its = call ptr @type_of(ptr %object)
  %exact = icmp eq ptr %its, %type
  br i1 %exact, label %yes, label %maybe
maybe:
  %subtype = call i32 @PyType_IsSubtype(ptr %its, ptr %type)
  %is = icmp ne i32 %subtype, 0
  ret i1 %is
yes:
  ret i1 true
}

define internal ptr @item(ptr %tuple, i64 %i) alwaysinline {
  %items = getelementptr i8, ptr %tuple, i64 {{tuple_items}}
  %at = getelementptr ptr, ptr %items, i64 %i
  %found = load ptr, ptr %at
  ret ptr %found
}

; As PyTuple_SET_ITEM: the tuple is fresh and takes over the reference.
define internal void @set_item(ptr %tuple, i64 %i, ptr %value) alwaysinline {
  %items = getelementptr i8, ptr %tuple, i64 {{tuple_items}}
  %at = getelementptr ptr, ptr %items, i64 %i
  store ptr %value, ptr %at
  ret void
}

define internal ptr @kept(ptr %object) alwaysinline {
  call void @Py_IncRef(ptr %object)
  ret ptr %object
}

; i64 words of plans, frames and phases
define internal i64 @word(ptr %words, i64 %n) alwaysinline {
  %at = getelementptr i64, ptr %words, i64 %n
  %found = load i64, ptr %at
  ret i64 %found
}

define internal ptr @pointer(ptr %words, i64 %n) alwaysinline {
  %at = getelementptr i64, ptr %words, i64 %n
  %found = load ptr, ptr %at
  ret ptr %found
}

define internal void @set_word(ptr %words, i64 %n, i64 %value) alwaysinline {
  %at = getelementptr i64, ptr %words, i64 %n
  store i64 %value, ptr %at
  ret void
}

define internal void @set_pointer(ptr %words, i64 %n, ptr %value) alwaysinline {
  %at = getelementptr i64, ptr %words, i64 %n
  store ptr %value, ptr %at
  ret void
}
