"""Batches and first parameters of the examples, as NumPy arrays from fixed seeds: the same for
every peer.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads.numbers import Array, Arrays

FOLDER = Path(__file__).parents[2] / "examples"
NAMES = (
    "digits", "images", "chargpt", "sentiment", "dates", "listings", "vae", "oscillator",
    "cartpole", "trees",
)  # fmt: skip
#: the formula of `trees`, as operations and letters
TREE = ("or", ("and", ("not", 1), ("or", 0, 1)), ("and", ("or", 1, 0), ("not", ("and", 1, 1))))
GPT_BATCH, GPT_LENGTH = 16, 96


def example(name: str) -> Any:
    """The module of an example."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def batch(name: str) -> list[Array]:
    """What a step takes; the last is the target."""
    rng, module = np.random.default_rng(1), example(name)
    if name == "digits":
        pixels, labels = module.drawn(60, rng)
        return [(pixels.reshape(-1, 64) / 16).astype(np.float32), labels]
    if name == "images":
        return list(module.pictures(32, rng))
    if name == "chargpt":
        text = module.text()
        characters = sorted(set(text))
        data = np.array([characters.index(c) for c in text])
        at = rng.integers(0, len(data) - GPT_LENGTH, GPT_BATCH)[:, None] + np.arange(GPT_LENGTH)
        return [data[at], data[at + 1]]
    if name == "sentiment":
        return _sentences([module.sentence(rng) for _ in range(40)])
    if name == "dates":
        return list(module.dates(64, rng))
    if name == "listings":
        return list(module.listings(48, rng).values())
    if name == "vae":  # with the noise that the example draws
        pictures = module.rings(64, rng)
        pictures[pictures < 1e-30] = 0.0  # denormal numbers make PyTorch a thousand times slower
        return [pictures, rng.normal(size=(64, 2)).astype(np.float32)]
    if name == "oscillator":
        return [(module.END * rng.random((64, 1))).astype(np.float32)]
    if name == "cartpole":
        push = lambda seen: module.wf.tensor(rng.integers(0, 2, len(seen)).astype(np.float32))
        states, pushes, rewards = module.play(push, rng, 16, 200)
        return [states, pushes, module.returns(rewards), rewards]
    return [np.float32(1.0)]  # the formula of `trees` is true


def _sentences(data: list[Any]) -> list[Array]:
    lengths = np.array([len(s) for s, _ in data])
    ids = np.zeros((len(data), lengths.max()), np.int64)
    for row, (s, _) in zip(ids, data, strict=True):
        row[: len(s)] = s
    return [ids, lengths, np.array([y for _, y in data], np.float32)]


def weights(shapes: Iterable[tuple[str, tuple[int, ...]]]) -> Arrays:
    """First values of parameters by name."""
    rng, found = np.random.default_rng(2), {}
    for name, shape in sorted(shapes):
        if len(shape) > 1:
            found[name] = (rng.normal(size=shape) * np.prod(shape[1:]) ** -0.5).astype(np.float32)
        else:
            found[name] = np.full(shape, float("norm" in name and "weight" in name), np.float32)
    return found
