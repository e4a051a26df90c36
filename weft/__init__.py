"""Weft: one program, both kinds of graph, the same bits.

>>> import weft as wf
>>> x = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4., 6.])
"""

from weft import errors as errors
from weft.autodiff import (
    checkpoint as checkpoint,
    custom_vjp as custom_vjp,
    enable_grad as enable_grad,
    grad as grad,
    gradcheck as gradcheck,
    hessian as hessian,
    jacobian as jacobian,
    jvp as jvp,
    no_grad as no_grad,
    value_and_grad as value_and_grad,
    vjp as vjp,
)
from weft.runtime.start import get_num_threads as get_num_threads
from weft.runtime.start import set_num_threads as set_num_threads
from weft.tensor.creation import *  # noqa: F403
from weft.tensor.functions import *  # noqa: F403
from weft.tensor.tensor import Tensor as Tensor
from weft.types.dim import Dim as Dim
from weft.types.dtype import (
    DType as DType,
    bfloat16 as bfloat16,
    bool_ as bool,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
