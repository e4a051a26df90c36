"""How values of the thirteen dtypes are held: bool is i1; float16 and bfloat16 are their bits
(i16), since ops compute in float32 and only convert.
"""

from __future__ import annotations

import struct

import numpy as np

from weft.codegen.text import Text, Value, element_of, lanes_of, vector
from weft.types.dtype import DType, bool_

_NAMES = {"f64": "double", "f32": "float", "f16": "i16", "bf16": "i16", "bool": "i1"}


def register(dtype: DType, lanes: int = 1) -> str:
    """The LLVM type that holds `lanes` values of `dtype` in a register."""
    return vector(_NAMES.get(dtype.short, f"i{dtype.bits}"), lanes)


def memory(dtype: DType, lanes: int = 1) -> str:
    """The same in memory, where bool is a byte."""
    return vector("i8", lanes) if dtype is bool_ else register(dtype, lanes)


def constant(type_: str, number: str, lanes: int) -> Value:
    """A number of that element type in every lane."""
    if lanes == 1:
        return Value(type_, number)
    return Value(vector(type_, lanes), f"splat ({type_} {number})")


def literal(value: bool | int | float, dtype: DType, lanes: int) -> Value:
    """`value` as a constant."""
    if dtype.is_float and dtype.bits < 32:  # held as its bits
        number = str(np.asarray(value).astype(dtype.np).view(np.int16))
    elif dtype.is_float:  # LLVM spells a float, too, as a double's bits
        number = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    else:
        number = str(int(value))
    return constant(register(dtype), number, lanes)


def intrinsic(t: Text, name: str, *args: Value) -> Value:
    """Call `llvm.<name>` overloaded on the type of its arguments."""
    lanes, element = lanes_of(args[0].type), element_of(args[0].type)
    suffix = {"float": "f32", "double": "f64"}.get(element, element)
    return t.call(args[0].type, f"llvm.{name}.{f'v{lanes}' if lanes > 1 else ''}{suffix}", *args)
