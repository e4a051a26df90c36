; Python numbers as operands: a float, int or bool becomes the bits of a dtype in an 8-byte slot.

; The least and greatest value of each dtype, in the order of weft.types.DTYPES; used for the
; integer ones.
@least = internal constant [13 x i64] [
  i64 0, i64 0, i64 0, i64 0,
  i64 -9223372036854775808, i64 -2147483648, i64 -32768, i64 -128,
  i64 0, i64 0, i64 0, i64 0, i64 0]
@greatest = internal constant [13 x i64] [
  i64 0, i64 0, i64 0, i64 0,
  i64 9223372036854775807, i64 2147483647, i64 32767, i64 127,
  i64 9223372036854775807, i64 4294967295, i64 65535, i64 255, i64 1]

; 0, or why not: {{status_scalar}} the dtype cannot hold the number, {{status_argument}} it is no
; number of this kind.
define internal i64 @scalar(ptr %number, i64 %dtype, ptr %slot) noinline {
  switch i64 %dtype, label %integer [
    i64 0, label %real
    i64 1, label %real
    i64 2, label %real
    i64 3, label %real
    i64 12, label %truth
  ]

real:
  %is_float = call i1 @is_a(ptr %number, ptr @PyFloat_Type)
  br i1 %is_float, label %as_double, label %maybe_int
maybe_int:
  %is_int = call i1 @is_a(ptr %number, ptr @PyLong_Type)
  br i1 %is_int, label %as_double, label %wrong
as_double:
  %x = call double @PyFloat_AsDouble(ptr %number)
  %suspect = fcmp oeq double %x, -1.0
  br i1 %suspect, label %look, label %converted
look:
  %error = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %error, null
  br i1 %raised, label %overflow, label %converted
converted:
  %mode = call i32 @enter_float_mode()
  call void @store_float(double %x, i64 %dtype, ptr %slot)
  call void @leave_float_mode(i32 %mode)
  ret i64 0

truth:
  %numeric = call i1 @is_number(ptr %number)
  br i1 %numeric, label %ask, label %wrong
ask:
  %true = call i32 @PyObject_IsTrue(ptr %number)
  %wide = zext i32 %true to i64
  store i64 %wide, ptr %slot
  ret i64 0

integer:
  %whole = call i1 @is_a(ptr %number, ptr @PyLong_Type)
  br i1 %whole, label %as_int, label %wrong
as_int:
  %flag = alloca i32
  %n = call i64 @PyLong_AsLongLongAndOverflow(ptr %number, ptr %flag)
  %beyond = load i32, ptr %flag
  %in_word = icmp eq i32 %beyond, 0
  br i1 %in_word, label %range, label %unsigned
range:
  %low_at = getelementptr i64, ptr @least, i64 %dtype
  %high_at = getelementptr i64, ptr @greatest, i64 %dtype
  %low = load i64, ptr %low_at
  %high = load i64, ptr %high_at
  %above = icmp sge i64 %n, %low
  %below = icmp sle i64 %n, %high
  %fits = and i1 %above, %below
  store i64 %n, ptr %slot
  %verdict = select i1 %fits, i64 0, i64 {{status_scalar}}
  ret i64 %verdict
unsigned:  ; past int64: only uint64 may hold it
  %is_u64 = icmp eq i64 %dtype, 8
  %positive = icmp sgt i32 %beyond, 0
  %possible = and i1 %is_u64, %positive
  br i1 %possible, label %as_unsigned, label %too_large
as_unsigned:
  %u = call i64 @PyLong_AsUnsignedLongLong(ptr %number)
  store i64 %u, ptr %slot
  %error2 = call ptr @PyErr_Occurred()
  %raised2 = icmp ne ptr %error2, null
  br i1 %raised2, label %overflow, label %fine
fine:
  ret i64 0

overflow:
  call void @PyErr_Clear()
  br label %too_large
too_large:
  ret i64 {{status_scalar}}
wrong:
  ret i64 {{status_argument}}
}

