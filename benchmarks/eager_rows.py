"""What `benchmarks.eager` times: the same lines for Weft and for PyTorch, on equal numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.worker import THREADS, Case

Setup = Callable[[], Callable[[], Any]]
Row = tuple[str, Setup]  # a name, and what makes the work to time
SHAPES = ((8, 64), (64,), (64, 64), (64,), (64, 2), (2,))  # of a small network's parameters
LAYERS = (  # of ResNet: input side, channels in and out, window, stride
    (224, 3, 64, 7, 2), (56, 64, 64, 3, 1), (56, 64, 128, 3, 2), (56, 64, 128, 1, 2),
    (28, 128, 128, 3, 1), (14, 256, 256, 3, 1), (7, 512, 512, 3, 1), (56, 64, 256, 1, 1),
)  # fmt: skip


class Rows:
    """The rows, said with one library: `weft` or `torch`."""

    def __init__(self, library: str) -> None:
        self.lib = import_module(library)
        self.F = import_module(f"{library}.nn.functional")
        self.is_torch = library == "torch"
        self.lib.set_num_threads(THREADS)

    def normal(self, *shape: int, grad: bool = False, seed: int = 0) -> Any:
        a = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
        return self.lib.tensor(a, requires_grad=grad)

    def numpy(self, result: Any) -> np.ndarray:
        return result.detach().numpy()

    def tiny(self, grad: bool) -> Iterator[Row]:
        """Calls whose work is nothing: what is timed is the way from Python to the kernel and
        back.
        """
        a, b = self.normal(16, grad=grad), self.normal(16, grad=grad, seed=1)
        m, n = self.normal(16, 16, grad=grad), self.normal(16, 16, grad=grad, seed=1)
        yield "add", lambda: lambda: a + b
        yield "mul", lambda: lambda: a * b
        yield "mul by a Python number", lambda: lambda: a * 2.5
        yield "relu", lambda: lambda: a.relu()
        yield "matmul 16x16", lambda: lambda: m @ n
        yield "sum", lambda: lambda: a.sum()
        yield "reshape", lambda: lambda: a.reshape(4, 4)
        yield "index", lambda: lambda: m[3]

    def network(self) -> Iterator[Row]:
        """Forward and backward of an 8-64-64-2 network, batch 32."""

        def setup() -> Callable[[], Any]:
            x = self.normal(32, 8)
            w1, b1, w2, b2, w3, b3 = (
                self.normal(*s, grad=True, seed=i) for i, s in enumerate(SHAPES)
            )

            def step() -> Any:
                y = ((x @ w1 + b1).tanh() @ w2 + b2).tanh() @ w3 + b3
                loss = (y * y).mean()
                loss.backward()
                return loss

            return step

        yield "forward and backward, 8-64-64-2", setup

    def matmuls(self) -> Iterator[Row]:
        for m, k, n in (*((n, n, n) for n in (256, 512, 1024, 2048)), (64, 784, 512)):

            def setup(m: int = m, k: int = k, n: int = n) -> Callable[[], Any]:
                a, b = self.normal(m, k), self.normal(k, n, seed=1)
                return lambda: a @ b

            yield f"matmul {m}" if m == n else f"matmul {m}x{k}x{n}", setup

    def convolutions(self) -> Iterator[Row]:
        for batch in (1, 32):
            for side, c, o, k, s in LAYERS:

                def setup(
                    n: int = batch, side: int = side, c: int = c, o: int = o, k: int = k, s: int = s
                ) -> Callable[[], Any]:
                    x, w = self.normal(n, c, side, side), self.normal(o, c, k, k, seed=1)
                    return lambda: self.F.conv2d(x, w, stride=s, padding=k // 2)

                yield f"conv2d b{batch} {side}² {c}→{o} {k}x{k}/{s}", setup

    def bandwidth(self) -> Iterator[Row]:
        x, y, g = self.normal(2048, 1024), self.normal(2048, 1024, seed=1), self.normal(1024)
        F = self.F
        yield "add 2048x1024", lambda: lambda: x + y
        yield "gelu 2048x1024", lambda: lambda: F.gelu(x)
        yield "softmax 2048x1024", lambda: lambda: F.softmax(x, dim=-1)
        yield "layer_norm 2048x1024", lambda: lambda: F.layer_norm(x, (1024,), g, g)
        s = self.normal(4096, 4096)
        yield "sum 4096x4096 axis 0", lambda: lambda: s.sum(axis=0)
        yield "sum 4096x4096 axis 1", lambda: lambda: s.sum(axis=1)
        yield "sum 4096x4096", lambda: lambda: s.sum()
        copy = (lambda: s.T.contiguous()) if self.is_torch else (lambda: s.T.clone())
        yield "transpose copy 4096x4096", lambda: copy
        table = self.normal(50000, 256)
        ids = self.lib.tensor(np.random.default_rng(0).integers(0, 50000, 8192))
        take = (
            (lambda: table.index_select(0, ids))
            if self.is_torch
            else (lambda: self.lib.take(table, ids, axis=0))
        )
        yield "gather 8192 rows of 256", lambda: take

    def sections(self) -> Iterator[tuple[str, Iterator[Row]]]:
        yield "tiny tensors", self.tiny(False)
        yield "tiny tensors, gradient noted", self.tiny(True)
        yield "small network", self.network()
        yield "matmul", self.matmuls()
        yield "convolution", self.convolutions()
        yield "bandwidth", self.bandwidth()


def cases(library: str) -> dict[str, Callable[[], Case]]:
    rows = Rows(library)
    return {
        f"{section}: {name}": lambda setup=setup: Case(setup(), rows.numpy)
        for section, pairs in rows.sections()
        for name, setup in pairs
    }
