"""A network with the shape of its input: it learns to work out formulas such as (T and not F) or T.

Every formula is a tree, and the network goes through it by plain recursion. No two formulas need
be alike; compiled, each shape of tree is captured once, whatever its letters are.
"""

import argparse

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft import nn


def formula(rng, depth):
    """A random tree: (operation, operands...), or 1 for true and 0 for false in a tensor."""
    if not depth:
        return wf.tensor([int(rng.integers(2))])
    kind = str(rng.choice(["and", "or", "not"]))
    return (kind, *(formula(rng, depth - 1) for _ in range(1 if kind == "not" else 2)))


def truth(tree):
    if isinstance(tree, wf.Tensor):
        return bool(tree.item())
    operation, *operands = tree
    values = [truth(t) for t in operands]
    return not values[0] if operation == "not" else {"and": all, "or": any}[operation](values)


def said(tree):
    if isinstance(tree, wf.Tensor):
        return "FT"[int(tree.item())]
    operation, *parts = tree
    operands = [said(t) for t in parts]
    return f"not {operands[0]}" if operation == "not" else f"({f' {operation} '.join(operands)})"


class TreeNet(nn.Module):
    """A vector for every part of a formula, made of those of its parts."""

    def __init__(self, width=16):
        super().__init__()
        self.letters = nn.Embedding(2, width)
        self.operations = nn.ModuleDict(
            {"not": nn.Linear(width, width)}
            | {name: nn.Linear(2 * width, width) for name in ("and", "or")}
        )
        self.head = nn.Linear(width, 1)

    def vector(self, tree):
        if isinstance(tree, wf.Tensor):
            return self.letters(tree)  # (1, C)
        operation, *operands = tree
        parts = wf.concat([self.vector(t) for t in operands], axis=1)
        return F.tanh(self.operations[operation](parts))

    def forward(self, tree):
        return self.head(self.vector(tree)).reshape(())


def main(steps=600, compiled=True, depth=2):
    wf.manual_seed(0)
    rng = np.random.default_rng(0)
    model = TreeNet()
    optimizer = wf.optim.Adam(model.parameters(), lr=1e-2)

    def step(tree, answer):
        optimizer.zero_grad()
        score = model(tree)
        loss = F.binary_cross_entropy_with_logits(score, answer)
        loss.backward()
        optimizer.step()
        return loss

    if compiled:
        step = wf.compile(step)
    losses = []
    for n in range(1, steps + 1):
        tree = formula(rng, rng.integers(0, depth + 1))
        losses.append(step(tree, wf.tensor(float(truth(tree)))).item())
        if n % 100 == 0:
            print(f"step {n:4d}   mean loss {np.mean(losses[-100:]):.4f}")

    with wf.no_grad():
        tests = [formula(rng, depth + 1) for _ in range(100)]  # deeper than any it has seen
        found = [(model(t).item() > 0) == truth(t) for t in tests]
    for tree, right in list(zip(tests, found, strict=True))[:3]:
        print(f"{said(tree)}: {'right' if right else 'wrong'}")
    print(f"{np.mean(found):.0%} of deeper formulas are right")
    return losses, model


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a few steps only")
    options.add_argument("--eager", action="store_true", help="not compiled")
    given = options.parse_args()
    main(20 if given.quick else 600, not given.eager)
