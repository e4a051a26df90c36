"""Functions of neural networks, by PyTorch's names: `import weft.nn.functional as F`."""

from weft.nn.functional.activation import (
    celu as celu,
)
from weft.nn.functional.activation import (
    elu as elu,
)
from weft.nn.functional.activation import (
    gelu as gelu,
)
from weft.nn.functional.activation import (
    glu as glu,
)
from weft.nn.functional.activation import (
    hardshrink as hardshrink,
)
from weft.nn.functional.activation import (
    hardsigmoid as hardsigmoid,
)
from weft.nn.functional.activation import (
    hardswish as hardswish,
)
from weft.nn.functional.activation import (
    hardtanh as hardtanh,
)
from weft.nn.functional.activation import (
    leaky_relu as leaky_relu,
)
from weft.nn.functional.activation import (
    log_softmax as log_softmax,
)
from weft.nn.functional.activation import (
    logsigmoid as logsigmoid,
)
from weft.nn.functional.activation import (
    logsumexp as logsumexp,
)
from weft.nn.functional.activation import (
    mish as mish,
)
from weft.nn.functional.activation import (
    prelu as prelu,
)
from weft.nn.functional.activation import (
    relu as relu,
)
from weft.nn.functional.activation import (
    relu6 as relu6,
)
from weft.nn.functional.activation import (
    selu as selu,
)
from weft.nn.functional.activation import (
    sigmoid as sigmoid,
)
from weft.nn.functional.activation import (
    silu as silu,
)
from weft.nn.functional.activation import (
    softmax as softmax,
)
from weft.nn.functional.activation import (
    softplus as softplus,
)
from weft.nn.functional.activation import (
    softshrink as softshrink,
)
from weft.nn.functional.activation import (
    softsign as softsign,
)
from weft.nn.functional.activation import (
    tanh as tanh,
)
from weft.nn.functional.activation import (
    tanhshrink as tanhshrink,
)
from weft.nn.functional.activation import (
    threshold as threshold,
)
from weft.nn.functional.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from weft.nn.functional.convolution import (
    conv1d as conv1d,
)
from weft.nn.functional.convolution import (
    conv2d as conv2d,
)
from weft.nn.functional.convolution import (
    conv_transpose1d as conv_transpose1d,
)
from weft.nn.functional.convolution import (
    conv_transpose2d as conv_transpose2d,
)
from weft.nn.functional.linear import (
    bilinear as bilinear,
)
from weft.nn.functional.linear import (
    dropout as dropout,
)
from weft.nn.functional.linear import (
    dropout1d as dropout1d,
)
from weft.nn.functional.linear import (
    dropout2d as dropout2d,
)
from weft.nn.functional.linear import (
    embedding as embedding,
)
from weft.nn.functional.linear import (
    linear as linear,
)
from weft.nn.functional.linear import (
    one_hot as one_hot,
)
from weft.nn.functional.linear import (
    pad as pad,
)
from weft.nn.functional.loss import (
    binary_cross_entropy as binary_cross_entropy,
)
from weft.nn.functional.loss import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from weft.nn.functional.loss import (
    cross_entropy as cross_entropy,
)
from weft.nn.functional.loss import (
    huber_loss as huber_loss,
)
from weft.nn.functional.loss import (
    kl_div as kl_div,
)
from weft.nn.functional.loss import (
    l1_loss as l1_loss,
)
from weft.nn.functional.loss import (
    mse_loss as mse_loss,
)
from weft.nn.functional.loss import (
    nll_loss as nll_loss,
)
from weft.nn.functional.loss import (
    smooth_l1_loss as smooth_l1_loss,
)
from weft.nn.functional.normalization import (
    batch_norm as batch_norm,
)
from weft.nn.functional.normalization import (
    cosine_similarity as cosine_similarity,
)
from weft.nn.functional.normalization import (
    group_norm as group_norm,
)
from weft.nn.functional.normalization import (
    instance_norm as instance_norm,
)
from weft.nn.functional.normalization import (
    layer_norm as layer_norm,
)
from weft.nn.functional.normalization import (
    normalize as normalize,
)
from weft.nn.functional.normalization import (
    rms_norm as rms_norm,
)
from weft.nn.functional.pooling import (
    adaptive_avg_pool1d as adaptive_avg_pool1d,
)
from weft.nn.functional.pooling import (
    adaptive_avg_pool2d as adaptive_avg_pool2d,
)
from weft.nn.functional.pooling import (
    adaptive_max_pool1d as adaptive_max_pool1d,
)
from weft.nn.functional.pooling import (
    adaptive_max_pool2d as adaptive_max_pool2d,
)
from weft.nn.functional.pooling import (
    avg_pool1d as avg_pool1d,
)
from weft.nn.functional.pooling import (
    avg_pool2d as avg_pool2d,
)
from weft.nn.functional.pooling import (
    max_pool1d as max_pool1d,
)
from weft.nn.functional.pooling import (
    max_pool2d as max_pool2d,
)
