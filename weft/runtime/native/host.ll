; A call of Python in a program: the step's first operand is the object to call, which is told where
; the others are. A program without the GIL takes it for as long.
define i64 @host_call(ptr %frame, i64 %lo, i64 %hi, i64 %worker) {
entry:
  %thread = call ptr @pointer(ptr %frame, i64 {{frame_thread}})
  %held = icmp eq ptr %thread, null
  br i1 %held, label %ask, label %take
take:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %ask
ask:
  %callable = call ptr @pointer(ptr %frame, i64 3)
  %operands = getelementptr i64, ptr %frame, i64 4
  %where = call ptr @PyLong_FromVoidPtr(ptr %operands)
  %no_number = icmp eq ptr %where, null
  br i1 %no_number, label %asked, label %call
call:
  %given = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %callable, ptr %where, ptr null)
  call void @Py_DecRef(ptr %where)
  call void @Py_DecRef(ptr %given)
  br label %asked
asked:
  %answer = phi ptr [ null, %ask ], [ %given, %call ]
  br i1 %held, label %done, label %give_back
give_back:
  %thread2 = call ptr @PyEval_SaveThread()
  call void @set_pointer(ptr %frame, i64 {{frame_thread}}, ptr %thread2)
  br label %done
done:
  %failed = icmp eq ptr %answer, null
  %status = select i1 %failed, i64 {{status_raised}}, i64 0
  ret i64 %status
}
