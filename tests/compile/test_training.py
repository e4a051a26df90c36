"""Fifty steps of training, compiled and eager: every loss, weight, gradient, buffer, state of the
optimizer and random number is the same to the bit, whatever the number of threads.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from weft import nn, optim

STEPS = 50


@pytest.fixture(autouse=True)
def restore():
    n = wf.get_num_threads()
    yield
    wf.set_num_threads(n)


def mlp():
    return nn.Sequential(
        nn.Linear(60, 96), nn.ReLU(), nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, 10)
    )


def tiny():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_steps_on_a_condition(name):
    """As where a gradient that isn't finite is skipped; what is trained stays so afterwards."""

    def train(compiled):
        wf.manual_seed(0)
        net = tiny()
        opt = getattr(optim, name)(net.parameters(), lr=0.1)

        def step(x):
            opt.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            if wf.isfinite(optim.clip_grad_norm_(net.parameters(), 1.0)):
                opt.step()
            else:
                with wf.no_grad():
                    for p in net.parameters():
                        p.assign(p * 0.5)
            return net(x).square().mean()

        run = wf.compile(step, fallback=False) if compiled else step
        out = []
        for i in range(8):
            x = np.random.default_rng(i).normal(size=(4, 8)).astype(np.float32)
            x[0, 0] = np.nan if i == 3 else x[0, 0]
            loss = run(wf.tensor(x))
            assert loss.requires_grad and all(p.is_leaf for p in net.parameters())
            out += [loss.numpy(), *(v.numpy().copy() for v in net.state_dict().values())]
        return out, compiled and run.captures

    (one, _), (other, captures) = train(False), train(True)
    assert [a.tobytes() for a in one] == [b.tobytes() for b in other] and captures == 1


def dropped():
    return nn.Sequential(
        nn.Linear(20, 48), nn.LayerNorm(48), nn.GELU(), nn.Dropout(0.3), nn.Linear(48, 5)
    )


class Residual(nn.Module):
    def __init__(self, width):
        self.conv1 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + x)


class CNN(nn.Module):
    def __init__(self):
        self.conv1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.block = Residual(8)
        self.conv2 = nn.Conv2d(8, 12, 3, 2, 1)
        self.fc = nn.Linear(12, 4)

    def forward(self, x):
        x = self.block(F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2))
        return self.fc(F.relu(self.conv2(x)).mean(axis=(2, 3)))


class Block(nn.Module):
    def __init__(self, width):
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        heads = self.qkv(self.ln1(x)).reshape(b, t, 3, 2, -1)
        q, k, v = wf.unstack(wf.permute_dims(heads, (2, 0, 3, 1, 4)))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(wf.permute_dims(y, (0, 2, 1, 3)).reshape(b, t, c))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self):
        self.tok, self.pos = nn.Embedding(31, 32), nn.Embedding(24, 32)
        self.blocks = nn.Sequential(Block(32), Block(32))
        self.ln, self.head = nn.LayerNorm(32), nn.Linear(32, 31, bias=False)

    def forward(self, ids):
        return self.head(self.ln(self.blocks(self.tok(ids) + self.pos.weight)))


class Tied(nn.Module):
    """One weight used twice, one that is never used, one that is frozen."""

    def __init__(self):
        self.embed = nn.Embedding(17, 24)
        self.unused = nn.Linear(3, 3)
        self.frozen = nn.Linear(24, 24)
        self.frozen.requires_grad_(False)

    def forward(self, ids):
        return F.linear(F.tanh(self.frozen(self.embed(ids))), self.embed.weight)


def tokens(rng, shape, n):
    ids = rng.integers(0, n, (shape[0], shape[1] + 1))
    return ids[:, :-1], ids[:, 1:]


def pictures(rng, shape, n):
    return rng.standard_normal(shape).astype(np.float32), rng.integers(0, n, shape[0])


def clipped(model, opt):
    optim.clip_grad_norm_(model.parameters(), 0.5)
    opt.step()


def plain(model, opt):
    opt.step()


CASES = {
    "mlp": (mlp, lambda p: optim.Adam(p, 1e-3), pictures, (32, 60), 10, plain),
    "tiny": (tiny, lambda p: optim.SGD(p, 0.1), pictures, (32, 8), 2, plain),
    "cnn": (CNN, lambda p: optim.SGD(p, 0.05, momentum=0.9), pictures, (8, 3, 12, 12), 4, plain),
    "gpt": (GPT, lambda p: optim.AdamW(p, 3e-3, weight_decay=0.01), tokens, (4, 24), 31, plain),
    "dropout": (dropped, lambda p: optim.AdamW(p, 1e-3), pictures, (16, 20), 5, clipped),
    "tied": (Tied, lambda p: optim.Adam(p, 1e-2), tokens, (6, 9), 17, clipped),
}


def train(name, compiled):
    model, optimizer, data, shape, classes, update = CASES[name]
    wf.manual_seed(0)
    net = model()
    opt = optimizer([p for p in net.parameters() if p.requires_grad])

    def step(x, y):
        opt.zero_grad()
        out = net(x)
        loss = F.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))
        loss.backward()
        update(net, opt)
        return loss, (out.argmax(axis=-1) == y).sum()

    run = wf.compile(step, fallback=False) if compiled else step
    rng = np.random.default_rng(1)
    said = []
    for i in range(STEPS):
        x, y = (wf.tensor(a) for a in data(rng, shape, classes))
        loss, right = run(x, y)
        said += [bits(loss), bits(right)]
        if i in (0, 1, STEPS - 1):
            said += [bits(p.grad) for p in net.parameters()]
    if compiled:
        assert run.captures == 1, run.reasons
    held = [bits(v) for v in net.state_dict().values()]
    held += [
        bits(v) if isinstance(v, wf.Tensor) else v
        for p in net.parameters()
        if p in opt.state
        for v in opt.state[p].values()
    ]
    return said, held, wf.get_rng_state(), [p.requires_grad for p in net.parameters()]


