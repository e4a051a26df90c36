"""Train a small network by hand: three spirals, two hidden layers, no modules, no optimizer class.

Every number is computed by kernels that Weft generates through LLVM.
"""

import argparse
import math
import time
from itertools import pairwise

import weft as wf

ARMS, POINTS = 3, 200
MARKS = "·o#"


def spirals():
    """Coordinates [n, 2] of points along three noisy spiral arms, and the arm [n] of each."""
    t = wf.linspace(0.1, 1.0, POINTS)
    coordinates, labels = [], []
    for arm in range(ARMS):
        angle = 7.0 * t + 2 * math.pi * arm / ARMS + 0.15 * wf.randn(POINTS)
        coordinates.append(wf.stack([t * wf.cos(angle), t * wf.sin(angle)], axis=1))
        labels.append(wf.full((POINTS,), arm, dtype=wf.int64))
    return wf.concat(coordinates), wf.concat(labels)


def network(*sizes):
    """Weights and biases, to be learned."""
    layers = []
    for n, m in pairwise(sizes):
        layers += [wf.randn(n, m) / math.sqrt(n), wf.zeros((m,))]
    for p in layers:
        p.requires_grad = True
    return layers


def forward(layers, x):  # (n, 2) -> (n, 3)
    *hidden, w, b = layers
    for i in range(0, len(hidden), 2):
        x = wf.tanh(x @ hidden[i] + hidden[i + 1])
    return x @ w + b


def cross_entropy(scores, labels):
    """Mean of -log softmax(scores) at the labels."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    logs = shifted - wf.log(wf.exp(shifted).sum(axis=1, keepdims=True))
    return -logs[wf.arange(len(labels)), labels].mean()


def train(layers, x, labels, steps, rate=0.01, b1=0.9, b2=0.99):
    """Adam, written out."""
    means = [wf.zeros_like(p) for p in layers]
    squares = [wf.zeros_like(p) for p in layers]
    start = time.perf_counter()
    for step in range(1, steps + 1):
        loss = cross_entropy(forward(layers, x), labels)
        loss.backward()
        with wf.no_grad():
            for i, p in enumerate(layers):
                means[i] = b1 * means[i] + (1 - b1) * p.grad
                squares[i] = b2 * squares[i] + (1 - b2) * p.grad * p.grad
                mean = means[i] / (1 - b1**step)
                square = squares[i] / (1 - b2**step)
                p.assign(p - rate * mean / (wf.sqrt(square) + 1e-8))
                p.grad = None
        if step % (steps // 10) == 0:
            now = time.perf_counter()
            each = (now - start) * 1e3 / (steps // 10)
            print(f"step {step:4d}   loss {loss.item():.4f}   {each:.2f} ms a step")
            start = now


def picture(layers, width=72, height=30):
    """What the network thinks of each point of the plane."""
    ys, xs = wf.meshgrid(wf.linspace(1, -1, height), wf.linspace(-1, 1, width), indexing="ij")
    with wf.no_grad():
        grid = wf.stack([xs.reshape(-1), ys.reshape(-1)], axis=1)
        arms = forward(layers, grid).argmax(axis=1).reshape(height, width)
    return "\n".join("".join(MARKS[a] for a in row) for row in arms.tolist())


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="fewer steps")
    steps = 50 if options.parse_args().quick else 400
    wf.manual_seed(0)
    x, labels = spirals()
    layers = network(2, 64, 64, ARMS)
    train(layers, x, labels, steps)
    with wf.no_grad():
        right = (forward(layers, x).argmax(axis=1) == labels).astype(wf.float32).mean().item()
    print(f"{right:.1%} of the points are on the arm the network says\n")
    print(picture(layers))


if __name__ == "__main__":
    main()
