"""Neural networks: functions, modules, losses."""

from weft.nn import functional as functional, init as init, utils as utils
from weft.nn.activation import (
    CELU as CELU,
    ELU as ELU,
    GELU as GELU,
    GLU as GLU,
    SELU as SELU,
    Dropout as Dropout,
    Dropout1d as Dropout1d,
    Dropout2d as Dropout2d,
    Hardshrink as Hardshrink,
    Hardsigmoid as Hardsigmoid,
    Hardswish as Hardswish,
    Hardtanh as Hardtanh,
    LeakyReLU as LeakyReLU,
    LogSigmoid as LogSigmoid,
    LogSoftmax as LogSoftmax,
    Mish as Mish,
    PReLU as PReLU,
    ReLU as ReLU,
    ReLU6 as ReLU6,
    Sigmoid as Sigmoid,
    SiLU as SiLU,
    Softmax as Softmax,
    Softplus as Softplus,
    Softshrink as Softshrink,
    Softsign as Softsign,
    Tanh as Tanh,
    Tanhshrink as Tanhshrink,
    Threshold as Threshold,
)
from weft.nn.attention import (
    KeyValueCache as KeyValueCache,
    MultiheadAttention as MultiheadAttention,
)
from weft.nn.containers import (
    Flatten as Flatten,
    Identity as Identity,
    ModuleDict as ModuleDict,
    ModuleList as ModuleList,
    Sequential as Sequential,
    Unflatten as Unflatten,
)
from weft.nn.convolution import (
    Conv1d as Conv1d,
    Conv2d as Conv2d,
    ConvTranspose1d as ConvTranspose1d,
    ConvTranspose2d as ConvTranspose2d,
)
from weft.nn.linear import Bilinear as Bilinear, Embedding as Embedding, Linear as Linear
from weft.nn.loss import (
    BCELoss as BCELoss,
    BCEWithLogitsLoss as BCEWithLogitsLoss,
    CrossEntropyLoss as CrossEntropyLoss,
    HuberLoss as HuberLoss,
    KLDivLoss as KLDivLoss,
    L1Loss as L1Loss,
    MSELoss as MSELoss,
    NLLLoss as NLLLoss,
    SmoothL1Loss as SmoothL1Loss,
)
from weft.nn.module import Module as Module
from weft.nn.normalization import (
    BatchNorm1d as BatchNorm1d,
    BatchNorm2d as BatchNorm2d,
    GroupNorm as GroupNorm,
    InstanceNorm1d as InstanceNorm1d,
    InstanceNorm2d as InstanceNorm2d,
    LayerNorm as LayerNorm,
    RMSNorm as RMSNorm,
)
from weft.nn.parameter import Parameter as Parameter
from weft.nn.parameters import ParameterDict as ParameterDict, ParameterList as ParameterList
from weft.nn.pooling import (
    AdaptiveAvgPool1d as AdaptiveAvgPool1d,
    AdaptiveAvgPool2d as AdaptiveAvgPool2d,
    AdaptiveMaxPool1d as AdaptiveMaxPool1d,
    AdaptiveMaxPool2d as AdaptiveMaxPool2d,
    AvgPool1d as AvgPool1d,
    AvgPool2d as AvgPool2d,
    MaxPool1d as MaxPool1d,
    MaxPool2d as MaxPool2d,
)
from weft.nn.recurrent import (
    GRU as GRU,
    LSTM as LSTM,
    RNN as RNN,
    GRUCell as GRUCell,
    LSTMCell as LSTMCell,
    RNNCell as RNNCell,
)
from weft.nn.resizing import (
    PixelShuffle as PixelShuffle,
    PixelUnshuffle as PixelUnshuffle,
    Upsample as Upsample,
)
from weft.nn.transformer import (
    Transformer as Transformer,
    TransformerDecoder as TransformerDecoder,
    TransformerDecoderLayer as TransformerDecoderLayer,
    TransformerEncoder as TransformerEncoder,
    TransformerEncoderLayer as TransformerEncoderLayer,
)
