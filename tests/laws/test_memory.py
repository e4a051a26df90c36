"""The law of memory: no kernel touches a byte outside its operands.

Every launch that a sample and its gradients make runs again on copies of its operands, each against
a page that nobody may touch (behind it, then before it), operands write-protected, results and
scratch memory full of garbage, tasks one by one in a random order: no fault, and the same bits. A
fault ends the process, so this runs in one of its own that says what it is at.

Nor does garbage cost time: where it is denormal numbers, which many machines are slow with, none
of them is computed with.
"""

from __future__ import annotations

import numpy as np
from launches import NAN, TINY, Run

import weft as wf
from tests.laws import big, tails
from tests.laws.child import Child, at
from tests.laws.lab import all_good, each, everything, same_bits, spread
from tests.laws.watch import Seen, watching
from weft.ops.define import OPS

CHILDREN = [Child("tests.laws.test_memory", WEFT_NUM_THREADS="3")]


def test_no_kernel_touches_memory_outside_its_operands():
    said, _ = CHILDREN[0].outcome()
    print(f"\n{said}")


def again(seen: Seen) -> None:
    """The launch once more, between walls."""
    tasks = max((p.tasks for p in seen.launch.phases), default=0)
    workers = wf.get_num_threads() if seen.launch.heavy else 1
    denormal = []
    for behind, garbage in ((True, NAN), (False, TINY)):
        split = 1 if tasks <= 64 else None
        how = Run(workers, split, int(behind), guard=behind, garbage=garbage)
        got = how.raw(seen.launch, seen.functions, seen.operands)
        same_bits(got, seen.results, f"{seen.plan.call} between guard pages,")
        denormal.append(how.denormal)
    assert denormal[0] == denormal[1], f"{seen.plan.call} computes with what was in its memory"


def check(case):
    at(case)
    everything(case)
    xs = [spread(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in case.sample.args]
    at(f"{case}, operands with gaps")
    case.op(*xs, **case.sample.attrs)


def check_tails():
    for n in tails.LENGTHS:
        at(f"tails of {n}")
        for op in ("add", "exp", "where"):
            tails.elements(OPS[op], n)
        for op in tails.FOLDS:
            tails.columns(op, n)
        for op in tails.ROWWISE:
            tails.rows(op, n)


def main():
    count = [0]

    def look(seen):
        count[0] += 1
        again(seen)

    with watching(look):
        samples = each([*all_good(), *big.cases()], check)
        check_tails()
    print(f"{samples} samples, {count[0]} launches between guard pages")


if __name__ == "__main__":
    main()
