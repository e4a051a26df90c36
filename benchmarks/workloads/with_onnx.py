"""The inference workloads in ONNX Runtime, from graphs exported by PyTorch."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable

import numpy as np
import onnxruntime
import torch
from torch import nn

from benchmarks.worker import THREADS, Case
from benchmarks.workloads import numbers, with_torch


class Function(nn.Module):
    """A function as a module, which is what the exporter takes."""

    def __init__(self, f: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.f = f

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.f(*inputs)


def case(model: nn.Module, *arrays: np.ndarray) -> Case:
    file = io.BytesIO()
    names = [f"x{n}" for n in range(len(arrays))]
    tensors = tuple(torch.from_numpy(a) for a in arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model.eval(), tensors, file, input_names=names, opset_version=20, dynamo=False
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(
        file.getvalue(), options, providers=["CPUExecutionProvider"]
    )
    feed = dict(zip(names, arrays, strict=True))
    return Case(lambda: session.run(None, feed)[0])


def cases(mode: str) -> dict[str, Callable[[], Case]]:
    load = with_torch.load
    return {
        "W1": lambda: case(Function(with_torch.elementwise), *numbers.elementwise()),
        "W2": lambda: case(Function(with_torch.norm), *numbers.norm()),
        "W4": lambda: case(with_torch.tiny(), numbers.classes(4, 1, (8,), 2)[0]),
        "W8": lambda: case(load(with_torch.GPT(128), numbers.gpt(128)), numbers.tokens(1, 128)[0]),
        "W9": lambda: case(load(with_torch.ResNet18(), numbers.resnet()), numbers.image()),
    }
