"""Ctrl-C: it ends what runs within 100 ms, and leaves everything as it was."""

import pytest

from tests.robustness.lab import run

pytestmark = pytest.mark.alone

START = """
import gc, os, signal, threading, time
import numpy as np
import weft as wf
from weft.runtime.start import engine

def interrupted(call, delay):
    "Seconds from SIGINT to KeyboardInterrupt; None if the call was done before."
    sent = []
    def send():
        time.sleep(delay)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    sender = threading.Thread(target=send)
    took = None
    try:
        try:
            sender.start()
            call()
            done = True
        except KeyboardInterrupt:
            took, done = time.perf_counter() - sent[0], False
        while done:  # it comes late
            time.sleep(0.01)
    except KeyboardInterrupt:
        pass
    sender.join()
    return took

rng = np.random.default_rng(0)
A = rng.standard_normal((1500, 1500)).astype(np.float32)
B = rng.standard_normal(1 << 24).astype(np.float32)
a, b = wf.tensor(A), wf.tensor(B)
square = b.reshape(1 << 12, 1 << 12)
endless = wf.broadcast_to(wf.ones(1), (1 << 38,))
places = wf.tensor(rng.integers(0, 1 << 24, 1 << 24))
again = lambda f: lambda: [f() for _ in range(1000)]
CALLS = {
    "matmul": again(lambda: a @ a),
    "sort": again(lambda: wf.sort(b)),
    "sort of rows": again(lambda: wf.sort(square)),
    "elementwise": again(lambda: wf.lgamma(b)),
    "cumulative_sum": again(lambda: wf.cumulative_sum(b)),
    "cumulative_sum of columns": again(lambda: wf.cumulative_sum(square, axis=0)),
    "sum": lambda: endless.sum(),
    "argmax": lambda: wf.argmax(endless),
    "take": again(lambda: wf.take(b, places)),
    "softmax": again(lambda: wf.nn.functional.softmax(square)),
    "random": again(lambda: wf.randn(1 << 25)),
    "backward": again(lambda: wf.grad(lambda x: (x.exp() * x).sum())(b)),
}
"""

KEYS = (
    START
    + """
def intact():
    assert a.numpy().tobytes() == A.tobytes() and b.numpy().tobytes() == B.tobytes()
    y = (wf.tensor(A[:64]) @ a).numpy()
    assert np.allclose(y, A[:64] @ A, atol=1e-3)
    x = wf.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    assert np.array_equal((b + b).numpy(), B + B)

for call in (wf.sort, wf.lgamma, wf.cumulative_sum):   # compiled already, as when it matters
    call(b[:100])
worst = []
for threads in (2, 1):
    wf.set_num_threads(threads)
    for name, call in CALLS.items():
        interrupted(call, 0.05)
        gc.collect()  # frames that were left on the way may hold each other
        used = engine().memory_stats().used
        took = [interrupted(call, d) for d in (0.03, 0.06, 0.1, 0.04, 0.08)]
        assert None not in took, name
        gc.collect()
        assert engine().memory_stats().used == used, name
        intact()
        worst.append((min(took), max(took), name, threads))
        assert min(took) <= 0.1, (name, threads, took)  # another program may hold a core meanwhile
quick, slow = max(worst), max(worst, key=lambda w: w[1])
print(f"{len(worst)} calls interrupted five times each: KeyboardInterrupt within "
      f"{quick[0] * 1e3:.0f} ms ({quick[2]}), at worst on this machine {slow[1] * 1e3:.0f} ms "
      f"({slow[2]})")
"""
)


def test_ctrl_c_ends_long_ops():
    print("\n" + run(KEYS))


COLD = (
    START
    + """
from tests.robustness.lab import forget

x = wf.tensor(A[:40, :40])
def work():
    y = x @ x
    return [(y * 2.0).exp().sum().item(), wf.sort(y)[0, 0].item()]

want = work()
broken_off = 0
for k in range(80):
    forget()
    broken_off += interrupted(work, 0.002 * (k % 40) + 0.0003 * k) is not None
    gc.collect()
    forget()
    assert work() == want, k
print(f"{broken_off} of 80 cold starts broken off: the next is right")
assert broken_off > 10
"""
)


def test_ctrl_c_while_kernels_are_compiled():
    """LLVM is left in order: nothing crashes, now or when what was broken off is collected."""
    print("\n" + run(COLD, WEFT_CACHE="0"))


COST = (
    START
    + """
# only the main thread looks for signals: elsewhere the same op does without
def timed(f):
    start = time.perf_counter()
    f()
    return time.perf_counter() - start

def elsewhere(f):
    out = []
    thread = threading.Thread(target=lambda: out.append(timed(f)))
    thread.start()
    thread.join()
    return out[0]

def costs(name, f):
    "What looking costs, and by how much the same twice differs."
    timed(f), elsewhere(f)
    times = zip(*((timed(f), elsewhere(f), elsewhere(f)) for _ in range(25)))
    watched, free, again = map(min, times)
    return watched / min(free, again) - 1, abs(again / free - 1), name

wf.set_num_threads(1)
for attempt in range(5):  # another program may have the better half of a core meanwhile
    said = [costs(name, f) for name, f in {
        "matmul": lambda: a[:700] @ a, "sum": lambda: b.sum(), "exp": lambda: b.exp(),
        "sort": lambda: wf.sort(b[: 1 << 20]), "cumulative_sum": lambda: wf.cumulative_sum(b),
    }.items()]
    middle = sorted(said)[len(said) // 2][0]
    beyond = max(cost - 2 * noise for cost, noise, _ in said)
    if middle <= 0.05 and beyond <= 0.3:
        break
print("looking for signals costs (and the same twice differs by): "
      + ", ".join(f"{name} {cost:+.1%} ({noise:.1%})" for cost, noise, name in said))
assert middle <= 0.05 and beyond <= 0.3, said
"""
)


def test_what_looking_for_signals_costs():
    print("\n" + run(COST))
