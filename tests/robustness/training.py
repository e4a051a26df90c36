"""Training with all that changes state: shuffling, dropout, batch norm, clipping, an optimizer, a
schedule, a mean of the weights.
"""

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft import nn


def trainer(compiled):
    """A function that trains for so many steps."""
    wf.manual_seed(0)
    rng = np.random.default_rng(0)
    data = wf.data.TensorDataset(rng.normal(size=(96, 6)).astype(np.float32), np.arange(96) % 3)
    loader = wf.data.DataLoader(data, batch_size=32, shuffle=True)
    model = nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 3)
    )
    opt = wf.optim.AdamW(model.parameters())
    schedule = wf.optim.CosineAnnealingLR(opt, 100)
    mean = wf.optim.EMA(model)

    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        wf.optim.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        mean.update(model)
        return loss

    call = wf.compile(step, fallback=False) if compiled else step

    def train(steps):
        done = 0
        while done < steps:
            for x, y in loader:
                call(x, y).item()
                schedule.step()
                done += 1

    return train
