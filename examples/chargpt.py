"""A character-level GPT that learns a nursery rhyme by heart and recites it.

Sampling keeps keys and values of the characters so far, so each new one costs a single position.
"""

import argparse

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft import nn

RHYME = """house that Jack built.
malt that lay in the
rat that ate the
cat that chased the
dog that worried the
cow with the crumpled horn that tossed the
maiden all forlorn that milked the
man all tattered and torn that kissed the
priest all shaven and shorn that married the
cock that crowed in the morn that woke the""".splitlines()


def text():
    """The whole rhyme: every verse takes in the one before."""
    verses = [RHYME[n::-1] for n in range(len(RHYME))]
    return "\n".join("This is the " + " ".join(verse) for verse in verses) + "\n"


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend = nn.MultiheadAttention(width, heads, batch_first=True)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache=None):  # (B, T, C)
        h = self.norm1(x)
        x = x + self.attend(h, h, h, need_weights=False, is_causal=cache is None, cache=cache)[0]
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, characters, length, width=64, heads=4, blocks=2):
        super().__init__()
        self.heads, self.length = heads, length
        self.token, self.place = nn.Embedding(characters, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters, bias=False)

    def forward(self, ids, caches=None):  # (B, T) -> (B, T, characters)
        places = wf.arange(ids.shape[1]) + (0 if caches is None else caches[0].size)
        x = self.token(ids) + self.place(places)
        for n, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[n])
        return self.head(self.norm(x))

    def caches(self):
        each = self.token.weight.shape[1] // self.heads
        return [nn.KeyValueCache(1, self.heads, self.length, each) for _ in self.blocks]


def sample(model, start, count, temperature, compiled):
    """Character numbers that go on from `start`."""
    caches = model.caches()

    def following(ids):
        logits = model(ids, caches)[:, -1] / temperature
        noise = -wf.log(-wf.log(wf.rand(*logits.shape)))  # argmax with Gumbel noise is a draw
        return (logits + noise).argmax(axis=1).reshape(1, 1)

    following = wf.compile(following) if compiled else following
    ids, out = wf.tensor([start]), []
    with wf.no_grad():
        for _ in range(count):
            ids = following(ids)
            out.append(ids.item())
    return out


def main(steps=400, compiled=True, batch=16, length=96, sampled=80):
    wf.manual_seed(0)
    rng, words = np.random.default_rng(0), text()
    characters = sorted(set(words))
    number = {c: n for n, c in enumerate(characters)}
    data = np.array([number[c] for c in words])
    model = GPT(len(characters), length)
    optimizer = wf.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)

    def step(ids, following):
        optimizer.zero_grad()
        logits = model(ids)
        loss = F.cross_entropy(logits.reshape(-1, len(characters)), following.reshape(-1))
        loss.backward()
        wf.optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    step = wf.compile(step) if compiled else step
    losses = []
    for n in range(1, steps + 1):
        at = rng.integers(0, len(data) - length, batch)[:, None] + np.arange(length)
        losses.append(step(wf.tensor(data[at]), wf.tensor(data[at + 1])).item())
        if n % 25 == 0:
            print(f"step {n:4d}   loss {losses[-1]:.4f}")

    model.eval()
    found = sample(model, [number[c] for c in "This is the "], sampled, 0.5, compiled)
    print("This is the " + "".join(characters[i] for i in found))
    return losses + found, model


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a few steps only")
    options.add_argument("--eager", action="store_true", help="not compiled")
    given = options.parse_args()
    main(10 if given.quick else 400, not given.eager)
