"""Tell shapes in coloured 32×32 images apart: a small residual network with batch norm."""

import argparse

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft import nn

KINDS = ("disc", "square", "cross", "stripes")


def pictures(n, rng):
    """Images (n, 3, 32, 32) of one shape each, and which one it is."""
    y, x = np.mgrid[:32, :32]
    labels = rng.integers(0, len(KINDS), n)
    images = rng.normal(0, 0.3, (n, 3, 32, 32))
    for image, label in zip(images, labels, strict=True):
        (cy, cx), r = rng.uniform(10, 22, 2), rng.uniform(5, 9)
        dy, dx = np.abs(y - cy), np.abs(x - cx)
        inside = np.maximum(dy, dx) < r
        shape = {
            "disc": np.hypot(dy, dx) < r,
            "square": inside,
            "cross": inside & (np.minimum(dy, dx) < r / 3),
            "stripes": inside & ((x + y) // 3 % 2 == 0),
        }[KINDS[label]]
        image += rng.uniform(0.5, 1.5, (3, 1, 1)) * shape
    return images.astype(np.float32), labels


class Block(nn.Module):
    """Two convolutions beside a short way past them."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.short = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.short(x))


def network():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(),
        Block(8, 16, 2),  # (N, 16, 16, 16)
        Block(16, 32, 2),  # (N, 32, 8, 8)
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, len(KINDS)),
    )


def main(steps=150, compiled=True):
    wf.manual_seed(0)
    rng = np.random.default_rng(0)
    model = network()
    optimizer = wf.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    schedule = wf.optim.CosineAnnealingLR(optimizer, T_max=steps)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    if compiled:
        step = wf.compile(step)
    losses = []
    for n in range(1, steps + 1):
        x, y = pictures(32, rng)
        losses.append(step(wf.tensor(x), wf.tensor(y)).item())
        schedule.step()
        if n % 25 == 0:
            print(f"step {n:4d}   loss {losses[-1]:.4f}   rate {schedule.get_last_lr()[0]:.4f}")

    model.eval()
    x, y = pictures(200, rng)
    with wf.no_grad():
        found = model(wf.tensor(x)).argmax(axis=1).numpy()
    for label, kind in enumerate(KINDS):
        print(f"{kind:8s} {(found[y == label] == label).mean():.0%} right")
    return losses, model


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a few steps only")
    options.add_argument("--eager", action="store_true", help="not compiled")
    given = options.parse_args()
    main(10 if given.quick else 150, not given.eager)
