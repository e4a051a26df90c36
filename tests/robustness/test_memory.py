"""Memory: what happens where there is none left, and that none is lost."""

import os

from tests.robustness.lab import run

OPS = os.environ.get("WEFT_LEAK_OPS", "1000000")

FAILING = """
import gc, resource, sys
import numpy as np
import weft as wf
from tests.robustness.lab import mapped
from weft.errors import AllocationError
from weft.runtime.start import engine

rng = np.random.default_rng(0)
A = rng.standard_normal((700, 700)).astype(np.float32)
B = rng.standard_normal((700, 700)).astype(np.float32)
K = rng.integers(0, 700, 700)

def work():
    x, y = wf.tensor(A, requires_grad=True), wf.tensor(B)
    z = x @ y.T                       # packs operands: scratch memory
    z = (z * 2.0 + x).relu()
    s = wf.sort(z, axis=0)            # scratch memory for each worker
    t = wf.take(s, wf.tensor(K), axis=0)
    c = wf.cumulative_sum(t, axis=1)
    loss = (c * c).sum() + wf.concat([t, t]).mean() + z[::2, 5:].sum() + t.T.reshape(-1).max()
    loss.backward()
    return [loss.numpy(), x.grad.numpy(), c.numpy()]

want = [np.array(a) for a in work()]   # every kernel is compiled by now
small = wf.arange(5) + 1
small * 3
failed = right = 0
places = set()
for step in range(int(sys.argv[1])):
    gc.collect()
    engine().trim()
    limit = mapped() + step * (256 << 10) * int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (limit, -1))
    try:
        got = work()
        right += 1
        ok = all(np.array_equal(a, b) for a, b in zip(got, want))
        assert ok, "a wrong result"
    except MemoryError as e:
        failed += 1
        if isinstance(e, AllocationError):
            places.add(e.place)
    finally:
        got = None
        now = (small * 3).tolist()   # the next op, still without memory to spare
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    assert now == [3, 6, 9, 12, 15]
    if step % 10 == 0:
        assert all(np.array_equal(a, b) for a, b in zip(work(), want))
assert all(np.array_equal(a, b) for a, b in zip(work(), want))
assert failed > 20 and right > 3 and len(places) > 5, (failed, right, places)
print(f"{failed} runs ended by MemoryError (in {', '.join(sorted(places))}), {right} right; "
      "the next op right every time")
"""


def test_allocation_failure_at_any_point():
    """The same work again and again, with a little more memory to spare each time."""
    print("\n" + run(FAILING, "90", "2", WEFT_NUM_THREADS="2"))


HUGE = """
import resource
import numpy as np
import weft as wf
from weft.errors import AllocationError

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
x = wf.broadcast_to(wf.ones((1, 1)), (1 << 20, 1 << 20))
n = wf.broadcast_to(wf.tensor([3]), (1 << 40,))
calls = {
    "zeros": lambda: wf.zeros((1 << 20, 1 << 20)),
    "empty": lambda: wf.empty(1 << 40),
    "rand": lambda: wf.rand(1 << 40),
    "add": lambda: x + 1.0,
    "compare": lambda: x > 0.5,
    "copy": lambda: x.clone(),
    "astype": lambda: x.astype(wf.float64),
    "matmul": lambda: wf.broadcast_to(wf.ones(1), (1 << 20, 8)) @ wf.ones((8, 1 << 20)),
    "outer": lambda: wf.outer(n[: 1 << 20], n[: 1 << 20]),
    "sort": lambda: wf.sort(n),
    "cumulative_sum": lambda: wf.cumulative_sum(n),
    "concat": lambda: wf.concat([n, n]),
    "take": lambda: wf.take(wf.ones((4, 5)), n, axis=0),
    "one_hot": lambda: wf.one_hot(wf.tensor([1]), 1 << 42),
    "pad": lambda: wf.nn.functional.pad(wf.ones((2, 2)), (1 << 40, 0)),
    "arange": lambda: wf.arange(1 << 42),
    "eye": lambda: wf.eye(1 << 21),
    "reshape": lambda: wf.broadcast_to(wf.arange(1 << 10), (1 << 30, 1 << 10)).reshape(-1),
    "numpy in": lambda: wf.tensor(np.broadcast_to(np.float32(1), (1 << 40,))),
    "conv2d": lambda: wf.nn.functional.conv2d(
        wf.ones((1, 1, 4, 4)), wf.ones((1, 1, 1, 1)), padding=1 << 20),
}
for name, call in calls.items():
    try:
        call()
    except AllocationError as e:
        assert isinstance(e, MemoryError) and "bytes" in str(e), (name, e)
    else:
        raise AssertionError(name)
    assert (wf.arange(5) + 1).sum().item() == 15, name
print(f"{len(calls)} results of terabytes: an AllocationError each, that says how many bytes")
"""


