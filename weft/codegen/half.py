"""float16 conversions for machines without an instruction for them.

LLVM calls these two by name where the target lacks F16C. They round to nearest even, keep NaN
payloads' leading bits and quiet them, as the instruction does.
"""

from __future__ import annotations

SOFT = """
define weak half @__truncsfhf2(float %x) {
  %bits = bitcast float %x to i32
  %sign = and i32 %bits, -2147483648
  %size = and i32 %bits, 2147483647
  %odd = lshr i32 %size, 13
  %last = and i32 %odd, 1
  %up = add i32 %last, 4095
  %near = add i32 %size, %up
  %rebased = sub i32 %near, 939524096
  %normal = lshr i32 %rebased, 13
  %positive = bitcast i32 %size to float
  %pushed = fadd float %positive, 5.0e-01
  %pushedbits = bitcast float %pushed to i32
  %denormal = sub i32 %pushedbits, 1056964608
  %small = icmp ult i32 %size, 947912704
  %finite = select i1 %small, i32 %denormal, i32 %normal
  %large = icmp uge i32 %size, 1199566848
  %bounded = select i1 %large, i32 31744, i32 %finite
  %payload = and i32 %odd, 1023
  %quiet = or i32 %payload, 32256
  %isnan = icmp ugt i32 %size, 2139095040
  %any = select i1 %isnan, i32 %quiet, i32 %bounded
  %signbit = lshr i32 %sign, 16
  %whole = or i32 %any, %signbit
  %half = trunc i32 %whole to i16
  %out = bitcast i16 %half to half
  ret half %out
}

define weak float @__extendhfsf2(half %x) {
  %half = bitcast half %x to i16
  %bits = zext i16 %half to i32
  %size = and i32 %bits, 32767
  %placed = shl i32 %size, 13
  %normal = add i32 %placed, 939524096
  %special = add i32 %placed, 1879048192
  %isnan = icmp ugt i32 %size, 31744
  %quiet = or i32 %special, 4194304
  %infinite = select i1 %isnan, i32 %quiet, i32 %special
  %raised = add i32 %placed, 947912704
  %raisedfloat = bitcast i32 %raised to float
  %lowered = fsub float %raisedfloat, 0x3F10000000000000
  %denormal = bitcast float %lowered to i32
  %small = icmp ult i32 %size, 1024
  %finite = select i1 %small, i32 %denormal, i32 %normal
  %large = icmp uge i32 %size, 31744
  %any = select i1 %large, i32 %infinite, i32 %finite
  %signbit = and i32 %bits, 32768
  %sign = shl i32 %signbit, 16
  %whole = or i32 %any, %sign
  %out = bitcast i32 %whole to float
  ret float %out
}
"""
