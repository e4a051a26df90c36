"""Compiled Weft beside PyTorch (eager and compiled), JAX and ONNX Runtime on whole workloads.

    python -m benchmarks.compiled [W1 … W9 call first memory] [--peers weft,torch.eager] [--quick]
                                  [--json FILE]

W1 elementwise, W2 norm, W3 mlp_train, W4 tiny_infer, W5 tiny_train, W6 cnn_train, W7 gpt_train,
W8 gpt_infer, W9 resnet_infer: time of a step. `call`: of a compiled function that does nothing with
ten tensors. `first`: the first call in a fresh process, with empty and with filled caches.
`memory`: what gpt_train at batch 32, length 256 adds to a fresh process. All with two threads.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
import tempfile
from typing import Any

from benchmarks.compare import (
    Peer,
    PeerError,
    Timing,
    difference,
    duration,
    measure,
    present,
)

PEERS = {  # name: module and mode
    "torch.eager": ("with_torch", "eager"),
    "torch.channels_last": ("with_torch", "channels_last"),
    "torch.compile": ("with_torch", "compile"),
    "jax": ("with_jax", "jit"),
    "onnx": ("with_onnx", "session"),
    "weft.eager": ("with_weft", "eager"),
    "weft.compile": ("with_weft", "compile"),
}
OURS = "weft.compile"
STEPS = {
    "W1": "elementwise",
    "W2": "norm",
    "W3": "mlp_train",
    "W4": "tiny_infer",
    "W5": "tiny_train",
    "W6": "cnn_train",
    "W7": "gpt_train",
    "W8": "gpt_infer",
    "W9": "resnet_infer",
    "call": "10 tensors, nothing done",
}
FIRST = ("W1", "W3", "W6", "W7")
TOLERANCE = 2e-3  # of the largest element; six training steps apart
CACHES = (
    "WEFT_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "JAX_COMPILATION_CACHE_DIR",
)
Figures = dict[str, dict[str, Any]]


def peer(name: str, env: dict[str, str] | None = None) -> Peer:
    module, mode = PEERS[name]
    return Peer(name, f"benchmarks.workloads.{module}", mode, env)


def steps(wanted: list[str], names: list[str], budget: float) -> Figures:
    """A table per workload: median, minimum, and how many times as fast as the fastest other we
    are by either. On a machine that does other things too, minima say more.
    """
    figures: Figures = {}
    ratios: list[tuple[float, float]] = []
    with contextlib.ExitStack() as stack:
        peers = present([stack.enter_context(peer(name)) for name in names])
        for case in wanted:
            timings, failures = measure(case, peers, budget=budget)
            print(f"\n{case} {STEPS[case]}")
            for name, t in timings.items():
                print(
                    f"  {name:20s} {duration(t.median):>10s} {duration(t.min):>10s} min"
                    f" {duration(t.first):>10s} first"
                )
            for name, why in failures.items():
                print(f"  {name:20s} fails: {why[:120]}")
            if len(timings) > 1 and case != "call":
                apart = difference(timings)
                verdict = "agree" if apart <= TOLERANCE else "DIFFER"
                print(f"  results {verdict}: {apart:.1e} apart")
            if OURS in timings and len(timings) > 1 and case != "call":
                ratios.append((_lead(timings, "median"), _lead(timings, "min")))
                typical, best = ratios[-1]
                print(
                    f"  {OURS}: {typical:.2f} times as fast as the fastest other"
                    f" ({best:.2f} by minima)"
                )
            figures[case] = {
                n: {"median": t.median, "min": t.min, "first": t.first} for n, t in timings.items()
            }
            sys.stdout.flush()
    if len(ratios) > 1:
        typical, best = (
            math.exp(sum(map(math.log, column)) / len(ratios))
            for column in zip(*ratios, strict=True)
        )
        print(
            f"\ngeometric mean over {len(ratios)} workloads: {typical:.2f} times as fast"
            f" ({best:.2f} by minima)"
        )
    return figures


def _lead(timings: dict[str, Timing], figure: str) -> float:
    others = [getattr(t, figure) for name, t in timings.items() if not name.startswith("weft")]
    return float(min(others, default=math.nan) / getattr(timings[OURS], figure))


def first_calls(names: list[str]) -> Figures:
    """Seconds of the first call: with empty caches, then in a second process with the same."""
    figures: Figures = {}
    print(f"\nfirst call{'':18s}{'cold':>10s} {'warm':>10s}")
    for case in FIRST:
        for name in names:
            times = []
            with tempfile.TemporaryDirectory() as folder:
                env = {variable: f"{folder}/{variable}" for variable in CACHES}
                try:
                    for _ in range(2):
                        with peer(name, env) as process:
                            if case not in process.ask("names"):
                                break
                            times.append(process.ask("start", case)[0])
                except PeerError as error:
                    print(f"  {case:4s} {name:16s} fails: {str(error)[:100]}")
            if len(times) == 2:
                print(f"  {case:4s} {name:18s} {duration(times[0]):>10s} {duration(times[1]):>10s}")
                figures[f"first {case} {name}"] = {"cold": times[0], "warm": times[1]}
    return figures


def memory(names: list[str]) -> Figures:
    """Bytes that training GPT adds to a fresh process: by the first step, and at the third's
    peak.
    """
    figures: Figures = {}
    print(f"\nmemory, W13{'':17s}{'growth':>10s} {'steady':>10s}")
    for name in names:
        with peer(name) as process:
            try:
                if "W13" in process.ask("names"):
                    growth, steady = process.ask("memory", "W13")
                    print(f"  {name:23s} {growth / 1e6:7.0f} MB {steady / 1e6:7.0f} MB", flush=True)
                    figures[f"memory {name}"] = {"growth": growth, "steady": steady}
            except PeerError as error:
                print(f"  {name:23s} fails: {str(error)[:100]}")
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", choices=[[], *STEPS, "first", "memory"])
    parser.add_argument(
        "--peers",
        default=",".join(PEERS),
        help="names, comma between; the part before the dot stands for all modes of a peer",
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the time per row")
    parser.add_argument("--json", help="write the figures to a file")
    args = parser.parse_args()
    what = args.what or [*STEPS, "first", "memory"]
    asked = args.peers.split(",")
    names = [n for n in PEERS if n in asked or n.split(".")[0] in asked]
    figures: Figures = {}
    if wanted := [case for case in STEPS if case in what]:
        figures |= steps(wanted, names, 0.03 if args.quick else 0.3)
    if "first" in what:
        figures |= first_calls(names)
    if "memory" in what:
        figures |= memory(names)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(figures, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
