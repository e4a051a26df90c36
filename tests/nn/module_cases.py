"""Modules with arguments and inputs, to compare with PyTorch's of the same name."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """A module, how it is made, and what it is called with."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: tuple[Any, ...]
    called: dict[str, Any] = field(default_factory=dict)

    def __str__(self):
        said = [repr(a) for a in self.args] + [f"{k}={v!r}" for k, v in self.kwargs.items()]
        said += [f"called {k}" for k in self.called]
        return f"{self.name}({', '.join(said)})".replace(" ", "")


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def whole(*shape, most=5):
    return np.random.default_rng(list(shape)).integers(0, most, shape)


def case(name, *args, on, call=None, **kwargs):
    return Case(name, args, kwargs, on if isinstance(on, tuple) else (on,), call or {})


_SEQ, _BATCH = normal(5, 3, 4), normal(3, 5, 4)
_TRUE_ABOVE = np.triu(np.ones((5, 5), bool), 1)
_PADDED = np.array([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])
_KEYS, _VALUES = normal(3, 6, 4, seed=1), normal(3, 6, 4, seed=2)

LAYERS = [
    case("Linear", 4, 3, on=normal(5, 4)),
    case("Linear", 4, 3, bias=False, on=normal(2, 5, 4)),
    case("Bilinear", 4, 3, 2, on=(normal(5, 4), normal(5, 3))),
    case("Embedding", 5, 3, on=whole(2, 7)),
    case("Embedding", 5, 3, padding_idx=-2, on=whole(2, 7)),
    case("Conv1d", 4, 6, 3, on=normal(2, 4, 9)),
    case("Conv1d", 4, 6, 3, 1, "same", 2, padding_mode="circular", on=normal(2, 4, 9)),
    case("Conv2d", 4, 6, 3, stride=2, padding=1, on=normal(2, 4, 8, 7)),
    case("Conv2d", 4, 6, (3, 2), groups=2, bias=False, on=normal(4, 8, 7)),
    case("Conv2d", 3, 5, 3, padding=(1, 2), padding_mode="reflect", on=normal(2, 3, 8, 7)),
    case("ConvTranspose1d", 4, 6, 3, stride=2, output_padding=1, on=normal(2, 4, 5)),
    case("ConvTranspose2d", 4, 6, 3, stride=2, padding=1, groups=2, on=normal(2, 4, 5, 4)),
    case("BatchNorm1d", 4, on=normal(6, 4)),
    case("BatchNorm1d", 4, momentum=None, on=normal(6, 4, 3)),
    case("BatchNorm1d", 4, track_running_stats=False, on=normal(6, 4)),
    case("BatchNorm2d", 4, momentum=0.3, on=normal(3, 4, 5, 2)),
    case("BatchNorm2d", 4, affine=False, on=normal(3, 4, 5, 2)),
    case("LayerNorm", 4, on=normal(3, 5, 4)),
    case("LayerNorm", (5, 4), bias=False, on=normal(3, 5, 4)),
    case("LayerNorm", 4, elementwise_affine=False, on=normal(3, 4)),
    case("RMSNorm", 4, on=normal(3, 5, 4)),
    case("GroupNorm", 2, 4, on=normal(3, 4, 5)),
    case("BatchNorm2d", 4, bias=False, on=normal(3, 4, 5, 2)),
    case("GroupNorm", 2, 4, bias=False, on=normal(3, 4, 5)),
    case("InstanceNorm1d", 4, affine=True, on=normal(3, 4, 5)),
    case("InstanceNorm2d", 4, affine=True, track_running_stats=True, on=normal(3, 4, 5, 2)),
    case("InstanceNorm2d", 4, affine=True, on=normal(4, 5, 2)),
    case("PReLU", 4, on=normal(3, 4, 5)),
    case("RNN", 4, 6, on=_SEQ),
    case("RNN", 4, 6, 2, "relu", batch_first=True, on=(_BATCH, normal(2, 3, 6))),
    case("LSTM", 4, 6, on=_SEQ),
    case("LSTM", 4, 6, num_layers=2, bidirectional=True, batch_first=True, on=_BATCH),
    case("LSTM", 4, 6, bias=False, on=normal(5, 4)),
    case("LSTM", 4, 6, on=(_SEQ, (normal(1, 3, 6), normal(1, 3, 6, seed=1)))),
    case("GRU", 4, 6, on=_SEQ),
    case("GRU", 4, 6, num_layers=2, bidirectional=True, on=(_SEQ, normal(4, 3, 6))),
    case("RNNCell", 4, 6, on=normal(3, 4)),
    case("LSTMCell", 4, 6, on=(normal(3, 4), (normal(3, 6), normal(3, 6, seed=1)))),
    case("LSTMCell", 4, 6, bias=False, on=normal(3, 4)),
    case("GRUCell", 4, 6, on=(normal(3, 4), normal(3, 6))),
    case("MultiheadAttention", 4, 2, on=(_SEQ,) * 3),
    case("MultiheadAttention", 4, 2, batch_first=True, on=(_BATCH, _KEYS, _VALUES)),
    case(
        "MultiheadAttention", 4, 2, batch_first=True, on=(_BATCH,) * 3,
        call={"attn_mask": _TRUE_ABOVE, "key_padding_mask": _PADDED},
    ),
    case(
        "MultiheadAttention", 4, 2, on=(_SEQ,) * 3,
        call={"attn_mask": normal(5, 5), "average_attn_weights": False},
    ),
    case(
        "MultiheadAttention", 4, 2, bias=False, kdim=3, vdim=5, batch_first=True,
        on=(_BATCH, normal(3, 6, 3), normal(3, 6, 5)),
    ),
    case("MultiheadAttention", 4, 2, on=(normal(5, 4),) * 3),
    case("TransformerEncoderLayer", 4, 2, 8, 0.0, on=_SEQ),
    case(
        "TransformerEncoderLayer", 4, 2, 8, 0.0, "gelu", norm_first=True, batch_first=True,
        on=_BATCH, call={"src_mask": _TRUE_ABOVE, "src_key_padding_mask": _PADDED},
    ),
    case("TransformerDecoderLayer", 4, 2, 8, 0.0, batch_first=True, on=(_BATCH, _KEYS)),
    case(
        "TransformerDecoderLayer", 4, 2, 8, 0.0, "gelu", batch_first=True, norm_first=True,
        on=(_BATCH, _KEYS), call={
            "tgt_mask": _TRUE_ABOVE, "tgt_key_padding_mask": _PADDED,
            "memory_mask": np.triu(np.ones((5, 6), bool), 2),
            "memory_key_padding_mask": np.array([[False] * 6, [False] * 4 + [True] * 2] * 2)[:3],
        },
    ),
    case(
        "TransformerEncoderLayer", 4, 2, 8, 0.0, bias=False, on=_SEQ,
        call={"src_mask": np.where(_TRUE_ABOVE, -np.inf, 0.0).astype(np.float32)},
    ),
    case(
        "MultiheadAttention", 4, 2, batch_first=True, on=(_BATCH,) * 3,
        call={"attn_mask": normal(6, 5, 5), "need_weights": False},
    ),
    case("Transformer", 4, 2, 2, 1, 8, 0.0, "gelu", batch_first=True, norm_first=True,
         on=(_KEYS, _BATCH), call={"tgt_mask": _TRUE_ABOVE, "tgt_key_padding_mask": _PADDED}),
    case("Transformer", 4, 2, 1, 2, 8, 0.0, bias=False, on=(normal(6, 3, 4), _SEQ)),
    case("RNN", 4, 6, 3, bidirectional=True, on=_SEQ),
    case("GRU", 4, 6, bias=False, batch_first=True, on=_BATCH),
    case("GRUCell", 4, 6, bias=False, on=normal(3, 4)),
    case("RNNCell", 4, 6, nonlinearity="relu", on=(normal(3, 4), normal(3, 6))),
    case("TransformerDecoderLayer", 4, 2, 8, 0.0, norm_first=True, on=(_SEQ, normal(6, 3, 4))),
]  # fmt: skip

