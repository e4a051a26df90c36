"""Convolutions of every odd proportion: strides beyond the input, one position, few channels."""

import itertools

import numpy as np
import pytest
import torch

import weft as wf

CHANNELS = [(4, 6, 2), (64, 6, 2), (3, 40, 1), (32, 3, 5)]


@pytest.mark.parametrize("stride", [1, 2, 7, 9, 33])
@pytest.mark.parametrize("padding", [0, 1, 2])
def test_conv2d_agrees_with_torch(stride, padding):
    rng = np.random.default_rng(0)
    for n, k, (c, o, b) in itertools.product((5, 8), (1, 3, 4), CHANNELS):
        x = rng.standard_normal((b, c, n, n)).astype(np.float32)
        w = rng.standard_normal((o, c, k, k)).astype(np.float32)
        got = wf.nn.functional.conv2d(wf.tensor(x), wf.tensor(w), None, stride, padding)
        want = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w), None, stride, padding)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)
