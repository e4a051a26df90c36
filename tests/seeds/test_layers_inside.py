"""Layers made inside a compiled function, and sequences of every length."""

from __future__ import annotations

import weft as wf
import weft.nn.functional as F
from weft import nn


def static_model(x):
    if x.mean() > 0.5:
        x = nn.Linear(x.shape[-1], 5)(x)
    else:
        x = wf.relu(nn.Linear(x.shape[-1], 5)(x))
    return nn.Linear(5, 1)(x)


def handle_variable_length(x, max_length=100):
    """Padding, where the graph has one size."""
    current_length = x.shape[1]
    padding = max_length - current_length
    padded_x = F.pad(x, (0, padding))
    return static_model(padded_x)


def seeded(f, x, seed):
    wf.manual_seed(seed)
    out = f(x)
    return out.shape, out.numpy().tobytes(), wf.rand((2,)).tolist()


def test_a_layer_made_inside_is_another_one_every_time_as_in_eager_code():
    compiled = wf.compile(static_model, fallback=False)
    for seed, x in enumerate((wf.rand((4, 10)), wf.rand((4, 10)) + 1, wf.rand((4, 10)))):
        assert seeded(compiled, x, seed) == seeded(static_model, x, seed)
    x = wf.rand((4, 10))
    assert seeded(compiled, x, 1) != seeded(compiled, x, 2)
    assert compiled.captures == 1


def test_a_layer_made_once_is_kept():
    class Lazy(nn.Module):
        layer = None

        def forward(self, x):
            if self.layer is None:
                self.layer = nn.Linear(x.shape[-1], 5)
            return self.layer(x)

    model = Lazy()
    x = wf.rand((4, 10))
    want = model(x)
    assert wf.compile(model, fallback=False)(x).tolist() == want.tolist()


def test_branches_draw_different_amounts():
    def f(x):
        if x.sum() > 0:
            return x * wf.rand((3,))
        return x * wf.rand((4,)).sum()

    compiled = wf.compile(f, fallback=False)
    for seed, x in enumerate((wf.ones(3), -wf.ones(3))):
        assert seeded(compiled, x, seed) == seeded(f, x, seed)
    assert compiled.captures == 1


def test_handle_variable_length_by_padding():
    compiled = wf.compile(handle_variable_length, fallback=False)
    for seed, n in enumerate((7, 30, 100, 1, 55)):
        x = wf.rand((3, n))
        assert seeded(compiled, x, seed) == seeded(handle_variable_length, x, seed)
    assert compiled.captures <= 2, compiled.reasons


def test_handle_variable_length_without_padding():
    wf.manual_seed(0)
    embed, head = nn.Linear(4, 8), nn.Linear(8, 1)

    def model(x):
        y = wf.tanh(embed(x))
        if y.mean() > 0:
            y = y * 2
        h = wf.zeros((3, 8))
        for t in range(x.shape[1]):
            h = h * 0.9 + y[:, t]
        return head(h)

    compiled = wf.compile(model, fallback=False)
    for n in (7, 30, 100, 2, 55, 3):
        x = wf.randn((3, n, 4))
        assert compiled(x).numpy().tobytes() == model(x).numpy().tobytes()
    assert compiled.captures <= 2, compiled.reasons
