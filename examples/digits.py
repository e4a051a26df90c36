"""Read handwritten digits: a network of two hidden layers, trained with AdamW.

The digits are scikit-learn's if that is installed, else drawn from a small font and shaken.
"""

import argparse

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft import nn

FONT = """
###  #  ### ### # # ### ### ### ### ###
# # ##    #   # # # #   #     # # # # #
# #  #  ### ### ### ### ###   # ### ###
# #  #  #     #   #   # # #   # # #   #
### ### ### ###   # ### ###   # ### ###
"""


def drawn(n, rng):
    """Digits (n, 8, 8) from 0 to 16 of a font, each moved, smeared and noisy; and their labels."""
    rows = [line.ljust(39) for line in FONT.strip("\n").splitlines()]
    glyphs = np.array([[[c == "#" for c in r[4 * d : 4 * d + 3]] for r in rows] for d in range(10)])
    labels = rng.integers(0, 10, n)
    images = np.zeros((n, 8, 8))
    for image, label in zip(images, labels, strict=True):
        top, left = rng.integers(0, 4), rng.integers(0, 6)
        image[top : top + 5, left : left + 3] = glyphs[label]
    images += 0.3 * np.roll(images, 1, axis=2)
    return np.clip(16 * images + rng.normal(0, 2, images.shape), 0, 16), labels


def digits():
    """Pixels (n, 64) between 0 and 1, and labels (n,)."""
    try:
        from sklearn.datasets import load_digits

        pixels, labels = load_digits(return_X_y=True)
    except ImportError:
        pixels, labels = drawn(1797, np.random.default_rng(0))
    return (pixels.reshape(-1, 64) / 16).astype(np.float32), labels.astype(np.int64)


def network():
    return nn.Sequential(
        nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(),
        nn.Linear(64, 10),
    )  # fmt: skip


def main(steps=400, compiled=True):
    wf.manual_seed(0)
    pixels, labels = digits()
    train = wf.data.TensorDataset(pixels[:1500], labels[:1500])
    loader = wf.data.DataLoader(train, batch_size=60, shuffle=True)
    model = network()
    optimizer = wf.optim.AdamW(model.parameters(), lr=3e-3)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    if compiled:
        step = wf.compile(step)
    losses: list[float] = []
    while len(losses) < steps:
        for x, y in loader:
            losses.append(step(x, y).item())
            if len(losses) % 50 == 0:
                print(f"step {len(losses):4d}   loss {losses[-1]:.4f}")
            if len(losses) == steps:
                break

    model.eval()
    with wf.no_grad():
        found = model(wf.tensor(pixels[1500:])).argmax(axis=1).numpy()
    print(f"{(found == labels[1500:]).mean():.1%} of digits it has not seen are read right")
    return losses, model


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a few steps only")
    options.add_argument("--eager", action="store_true", help="not compiled")
    given = options.parse_args()
    main(20 if given.quick else 400, not given.eager)
