"""Balance a pole on a cart by trying: policy gradients with a learned baseline (Williams, 1992).

Many carts run side by side. A game ends when its pole leans too far or its cart has run off.
"""

import argparse

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft import nn


class Carts:
    """Carts with poles (Barto, Sutton and Anderson, 1983): position, speed, angle, its speed."""

    def __init__(self, n, rng):
        self.state = rng.uniform(-0.05, 0.05, (n, 4))
        self.alive = np.ones(n, bool)

    def push(self, right):
        """Twenty milliseconds of a push of 10 N to one side or the other."""
        x, v, angle, turn = self.state.T
        sin, cos = np.sin(angle), np.cos(angle)
        force = np.where(right, 10.0, -10.0)
        pull = (force + 0.05 * turn**2 * sin) / 1.1
        bend = (9.8 * sin - cos * pull) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        slide = pull - 0.05 * bend * cos / 1.1
        moved = np.stack([x + 0.02 * v, v + 0.02 * slide, angle + 0.02 * turn, turn + 0.02 * bend])
        self.state = np.where(self.alive[:, None], moved.T, self.state)
        self.alive &= (np.abs(self.state[:, 0]) < 2.4) & (np.abs(self.state[:, 2]) < 0.21)


class Player(nn.Module):
    """From what is seen of a cart: the log-odds of a push to the right, and the game to come."""

    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.Tanh())
        self.push, self.worth = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, state):  # (…, 4) -> (…,) and (…,)
        h = self.body(state)
        return self.push(h).squeeze(-1), self.worth(h).squeeze(-1)


def play(act, rng, games, length):
    """States (T, n, 4), pushes, and rewards (T, n): 1 while the pole stands."""
    carts, states, pushes, rewards = Carts(games, rng), [], [], []
    for _ in range(length):
        seen = carts.state.astype(np.float32)
        right = act(wf.tensor(seen)).numpy()
        states.append(seen)
        pushes.append(right)
        rewards.append(carts.alive.astype(np.float32))
        carts.push(right > 0)
    return np.stack(states), np.stack(pushes), np.stack(rewards)


def returns(rewards, discount=0.97):
    """What each moment was worth: a mean of the rewards from then on, later ones counting less."""
    out = np.zeros_like(rewards)
    total = np.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        out[t] = total = (1 - discount) * rewards[t] + discount * total
    return out


def main(steps=60, compiled=True, games=16, length=200):
    wf.manual_seed(0)
    rng = np.random.default_rng(0)
    model = Player()
    optimizer = wf.optim.Adam(model.parameters(), lr=1e-2)

    def act(state):
        with wf.no_grad():
            return wf.bernoulli(F.sigmoid(model(state)[0]))

    def learn(states, pushes, worth, alive):
        optimizer.zero_grad()
        odds, guess = model(states)
        surprise = F.binary_cross_entropy_with_logits(odds, pushes, reduction="none")
        better = (worth - guess).detach()  # than was to be expected
        better = better / ((alive * better**2).sum() / alive.sum() + 1e-3).sqrt()
        policy = (alive * better * surprise).sum() / alive.sum()
        baseline = (alive * (worth - guess) ** 2).sum() / alive.sum()
        loss = policy + 0.5 * baseline
        loss.backward()
        wf.optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    if compiled:
        act, learn = wf.compile(act), wf.compile(learn)
    losses = []
    for n in range(1, steps + 1):
        states, pushes, rewards = play(act, rng, games, length)
        losses.append(learn(*map(wf.tensor, (states, pushes, returns(rewards), rewards))).item())
        if n % 10 == 0:
            print(f"round {n:3d}   poles stand for {rewards.sum(axis=0).mean():5.1f} of {length}")
    return losses, model


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a few steps only")
    options.add_argument("--eager", action="store_true", help="not compiled")
    given = options.parse_args()
    short = {"steps": 3, "games": 8, "length": 50} if given.quick else {}
    main(compiled=not given.eager, **short)