IMAGE = normal(2, 3, 8, 6)
STATELESS = [
    *(
        case(name, on=normal(3, 4))
        for name in (
            "ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "GELU", "SiLU", "Mish", "Hardswish",
            "Hardsigmoid", "Hardtanh", "Tanh", "Sigmoid", "LogSigmoid", "Softplus", "Softsign",
            "GLU", "Identity", "Flatten", "CELU", "Tanhshrink", "Softshrink", "Hardshrink",
        )
    ),
    case("GELU", "tanh", on=normal(3, 4)),
    case("LeakyReLU", 0.2, on=normal(3, 4)),
    case("Threshold", 0.1, 3.0, on=normal(3, 4)),
    case("InstanceNorm1d", 3, on=normal(2, 3, 8)),
    case("Upsample", scale_factor=2, on=normal(2, 3, 8, 6)),
    case("Upsample", (5, 9), mode="bilinear", align_corners=True, on=normal(2, 3, 8, 6)),
    case("PixelShuffle", 2, on=normal(2, 8, 3, 5)),
    case("PixelUnshuffle", 2, on=normal(2, 3, 8, 6)),
    case("Softmax", 1, on=normal(3, 4)),
    case("LogSoftmax", 0, on=normal(3, 4)),
    case("Dropout", 0.0, on=normal(3, 4)),
    case("Unflatten", 1, (2, 2), on=normal(3, 4)),
    case("MaxPool1d", 2, on=normal(2, 3, 8)),
    case("MaxPool2d", 3, stride=2, padding=1, on=IMAGE),
    case("AvgPool1d", 2, on=normal(2, 3, 8)),
    case("AvgPool2d", 3, stride=2, padding=1, count_include_pad=False, on=IMAGE),
    case("AvgPool2d", 2, divisor_override=3, on=IMAGE),
    case("AdaptiveAvgPool1d", 3, on=normal(2, 3, 8)),
    case("AdaptiveAvgPool2d", (3, 2), on=IMAGE),
    case("AdaptiveMaxPool1d", 3, on=normal(2, 3, 8)),
    case("AdaptiveMaxPool2d", (4, 2), on=IMAGE),
    case("MSELoss", on=(normal(3, 4), normal(3, 4, seed=1))),
    case("L1Loss", reduction="sum", on=(normal(3, 4), normal(3, 4, seed=1))),
    case("SmoothL1Loss", beta=0.5, on=(normal(3, 4), normal(3, 4, seed=1))),
    case("HuberLoss", delta=0.5, on=(normal(3, 4), normal(3, 4, seed=1))),
    case("KLDivLoss", reduction="batchmean", on=(normal(3, 4), np.abs(normal(3, 4, seed=1)))),
    case("BCELoss", on=(np.abs(np.tanh(normal(3, 4))), np.abs(np.tanh(normal(3, 4, seed=1))))),
    case("BCEWithLogitsLoss", on=(normal(3, 4), np.abs(np.tanh(normal(3, 4, seed=1))))),
    case("NLLLoss", on=(normal(6, 4), whole(6, most=4))),
    case("CrossEntropyLoss", on=(normal(6, 4), whole(6, most=4))),
    case("CrossEntropyLoss", None, label_smoothing=0.2, on=(normal(6, 4), whole(6, most=4))),
    case("CrossEntropyLoss", reduction="sum", on=(normal(6, 4, 3), whole(6, 3, most=4))),
    case("CrossEntropyLoss", ignore_index=2, on=(normal(6, 4), whole(6, most=4))),
    case("NLLLoss", reduction="none", on=(normal(6, 4, 3), whole(6, 3, most=4))),
]  # fmt: skip
