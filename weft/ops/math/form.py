"""What the two computing float types are made of, and the pieces every function is built from."""

from __future__ import annotations

from weft.ops.scalar import Scalar
from weft.types.dtype import DType, float32, float64, int32, int64
from weft.types.record import dataclass


@dataclass(frozen=True)
class Form:
    """The layout of a float type and the constants that depend on it alone."""

    dtype: DType
    integer: DType
    mantissa: int  # stored bits
    bias: int
    ln2_high: float  # ln 2 with trailing zeros, so that its product with any exponent is exact
    ln2_low: float

    @property
    def magic(self) -> float:
        """Adding it rounds to an integer, which then stands in the low bits."""
        return 1.5 * 2.0**self.mantissa


_FORMS = {
    float32: Form(float32, int32, 23, 127, 0.693145751953125, 1.42860682e-06),
    float64: Form(float64, int64, 52, 1023, 0.6931471805598903, 5.497923018708371e-14),
}


def form(x: Scalar) -> Form:
    """The form of a float32 or float64 scalar; half types are float32 before they get here."""
    return _FORMS[x.dtype]


def bits(x: Scalar) -> Scalar:
    return x.bitcast(form(x).integer)


def power_of_two(exponent: Scalar, dtype: DType) -> Scalar:
    """2**exponent for an integer scalar in the normal range."""
    f = _FORMS[dtype]
    return ((exponent + f.bias) << f.mantissa).bitcast(dtype)
