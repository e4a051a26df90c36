"""Rewrite dates: "7 march 1984" becomes "1984-03-07". Sequence to sequence, with attention.

A GRU reads the characters; another writes, and looks at each step at what it needs of the first.
"""

import argparse

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft import nn

MONTHS = """january february march april may june july august september october november
december""".split()
CHARACTERS = "\n\t" + " -0123456789abcdefghijklmnopqrstuvwxyz"  # end, start, and the others
END, START = 0, 1
READ, WRITE = 17, 11  # the longest date, and the end behind the other form


def dates(n, rng):
    """Numbers of characters of n dates in both forms: (n, READ) and (n, WRITE)."""
    drawn = rng.integers([1, 0, 1900], [29, 12, 2100], (n, 3))
    pairs = [(f"{d} {MONTHS[m]} {y}", f"{y}-{m + 1:02d}-{d:02d}") for d, m, y in drawn]
    sides = zip(*pairs, strict=True)
    return [numbers(side, k) for side, k in zip(sides, (READ, WRITE), strict=True)]


def numbers(texts, length):
    return np.array([[CHARACTERS.index(c) for c in t.ljust(length, "\n")] for t in texts])


def spelled(ids):
    return "".join(CHARACTERS[i] for i in ids).split("\n")[0]


class Translator(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed = nn.Embedding(len(CHARACTERS), width)
        self.read = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.keys = nn.Linear(2 * width, width)
        self.write = nn.GRUCell(3 * width, width)
        self.out = nn.Linear(3 * width, len(CHARACTERS))

    def encode(self, source):  # (B, READ)
        memory, last = self.read(self.embed(source))  # (B, READ, 2C), (2, B, C)
        return memory, self.keys(memory), last[1]

    def next(self, token, h, memory, keys):
        """Scores of the next character, and the state behind it."""
        weights = F.softmax((keys @ h.expand_dims(-1)).squeeze(-1) / 7.0, dim=-1)  # (B, READ)
        seen = (weights.expand_dims(1) @ memory).squeeze(1)  # (B, 2C)
        h = self.write(wf.concat([self.embed(token), seen], axis=1), h)
        return self.out(wf.concat([h, seen], axis=1)), h

    def forward(self, source, target):
        """Scores (B, WRITE, characters), each seeing what should have been written before."""
        memory, keys, h = self.encode(source)
        token, scores = wf.full_like(target[:, 0], START), []
        for t in range(target.shape[1]):
            s, h = self.next(token, h, memory, keys)
            scores.append(s)
            token = target[:, t]
        return wf.stack(scores, axis=1)

    def translate(self, source):
        """The likeliest character after each, until all texts have ended."""
        memory, keys, h = self.encode(source)
        token = wf.full_like(source[:, 0], START)
        out = wf.zeros((WRITE, source.shape[0]), dtype=wf.int64)
        t = 0
        while t < WRITE and (token != END).any():
            scores, h = self.next(token, h, memory, keys)
            token = scores.argmax(axis=1)
            out[t] = token
            t += 1
        return out.T


def main(steps=400, compiled=True):
    wf.manual_seed(0)
    rng = np.random.default_rng(0)
    model = Translator()
    optimizer = wf.optim.Adam(model.parameters(), lr=4e-3)

    def step(source, target):
        optimizer.zero_grad()
        scores = model(source, target)
        loss = F.cross_entropy(scores.reshape(-1, len(CHARACTERS)), target.reshape(-1))
        loss.backward()
        wf.optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    translate = model.translate
    if compiled:
        step, translate = wf.compile(step), wf.compile(translate)
    losses = []
    for n in range(1, steps + 1):
        losses.append(step(*map(wf.tensor, dates(64, rng))).item())
        if n % 50 == 0:
            print(f"step {n:4d}   loss {losses[-1]:.4f}")

    source, target = dates(64, rng)
    with wf.no_grad():
        found = translate(wf.tensor(source)).numpy()
    for s, f in zip(source[:3], found, strict=False):
        print(f"{spelled(s):18s} -> {spelled(f)}")
    print(f"{(found == target).all(axis=1).mean():.0%} of new dates are right")
    return losses + found.ravel().tolist(), model


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a few steps only")
    options.add_argument("--eager", action="store_true", help="not compiled")
    given = options.parse_args()
    main(10 if given.quick else 400, not given.eager)