def bits(x):
    return None if x is None else (x.dtype.name, x.shape, x.numpy().tobytes())


@pytest.mark.parametrize("name", list(CASES))
def test_fifty_steps(name):
    want = train(name, False)
    for threads in (1, 2, 3):
        wf.set_num_threads(threads)
        for got, known, what in zip(
            train(name, True), want, ["steps", "state", "random", "leaves"], strict=True
        ):
            differ = [i for i, (a, b) in enumerate(zip(got, known, strict=True)) if a != b]
            assert not differ, f"{what} {differ[:5]} with {threads} threads"


def test_some_steps_eager_some_compiled():
    """Both work on the same state: it may be changed by either, in any order."""

    def run(pattern):
        wf.manual_seed(0)
        net = dropped()
        opt = optim.AdamW(net.parameters(), 1e-2)

        def step(x, y):
            opt.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            return loss

        ways = [step, wf.compile(step, fallback=False)]
        rng = np.random.default_rng(0)
        losses = []
        for i in range(12):
            x, y = pictures(rng, (16, 20), 5)
            losses.append(ways[pattern[i % len(pattern)]](wf.tensor(x), wf.tensor(y)).item())
        return losses, [bits(p) for p in net.parameters()], wf.get_rng_state()

    want = run([0])
    for pattern in ([1], [0, 1], [1, 1, 0], [0, 0, 1, 1]):
        assert run(pattern) == want


def test_gradients_that_add_up_over_calls():
    """No zero_grad(): a gradient is there from the second call on, which is another program."""

    def run(compiled):
        wf.manual_seed(0)
        net = tiny()

        def step(x):
            loss = net(x).square().mean()
            loss.backward()
            return loss

        f = wf.compile(step, fallback=False) if compiled else step
        rng = np.random.default_rng(0)
        out = []
        for i in range(6):
            f(wf.tensor(rng.standard_normal((4, 8)).astype(np.float32)))
            out += [bits(p.grad) for p in net.parameters()]
            if i == 3:
                net.zero_grad()
        return out

    assert run(True) == run(False)


def test_a_checkpointed_block():
    def run(compiled, checkpointed):
        wf.manual_seed(0)
        block = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Dropout(0.5), nn.Linear(32, 8))
        call = wf.checkpoint(block) if checkpointed else block

        def step(x):
            block.zero_grad()
            loss = (call(x) + x).square().mean()
            loss.backward()
            return loss

        f = wf.compile(step, fallback=False) if compiled else step
        x = wf.tensor(np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32))
        out = [bits(f(x)) for _ in range(3)]
        return out, [bits(p.grad) for p in block.parameters()], wf.get_rng_state()

    want = run(False, False)
    assert run(False, True) == want
    assert run(True, False) == want
    assert run(True, True) == want


def _clipped(w):
    wf.optim.clip_grad_norm_([w], 0.1)


def _scaled_twice(w):
    g = w.grad
    g *= 0.5
    g[0] = 9.0
    assert w.grad is g


def _clipped_and_added_to(w):
    wf.optim.clip_grad_norm_([w], 0.1)
    (w * w).sum().backward()
    wf.optim.clip_grad_value_([w], 0.05)


def _clipped_in_a_branch(w):
    if w.sum() > 0:
        wf.optim.clip_grad_norm_([w], 0.1)


def _clipped_and_dropped(w):
    wf.optim.clip_grad_norm_([w], 0.1)
    w.grad = None


WRITES = [
    _clipped,
    _scaled_twice,
    _clipped_and_added_to,
    _clipped_in_a_branch,
    _clipped_and_dropped,
]


@pytest.mark.parametrize("write", WRITES)
def test_gradients_from_outside_are_written_to(write):
    def run(f):
        out = []
        for values in ([1.0, 2.0], [-1.0, -2.0], [3.0, 1.0]):
            w.assign(wf.tensor(values))
            w.grad = None
            (w * w).sum().backward()
            before = w.grad
            f()
            out += [w.tolist(), before.tolist(), w.grad is before]
            out.append(None if w.grad is None else w.grad.tolist())
        return out

    def update():
        write(w)
        optimizer.step()

    with wf.no_grad():
        w = wf.nn.Parameter([0.0, 0.0])
    optimizer = wf.optim.SGD([w], lr=0.5)
    compiled = wf.compile(update, fallback=False)
    assert run(compiled) == run(update)
    assert compiled.captures == 1


def test_a_gradient_from_outside_that_a_branch_adds_to():
    w = wf.nn.Parameter([1.0, 2.0])

    def add(x):
        if x.sum() > 0:
            (w * x).sum().backward()
        wf.optim.clip_grad_norm_([w], 0.1)

    def run(f):
        out = []
        for x in (1.0, -1.0, 2.0):
            w.grad = wf.tensor([2.0, 4.0])
            f(wf.tensor([x, x]))
            out.append(w.grad.tolist())
        return out

    assert run(wf.compile(add, fallback=False)) == run(add)
