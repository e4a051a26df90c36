"""The workloads in PyTorch: modes "eager", "channels_last" (eager, for convolutions), "compile"."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.worker import THREADS, Case
from benchmarks.workloads import numbers
from benchmarks.workloads.numbers import Arrays


class BasicBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        short = x if self.downsample is None else self.downsample(x)
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + short)


class CNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.blocks = nn.Sequential(*(BasicBlock(*stage) for stage in numbers.CNN_STAGES))
        self.fc = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(F.relu(self.bn1(self.conv1(x))))
        return self.fc(x.mean((2, 3)))


class ResNet18(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        blocks = [BasicBlock(*sizes) for _, *sizes in numbers.RESNET_BLOCKS]
        for n in range(4):
            setattr(self, f"layer{n + 1}", nn.Sequential(*blocks[2 * n : 2 * n + 2]))
        self.fc = nn.Linear(512, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        width = numbers.GPT_WIDTH
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        heads = self.qkv(self.ln1(x)).reshape(b, t, 3, numbers.GPT_HEADS, -1)
        q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)  # (B, H, T, D) each
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, length: int) -> None:
        super().__init__()
        width = numbers.GPT_WIDTH
        self.tok = nn.Embedding(numbers.GPT_VOCABULARY, width)
        self.pos = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block() for _ in range(numbers.GPT_BLOCKS)))
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, numbers.GPT_VOCABULARY, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tok(ids) + self.pos.weight  # (B, T, C)
        return self.head(self.ln(self.blocks(x)))


def stack(sizes: tuple[int, ...], activation: type[nn.Module]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers[:-1])


def load(model: nn.Module, arrays: Arrays) -> nn.Module:
    model.load_state_dict({k: torch.from_numpy(v) for k, v in arrays.items()}, strict=False)
    return model


def elementwise(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.tanh(torch.relu(x * a + b)) * torch.sigmoid(x) + torch.exp(-x * x)


def norm(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    return F.softmax(F.gelu(F.layer_norm(x, x.shape[-1:], g, b, 1e-5)), dim=-1)


class Cases:
    """Sets the workloads up in one mode."""

    def __init__(self, mode: str) -> None:
        self.compiled = mode == "compile"
        self.channels_last = mode == "channels_last"

    def inference(self, f: Callable[..., Tensor], *arrays: np.ndarray) -> Case:
        inputs = [self.tensor(a) for a in arrays]
        if isinstance(f, nn.Module):
            f.eval()
            if self.channels_last:
                f.to(memory_format=torch.channels_last)
        if self.compiled:
            f = torch.compile(f)

        def run() -> Tensor:
            with torch.no_grad():
                return f(*inputs)

        return Case(run, lambda y: y.numpy())

    def training(
        self, model: nn.Module, optimizer: Any, data: tuple[np.ndarray, np.ndarray]
    ) -> Case:
        if self.channels_last:
            model.to(memory_format=torch.channels_last)
        x, labels = (self.tensor(a) for a in data)
        opt = optimizer(model.parameters())
        call = torch.compile(model) if self.compiled else model

        def step() -> Tensor:
            opt.zero_grad()
            y = call(x)
            loss = F.cross_entropy(y.reshape(-1, y.shape[-1]), labels.reshape(-1))
            loss.backward()
            opt.step()
            return loss

        return Case(step, lambda loss: loss.detach().numpy())

    def tensor(self, array: np.ndarray) -> Tensor:
        t = torch.from_numpy(array)
        if self.channels_last and t.ndim == 4:
            return t.contiguous(memory_format=torch.channels_last)
        return t

    def gpt_train(self, batch: int, length: int) -> Case:
        return self.training(
            load(GPT(length), numbers.gpt(length)),
            lambda p: torch.optim.AdamW(p, 3e-4, eps=1e-8, weight_decay=0.01),
            numbers.tokens(batch, length),
        )

    def table(self) -> dict[str, Callable[[], Case]]:
        convolutions = {
            "W6": lambda: self.training(
                load(CNN(), numbers.cnn()),
                lambda p: torch.optim.SGD(p, 0.05, momentum=0.9),
                numbers.classes(66, 32, (3, 32, 32), 10),
            ),
            "W9": lambda: self.inference(load(ResNet18(), numbers.resnet()), numbers.image()),
        }
        if self.channels_last:
            return convolutions
        return convolutions | {
            "W1": lambda: self.inference(elementwise, *numbers.elementwise()),
            "W2": lambda: self.inference(norm, *numbers.norm()),
            "W3": lambda: self.training(
                load(stack(numbers.MLP_SIZES, nn.ReLU), numbers.stack(33, numbers.MLP_SIZES)),
                lambda p: torch.optim.Adam(p, 1e-3),
                numbers.classes(3, 64, (784,), 10),
            ),
            "W4": lambda: self.inference(tiny(), numbers.classes(4, 1, (8,), 2)[0]),
            "W5": lambda: self.training(
                tiny(),
                lambda p: torch.optim.SGD(p, 0.1),
                numbers.classes(5, 32, (8,), 2),
            ),
            "W7": lambda: self.gpt_train(8, 128),
            "W8": lambda: self.inference(
                load(GPT(128), numbers.gpt(128)), numbers.tokens(1, 128)[0]
            ),
            "W13": lambda: self.gpt_train(32, 256),
            "call": self.call,
        }

    def call(self) -> Case:
        inputs = [torch.zeros(16) for _ in range(10)]
        f = torch.compile(lambda *tensors: tensors) if self.compiled else lambda *tensors: tensors
        return Case(lambda: f(*inputs), lambda y: y[0].numpy())


def tiny() -> nn.Module:
    return load(stack(numbers.TINY_SIZES, nn.Tanh), numbers.stack(55, numbers.TINY_SIZES))


def cases(mode: str) -> dict[str, Callable[[], Case]]:
    torch.set_num_threads(THREADS)
    return Cases(mode).table()
