"""Data and first parameters of the control-flow workloads, as NumPy arrays from fixed seeds."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workloads.numbers import Array, Arrays

LSTM_STEPS, LSTM_LONGEST, LSTM_BATCH, LSTM_INPUT, LSTM_WIDTH = 60, 60, 16, 64, 128
TREES, TREE_LEAVES, TREE_WIDTH, TREE_WORDS, TREE_CLASSES = 40, 40, 128, 500, 5
DECODER_WIDTH, DECODER_WORDS, DECODER_LIMIT, DECODER_END = 128, 200, 64, 0
TOLERANCE, MOST = 1e-4, 200  # of W12
NEWTON_MOST = 30
WALK_ROWS, WALK_STEPS = 64, 64


def _linear(rng: np.random.Generator, inputs: int, outputs: int) -> Array:
    return (rng.standard_normal((inputs, outputs)) * inputs**-0.5).astype(np.float32)


def lstm() -> tuple[list[tuple[Array, Array]], Arrays]:
    """Batches (T, batch, input) each of its own length, labels; weights."""
    rng = np.random.default_rng(1010)
    batches = []
    for _ in range(LSTM_STEPS):
        length = int(rng.integers(5, LSTM_LONGEST + 1))
        x = rng.standard_normal((length, LSTM_BATCH, LSTM_INPUT)).astype(np.float32)
        batches.append((x, rng.integers(0, 10, LSTM_BATCH)))
    rng = np.random.default_rng(10)
    return batches, {
        "wx": _linear(rng, LSTM_INPUT, 4 * LSTM_WIDTH),
        "wh": _linear(rng, LSTM_WIDTH, 4 * LSTM_WIDTH),
        "b": np.zeros(4 * LSTM_WIDTH, np.float32),
        "head": _linear(rng, LSTM_WIDTH, 10),
    }


Tree = Any  # a word, or (left, right)


def trees() -> tuple[list[tuple[Tree, int]], Arrays]:
    """Binary trees of 10 to TREE_LEAVES leaves split at random, with labels; weights."""
    rng = np.random.default_rng(1111)

    def grow(leaves: int) -> Tree:
        if leaves == 1:
            return int(rng.integers(0, TREE_WORDS))
        left = int(rng.integers(1, leaves))
        return grow(left), grow(leaves - left)

    def tree() -> tuple[Tree, int]:
        return grow(int(rng.integers(10, TREE_LEAVES + 1))), int(rng.integers(0, TREE_CLASSES))

    data = [tree() for _ in range(TREES)]
    rng = np.random.default_rng(11)
    return data, {
        "words": rng.standard_normal((TREE_WORDS, TREE_WIDTH)).astype(np.float32),
        "leaf": _linear(rng, TREE_WIDTH, 3 * TREE_WIDTH),
        "leaf_b": np.zeros(3 * TREE_WIDTH, np.float32),
        "inner": _linear(rng, 2 * TREE_WIDTH, 5 * TREE_WIDTH),
        "inner_b": np.zeros(5 * TREE_WIDTH, np.float32),
        "head": _linear(rng, TREE_WIDTH, TREE_CLASSES),
    }


def flat(tree: Tree) -> tuple[list[int], list[tuple[int, int]]]:
    """A tree as its words, then pairs of earlier nodes: words come first, then pairs."""
    words: list[int] = []

    def collect(t: Tree) -> None:
        if isinstance(t, int):
            words.append(t)
        else:
            collect(t[0])
            collect(t[1])

    collect(tree)
    pairs: list[tuple[int, int]] = []
    leaves = iter(range(len(words)))

    def number(t: Tree) -> int:
        if isinstance(t, int):
            return next(leaves)
        left, right = number(t[0]), number(t[1])
        pairs.append((left, right))
        return len(words) + len(pairs) - 1

    number(tree)
    return words, pairs


def symmetric() -> Array:
    """A symmetric matrix of spectral norm 1.2."""
    a = np.random.default_rng(12).standard_normal((64, 64))
    a = a + a.T
    return (1.2 * a / np.linalg.norm(a, 2)).astype(np.float32)


def decoder() -> tuple[Array, Arrays]:
    """A state to start from, and a recurrent decoder that stops after 40 words or so."""
    rng = np.random.default_rng(13)
    return rng.standard_normal((1, DECODER_WIDTH)).astype(np.float32), {
        "words": rng.standard_normal((DECODER_WORDS, DECODER_WIDTH)).astype(np.float32),
        "wx": _linear(rng, DECODER_WIDTH, DECODER_WIDTH),
        "wh": 1.5 * _linear(rng, DECODER_WIDTH, DECODER_WIDTH),
        "out": _linear(rng, DECODER_WIDTH, DECODER_WORDS),
    }


def roots() -> Array:
    """Numbers to take cube roots of."""
    return np.random.default_rng(14).uniform(1, 100, (64, 64)).astype(np.float32)


def walks() -> tuple[Array, Array]:
    """Rows to walk along until a sum is passed, and how far each may go."""
    rng = np.random.default_rng(15)
    return rng.uniform(0, 1, (WALK_ROWS, WALK_STEPS)).astype(np.float32), np.float32(12)
