"""The law of targets: AVX-512, AVX2 and SSE2 code gives the same bits, for results, gradients,
every length of a tail and what integers do at their ends.

Code for a target that LLVM cannot make ends the process, so each runs in one of its own.
"""

from __future__ import annotations

import pytest

from tests.laws import integers
from tests.laws.child import Child, at, found
from tests.laws.lab import all_good, differences, each, everything, failed
from tests.laws.tails import every_tail

BASELINES = {cpu: Child("tests.laws.test_targets", WEFT_CPU=cpu) for cpu in ("haswell", "x86-64")}
CHILDREN = list(BASELINES.values())
pytestmark = pytest.mark.xdist_group("targets")  # they share what this machine gives


def every_array():
    """Every array that every sample gives, by the sample's name."""
    arrays = {}

    def collect(case):
        at(case)
        arrays[str(case)] = everything(case)

    each(all_good(), collect)
    at("tails")
    arrays |= every_tail()
    at("integers")
    return arrays | {what: [got] for what, got, _ in (*integers.results(), *integers.casts())}


@pytest.fixture(scope="module")
def native():
    return every_array()


@pytest.mark.parametrize("cpu", BASELINES)
def test_every_target_gives_the_same_bits(cpu, native):
    _, other = BASELINES[cpu].outcome()
    failures = [
        said
        for name in native.keys() & other.keys()
        for said in differences(other[name], native[name], name)
    ]
    failed(failures, len(native))
    assert not native.keys() ^ other.keys()
    print(f"\n{cpu}: {len(native)} samples and tails, {sum(map(len, native.values()))} arrays")


if __name__ == "__main__":
    found(every_array())
