"""Weights that the reverse of a function that calls itself reads: transposed once, never another
bit.
"""

import numpy as np
import pytest
from control_lab import bits

import weft as wf

RNG = np.random.default_rng(0)
PAIRS = [(0, 1), (2, 3), (5, 6), (4, 7)]  # of leaves 0 to 4, then of pairs
LEFT = wf.tensor([-1] * 5 + [a for a, _ in PAIRS])
RIGHT = wf.tensor([*range(5), *(b for _, b in PAIRS)])


def weight(*shape, dtype=np.float32):
    return wf.tensor((RNG.standard_normal(shape) * 0.1).astype(dtype), requires_grad=True)


def reads(call):
    """How contractions of the functions read their second operand."""
    routines = call.latest[1].forward.last.routines
    specs = [x.spec for r in routines for s in r.plan.steps for x in s.launch.phases]
    return {s.r for s in specs if type(s).__name__ == "ContractSpec"}


def compared(join, *weights):
    """The gradients through a tree, and the compiled function."""
    table = weights[0]

    def step(root):
        def encode(node):
            if LEFT[node] < 0:
                return table[RIGHT[node]].reshape(1, -1)
            return join(encode(LEFT[node]), encode(RIGHT[node]))

        total = encode(root).sum()
        total.backward()
        out = [w.grad for w in weights]
        for w in weights:
            w.grad = None
        return [total.detach(), *out]

    call, root = wf.compile(step, fallback=False), wf.tensor(len(LEFT) - 1)
    assert bits(call(root)) == bits(step(root))
    return call


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [64, 67, 200])
def test_a_weight_that_is_read_along_its_rows(width, dtype):
    table, w = weight(5, width, dtype=dtype), weight(2 * width, width, dtype=dtype)
    call = compared(lambda a, b: (wf.concat([a, b], axis=1) @ w).tanh(), table, w)
    assert "turn" not in reads(call)


def test_a_small_weight_is_not_copied():
    table, w = weight(5, 32), weight(64, 32)
    call = compared(lambda a, b: (wf.concat([a, b], axis=1) @ w).tanh(), table, w)
    assert "turn" in reads(call)


def test_a_weight_that_is_read_both_ways():
    table, w = weight(5, 96), weight(96, 96)
    compared(lambda a, b: ((a @ w).tanh() @ w.T + b).tanh(), table, w)
    compared(lambda a, b: (a @ w + b * w[3]).tanh(), table, w)
