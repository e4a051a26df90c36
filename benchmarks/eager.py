"""Eager Weft beside eager PyTorch: cost per call on tiny tensors, throughput on large ones,
start-up.

    python -m benchmarks.eager [--quick] [--only WORD] [--json FILE]

A ratio below 1 means that Weft is faster. Both sides use two threads, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from benchmarks.compare import Peer, Timing, difference, duration, install, measure, present

BARS = {  # section: what the ratio may be at most
    "tiny tensors": 0.7,
    "tiny tensors, gradient noted": 0.7,
    "small network": 0.7,
    "matmul": 1.0,
    "convolution": 1.0,
    "bandwidth": 1.0,
}
TOLERANCE = 1e-4  # of the largest element: sums are added in different orders

_FIRST_USE = """
import time
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
    install()
    with tempfile.TemporaryDirectory() as cache:
        env = os.environ | {"WEFT_CACHE_DIR": cache}
        command = [sys.executable, "-c", _FIRST_USE]
        said = [
            subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
            for _ in range(6)
        ]
    runs = [[float(v) for v in times.split()] for times in said]
    imported, first, second = (statistics.median(column) for column in zip(*runs[1:], strict=True))
    return [
        ("import weft, warm", imported, 0.25),
        ("first use of an op, cold kernel", max(runs[0][1:]), 0.060),
        ("first use of an op, warm from disk", max(first, second), 0.005),
    ]


def line(name: str, ours: Timing, theirs: Timing, bar: float) -> tuple[str, float]:
    """A row of the table, and its ratio."""
    ratio = ours.median / theirs.median
    verdict = "ok" if ratio <= bar else f"ABOVE {bar:g}"
    apart = difference({"weft": ours, "torch": theirs})
    if apart > TOLERANCE:
        verdict += f", RESULTS DIFFER by {apart:.1e}"
    text = (
        f"{name:36s} {duration(ours.median):>10s} {duration(theirs.median):>10s} {ratio:8.2f}"
        f" {ours.min / theirs.min:8.2f}  {verdict}"
    )
    return text, ratio


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the time per row")
    parser.add_argument("--only", default="", help="rows whose section or name contains this")
    parser.add_argument("--json", help="write the figures to a file")
    args = parser.parse_args()
    budget = 0.015 if args.quick else 0.15
    module = "benchmarks.eager_rows"
    figures, above = [], []
    with Peer("weft", module, "weft") as weft, Peer("torch", module, "torch") as torch:
        if len(present([weft, torch])) < 2:
            return 1
        print("weft and torch, 2 threads, a process each; ratio below 1: weft is faster")
        shown = ""
        for case in weft.ask("names"):
            section, name = case.split(": ", 1)
            if args.only not in case:
                continue
            if section != shown:
                head = f"{'weft':>10s} {'torch':>10s} {'ratio':>8s} {'of min':>8s}"
                print(f"\n{section}\n{'':36s} {head}")
                shown = section
            timings, failures = measure(case, [weft, torch], budget=budget)
            if failures:
                print(f"{name:36s} {failures}")
                continue
            ours, theirs = timings["weft"], timings["torch"]
            text, ratio = line(name, ours, theirs, BARS[section])
            print(text, flush=True)
            figures.append(
                {"name": case, "weft": ours.median, "torch": theirs.median, "ratio": ratio}
            )
            if ratio > BARS[section]:
                above.append(name)
    if not args.only:
        print("\nstart-up")
        for name, seconds, allowed in start_up():
            print(f"{name:36s} {seconds * 1e3:10.1f} ms   at most {allowed * 1e3:g}")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(figures, file, indent=1)
    print(
        f"\n{len(figures) - len(above)} of {len(figures)} rows within their bar"
        + (f"; above: {', '.join(above)}" if above else "")
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
