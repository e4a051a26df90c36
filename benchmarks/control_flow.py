"""Programs whose control flow depends on tensors: Weft beside PyTorch (eager, compiled) and JAX.

    python -m benchmarks.control_flow [W10 W11 W12 decoder newton nested] [--peers weft,torch.eager]
                                      [--quick] [--limit SECONDS] [--json FILE]

W10: an LSTM as a Python loop, trained on 60 batches, each of its own length. W11: a Tree-LSTM,
recursion in Python around compiled cells, trained on 40 trees. W12: an iteration until it
converges. `decoder`: a greedy decoder that stops at a word. `newton`: Newton's method and the
gradient through it. `nested`: loops with a break. For W10 and W11 a call is a pass over all steps,
so `first` is the first pass with everything that is captured and compiled for it, and figures are
per step. Loops are Python's in PyTorch, `lax.while_loop` and `lax.scan` in JAX. In
`weft.recursion` a tree is arrays, as in JAX, and the step that goes through it one program. A peer
whose first pass takes longer than the limit is left out. Two threads.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from typing import Any

from benchmarks.compare import Peer, Timing, difference, duration, measure, present

PEERS = {  # name: module and mode
    "torch.eager": ("control_with_torch", "eager"),
    "torch.fused": ("control_with_torch", "fused"),
    "torch.compile": ("control_with_torch", "compile"),
    "jax": ("control_with_jax", "jit"),
    "jax.padded": ("control_with_jax", "padded"),
    "weft.eager": ("control_with_weft", "eager"),
    "weft.compile": ("control_with_weft", "compile"),
    "weft.recursion": ("control_with_weft", "recursion"),
}
CASES = {  # what, and steps of a call
    "W10": ("LSTM of 60 lengths, trained", 60),
    "W11": ("Tree-LSTM, trained", 40),
    "W12": ("until it converges", 1),
    "decoder": ("greedy, stops early", 1),
    "newton": ("cube roots and their gradient", 1),
    "nested": ("loops with a break", 1),
}
TOLERANCE = 2e-3  # of the largest element
LIMIT = 60.0  # seconds for what a peer's first calls may take, if nothing else is said


def peer(name: str) -> Peer:
    module, mode = PEERS[name]
    return Peer(name, f"benchmarks.workloads.{module}", mode)


def compared(
    wanted: list[str], names: list[str], budget: float, limit: float = LIMIT
) -> dict[str, dict[str, Any]]:
    """A table per case, and the ratio of the fastest other's median to that of our fastest mode."""
    figures: dict[str, dict[str, Any]] = {}
    for case in wanted:
        what, steps = CASES[case]
        with contextlib.ExitStack() as stack:
            peers = present([stack.enter_context(peer(name)) for name in names])
            timings, failures = measure(case, peers, budget=budget, limit=limit)
        print(f"\n{case} {what}" + (", per step" if steps > 1 else ""))
        for name, t in timings.items():
            print(
                f"  {name:20s} {duration(t.median / steps):>10s} {duration(t.min / steps):>10s} min"
                f" {duration(t.first / steps):>10s} first"
            )
        for name, why in failures.items():
            print(f"  {name:20s} fails: {why[:120]}")
        if len(timings) > 1:
            apart = difference(timings)
            print(f"  results {'agree' if apart <= TOLERANCE else 'DIFFER'}: {apart:.1e} apart")
        if any(_ours(n) for n in timings) and not all(_ours(n) for n in timings):
            ahead = f"{lead(timings, 'median'):.2f} times as fast as the fastest other"
            if steps > 1:
                ahead += f", {lead(timings, 'first'):.2f} times in the first pass"
            print(f"  weft: {ahead}")
        figures[case] = {
            n: {"median": t.median, "min": t.min, "first": t.first} for n, t in timings.items()
        }
        sys.stdout.flush()
    return figures


def lead(timings: dict[str, Timing], which: str) -> float:
    """The time of the fastest other to that of our fastest mode."""
    others, own = (
        min(float(getattr(t, which)) for name, t in timings.items() if _ours(name) is ours)
        for ours in (False, True)
    )
    return others / own


def _ours(name: str) -> bool:
    return name.startswith("weft.")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", choices=[[], *CASES])
    parser.add_argument(
        "--peers",
        default=",".join(PEERS),
        help="names, comma between; the part before the dot stands for all modes of a peer",
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the time per row")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for first calls")
    parser.add_argument("--json", help="write the figures to a file")
    args = parser.parse_args()
    asked = args.peers.split(",")
    names = [n for n in PEERS if n in asked or n.split(".")[0] in asked]
    budget = 0.03 if args.quick else 0.3
    figures = compared(args.what or list(CASES), names, budget, args.limit)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(figures, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
