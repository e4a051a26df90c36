"""Weft: one program, both kinds of graph, the same bits.

>>> import weft as wf
>>> x = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4., 6.])
"""

import typing as _typing
from math import e as e, inf as inf, nan as nan, pi as pi

from weft import data as data, errors as errors, nn as nn, optim as optim
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
from weft.capture.placeholders import placeholder as placeholder
from weft.capture.primitives import (
    cond as cond,
    fori_loop as fori_loop,
    scan as scan,
    switch as switch,
    while_loop as while_loop,
)
from weft.capture.py_call import py_call as py_call
from weft.compile import build as build, compile as compile, trace as trace
from weft.deploy.state import load as load, save as save
from weft.fit import fit as fit
from weft.modes import (
    function as function,
    mode as mode,
    script as script,
    set_mode as set_mode,
)
from weft.runtime.start import (
    get_num_threads as get_num_threads,
    set_num_threads as set_num_threads,
)
from weft.tensor.creation import (
    arange as arange,
    asarray as asarray,
    empty as empty,
    empty_like as empty_like,
    eye as eye,
    from_dlpack as from_dlpack,
    full as full,
    full_like as full_like,
    linspace as linspace,
    meshgrid as meshgrid,
    one_hot as one_hot,
    ones as ones,
    ones_like as ones_like,
    tensor as tensor,
    tril as tril,
    triu as triu,
    zeros as zeros,
    zeros_like as zeros_like,
)
from weft.tensor.dtypes import (
    astype as astype,
    can_cast as can_cast,
    finfo as finfo,
    iinfo as iinfo,
    isdtype as isdtype,
    result_type as result_type,
)
from weft.tensor.elementwise import (
    abs as abs,
    acos as acos,
    acosh as acosh,
    add as add,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    bitwise_and as bitwise_and,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor,
    ceil as ceil,
    clip as clip,
    copysign as copysign,
    cos as cos,
    cosh as cosh,
    digamma as digamma,
    divide as divide,
    equal as equal,
    erf as erf,
    erfc as erfc,
    erfinv as erfinv,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    floor as floor,
    floor_divide as floor_divide,
    fma as fma,
    greater as greater,
    greater_equal as greater_equal,
    hypot as hypot,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    lerp as lerp,
    less as less,
    less_equal as less_equal,
    lgamma as lgamma,
    log as log,
    log1p as log1p,
    log2 as log2,
    log10 as log10,
    logaddexp as logaddexp,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    negative as negative,
    nextafter as nextafter,
    not_equal as not_equal,
    positive as positive,
    pow as pow,
    reciprocal as reciprocal,
    relu as relu,
    remainder as remainder,
    round as round,
    rsqrt as rsqrt,
    sigmoid as sigmoid,
    sign as sign,
    signbit as signbit,
    sin as sin,
    sinh as sinh,
    softplus as softplus,
    sqrt as sqrt,
    square as square,
    subtract as subtract,
    tan as tan,
    tanh as tanh,
    trunc as trunc,
    where as where,
)
from weft.tensor.elsewhere import no_function as _no_function
from weft.tensor.manipulation import (
    chunk as chunk,
    concat as concat,
    diag as diag,
    diagonal as diagonal,
    diff as diff,
    flip as flip,
    repeat as repeat,
    roll as roll,
    split as split,
    stack as stack,
    tile as tile,
)
from weft.tensor.ordering import (
    argsort as argsort,
    count_nonzero as count_nonzero,
    nonzero as nonzero,
    searchsorted as searchsorted,
    sort as sort,
    topk as topk,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
)
from weft.tensor.products import (
    einsum as einsum,
    matmul as matmul,
    outer as outer,
    tensordot as tensordot,
    vecdot as vecdot,
)
from weft.tensor.random import (
    bernoulli as bernoulli,
    get_rng_state as get_rng_state,
    manual_seed as manual_seed,
    permutation as permutation,
    rand as rand,
    randint as randint,
    randn as randn,
    set_rng_state as set_rng_state,
)
from weft.tensor.running import (
    cumulative_max as cumulative_max,
    cumulative_min as cumulative_min,
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
)
from weft.tensor.selection import (
    index_add as index_add,
    scatter as scatter,
    scatter_add as scatter_add,
    take as take,
    take_along_axis as take_along_axis,
)
from weft.tensor.shapes import (
    broadcast_arrays as broadcast_arrays,
    broadcast_to as broadcast_to,
    expand_dims as expand_dims,
    flatten as flatten,
    matrix_transpose as matrix_transpose,
    moveaxis as moveaxis,
    permute_dims as permute_dims,
    reshape as reshape,
    squeeze as squeeze,
    unstack as unstack,
)
from weft.tensor.statistics import (
    all as all,
    any as any,
    argmax as argmax,
    argmin as argmin,
    max as max,
    mean as mean,
    min as min,
    prod as prod,
    std as std,
    sum as sum,
    var as var,
)
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

newaxis = None
__version__ = "0.1.0"

if not _typing.TYPE_CHECKING:  # a checker should see what is there

    def __getattr__(name):
        raise _no_function(name)
