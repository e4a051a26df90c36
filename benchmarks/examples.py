"""Training steps of the examples, compiled by Weft, beside PyTorch (eager and compiled).

    python -m benchmarks.examples [digits images chargpt sentiment dates listings vae oscillator
                                   cartpole trees]
                                  [--peers weft,torch.eager] [--quick] [--json FILE]

The same models, first weights and batches; the losses of the first six steps have to agree. All
with two threads. torch.compile takes forward and backward; its update is PyTorch's own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
from typing import Any

from benchmarks.compare import Peer, Timing, difference, duration, measure, present
from benchmarks.workloads.of_examples import NAMES

PEERS = {  # name: module and mode
    "torch.eager": ("examples_with_torch", "eager"),
    "torch.compile": ("examples_with_torch", "compile"),
    "weft.eager": ("examples_with_weft", "eager"),
    "weft.compile": ("examples_with_weft", "compile"),
}
OURS = "weft.compile"
TOLERANCE = 2e-3  # of the largest loss; six training steps apart


def table(case: str, timings: dict[str, Timing], failures: dict[str, str]) -> None:
    """Times of one example, and how often ours goes into each."""
    print(f"\n{case}")
    for name, t in timings.items():
        ratio = f"{t.median / timings[OURS].median:6.2f}" if OURS in timings else ""
        print(f"  {name:15s} {duration(t.median):>10s} {duration(t.min):>10s} min {ratio}")
    for name, why in failures.items():
        print(f"  {name:15s} fails: {why[:120]}")
    if len(timings) > 1:
        apart = difference(timings)
        verdict = "agree" if apart <= TOLERANCE else "DIFFER"
        print(f"  losses {verdict}: {apart:.1e} apart")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", choices=[[], *NAMES])
    parser.add_argument(
        "--peers",
        default=",".join(PEERS),
        help="names, comma between; the part before the dot stands for all modes of a peer",
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the time per row")
    parser.add_argument("--json", help="write the figures to a file")
    args = parser.parse_args()
    asked = args.peers.split(",")
    figures: dict[str, dict[str, Any]] = {}
    leads = []
    with contextlib.ExitStack() as stack:
        wanted = [n for n in PEERS if n in asked or n.split(".")[0] in asked]
        started = []
        for name in wanted:
            module, mode = PEERS[name]
            started.append(Peer(name, f"benchmarks.workloads.{module}", mode))
            stack.enter_context(started[-1])
        peers = present(started)
        for case in args.what or NAMES:
            timings, failures = measure(case, peers, budget=0.03 if args.quick else 0.3)
            table(case, timings, failures)
            figures[case] = {n: {"median": t.median, "min": t.min} for n, t in timings.items()}
            others = [t.median for n, t in timings.items() if not n.startswith("weft")]
            if others and OURS in timings:
                leads.append(min(others) / timings[OURS].median)
    if leads:
        mean = math.exp(sum(map(math.log, leads)) / len(leads))
        print(f"\n{mean:.2f} times as fast as the fastest other (geometric mean of {len(leads)})")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(figures, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
