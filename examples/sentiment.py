"""Praise or complaint? An LSTM reads sentences of any length, sorted into buckets of like lengths.

Batches of a bucket are padded to its longest sentence: there are as many shapes as buckets.
"""

import argparse

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft import nn

GOOD, BAD = "good great lovely clever warm".split(), "bad dull awful clumsy cold".split()
THINGS = "film book song meal play story".split()
FILLERS = "I think that you know well really in the end for all we heard".split()
WORDS = ["<pad>", *GOOD, *BAD, *THINGS, *FILLERS, "the", "was", "not", "and"]
NUMBER = {w: n for n, w in enumerate(WORDS)}


def sentence(rng):
    """Numbers of words, and 1 where what is said of most things is good."""
    words, votes = [], 0
    for _ in range(rng.choice([1, 3, 5])):
        words += rng.choice(FILLERS, rng.integers(0, 6)).tolist()
        good, negated = rng.integers(0, 2, 2)
        words += ["the", rng.choice(THINGS), "was"] + ["not"] * negated
        words += [rng.choice(GOOD if good else BAD), "and"]
        votes += 1 if good != negated else -1
    return [NUMBER[w] for w in words[:-1]], int(votes > 0)


class Reader(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(len(WORDS), width)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, 1)

    def forward(self, ids, lengths):  # (B, T), (B,) -> (B,)
        x = self.embed(ids)
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        _, (h, _) = self.lstm(packed)  # the last states of both directions (2, B, C)
        return self.head(wf.concat([h[0], h[1]], axis=1)).reshape(-1)


def main(steps=200, compiled=True):
    wf.manual_seed(0)
    rng = np.random.default_rng(0)
    data = [sentence(rng) for _ in range(1200)]
    sampler = wf.data.BucketSampler([len(s) for s, _ in data], 40, buckets=4, drop_last=True)

    def collate(batch):
        ids = [s for s, _ in batch]
        padded = wf.data.pad_sequence(ids, batch_first=True, to=sampler.boundaries)
        lengths, labels = [len(s) for s in ids], [float(y) for _, y in batch]
        return padded, wf.tensor(lengths), wf.tensor(labels)

    loader = wf.data.DataLoader(data, batch_sampler=sampler, collate_fn=collate)
    model = Reader()
    optimizer = wf.optim.Adam(model.parameters(), lr=5e-3)

    def step(ids, lengths, labels):
        optimizer.zero_grad()
        scores = model(ids, lengths)
        loss = F.binary_cross_entropy_with_logits(scores, labels)
        loss.backward()
        wf.optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss, ((scores > 0) == (labels > 0.5)).astype(wf.float32).mean()

    if compiled:
        step = wf.compile(step)
    losses: list[float] = []
    right: list[float] = []
    while len(losses) < steps:
        for batch in loader:
            loss, share = step(*batch)
            losses.append(loss.item())
            right.append(share.item())
            if len(losses) % 20 == 0:
                print(f"step {len(losses):4d}   loss {losses[-1]:.4f}   {np.mean(right[-20:]):.0%}")
            if len(losses) == steps:
                break
    if compiled:
        print(f"{getattr(step, 'captures', 0)} captures for {len(sampler.boundaries)} lengths")
    return losses, model


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a few steps only")
    options.add_argument("--eager", action="store_true", help="not compiled")
    given = options.parse_args()
    main(8 if given.quick else 200, not given.eager)
