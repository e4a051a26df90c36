"""Keys whose unsigned order is the order elements are sorted in, and items: a key with the
element's index or without.
"""

from __future__ import annotations

from weft.codegen.extern import Kernel
from weft.codegen.text import Value, element_of, i64, lanes_of, vector
from weft.types.dtype import DType
from weft.types.record import dataclass

#: bits of the mantissa, to know infinity's bits
_MANTISSA = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}


def constant(type_: str, n: int) -> Value:
    """An integer, in every lane."""
    lanes, element = lanes_of(type_), element_of(type_)
    return Value(type_, str(n) if lanes == 1 else f"splat ({element} {n})")


@dataclass(frozen=True)
class Order:
    """Ascending, or descending, order of a dtype.

    A float's key is its bits with the sign turned, negative ones turned whole; -0.0 has 0.0's and
    NaNs have the largest. Descending keys are complements. Keys are i32, or i64 for dtypes of 64
    bits.
    """

    dtype: DType
    descending: bool

    @property
    def raw(self) -> str:
        """The type that elements are read as."""
        return f"i{self.dtype.bits}"

    @property
    def key_bits(self) -> int:
        return 64 if self.dtype.bits == 64 else 32

    @property
    def key_type(self) -> str:
        return f"i{self.key_bits}"

    def key(self, t: Kernel, x: Value) -> tuple[Value, Value]:
        """The keys of elements' bits, and which elements share theirs with others of different bits
        (-0.0 and NaN).
        """
        lanes, bits = lanes_of(x.type), self.dtype.bits
        sign, ones = constant(x.type, -(1 << (bits - 1))), constant(x.type, -1)
        odd = constant(vector("i1", lanes), 0)
        if self.dtype.is_float:
            mantissa = _MANTISSA[self.dtype.short]
            infinity = (1 << (bits - 1)) - (1 << mantissa)
            size = t.op("and", x, constant(x.type, (1 << (bits - 1)) - 1))
            nan = t.compare("icmp ugt", size, constant(x.type, infinity))
            minus = t.compare("icmp eq", x, sign)
            odd = t.op("or", nan, minus)
            turn = t.op("or", t.op("ashr", x, constant(x.type, bits - 1)), sign)
            x = t.select(minus, sign, t.op("xor", x, turn))
            x = t.select(nan, ones, x)
        elif self.dtype.kind == "i":
            x = t.op("xor", x, sign)
        if self.descending:
            x = t.op("xor", x, ones)
        return (
            t.convert("zext", x, vector(self.key_type, lanes)) if bits < self.key_bits else x
        ), odd

    def element(self, t: Kernel, key: Value) -> Value:
        """The bits of an element with this key."""
        x = t.convert("trunc", key, self.raw) if self.dtype.bits < self.key_bits else key
        sign, ones = constant(self.raw, -(1 << (self.dtype.bits - 1))), constant(self.raw, -1)
        if self.descending:
            x = t.op("xor", x, ones)
        if self.dtype.is_float:
            positive = t.op("ashr", x, constant(self.raw, self.dtype.bits - 1))
            return t.op("xor", x, t.op("or", t.op("xor", positive, ones), sign))
        return t.op("xor", x, sign) if self.dtype.kind == "i" else x

    @property
    def shared_keys(self) -> tuple[Value, Value]:
        """The keys of zeros and of NaNs."""
        ones = (1 << self.dtype.bits) - 1
        zero = 1 << (self.dtype.bits - 1)
        return tuple(
            Value(self.key_type, str(n ^ ones if self.descending else n)) for n in (zero, ones)
        )  # type: ignore[return-value]


@dataclass(frozen=True)
class Items:
    """How keys are kept while they are sorted. With indices: i64 with the key on top, or a pair of
    i64 for 64-bit keys.
    """

    order: Order
    indices: bool

    @property
    def type(self) -> str:
        if not self.indices:
            return self.order.key_type
        return "i64" if self.order.key_bits == 32 else "<2 x i64>"

    @property
    def bytes(self) -> int:
        return self.order.key_bits // 8 * (2 if self.indices else 1)

    def make(self, t: Kernel, key: Value, index: Value) -> Value:
        if not self.indices:
            return key
        if self.order.key_bits == 32:
            return t.op("or", t.op("shl", t.convert("zext", key, "i64"), i64(32)), index)
        half = t.let(self.type, f"insertelement {self.type} poison, {key}, i64 0")
        return t.let(self.type, f"insertelement {half}, {index}, i64 1")

    def key(self, t: Kernel, item: Value) -> Value:
        if not self.indices:
            return item
        if self.order.key_bits == 32:
            return t.convert("trunc", t.op("lshr", item, i64(32)), "i32")
        return t.let("i64", f"extractelement {item}, i64 0")

    def index(self, t: Kernel, item: Value) -> Value:
        if self.order.key_bits == 32:
            return t.op("and", item, i64(0xFFFFFFFF))
        return t.let("i64", f"extractelement {item}, i64 1")

    def get(self, t: Kernel, base: Value, at: Value) -> Value:
        return t.load(self.type, t.at(base, self.type, at), self.bytes)

    def put(self, t: Kernel, item: Value, base: Value, at: Value) -> None:
        t.store(item, t.at(base, self.type, at), self.bytes)

    def digit(self, t: Kernel, item: Value, shift: Value, bits: int) -> Value:
        """Bits shift .. shift + bits - 1 of the key, as i64."""
        key = self.key(t, item)
        wide = key if key.type == "i64" else t.convert("zext", key, "i64")
        return t.op("and", t.op("lshr", wide, shift), i64((1 << bits) - 1))
