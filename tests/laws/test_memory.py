"""The law of memory: no kernel touches a byte outside its operands.

Every launch that a sample and its gradients make runs again on copies of its operands, each against
a page that nobody may touch (behind it, then before it), operands write-protected, results and
scratch memory full of garbage, tasks one by one in a random order. A fault ends the process, so
this runs in one of its own that says what it is at.
"""

from __future__ import annotations

import sys

import numpy as np
from launches import Run

import weft as wf
from tests.laws.child import Child, at
from tests.laws.lab import all_good, each, everything, same_bits, spread
from tests.laws.watch import Seen, watching


def look(seen: Seen) -> None:
    for behind in (True, False):
        tasks = max((p.tasks for p in seen.launch.phases), default=0)
        workers = wf.get_num_threads() if seen.launch.heavy else 1
        how = Run(workers, 1 if tasks <= 64 else None, int(behind), guard=behind)
        got = how.raw(seen.launch, seen.functions, seen.operands)
        same_bits(got, seen.results, f"{seen.plan.call} by hand")


def _strided(case):
    xs = [spread(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in case.sample.args]
    case.op(*xs, **case.sample.attrs)


def check(case):
    at(case)
    everything(case)
    _strided(case)


def main():
    counted = []
    with watching(lambda seen: (look(seen), counted.append(1))):
        samples = each(all_good(), check)
    print(f"{samples} samples, {len(counted)} launches between guard pages")


CHILD = Child("tests.laws.test_memory", WEFT_NUM_THREADS="3")


def test_no_kernel_touches_memory_outside_its_operands():
    print("\n" + CHILD.output())


if __name__ == "__main__":
    sys.exit(main())
