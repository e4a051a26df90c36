"""Two hundred steps of training take the course that they take in PyTorch."""

import numpy as np
import pytest

from benchmarks.curves import NAMES, STEPS, curves


@pytest.mark.parametrize("name", NAMES)
def test_curves_agree_with_pytorch_within_float_noise(name):
    """As closely as PyTorch's own do when the rows of batches come in other orders."""
    found = curves(name, orders=2)
    assert len(found.ours) == STEPS and np.isfinite(found.ours).all()
    assert found.ours[-10:].mean() < 0.5 * found.ours[:10].mean()
    assert found.apart() <= 3 * found.noise + 1e-6