define internal i1 @is_number(ptr %object) {
  %is_int = call i1 @is_a(ptr %object, ptr @PyLong_Type)
  br i1 %is_int, label %yes, label %maybe
maybe:
  %is_float = call i1 @is_a(ptr %object, ptr @PyFloat_Type)
  ret i1 %is_float
yes:
  ret i1 true
}

; A function with an effect, so that the arithmetic stays between the changes of mode around the
; call.
define internal void @store_float(double %x, i64 %dtype, ptr %slot) noinline {
  %bits = call i64 @float_bits(double %x, i64 %dtype)
  store i64 %bits, ptr %slot
  ret void
}

; The bits of a double in float64, float32, float16 or bfloat16, rounded once.
define internal i64 @float_bits(double %x, i64 %dtype) {
  switch i64 %dtype, label %as_double [
    i64 1, label %as_single
    i64 2, label %as_half
    i64 3, label %as_bfloat
  ]
as_double:
  %d = bitcast double %x to i64
  ret i64 %d
as_single:
  %s = call i64 @single_bits(double %x)
  ret i64 %s
as_half:
  ; 2**-112 moves float16's exponents, subnormal ones too, to where float32 has them
  %h = call double @round_to(double %x, i64 10, i64 1009)
  %h_single = fptrunc double %h to float
  %h_moved = fmul float %h_single, 0x38F0000000000000
  %h_word = bitcast float %h_moved to i32
  %h_down = lshr i32 %h_word, 13
  %h_magnitude = and i32 %h_down, 32767
  %h_absolute = call double @llvm.fabs.f64(double %h)
  %h_infinite = fcmp oge double %h_absolute, 65536.0
  %h_nan = fcmp uno double %h, 0.0
  %h_or_infinity = select i1 %h_infinite, i32 31744, i32 %h_magnitude
  %h_or_nan = select i1 %h_nan, i32 32256, i32 %h_or_infinity
  %h_bits = bitcast float %h_single to i32
  %h_sign = lshr i32 %h_bits, 16
  %h_negative = and i32 %h_sign, 32768
  %h_result = or i32 %h_or_nan, %h_negative
  %h_wide = zext i32 %h_result to i64
  ret i64 %h_wide
as_bfloat:
  %b = call double @round_to(double %x, i64 7, i64 897)
  %b_bits = call i64 @single_bits(double %b)
  %b_top = lshr i64 %b_bits, 16
  ret i64 %b_top
}

define internal i64 @single_bits(double %x) {
  %single = fptrunc double %x to float
  %bits = bitcast float %single to i32
  %wide = zext i32 %bits to i64
  ret i64 %wide
}

; %x rounded to the nearest number with %bits of fraction and no exponent below %least (biased as a
; double's). Adding and subtracting 1.5 * 2**52 units of the last place makes the addition round
; there.
define internal double @round_to(double %x, i64 %bits, i64 %least) {
  %word = bitcast double %x to i64
  %shifted = lshr i64 %word, 52
  %exponent = and i64 %shifted, 2047
  %special = icmp eq i64 %exponent, 2047
  br i1 %special, label %as_is, label %round
as_is:
  ret double %x
round:
  %at_least = call i64 @llvm.umax.i64(i64 %exponent, i64 %least)
  ; larger is infinite anyway, and must not overflow here
  %capped = call i64 @llvm.umin.i64(i64 %at_least, i64 1200)
  %unit = sub i64 %capped, %bits
  %magic_exponent = add i64 %unit, 52
  %placed = shl i64 %magic_exponent, 52
  %magic_word = or i64 %placed, 2251799813685248
  %magic = bitcast i64 %magic_word to double
  %there = fadd double %x, %magic
  %rounded = fsub double %there, %magic
  %signed = call double @llvm.copysign.f64(double %rounded, double %x)  ; -0.0 stays
  ret double %signed
}
declare double @llvm.fabs.f64(double)
declare double @llvm.copysign.f64(double, double)
declare i64 @llvm.umin.i64(i64, i64)
