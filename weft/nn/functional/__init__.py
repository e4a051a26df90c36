"""Functions of neural networks, by PyTorch's names: `import weft.nn.functional as F`."""

from weft.nn.functional.activation import (
    celu as celu,
    elu as elu,
    gelu as gelu,
    glu as glu,
    hardshrink as hardshrink,
    hardsigmoid as hardsigmoid,
    hardswish as hardswish,
    hardtanh as hardtanh,
    leaky_relu as leaky_relu,
    log_softmax as log_softmax,
    logsigmoid as logsigmoid,
    logsumexp as logsumexp,
    mish as mish,
    prelu as prelu,
    relu as relu,
    relu6 as relu6,
    selu as selu,
    sigmoid as sigmoid,
    silu as silu,
    softmax as softmax,
    softplus as softplus,
    softshrink as softshrink,
    softsign as softsign,
    tanh as tanh,
    tanhshrink as tanhshrink,
    threshold as threshold,
)
from weft.nn.functional.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from weft.nn.functional.convolution import (
    conv1d as conv1d,
    conv2d as conv2d,
    conv_transpose1d as conv_transpose1d,
    conv_transpose2d as conv_transpose2d,
)
from weft.nn.functional.linear import (
    bilinear as bilinear,
    dropout as dropout,
    dropout1d as dropout1d,
    dropout2d as dropout2d,
    embedding as embedding,
    linear as linear,
    one_hot as one_hot,
    pad as pad,
)
from weft.nn.functional.loss import (
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cross_entropy as cross_entropy,
    huber_loss as huber_loss,
    kl_div as kl_div,
    l1_loss as l1_loss,
    mse_loss as mse_loss,
    nll_loss as nll_loss,
    smooth_l1_loss as smooth_l1_loss,
)
from weft.nn.functional.normalization import (
    batch_norm as batch_norm,
    cosine_similarity as cosine_similarity,
    group_norm as group_norm,
    instance_norm as instance_norm,
    layer_norm as layer_norm,
    normalize as normalize,
    rms_norm as rms_norm,
)
from weft.nn.functional.pooling import (
    adaptive_avg_pool1d as adaptive_avg_pool1d,
    adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool2d as adaptive_max_pool2d,
    avg_pool1d as avg_pool1d,
    avg_pool2d as avg_pool2d,
    max_pool1d as max_pool1d,
    max_pool2d as max_pool2d,
)
from weft.nn.functional.resizing import (
    interpolate as interpolate,
    pixel_shuffle as pixel_shuffle,
    pixel_unshuffle as pixel_unshuffle,
)