def test_results_too_large_for_the_machine():
    print("\n" + run(HUGE))


LEAKS = """
import gc, sys
import numpy as np
import weft as wf
from tests.robustness.lab import resident

def steps(count):
    "Each is some 20 ops and their gradients."
    x = wf.tensor(np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8), requires_grad=True)
    w = wf.tensor(np.linspace(1, 2, 64, dtype=np.float32).reshape(8, 8), requires_grad=True)
    for _ in range(count):
        h = (x @ w + 1.0).relu()
        h = wf.nn.functional.softmax(h, -1) * x[::2].sum() - h.T.reshape(8, 8)
        y = wf.concat([h, x]).mean() + wf.sort(h, axis=0)[3].max() + (h ** 2).sum(axis=1)[0]
        y.backward()
        x.grad = w.grad = None
        try:
            x @ wf.ones(3)  # errors, too, must not hold on to anything
        except ValueError:
            pass

count = int(sys.argv[1]) // 40
steps(2000)
gc.collect()
before = resident()
steps(count)
gc.collect()
grown = resident() - before
print(f"{count * 40:,} ops with gradients: memory grew by {grown / 1024:,.0f} KiB")
assert grown <= int(sys.argv[2]), grown
"""


def test_eager_ops_with_gradients_leak_nothing():
    print("\n" + run(LEAKS, OPS, str(1 << 20)))


SHAPES = """
import gc
import numpy as np
import weft as wf
from tests.robustness.lab import resident
from weft.ops.define import OPS
from weft.runtime.eager import PLANS

base = wf.tensor(np.ones(20_000, np.float32))

def sweep(low, high):
    for n in range(low, high):
        x = base[:n]
        y = (x * 2.0 + x).sum()
    return y

sweep(1, PLANS + 1000)
gc.collect()
before = resident()
sweep(PLANS + 1000, 3 * PLANS + 1000)
gc.collect()
grown = resident() - before
kept = {op.name: len(op.plans) for op in OPS.values() if op.plans}
assert max(kept.values()) <= PLANS, kept
print(f"{2 * PLANS:,} more shapes: memory grew by {grown / 2**20:.1f} MiB, "
      f"{sum(kept.values()):,} plans kept")
assert grown < 16 << 20, grown
"""


def test_changing_shapes_do_not_fill_the_memory():
    print("\n" + run(SHAPES))


TRAINING = """
import gc, sys
from tests.robustness.lab import resident
from tests.robustness.training import trainer

train = trainer(sys.argv[1] == "compiled")
train(1000)
gc.collect()
before = resident()
train(10_000)
gc.collect()
grown = resident() - before
print(f"10,000 steps, {sys.argv[1]}: memory grew by {grown / 1024:,.0f} KiB")
assert grown <= 1 << 20, grown
"""


def test_training_leaks_nothing():
    """Ten thousand steps of a model with all that changes state, in both modes."""
    for mode in ("compiled", "eager"):
        print("\n" + run(TRAINING, mode))
