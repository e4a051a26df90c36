"""Control flow on tensors through `wf.compile`: one program for every path, or eager code."""

import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from control_lab import bits

import weft as wf
from weft.errors import CaptureError, CaptureWarning

X = wf.tensor([1.0, -2.0, 3.0])


def test_one_capture_for_either_flag():
    class Model(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = wf.nn.Linear(3, 3), wf.nn.Linear(3, 3)

        def forward(self, x, flag):
            if flag:
                return self.a(x).relu()
            return self.b(x)

    model = Model()
    compiled = wf.compile(model, fallback=False)
    for flag in (True, False, True):
        t = wf.tensor(flag)
        assert bits(compiled(X, t)) == bits(model(X, t))
    assert compiled.captures == 1


def test_gradients_through_the_call():
    @wf.compile(fallback=False)
    def newton(a):
        x = a
        while (x * x - a).abs().max() > 1e-4:
            x = x - (x * x - a) / (2 * x)
        return x

    a = wf.tensor([2.0, 9.0], requires_grad=True)
    b = wf.tensor([2.0, 9.0], requires_grad=True)
    newton(a).sum().backward()
    newton.function(b).sum().backward()
    assert bits(a.grad) == bits(b.grad)
    np.testing.assert_allclose(a.grad.numpy(), 0.5 / np.sqrt([2.0, 9.0]), rtol=1e-3)


def test_a_training_loop_until_it_converges():
    def train(compiled):
        wf.manual_seed(0)
        net = wf.nn.Linear(3, 1)
        opt = wf.optim.AdamW(net.parameters(), lr=0.1)
        x, y = wf.randn((8, 3)), wf.randn((8, 1))

        def step(x, y):
            loss = ((net(x) - y) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            norm = sum((p.grad * p.grad).sum() for p in net.parameters())
            if norm > 1.0:
                for p in net.parameters():
                    p.grad = p.grad / norm.sqrt()
            opt.step()
            return loss

        run = wf.compile(step, fallback=False) if compiled else step
        losses = [run(x, y) for _ in range(12)]
        return losses, list(net.parameters())

    assert bits(train(True)) == bits(train(False))


def test_one_program_trains_on_sequences_of_every_length():
    def train(compiled):
        wf.manual_seed(0)
        cell = wf.nn.Linear(6, 3)
        opt = wf.optim.SGD(cell.parameters(), lr=0.1)

        def step(x):
            h = wf.zeros((2, 3))
            for t in range(x.shape[1]):
                h = cell(wf.concat([x[:, t], h], axis=1)).tanh()
            loss = (h * h).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            return loss

        run = wf.compile(step, fallback=False) if compiled else step
        losses = [run(wf.randn((2, n, 3))) for n in (4, 7, 5, 1, 9, 7)]
        return losses, list(cell.parameters()), run

    *want, _ = train(False)
    *got, run = train(True)
    assert bits(got) == bits(want)
    assert run.captures == 2


def test_what_cannot_be_captured_runs_eagerly_with_one_warning():
    seen = []

    @wf.compile
    def f(x):
        if x.sum() > 0:
            seen.append("positive")
        return x * 2

    with pytest.warns(CaptureWarning, match=r"test_compiled\.py"):
        f(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bits(f(X)) == bits(X * 2)
    assert seen == ["positive", "positive"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "if x.sum() > 0:\n  y = x\n else:\n  y = x.sum()\n return y + 1",
            "got f32[3] (line 4) and f32[] (line 6)",
        ),
        ("y = x\n if x[0] > 0:\n  y = 2\n return y", "got 2 (line 5) and f32[3] (from before)"),
        (
            "while x.sum() < 9:\n  x = x.reshape((3, 1)) + x\n return x",
            "to keep its type f32[3], got f32[3, 3] (line 4)",
        ),
        (
            "out = []\n while x.sum() < 9:\n  x = x + 1\n  out.append((x, x))\n return out",
            "keep the parts in a list each",
        ),
        (
            "z = 1\n while x.sum() < 9:\n  x = x + 1\n  z = [x]\n return z",
            "z to keep its structure",
        ),
        ("if x[0] > 0:\n  return x\n return x[0]", "got f32[3] (line 4) and f32[] (line 5)"),
        ("return x * len('ab' * int((x > 0).sum()))", "wf.switch"),
        ("if x.sum() > 0:\n  return x\n return x, x", "f32[3] (line 4) and a tuple of 2 (line 5)"),
        ("return {i: v for i, v in enumerate(x) if v > 0}", "comprehension"),
    ],
)
def test_errors_name_the_line_and_the_reason(tmp_path, body, said):
    path = tmp_path / "program.py"
    path.write_text(f"import weft as wf\ndef f(x):\n {body}\n")
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    with pytest.raises(CaptureError, match=r"program\.py") as e:
        wf.compile(space["f"], fallback=False)(X)
    assert said in str(e.value)
    with pytest.warns(CaptureWarning):
        got = wf.compile(space["f"])(X)
    assert bits(got) == bits(space["f"](X))


def test_random_numbers_in_loops_are_those_of_eager_code():
    drop = wf.nn.functional.dropout

    def f(x):
        x = drop(x, 0.5)
        while x.abs().sum() < 50:
            x = drop(x + 1, 0.5) + wf.rand(3)
            if x[0] > 1:
                x = x + wf.randn(3)
        return x * wf.rand(3)

    def run(g, seed):
        wf.manual_seed(seed)
        x = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = g(x)
        drawn = wf.get_rng_state()
        y.sum().backward()
        return bits([y, x.grad + 0.0, g(x)]), drawn, wf.get_rng_state()

    compiled = wf.compile(f, fallback=False)
    for seed in range(4):
        assert run(compiled, seed) == run(f, seed)
    assert compiled.captures == 1


def test_a_loop_of_ten_thousand_steps():
    @wf.compile(fallback=False)
    def f(x, n):
        for i in range(n):
            x = x * 0.999 + i
        return x

    n = wf.tensor(10_000)
    x = wf.tensor([1.0, 2.0], requires_grad=True)
    y = f(x, n)
    y.sum().backward()
    z = np.array([1.0, 2.0], np.float32)
    for i in range(10_000):
        z = z * np.float32(0.999) + np.float32(i)
    assert y.numpy().tobytes() == z.tobytes()
    assert f.captures == 1


def test_loops_can_be_interrupted():
    @wf.compile(fallback=False)
    def forever(x):
        while x.sum() > 0:
            x = x * 1.0
        return x

    forever(-X.abs())
    sent = []

    def send():
        sent.append(time.process_time())  # of this process: the machine may be stopped meanwhile
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.3, send).start()
        forever(X.abs())
    assert time.process_time() - sent[0] < 1.0
    assert bits(forever(-X.abs())) == bits(-X.abs())


