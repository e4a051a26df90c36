"""The price of a flat from its photograph, its advertisement and a row of a table, all at once.

Three small networks read one thing each; a fourth decides on what they say together. No source
alone tells the price.
"""

import argparse

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft import nn

WORDS = "<pad> a flat in the city with sunny dark quiet noisy new old balcony garden view".split()
WORTH = {"sunny": 2.0, "dark": -2.0, "quiet": 1.0, "noisy": -1.0, "garden": 3.0, "view": 2.0}
LENGTH = 12


def listings(n, rng):
    """Dictionaries of a photograph, the words' numbers, a table's row and a price."""
    brightness = rng.uniform(0, 1, n)
    image = rng.normal(0, 0.2, (n, 3, 16, 16)) + brightness[:, None, None, None]
    text = np.zeros((n, LENGTH), np.int64)
    for row in text:
        words = rng.integers(1, len(WORDS), rng.integers(4, LENGTH + 1))
        row[: len(words)] = words
    words_worth = np.array([WORTH.get(w, 0.0) for w in WORDS])[text].sum(axis=1)
    table = rng.uniform(0, 1, (n, 3))  # area, floor, age
    price = 4 * brightness + words_worth + 8 * table[:, 0] + table[:, 1] - 2 * table[:, 2]
    data = {"image": image, "text": text, "table": table, "price": price}
    return {k: v if k == "text" else v.astype(np.float32) for k, v in data.items()}


class Appraiser(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, width),
        )  # fmt: skip
        self.embed = nn.Embedding(len(WORDS), width, padding_idx=0)
        self.read = nn.TransformerEncoderLayer(
            width, nhead=4, dim_feedforward=64, dropout=0.0, batch_first=True
        )
        self.count = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width))
        self.decide = nn.Sequential(nn.Linear(3 * width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, batch):
        padded = batch["text"] == 0  # (B, T)
        words = self.read(self.embed(batch["text"]), src_key_padding_mask=padded)
        own = wf.where(padded, 0.0, 1.0).expand_dims(-1)
        parts = [
            self.look(batch["image"]),
            (words * own).sum(axis=1) / LENGTH,
            self.count(batch["table"]),
        ]
        return self.decide(wf.concat(parts, axis=1)).squeeze(-1)


def main(steps=300, compiled=True):
    wf.manual_seed(0)
    rng = np.random.default_rng(0)
    data = listings(1200, rng)
    rows = [{k: v[i] for k, v in data.items()} for i in range(1200)]
    loader = wf.data.DataLoader(rows, batch_size=48, shuffle=True)
    model = Appraiser()
    optimizer = wf.optim.AdamW(model.parameters(), lr=3e-3)

    def step(batch):
        optimizer.zero_grad()
        loss = F.huber_loss(model(batch), batch["price"])
        loss.backward()
        wf.optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    if compiled:
        step = wf.compile(step)
    losses: list[float] = []
    while len(losses) < steps:
        for batch in loader:
            losses.append(step(batch).item())
            if len(losses) % 25 == 0:
                print(f"step {len(losses):4d}   loss {losses[-1]:.4f}")
            if len(losses) == steps:
                break

    model.eval()
    new = {k: wf.tensor(v) for k, v in listings(200, rng).items()}
    with wf.no_grad():
        off = (model(new) - new["price"]).abs().mean().item()
    print(f"off by {off:.2f} on average; prices vary by {new['price'].std().item():.2f}")
    return losses, model


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a few steps only")
    options.add_argument("--eager", action="store_true", help="not compiled")
    given = options.parse_args()
    main(10 if given.quick else 300, not given.eager)
