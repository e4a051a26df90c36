"""The programs of `weft demo`, as you would write them. Run them, change them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft import Tensor, nn

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
FONT = """
###  #  ### ### # # ### ### ### ### ###
# # ##    #   # # # #   #     # # # # #
# #  #  ### ### ### ### ###   # ### ###
# #  #  #     #   #   # # #   # # #   #
### ### ### ###   # ### ###   # ### ###
"""


def digits(n: int, seed: int) -> tuple[Array, Array]:
    """Pixels (n, 64) of digits drawn from a font, moved, smeared and noisy; and labels (n,)."""
    rng = np.random.default_rng(seed)
    rows = [line.ljust(39) for line in FONT.strip("\n").splitlines()]
    glyphs = np.array([[[c == "#" for c in r[4 * d : 4 * d + 3]] for r in rows] for d in range(10)])
    labels = rng.integers(0, 10, n)
    images = np.zeros((n, 8, 8))
    for image, label in zip(images, labels, strict=True):
        top, left = rng.integers(0, 4), rng.integers(0, 6)
        image[top : top + 5, left : left + 3] = glyphs[label]
    images += 0.4 * np.roll(images, 1, axis=2) + rng.normal(0, 0.15, images.shape)
    return images.reshape(n, 64).astype(np.float32), labels


def batches(steps: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The same batches of 64 each time."""
    pixels, labels = digits(8000, seed=0)
    rng = np.random.default_rng(1)
    for _ in range(steps):
        chosen = rng.integers(0, len(pixels), 64)
        yield wf.tensor(pixels[chosen]), wf.tensor(labels[chosen])


class Reader(nn.Module):
    """Reads a digit: two hidden layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 128)
        self.second = nn.Linear(128, 128)
        self.last = nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(F.relu(self.second(F.relu(self.first(x)))))


def trainer() -> tuple[Reader, Callable[[Tensor, Tensor], Tensor]]:
    """A model and its training step, from the same start each time."""
    wf.manual_seed(0)
    model = Reader()
    optimizer = wf.optim.AdamW(model.parameters(), lr=3e-3)

    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return model, step


def settle(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """A layer applied until it no longer moves; then a branch on what came out."""
    h = wf.tanh(x)
    moved, steps = wf.ones(()), wf.tensor(0)
    while moved > 1e-3:
        new = wf.tanh(h @ w + x)
        moved, h = (new - h).abs().max(), new
        steps = steps + 1
    if h.mean() > 0:
        y = h * 2
    else:
        y = wf.exp(h)
    return y.sum(), steps


def look_up(table: Tensor, words: Tensor) -> Tensor:
    """The sum of some rows of a table."""
    scaled = table * 0.5 + 1
    rows = scaled[words]
    return rows.sum(axis=0)


def sentences(n: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of sentences, each batch of another length; does word 7 come more often than 8?"""
    rng = np.random.default_rng(2)
    for length in rng.permutation(np.arange(5, 41))[:n]:
        words = rng.integers(5, 11, (16, length))
        more = (words == 7).sum(1) > (words == 8).sum(1)
        yield wf.tensor(words), wf.tensor(more.astype(np.int64))


def listener() -> Callable[[Tensor, Tensor], Tensor]:
    """The training step of a transformer layer over sentences."""
    wf.manual_seed(0)
    model = nn.ModuleDict(
        {
            "words": nn.Embedding(11, 16),
            "layer": nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True),
            "answer": nn.Linear(16, 2),
        }
    )
    optimizer = wf.optim.AdamW(model.parameters(), lr=3e-3)

    def step(words: Tensor, more: Tensor) -> Tensor:
        h = model["layer"](model["words"](words))
        loss = F.cross_entropy(model["answer"](h.mean(axis=1)), more)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step
