"""Many threads at once: right results, whatever they do to each other's settings."""

import os
import threading
import time

import numpy as np
import pytest

import weft as wf
from weft.errors import IndexRangeError, ShapeError

SECONDS = float(os.environ.get("WEFT_SECONDS", "30"))
THREADS = 8
FEW = 20


@pytest.fixture(autouse=True)
def restore():
    n = wf.get_num_threads()
    yield
    wf.set_num_threads(n)


class Jobs:
    """Work on shared tensors, each job with the result it must have."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.small = wf.tensor(rng.standard_normal((8, 8)).astype(np.float32))
        self.large = wf.tensor(rng.standard_normal((300, 400)).astype(np.float32))
        self.weight = wf.tensor(rng.standard_normal((400, 300)).astype(np.float32))
        self.index = wf.tensor(rng.integers(-300, 300, 200))
        self.jobs = [
            self.elementwise, self.product, self.folds, self.gradients, self.layers, self.sorting,
            self.indexing, self.assigning, self.errors, self.transforms, self.shapes,
        ]  # fmt: skip
        self.want = [[np.array(a) for a in job(0)] for job in self.jobs]

    def elementwise(self, n):
        return [
            ((self.small * 2.0 - 1.0).exp() + n * 0.0).numpy(),
            (self.large + self.large).numpy(),
        ]

    def product(self, n):
        return [(self.large @ self.weight).numpy(), (self.small @ self.small.T).numpy()]

    def folds(self, n):
        return [self.large.sum(axis=0).numpy(), self.large.max().numpy(), self.large.mean().numpy()]

    def gradients(self, n):
        x = wf.Tensor(self.small.data).requires_grad_()
        y = (x @ x).relu()
        (y * y).sum().backward()
        with wf.no_grad():
            assert not (x * 2.0).requires_grad
        return [x.grad.numpy()]

    def layers(self, n):
        F = wf.nn.functional
        x = wf.Tensor(self.large.data).requires_grad_()
        y = F.layer_norm(F.softmax(F.linear(x, self.weight.T)), (300,))
        F.cross_entropy(y, wf.zeros(300, dtype=wf.int64)).backward()
        return [y.numpy(), x.grad.numpy()]

    def sorting(self, n):
        return [wf.sort(self.large, axis=n % 1).numpy(), wf.topk(self.large, 5).indices.numpy()]

    def indexing(self, n):
        x = self.large
        return [x[self.index].numpy(), x[::-3, 7:90].numpy(), x[x > 1.0].numpy()]

    def assigning(self, n):
        x = wf.Tensor(self.large.data)
        x[5:9] = 0.0
        x += 1.0
        return [x.numpy(), self.large.numpy()]

    def errors(self, n):
        with pytest.raises(IndexRangeError):
            wf.take(self.small, wf.tensor([1, 99]), axis=0)
        with pytest.raises(ShapeError):
            self.small @ self.large
        return [self.small.numpy()]

    def transforms(self, n):
        return [wf.grad(lambda x: (x.exp() * x).sum())(self.small).numpy()]

    def shapes(self, n):
        """A shape nobody else has just now: plans are made while others run."""
        k = 1 + n % 299
        part = self.large[:k].reshape(-1) * 3.0
        want = self.large.numpy()[:k].reshape(-1) * np.float32(3)
        assert part.numpy().tobytes() == want.tobytes()
        return []

    def run(self, n):
        which = n % len(self.jobs)
        got = self.jobs[which](n)
        for a, b in zip(got, self.want[which], strict=True):
            assert a.dtype == b.dtype and a.tobytes() == b.tobytes(), self.jobs[which].__name__


def hammer(seconds, settings):
    """Run all jobs on 8 threads, and `settings` on others, until the time is up and each thread
    has done a few.
    """
    jobs, errors, counts = Jobs(), [], []
    end = time.monotonic() + seconds

    def guarded(f):
        def work(me):
            n = 0
            try:
                while (time.monotonic() < end or n < FEW) and not errors:
                    f(me * 7 + n)
                    n += 1
            except BaseException as e:
                errors.append(e)
            counts.append((f, n))

        return work

    works = [guarded(jobs.run)] * THREADS + [guarded(f) for f in settings]
    threads = [threading.Thread(target=w, args=(i,)) for i, w in enumerate(works)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return sum(n for f, n in counts if f == jobs.run), sum(n for f, n in counts if f != jobs.run)


def test_eight_threads_use_tensors():
    done, _ = hammer(SECONDS, [])
    print(f"\n{THREADS} threads for {SECONDS:.0f} s: {done:,} jobs, all right to the bit")
    assert done >= FEW * THREADS


def test_the_number_of_threads_changes_meanwhile():
    def settings(n):
        wf.set_num_threads(1 + n % 7)
        assert 1 <= wf.get_num_threads() <= 7
        time.sleep(0.002)

    done, changes = hammer(SECONDS / 6, [settings] * 3)
    print(f"\n{done:,} jobs, all right to the bit, while the pool changed size {changes:,} times")
    assert done >= FEW * THREADS and changes >= FEW * 3


def test_threads_compile_the_same_kernels_at_once():
    """Eight threads that start cold on the same new kernels."""
    start, errors = threading.Barrier(THREADS), []
    a = np.arange(1, 40, dtype=np.int16)

    def work():
        try:
            x = wf.tensor(a)
            start.wait()
            for f in (wf.bitwise_xor, wf.hypot, wf.remainder, wf.minimum, wf.logaddexp):
                got = f(x, x[::-1])
                want = getattr(np, f.__name__)(a, a[::-1]).astype(got.dtype.np)
                assert np.allclose(got.numpy(), want, rtol=1e-5)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors
