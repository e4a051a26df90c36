"""Large products computed again: the same bits, a lower peak, little more work."""

import pytest

import weft as wf
import weft.nn.functional as F
from tests.compile.programs import functions
from weft import nn
from weft.ops.language import verify
from weft.schedule import recompute as recomputing, relieve as relieving
from weft.schedule.beside import products
from weft.schedule.order import arrange, most
from weft.schedule.partition import partition
from weft.schedule.recompute import recompute


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        heads = self.qkv(self.norm(x)).reshape(b, t, 3, 4, -1)
        q, k, v = wf.unstack(wf.permute_dims(heads, (2, 0, 3, 1, 4)))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(wf.permute_dims(y, (0, 2, 1, 3)).reshape(b, t, c))


def training():
    """A step that keeps several large products for its gradient, and what it trains on."""
    wf.manual_seed(0)
    net = nn.Sequential(*(Layer(32) for _ in range(8)))

    def step(x):
        for p in net.parameters():
            p.grad = None
        loss = F.mse_loss(net(x), x)
        loss.backward()
        return loss, [p.grad for p in net.parameters()]

    return step, wf.rand((4, 32, 32))


@pytest.fixture
def eager_to_relieve(monkeypatch):
    """Products of the tests' size count as large; a tenth of the work may be done again."""
    monkeypatch.setattr(relieving, "LARGE", 1 << 14)
    monkeypatch.setattr(relieving, "WORK", 0.1)


def work(f):
    return sum(products(n) for n in f.order if n.op.contract is not None)


def planned(step, x):
    """The function of a step as it is captured."""
    c = wf.compile(step, fallback=False)
    c(x)
    (programs,) = c.programs.values()
    return programs[0].forward.function


def peak(f):
    return most(arrange(partition(f), f.results), f.results)


@pytest.mark.usefixtures("eager_to_relieve")
def test_training_needs_less_at_its_peak_for_a_little_work(monkeypatch):
    f = planned(*training())
    less = recompute(f)
    monkeypatch.setattr(relieving, "WORK", 0.0)
    more = recompute(f)
    print(
        f"\n{peak(less):,} bytes for {work(less):,} products instead of {peak(more):,}, {work(f):,}"
    )
    assert work(more) == work(f) < work(less) <= 1.1 * work(f)
    assert peak(less) < 0.95 * peak(more)


@pytest.mark.usefixtures("eager_to_relieve")
def test_the_arena_is_as_much_smaller_as_it_is_said_to_be(monkeypatch):
    step, x = training()

    def arena():
        return wf.compile(step, fallback=False).explain(x).arena

    less, f = arena(), planned(step, x)
    saved = peak(recompute(f))
    monkeypatch.setattr(relieving, "WORK", 0.0)
    saved = peak(recompute(f)) - saved
    assert arena() - less > 0.8 * saved > 0


@pytest.mark.usefixtures("eager_to_relieve")
def test_no_bit_changes():
    step, x = training()
    loss, slopes = step(x)
    found = wf.compile(step, fallback=False)(x)
    assert found[0].numpy().tobytes() == loss.numpy().tobytes()
    for got, want in zip(found[1], slopes, strict=True):
        assert got.numpy().tobytes() == want.numpy().tobytes()


def test_only_products_are_added_and_none_twice(monkeypatch):
    monkeypatch.setattr(relieving, "LARGE", 1)
    monkeypatch.setattr(relieving, "WORK", 1e9)
    monkeypatch.setattr(relieving, "GAIN", -1e9)
    monkeypatch.setattr(relieving, "NEAR", 0)
    monkeypatch.setattr(recomputing, "LEAST", 1 << 60)
    changed = 0
    for seed in range(1000, 1040):
        for f in functions(seed):
            g = recompute(f)
            changed += work(g) > work(f)
            verify(g)
            assert [r.type for r in g.results] == [r.type for r in f.results]
            assert work(g) <= 2 * work(f)
            for op in {n.op for n in f.order if not (n.op.contract or n.op.scalar or n.op.view)}:
                assert sum(n.op is op for n in g.order) == sum(n.op is op for n in f.order)
    assert changed


@pytest.mark.tiny
def test_small_products_are_left_alone():
    f = planned(*training())
    assert work(recompute(f)) == work(f)
