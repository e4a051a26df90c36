"""The law of targets: AVX-512, AVX2 and SSE2 code gives the same bits, for results, gradients and
every length of a tail.

Code for a target that LLVM cannot make ends the process, so each runs in one of its own.
"""

from __future__ import annotations

import pickle
import sys

import pytest

from tests.laws.child import Child, at
from tests.laws.lab import all_good, differences, each, everything, failed
from tests.laws.tails import every_tail

BASELINES = ("haswell", "x86-64")


def found():
    """Every array that every sample gives, by the sample's name."""
    arrays = {}

    def collect(case):
        at(case)
        arrays[str(case)] = everything(case)

    each(all_good(), collect)
    at("tails")
    arrays |= every_tail()
    return arrays


def main(path):
    with open(path, "wb") as file:
        pickle.dump(found(), file)


@pytest.fixture(scope="module")
def native():
    return found()


@pytest.mark.parametrize("cpu", BASELINES)
def test_every_target_gives_the_same_bits(cpu, native, tmp_path):
    path = tmp_path / "arrays"
    Child("tests.laws.test_targets", str(path), WEFT_CPU=cpu).output()
    other = pickle.loads(path.read_bytes())
    assert other.keys() == native.keys()
    failures = [
        said for name, want in native.items() for said in differences(other[name], want, name)
    ]
    failed(failures, len(native))
    print(f"\n{cpu}: {len(native)} samples, {sum(map(len, native.values()))} arrays")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
