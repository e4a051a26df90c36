"""What a value is: dtype, dimensions, tensor type, promotion."""

from weft.types.dim import Dim as Dim
from weft.types.dtype import DTYPES as DTYPES
from weft.types.dtype import DType as DType
from weft.types.dtype import as_dtype as as_dtype
from weft.types.promotion import result_dtype as result_dtype
from weft.types.tensor_type import Shape as Shape
from weft.types.tensor_type import TensorType as TensorType
from weft.types.tensor_type import broadcast_shapes as broadcast_shapes
from weft.types.tensor_type import normalize_axes as normalize_axes
from weft.types.tensor_type import normalize_axis as normalize_axis
