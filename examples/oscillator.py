"""A network that solves a differential equation, knowing the law and no solution (PINN).

The law is the damped oscillator's, u'' + 2 d u' + w² u = 0 with u(0) = 1 and u'(0) = 0. The loss
holds derivatives of the network by its input, and training differentiates through them once more.
"""

import argparse
import math

import weft as wf
from weft import nn

DAMPING, FREQUENCY, END = 0.3, 2.0, 3.0


def solution(t):
    """What the network should find, known here for the picture alone."""
    f = math.sqrt(FREQUENCY**2 - DAMPING**2)
    return math.exp(-DAMPING * t) * (math.cos(f * t) + DAMPING / f * math.sin(f * t))


def main(steps=1500, compiled=True):
    wf.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )
    optimizer = wf.optim.Adam(model.parameters(), lr=5e-3)
    schedule = wf.optim.CosineAnnealingLR(optimizer, T_max=steps)

    # of a sum over moments, the derivative by each moment is that moment's own
    u = lambda t: model(t).sum()
    first = wf.grad(u)
    second = wf.grad(lambda t: first(t).sum())

    def law(t):
        """How far the network is from obeying the law at moments t (n, 1)."""
        return second(t) + 2 * DAMPING * first(t) + FREQUENCY**2 * model(t)

    def step(t):
        optimizer.zero_grad()
        zero = wf.zeros((1, 1))
        start = (model(zero) - 1.0) ** 2 + first(zero) ** 2
        loss = (law(t) ** 2).mean() + 20.0 * start.sum()
        loss.backward()
        optimizer.step()
        return loss

    if compiled:
        step = wf.compile(step)
    losses = []
    for n in range(1, steps + 1):
        losses.append(step(END * wf.rand(64, 1)).item())
        schedule.step()
        if n % 250 == 0:
            print(f"step {n:5d}   loss {losses[-1]:.5f}")

    print("   t      network   solution")
    with wf.no_grad():
        for t in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0):
            print(f"{t:4.1f}  {model(wf.tensor([[t]])).item():10.4f} {solution(t):10.4f}")
    return losses, model


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a few steps only")
    options.add_argument("--eager", action="store_true", help="not compiled")
    given = options.parse_args()
    main(20 if given.quick else 1500, not given.eager)