def test_threads_call_one_program():
    @wf.compile(fallback=False)
    def f(x):
        n = 0
        while x.sum() < 100:
            x = x * 1.5
            n += 1
        return x, n

    values = [wf.tensor([float(i), 1.0]) for i in range(1, 9)]
    want = [bits(f.function(v)) for v in values]
    got = [None] * len(values)

    def work(i):
        for _ in range(20):
            got[i] = bits(f(values[i]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(values))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got == want


def test_by_hand_on_placeholders():
    x = wf.placeholder("x", (3,), wf.float32)
    y = wf.cond(x.sum() > 0, lambda a: a * 2, lambda a: a - 1, x)
    program = wf.build([x], [y])
    for v in (X, -X):
        out = program(x=v)
        out = out[0] if isinstance(out, (list, tuple)) else out
        assert bits(out) == bits(v * 2 if v.sum() > 0 else v - 1)


def test_bad_arguments():
    with pytest.raises(wf.errors.DTypeError):
        wf.cond(True, 1, 2)
    with pytest.raises(wf.errors.ShapeError):
        wf.switch(0, [])
    with pytest.raises(wf.errors.DTypeError):
        wf.scan(lambda s, x: (s, x), X, wf.tensor(1.0))
    with pytest.raises(wf.errors.DTypeError):
        wf.while_loop(None, lambda s: s, X)
