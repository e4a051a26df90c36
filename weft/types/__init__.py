"""What a value is: dtype, dimensions, tensor type, promotion."""

from weft.types.dim import Dim as Dim
from weft.types.dtype import DTYPES as DTYPES, DType as DType, as_dtype as as_dtype
from weft.types.promotion import result_dtype as result_dtype
from weft.types.tensor_type import (
    Shape as Shape,
    TensorType as TensorType,
    broadcast_shapes as broadcast_shapes,
    normalize_axes as normalize_axes,
    normalize_axis as normalize_axis,
)
