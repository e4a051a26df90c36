"""A variational autoencoder: pictures of rings from two numbers (Kingma and Welling, 2013).

The encoder says where in the plane a picture belongs, and how sure it is; the decoder paints what
belongs to a point. Afterwards a walk over the plane shows what has been learned.
"""

import argparse

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft import nn

SIDE = 16


def rings(n, rng):
    """Pictures (n, SIDE * SIDE) of rings of any size, somewhere on a line."""
    y, x = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    at, radius = rng.uniform(-4, 4, (n, 1, 1)), rng.uniform(2, 6, (n, 1, 1))
    away = np.hypot(x - at, y) - radius
    return np.exp(-(away**2)).reshape(n, -1).astype(np.float32)


class VAE(nn.Module):
    def __init__(self, width=64, latent=2):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SIDE * SIDE, width), nn.Tanh())
        self.mean, self.log_variance = nn.Linear(width, latent), nn.Linear(width, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, width), nn.Tanh(), nn.Linear(width, SIDE * SIDE)
        )

    def forward(self, x):
        h = self.encoder(x)
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + (0.5 * log_variance).exp() * wf.randn(*mean.shape)
        return self.decoder(z), mean, log_variance


def bound(x, logits, mean, log_variance):
    """What one picture costs: to paint it from its point, and to say the point."""
    paint = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    say = -0.5 * (1 + log_variance - mean * mean - log_variance.exp()).sum()
    return (paint + say) / x.shape[0]


def picture(model, across=5, down=3):
    """The decoder's pictures over the plane, in characters."""
    b, a = wf.meshgrid(wf.linspace(-1.5, 1.5, down), wf.linspace(-1.5, 1.5, across), indexing="ij")
    with wf.no_grad():
        z = wf.stack([a.reshape(-1), b.reshape(-1)], axis=1)
        grid = F.sigmoid(model.decoder(z)).numpy()
    grid = grid.reshape(down, across, SIDE, SIDE)[:, :, ::2].transpose(0, 2, 1, 3)
    rows = grid.reshape(-1, across * SIDE)
    return "\n".join("".join(" .:+#"[min(int(5 * v), 4)] for v in row) for row in rows)


def main(steps=600, compiled=True):
    wf.manual_seed(0)
    rng = np.random.default_rng(0)
    model = VAE()
    optimizer = wf.optim.Adam(model.parameters(), lr=3e-3)

    def step(x):
        optimizer.zero_grad()
        loss = bound(x, *model(x))
        loss.backward()
        optimizer.step()
        return loss

    if compiled:
        step = wf.compile(step)
    losses = []
    for n in range(1, steps + 1):
        losses.append(step(wf.tensor(rings(64, rng))).item())
        if n % 100 == 0:
            print(f"step {n:4d}   loss {losses[-1]:.2f}")
    print(picture(model))
    return losses, model


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a few steps only")
    options.add_argument("--eager", action="store_true", help="not compiled")
    given = options.parse_args()
    main(20 if given.quick else 600, not given.eager)
