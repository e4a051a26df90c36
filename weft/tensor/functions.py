"""The functions on tensors, by name: what this room takes from the array API standard (2024.12), and a few more."""

from weft.tensor.dtypes import (
    astype as astype,
)
from weft.tensor.dtypes import (
    can_cast as can_cast,
)
from weft.tensor.dtypes import (
    finfo as finfo,
)
from weft.tensor.dtypes import (
    iinfo as iinfo,
)
from weft.tensor.dtypes import (
    isdtype as isdtype,
)
from weft.tensor.dtypes import (
    result_type as result_type,
)
from weft.tensor.elementwise import (
    abs as abs,
)
from weft.tensor.elementwise import (
    acos as acos,
)
from weft.tensor.elementwise import (
    acosh as acosh,
)
from weft.tensor.elementwise import (
    add as add,
)
from weft.tensor.elementwise import (
    asin as asin,
)
from weft.tensor.elementwise import (
    asinh as asinh,
)
from weft.tensor.elementwise import (
    atan as atan,
)
from weft.tensor.elementwise import (
    atan2 as atan2,
)
from weft.tensor.elementwise import (
    atanh as atanh,
)
from weft.tensor.elementwise import (
    bitwise_and as bitwise_and,
)
from weft.tensor.elementwise import (
    bitwise_invert as bitwise_invert,
)
from weft.tensor.elementwise import (
    bitwise_left_shift as bitwise_left_shift,
)
from weft.tensor.elementwise import (
    bitwise_or as bitwise_or,
)
from weft.tensor.elementwise import (
    bitwise_right_shift as bitwise_right_shift,
)
from weft.tensor.elementwise import (
    bitwise_xor as bitwise_xor,
)
from weft.tensor.elementwise import (
    ceil as ceil,
)
from weft.tensor.elementwise import (
    clip as clip,
)
from weft.tensor.elementwise import (
    copysign as copysign,
)
from weft.tensor.elementwise import (
    cos as cos,
)
from weft.tensor.elementwise import (
    cosh as cosh,
)
from weft.tensor.elementwise import (
    digamma as digamma,
)
from weft.tensor.elementwise import (
    divide as divide,
)
from weft.tensor.elementwise import (
    equal as equal,
)
from weft.tensor.elementwise import (
    erf as erf,
)
from weft.tensor.elementwise import (
    erfc as erfc,
)
from weft.tensor.elementwise import (
    erfinv as erfinv,
)
from weft.tensor.elementwise import (
    exp as exp,
)
from weft.tensor.elementwise import (
    exp2 as exp2,
)
from weft.tensor.elementwise import (
    expm1 as expm1,
)
from weft.tensor.elementwise import (
    floor as floor,
)
from weft.tensor.elementwise import (
    floor_divide as floor_divide,
)
from weft.tensor.elementwise import (
    fma as fma,
)
from weft.tensor.elementwise import (
    greater as greater,
)
from weft.tensor.elementwise import (
    greater_equal as greater_equal,
)
from weft.tensor.elementwise import (
    hypot as hypot,
)
from weft.tensor.elementwise import (
    isfinite as isfinite,
)
from weft.tensor.elementwise import (
    isinf as isinf,
)
from weft.tensor.elementwise import (
    isnan as isnan,
)
from weft.tensor.elementwise import (
    lerp as lerp,
)
from weft.tensor.elementwise import (
    less as less,
)
from weft.tensor.elementwise import (
    less_equal as less_equal,
)
from weft.tensor.elementwise import (
    lgamma as lgamma,
)
from weft.tensor.elementwise import (
    log as log,
)
from weft.tensor.elementwise import (
    log1p as log1p,
)
from weft.tensor.elementwise import (
    log2 as log2,
)
from weft.tensor.elementwise import (
    log10 as log10,
)
from weft.tensor.elementwise import (
    logaddexp as logaddexp,
)
from weft.tensor.elementwise import (
    logical_and as logical_and,
)
from weft.tensor.elementwise import (
    logical_not as logical_not,
)
from weft.tensor.elementwise import (
    logical_or as logical_or,
)
from weft.tensor.elementwise import (
    logical_xor as logical_xor,
)
from weft.tensor.elementwise import (
    maximum as maximum,
)
from weft.tensor.elementwise import (
    minimum as minimum,
)
from weft.tensor.elementwise import (
    multiply as multiply,
)
from weft.tensor.elementwise import (
    negative as negative,
)
from weft.tensor.elementwise import (
    nextafter as nextafter,
)
from weft.tensor.elementwise import (
    not_equal as not_equal,
)
from weft.tensor.elementwise import (
    positive as positive,
)
from weft.tensor.elementwise import (
    pow as pow,
)
from weft.tensor.elementwise import (
    reciprocal as reciprocal,
)
from weft.tensor.elementwise import (
    relu as relu,
)
from weft.tensor.elementwise import (
    remainder as remainder,
)
from weft.tensor.elementwise import (
    round as round,
)
from weft.tensor.elementwise import (
    rsqrt as rsqrt,
)
from weft.tensor.elementwise import (
    sigmoid as sigmoid,
)
from weft.tensor.elementwise import (
    sign as sign,
)
from weft.tensor.elementwise import (
    signbit as signbit,
)
from weft.tensor.elementwise import (
    sin as sin,
)
from weft.tensor.elementwise import (
    sinh as sinh,
)
from weft.tensor.elementwise import (
    softplus as softplus,
)
from weft.tensor.elementwise import (
    sqrt as sqrt,
)
from weft.tensor.elementwise import (
    square as square,
)
from weft.tensor.elementwise import (
    subtract as subtract,
)
from weft.tensor.elementwise import (
    tan as tan,
)
from weft.tensor.elementwise import (
    tanh as tanh,
)
from weft.tensor.elementwise import (
    trunc as trunc,
)
from weft.tensor.elementwise import (
    where as where,
)
from weft.tensor.products import (
    einsum as einsum,
)
from weft.tensor.products import (
    matmul as matmul,
)
from weft.tensor.products import (
    outer as outer,
)
from weft.tensor.products import (
    tensordot as tensordot,
)
from weft.tensor.products import (
    vecdot as vecdot,
)
from weft.tensor.shapes import (
    broadcast_arrays as broadcast_arrays,
)
from weft.tensor.shapes import (
    broadcast_to as broadcast_to,
)
from weft.tensor.shapes import (
    expand_dims as expand_dims,
)
from weft.tensor.shapes import (
    flatten as flatten,
)
from weft.tensor.shapes import (
    matrix_transpose as matrix_transpose,
)
from weft.tensor.shapes import (
    moveaxis as moveaxis,
)
from weft.tensor.shapes import (
    permute_dims as permute_dims,
)
from weft.tensor.shapes import (
    reshape as reshape,
)
from weft.tensor.shapes import (
    squeeze as squeeze,
)
from weft.tensor.shapes import (
    unstack as unstack,
)
from weft.tensor.statistics import (
    all as all,
)
from weft.tensor.statistics import (
    any as any,
)
from weft.tensor.statistics import (
    argmax as argmax,
)
from weft.tensor.statistics import (
    argmin as argmin,
)
from weft.tensor.statistics import (
    max as max,
)
from weft.tensor.statistics import (
    mean as mean,
)
from weft.tensor.statistics import (
    min as min,
)
from weft.tensor.statistics import (
    prod as prod,
)
from weft.tensor.statistics import (
    std as std,
)
from weft.tensor.statistics import (
    sum as sum,
)
from weft.tensor.statistics import (
    var as var,
)
