"""Training curves of three examples in Weft (compiled) and PyTorch: one network, one set of first
weights, one row of batches, and losses that stay together.

What is float noise is measured too: PyTorch again, with the rows of each batch in other orders.
That changes nothing but roundings, and now and then one of them takes a relu to its other side.

    python -m benchmarks.curves [digits images chargpt] [--svg docs/curves.svg]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

import weft as wf
from benchmarks.workloads import examples_with_torch, examples_with_weft, of_examples
from benchmarks.workloads.numbers import Array
from weft import nn

NAMES = ("digits", "images", "chargpt")
STEPS, RATE = 200, 1e-3


def batches(name: str, steps: int) -> list[list[Array]]:
    """What each step takes; no two are alike."""
    rng, module = np.random.default_rng(3), of_examples.example(name)
    if name == "digits":
        pixels, labels = module.digits()
        rows = [rng.integers(0, len(labels), 60) for _ in range(steps)]
        return [[pixels[r], labels[r]] for r in rows]
    if name == "images":
        return [list(module.pictures(32, rng)) for _ in range(steps)]
    text = module.text()
    characters = sorted(set(text))
    data = np.array([characters.index(c) for c in text])
    length = of_examples.GPT_LENGTH
    at = [rng.integers(0, len(data) - length, 8)[:, None] + np.arange(length) for _ in range(steps)]
    return [[data[a], data[a + 1]] for a in at]


def ours(name: str, data: list[list[Array]], weights: dict[str, Array]) -> list[float]:
    """Losses of Weft, compiled."""
    model, loss_of = examples_with_weft.build(name)
    model.load_state_dict(weights, strict=False)
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0.0
    return _losses(wf.optim.AdamW(model.parameters(), RATE), loss_of, data, wf.tensor, wf.compile)


def theirs(name: str, data: list[list[Array]], weights: dict[str, Array]) -> list[float]:
    """Losses of PyTorch, eager."""
    model, loss_of = examples_with_torch.build(name)
    model.load_state_dict({k: torch.tensor(v) for k, v in weights.items()}, strict=False)
    opt = torch.optim.AdamW(model.parameters(), RATE)
    return _losses(opt, loss_of, data, torch.tensor, lambda step: step)


def _losses(
    opt: Any, loss_of: Any, data: list[list[Array]], tensor: Callable[[Array], Any], by: Any
) -> list[float]:
    def step(*batch: Any) -> Any:
        opt.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        opt.step()
        return loss

    call = by(step)
    return [call(*map(tensor, batch)).item() for batch in data]


class Curves(NamedTuple):
    """Losses step by step, and how far PyTorch's are from its own in other orders of rows."""

    ours: Array
    theirs: Array
    noise: float

    def apart(self) -> float:
        """How far ours are from PyTorch's."""
        return _apart(self.ours, self.theirs)


def _apart(a: Array, b: Array) -> float:
    """The largest difference, of the first loss."""
    return float(np.abs(a - b).max() / b[0])


def curves(name: str, steps: int = STEPS, orders: int = 4) -> Curves:
    """The losses of both."""
    data, before = batches(name, steps), torch.get_num_threads()
    model, _ = examples_with_weft.build(name)
    weights = of_examples.weights((k, p.shape) for k, p in model.named_parameters())
    torch.set_num_threads(1)
    try:
        other = np.array(theirs(name, data, weights))
        again = [np.array(theirs(name, _ordered(data, n), weights)) for n in range(orders)]
    finally:
        torch.set_num_threads(before)
    noise = max(_apart(losses, other) for losses in again)
    return Curves(np.array(ours(name, data, weights)), other, noise)


def _ordered(data: list[list[Array]], seed: int) -> list[list[Array]]:
    """The same batches with their rows in another order."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(batch[0])) for batch in data]
    return [[a[order] for a in batch] for batch, order in zip(data, orders, strict=True)]


WIDTH, HEIGHT, GAP = 250, 150, 40


def picture(found: dict[str, Curves]) -> str:
    """Both curves of each example, PyTorch's broad beneath Weft's, as SVG."""
    parts = []
    for n, (name, curve) in enumerate(found.items()):
        mine, other, _ = curve
        left, top = GAP + n * (WIDTH + GAP), 30
        most = max(mine.max(), other.max())
        frame = f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" class="frame"/>'
        said = f"{name}: at most {curve.apart():.0e} apart"
        parts += [frame, f'<text x="{left}" y="{top - 10}">{said}</text>']
        for kind, losses in (("theirs", other), ("ours", mine)):
            x = left + np.arange(len(losses)) * WIDTH / max(len(losses) - 1, 1)
            y = top + HEIGHT * (1 - losses / most)
            points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
            parts.append(f'<polyline points="{points}" class="{kind}"/>')
        parts.append(f'<text x="{left - 6}" y="{top + 10}" class="end">{most:.1f}</text>')
        parts.append(f'<text x="{left - 6}" y="{top + HEIGHT}" class="end">0</text>')
        last = (
            f'<text x="{left + WIDTH}" y="{top + HEIGHT + 18}" class="end">step {len(mine)}</text>'
        )
        parts.append(last)
    wide, high = GAP + len(found) * (WIDTH + GAP), HEIGHT + 90
    said = "loss; broad and pale: PyTorch, thin: Weft, compiled"
    key = f'<text x="{GAP}" y="{high - 12}">{said}</text>'
    style = (
        "text{font:13px sans-serif;fill:#555}.end{text-anchor:end}.frame{fill:none;stroke:#ccc}"
        "polyline{fill:none}.theirs{stroke:#f5b041;stroke-width:6}.ours{stroke:#1a5276}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}">'
    return "\n".join([head, f"<style>{style}</style>", *parts, key, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", choices=[[], *NAMES])
    parser.add_argument("--svg", help="write the picture to a file")
    args = parser.parse_args()
    found = {}
    for name in args.what or NAMES:
        curve = found[name] = curves(name)
        found_here = f"{curve.apart():.1e} apart; PyTorch from itself {curve.noise:.1e}"
        print(
            f"{name:8s} from {curve.ours[0]:.3f} to {curve.ours[-1]:.3f}, {found_here}", flush=True
        )
    if args.svg:
        with open(args.svg, "w", encoding="utf-8") as file:
            file.write(picture(found))


if __name__ == "__main__":
    main()
