"""Eager Weft beside eager PyTorch: cost per call on tiny tensors, throughput on large ones,
start-up.

    python benchmarks/eager.py [--quick] [--only WORD] [--json FILE]

A ratio below 1 means that Weft is faster. Both sides use two threads.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

import numpy as np
import torch
import torch.nn.functional as TF
from compare import Row, compare, heading

import weft as wf
import weft.nn.functional as WF

THREADS = 2
Pair = tuple[str, Callable[[], object], Callable[[], object]]


def both(
    shape: tuple[int, ...], grad: bool = False, seed: int = 0
) -> tuple[wf.Tensor, torch.Tensor]:
    a = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return wf.tensor(a, requires_grad=grad), torch.tensor(a, requires_grad=grad)


def tiny(grad: bool) -> Iterator[Pair]:
    """Calls whose work is nothing: what is timed is the way from Python to the kernel and back."""
    (a, ta), (b, tb) = both((16,), grad), both((16,), grad, 1)
    (m, tm), (n, tn) = both((16, 16), grad), both((16, 16), grad, 1)
    yield "add", lambda: a + b, lambda: ta + tb
    yield "mul", lambda: a * b, lambda: ta * tb
    yield "mul by a Python number", lambda: a * 2.5, lambda: ta * 2.5
    yield "relu", lambda: a.relu(), lambda: ta.relu()
    yield "matmul 16x16", lambda: m @ n, lambda: tm @ tn
    yield "sum", lambda: a.sum(), lambda: ta.sum()
    yield "reshape", lambda: a.reshape(4, 4), lambda: ta.reshape(4, 4)
    yield "index", lambda: m[3], lambda: tm[3]


def mlp() -> Iterator[Pair]:
    """Forward and backward of an 8-64-64-2 network, batch 32."""
    x, tx = both((32, 8))
    shapes = ((8, 64), (64,), (64, 64), (64,), (64, 2), (2,))
    params = [both(s, True, i) for i, s in enumerate(shapes)]
    (w1, b1, w2, b2, w3, b3), (v1, c1, v2, c2, v3, c3) = ([p[k] for p in params] for k in (0, 1))

    def ours() -> None:
        y = ((x @ w1 + b1).tanh() @ w2 + b2).tanh() @ w3 + b3
        (y * y).mean().backward()

    def theirs() -> None:
        y = ((tx @ v1 + c1).tanh() @ v2 + c2).tanh() @ v3 + c3
        (y * y).mean().backward()

    yield "forward and backward, 8-64-64-2", ours, theirs


def matmuls() -> Iterator[Pair]:
    for n in (256, 512, 1024, 2048):
        (a, ta), (b, tb) = both((n, n)), both((n, n), seed=1)
        yield f"matmul {n}", lambda a=a, b=b: a @ b, lambda ta=ta, tb=tb: ta @ tb
    (a, ta), (b, tb) = both((64, 784)), both((784, 512), seed=1)
    yield "matmul 64x784x512", lambda: a @ b, lambda: ta @ tb


def convolutions() -> Iterator[Pair]:
    """The layers of ResNet: input side, channels in and out, window, stride."""
    layers = [
        (224, 3, 64, 7, 2), (56, 64, 64, 3, 1), (56, 64, 128, 3, 2), (56, 64, 128, 1, 2),
        (28, 128, 128, 3, 1), (14, 256, 256, 3, 1), (7, 512, 512, 3, 1), (56, 64, 256, 1, 1),
    ]  # fmt: skip
    for batch in (1, 32):
        for side, c, o, k, s in layers:
            (x, tx), (w, tw) = both((batch, c, side, side)), both((o, c, k, k), seed=1)
            yield (
                f"conv2d b{batch} {side}² {c}→{o} {k}x{k}/{s}",
                lambda x=x, w=w, s=s, k=k: WF.conv2d(x, w, stride=s, padding=k // 2),
                lambda tx=tx, tw=tw, s=s, k=k: TF.conv2d(tx, tw, stride=s, padding=k // 2),
            )


def bandwidth() -> Iterator[Pair]:
    x, tx = both((2048, 1024))
    y, ty = both((2048, 1024), seed=1)
    g, tg = both((1024,))
    s, ts = both((4096, 4096))
    table, ttable = both((50000, 256))
    ids = np.random.default_rng(0).integers(0, 50000, 8192)
    i, ti = wf.tensor(ids), torch.tensor(ids)
    yield "add 2048x1024", lambda: x + y, lambda: tx + ty
    yield "gelu 2048x1024", lambda: WF.gelu(x), lambda: TF.gelu(tx)
    yield "softmax 2048x1024", lambda: WF.softmax(x, dim=-1), lambda: TF.softmax(tx, dim=-1)
    yield (
        "layer_norm 2048x1024",
        lambda: WF.layer_norm(x, (1024,), g, g),
        lambda: TF.layer_norm(tx, (1024,), tg, tg),
    )
    yield "sum 4096x4096 axis 0", lambda: s.sum(axis=0), lambda: ts.sum(dim=0)
    yield "sum 4096x4096 axis 1", lambda: s.sum(axis=1), lambda: ts.sum(dim=1)
    yield "sum 4096x4096", lambda: s.sum(), lambda: ts.sum()
    yield "transpose copy 4096x4096", lambda: s.T.clone(), lambda: ts.T.contiguous()
    yield (
        "gather 8192 rows of 256",
        lambda: wf.take(table, i, axis=0),
        lambda: ttable.index_select(0, ti),
    )


def no_grad(pairs: Iterator[Pair]) -> Iterator[Pair]:
    with wf.no_grad(), torch.no_grad():
        yield from pairs


SECTIONS: list[tuple[str, float, Callable[[], Iterator[Pair]]]] = [
    ("tiny tensors", 0.7, lambda: tiny(False)),
    ("tiny tensors, gradient noted", 0.7, lambda: tiny(True)),
    ("small network", 0.7, mlp),
    ("matmul", 1.0, matmuls),
    ("convolution", 1.0, convolutions),
    ("bandwidth", 1.0, bandwidth),
]

_FIRST_USE = """
import time, sys
start = time.perf_counter(); import weft as wf
imported = time.perf_counter() - start
x = wf.tensor([1.0, 2.0, 3.0])
x + x
start = time.perf_counter(); x.exp(); first = time.perf_counter() - start
start = time.perf_counter(); x.tanh(); second = time.perf_counter() - start
print(imported, first, second)
"""


def start_up() -> list[tuple[str, float, float]]:
    """Import time, and the first use of an op with an empty and with a filled cache: (name,
    seconds, allowed).
    """
    with tempfile.TemporaryDirectory() as cache:
        env = os.environ | {"WEFT_CACHE_DIR": cache}
        command = [sys.executable, "-c", _FIRST_USE]
        said = [
            subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
            for _ in range(6)
        ]
    runs = [[float(v) for v in times.split()] for times in said]
    warm = runs[1:]
    median = lambda k: sorted(r[k] for r in warm)[len(warm) // 2]
    return [
        ("import weft, warm", median(0), 0.25),
        ("first use of an op, cold kernel", max(runs[0][1:]), 0.060),
        ("first use of an op, warm from disk", max(median(1), median(2)), 0.005),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the time per row")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--json", help="write the figures to a file")
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    wf.set_num_threads(THREADS)
    rows: list[Row] = []
    print(f"weft and torch {torch.__version__}, {THREADS} threads; ratio below 1: weft is faster")
    for title, bar, pairs in SECTIONS:
        shown = False
        for name, ours, theirs in pairs():
            if args.only not in f"{title} {name}":
                continue
            if not shown:
                print(heading(title, "weft", "torch"))
                shown = True
            row = compare(name, ours, theirs, budget=0.1 if args.quick else 0.8, bar=bar)
            rows.append(row)
            print(row, flush=True)
    if not args.only:
        print("\nstart-up")
        for name, seconds, allowed in start_up():
            print(f"{name:36s} {seconds * 1e3:10.1f} ms   at most {allowed * 1e3:g}")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(
                [
                    {"name": r.name, "weft": r.ours, "torch": r.theirs, "ratio": r.ratio}
                    for r in rows
                ],
                file,
                indent=1,
            )
    over = [r.name for r in rows if r.bar is not None and r.ratio > r.bar]
    print(
        f"\n{len(rows) - len(over)} of {len(rows)} rows within their bar"
        + (f"; above: {', '.join(over)}" if over else "")
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
