"""Data and first parameters of the workloads, as NumPy arrays from fixed seeds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

Array = np.ndarray
Arrays = dict[str, Array]

GPT_WIDTH, GPT_HEADS, GPT_BLOCKS, GPT_VOCABULARY = 256, 8, 4, 1000
CNN_STAGES = ((16, 16, 1), (16, 32, 2), (32, 64, 2))  # channels in and out, stride
RESNET_BLOCKS = tuple(
    (f"layer{n}.{k}", last if k == 0 else width, width, 2 if k == 0 and n > 1 else 1)
    for n, (last, width) in enumerate(((64, 64), (64, 128), (128, 256), (256, 512)), 1)
    for k in (0, 1)
)  # name, channels in and out, stride
MLP_SIZES = (784, 512, 512, 10)
TINY_SIZES = (8, 64, 64, 2)


class Maker:
    """Draws one array after the other from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.arrays: Arrays = {}

    def normal(self, *shape: int, scale: float = 1.0) -> Array:
        return (self.rng.standard_normal(shape) * scale).astype(np.float32)

    def linear(self, name: str, inputs: int, outputs: int, bias: bool = True) -> None:
        self.arrays[f"{name}.weight"] = self.normal(outputs, inputs, scale=inputs**-0.5)
        if bias:
            self.arrays[f"{name}.bias"] = np.zeros(outputs, np.float32)

    def conv(self, name: str, inputs: int, outputs: int, window: int) -> None:
        scale = (2 / (inputs * window * window)) ** 0.5
        self.arrays[f"{name}.weight"] = self.normal(outputs, inputs, window, window, scale=scale)

    def norm(self, name: str, width: int) -> None:
        self.arrays[f"{name}.weight"] = np.ones(width, np.float32)
        self.arrays[f"{name}.bias"] = np.zeros(width, np.float32)

    def batch_norm(self, name: str, width: int, given: bool = False) -> None:
        """With statistics of its own if `given`, else those that training starts from."""
        self.norm(name, width)
        mean, var = np.zeros(width, np.float32), np.ones(width, np.float32)
        if given:
            mean = self.normal(width, scale=0.1)
            var = self.rng.uniform(0.5, 1.5, width).astype(np.float32)
        self.arrays[f"{name}.running_mean"], self.arrays[f"{name}.running_var"] = mean, var

    def basic_block(self, name: str, inputs: int, outputs: int, stride: int, given: bool) -> None:
        self.conv(f"{name}.conv1", inputs, outputs, 3)
        self.batch_norm(f"{name}.bn1", outputs, given)
        self.conv(f"{name}.conv2", outputs, outputs, 3)
        self.batch_norm(f"{name}.bn2", outputs, given)
        if stride != 1 or inputs != outputs:
            self.conv(f"{name}.downsample.0", inputs, outputs, 1)
            self.batch_norm(f"{name}.downsample.1", outputs, given)


def elementwise() -> tuple[Array, Array, Array]:
    """x, a, b of W1."""
    make = Maker(1)
    return make.normal(1024, 1024), make.normal(1024), make.normal(1024)


def norm() -> tuple[Array, Array, Array]:
    """x, g, b of W2."""
    make = Maker(2)
    return make.normal(2048, 1024), make.normal(1024), make.normal(1024)


def classes(seed: int, batch: int, inputs: tuple[int, ...], n: int) -> tuple[Array, Array]:
    """Normal inputs and labels below n (int64)."""
    make = Maker(seed)
    return make.normal(batch, *inputs), make.rng.integers(0, n, batch)


def stack(seed: int, sizes: tuple[int, ...]) -> Arrays:
    """Linear layers "0", "2", …, as nn.Sequential counts them with an activation between."""
    make = Maker(seed)
    for n, (inputs, outputs) in enumerate(pairwise(sizes)):
        make.linear(f"{2 * n}", inputs, outputs)
    return make.arrays


def cnn() -> Arrays:
    make = Maker(6)
    make.conv("conv1", 3, 16, 3)
    make.batch_norm("bn1", 16)
    for n, (inputs, outputs, stride) in enumerate(CNN_STAGES):
        make.basic_block(f"blocks.{n}", inputs, outputs, stride, given=False)
    make.linear("fc", 64, 10)
    return make.arrays


def tokens(batch: int, length: int) -> tuple[Array, Array]:
    """Ids and the ids to be foretold (int64)."""
    ids = np.random.default_rng(77).integers(0, GPT_VOCABULARY, (batch, length + 1))
    return np.ascontiguousarray(ids[:, :-1]), np.ascontiguousarray(ids[:, 1:])


def gpt(length: int) -> Arrays:
    make, width = Maker(7), GPT_WIDTH
    make.arrays["tok.weight"] = make.normal(GPT_VOCABULARY, width, scale=0.02)
    make.arrays["pos.weight"] = make.normal(length, width, scale=0.02)
    for n in range(GPT_BLOCKS):
        make.norm(f"blocks.{n}.ln1", width)
        make.linear(f"blocks.{n}.qkv", width, 3 * width)
        make.linear(f"blocks.{n}.proj", width, width)
        make.norm(f"blocks.{n}.ln2", width)
        make.linear(f"blocks.{n}.fc1", width, 4 * width)
        make.linear(f"blocks.{n}.fc2", 4 * width, width)
    make.norm("ln", width)
    make.linear("head", width, GPT_VOCABULARY, bias=False)
    return make.arrays


def image() -> Array:
    return Maker(99).normal(1, 3, 224, 224)


def resnet() -> Arrays:
    make = Maker(9)
    make.conv("conv1", 3, 64, 7)
    make.batch_norm("bn1", 64, given=True)
    for name, inputs, outputs, stride in RESNET_BLOCKS:
        make.basic_block(name, inputs, outputs, stride, given=True)
    make.linear("fc", 512, 1000)
    return make.arrays
